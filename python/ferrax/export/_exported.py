"""`export`, `Exported`, `deserialize`.

An exported function is its program, traced for given types, with the rules for derivatives and for saving memory left
out, in the text that ferrax prints and reads. Its pullback is a program of its own, made when it is first asked for.
Read next: `_format.py` for the bytes, `_trees.py` for structures.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._api import jit
from ferrax._core import ShapedArray, asarray
from ferrax._derivatives import vjp
from ferrax._evaluate import evaluate, traced
from ferrax._parameters import own
from ferrax._shape_dtype import ShapeDtypeStruct
from ferrax._shapes import is_symbolic_dim
from ferrax._texts import differences, short
from ferrax.custom_derivatives import custom_vjp
from ferrax.dtypes import issubdtype
from ferrax.export._checks import NEWEST, OLDEST, check_donation, convention, note_use, noting
from ferrax.export._format import pack, unpack
from ferrax.export._shardings import (
    of_arguments,
    of_results,
    over,
    over_mesh_in_use,
    placed,
    placed_results,
    read_sharding,
    write_sharding,
)
from ferrax.export._trees import read_tree, write_tree
from ferrax.sharding._jit import without_placing

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "default_export_platform",
    "deserialize",
    "export",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
]

minimum_supported_calling_convention_version = OLDEST
maximum_supported_calling_convention_version = NEWEST

# operations that carry functions of Python's, and the parameter with the program that they stand for
_RULES = {
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
}
# how many programs a function with symbolic sizes keeps
_MOST_PROGRAMS = 256
_CALLBACKS = frozenset(["debug_callback", "debug_print", "ffi_call", "io_callback", "pure_callback"])


@dataclass(frozen=True)
class DisabledSafetyCheck:
    """A check that exporting and calling leave out.

    >>> import ferrax as jax
    >>> jax.export.DisabledSafetyCheck.platform()
    platform
    """

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Lets a function run on platforms that it was not exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Lets a function be exported that calls a target by name; programs of ferrax have no such calls."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The target of a `custom_call` check; None for others."""
        return self._impl.removeprefix("custom_call:") if self._impl.startswith("custom_call:") else None

    def __str__(self) -> str:
        return self._impl

    __repr__ = __str__


@dataclass(frozen=True)
class Exported:
    """A function's program for arguments of certain types; `export` and `deserialize` make it.

    Attributes:
      fun_name: the function's name.
      in_tree: structure of `(args, kwargs)`.
      in_avals: types of the arguments, flat.
      out_tree: structure of the result.
      out_avals: types of the results, flat.
      nr_devices: number of devices of the arguments' meshes; a call's arguments are on as many, in any mesh.
      platforms: names of the platforms it is for.
      ordered_effects, unordered_effects: empty: functions that call Python are not exported.
      disabled_safety_checks: as given to `export`.
      mlir_module_serialized: the program in ferrax's own form (`export/_format.py`).
      calling_convention_version: of JAX's, for compatibility.
      module_kept_var_idx: numbers of all arguments.
      uses_global_constants: whether its program depends on sizes or on the platform that it is called on; one that
        calls such a function does, too.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> exported = jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((2,), jnp.float32))
    >>> print(jax.export.deserialize(exported.serialize()).call(jnp.zeros(2)))
    [0. 0.]
    """

    fun_name: str
    in_tree: Any
    in_avals: tuple[Any, ...]
    out_tree: Any
    out_avals: tuple[Any, ...]
    _has_named_shardings: bool
    _in_named_shardings: tuple[Any, ...]
    _out_named_shardings: tuple[Any, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Any, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes = field(repr=False)
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None = field(repr=False)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def mlir_module(self) -> str:
        """The program as StableHLO, with names and lines: `jit(f).lower(...).as_text(debug_info=True)`.

        Raises:
          NotImplementedError: it has symbolic sizes.
        """
        if self._parts[1]:
            raise NotImplementedError("StableHLO of programs with symbolic sizes is not implemented")
        from ferrax._stablehlo_text import readable
        from ferrax._stages import result_names

        text = readable(
            str(_ferrax.stablehlo_text(self._program, [], True)), self.fun_name, result_names(self.out_tree)
        )
        text = _named(text, self.fun_name, unpack(self.mlir_module_serialized)[0].get("names"))
        dependent = f"jax.uses_shape_polymorphism = {str(self.uses_global_constants).lower()}"
        return text.replace(" attributes {", f" attributes {{{dependent}, ", 1)

    def in_shardings_jax(self, mesh: Any) -> tuple[Any, ...]:
        """Shardings of the arguments on a mesh; None for those that it was exported without.

        Raises:
          ValueError: the mesh is of another size, or has other axes, than the one of the export.
        """
        return tuple(None if s is None else over(mesh, s) for s in self._in_named_shardings)

    def out_shardings_jax(self, mesh: Any) -> tuple[Any, ...]:
        """Shardings of the results on a mesh; None for those that follow from the arguments'.

        Raises:
          ValueError: the mesh is of another size, or has other axes, than the one of the export.
        """
        return tuple(None if s is None else over(mesh, s) for s in self._out_named_shardings)

    def has_vjp(self) -> bool:
        """Whether the function can be differentiated."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The pullback: of the flat arguments and the results' cotangents, gives the arguments' cotangents.

        Those of arguments without derivatives are arrays of `False`.

        Raises:
          ValueError: the file has no pullback.
        """
        if self._get_vjp is None:
            raise ValueError("No VJP is available")
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The bytes of a file.

        Args:
          vjp_order: how often the function that is read from it can be differentiated in reverse mode.

        Raises:
          ValueError: the order is negative, or larger than this function has.
        """
        if vjp_order < 0:
            raise ValueError(f"vjp_order must be at least 0, got {vjp_order}")
        parts = [np.frombuffer(self.mlir_module_serialized, np.uint8)]
        if vjp_order:
            parts.append(np.frombuffer(self.vjp().serialize(vjp_order - 1), np.uint8))
        return pack({"function": _fields(self)}, parts)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result; works under transformations.

        Raises:
          ValueError: the arguments do not have the structure or the types that it was exported for, or the platform is
            none of its own.
        """
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(self._wrong_tree(tree))
        values = [asarray(x) for x in leaves]
        self._check(values)
        if self.uses_global_constants:
            note_use()
        values = placed(self.fun_name, self._in_named_shardings, self.nr_devices, values)
        outs = _called(self)(*values)
        return self.out_tree.unflatten(placed_results(self._out_named_shardings, values, outs))

    @functools.cached_property
    def _parts(self) -> tuple[str, list[Any], list[Any]]:
        """The text, the symbolic sizes in it, and the constants."""
        header, consts = unpack(self.mlir_module_serialized)
        text, sizes = header.get("program"), header.get("sizes", [])
        if not isinstance(text, str) or not isinstance(sizes, list):
            raise ValueError("the file is malformed: it has no program")
        if sizes:
            from ferrax._symbolic import _programs

            scope = _programs.scope_of([a.shape for a in self.in_avals])
            if scope is None:
                raise ValueError("the file is malformed: it has symbolic sizes, and no argument that has one")
            sizes = [_programs.read(s, scope) for s in sizes]
        from ferrax.config import enable_x64

        with enable_x64(True):  # constants of 64 bits stay such
            return text, sizes, [asarray(c) for c in consts]

    def _read(self, sizes: Sequence[Any]) -> Any:
        """The program for sizes in place of its symbolic ones."""
        text, symbolic, consts = self._parts
        if symbolic:
            from ferrax._symbolic._programs import with_sizes

            text = with_sizes(text, sizes)
        return _ferrax.read_program(text, consts)

    def _for(self, shapes: Sequence[Any]) -> Any:
        """The program for arguments of these shapes.

        Raises:
          ValueError: they do not fit the symbolic sizes.
        """
        if not self._parts[1]:
            return self._program
        key = tuple(shapes)
        if (found := self._programs.get(key)) is not None:
            return found
        from ferrax._symbolic import _programs
        from ferrax._symbolic._solve import solve

        variables = solve([(name, aval.shape) for name, aval in self._named_avals], shapes)
        if len(self._programs) >= _MOST_PROGRAMS:
            self._programs.pop(next(iter(self._programs)))
        program = self._programs[key] = self._read(_programs.evaluated(self._parts[1], variables))
        return program

    @functools.cached_property
    def _programs(self) -> dict[Any, Any]:
        """Programs by the shapes that they are for."""
        return {}

    @functools.cached_property
    def _named_avals(self) -> list[tuple[str, Any]]:
        """How errors call the arguments, and their types."""
        paths = tree_util.tree_flatten_with_path(self.in_tree.unflatten(self.in_avals))[0]
        return [(_name(path), aval) for path, aval in paths]

    @functools.cached_property
    def _program(self) -> Any:
        program = self._read(self._parts[1])
        for what, want, got in (
            ("arguments", self.in_avals, program.in_avals),
            ("results", self.out_avals, program.out_avals),
        ):
            if [(a.shape, a.dtype) for a in want] != [(a.shape, a.dtype) for a in got]:
                raise ValueError(f"the file is malformed: the program has {what} of other types than it says")
        return program

    def _wrong_tree(self, tree: Any) -> str:
        lines = differences(self.in_tree, tree, "the exported function", "the invocation", "(args, kwargs)")
        return (
            f"The invocation args and kwargs must have the same pytree structure as when the function "
            f"'{self.fun_name}' was exported, but they have the following structural differences:"
            + lines.replace("(args, kwargs)[0]", "args").replace("(args, kwargs)[1]", "kwargs")
        )

    def _check(self, values: Sequence[Any]) -> None:
        for (name, want), x in zip(self._named_avals, values, strict=True):
            if x.ndim != len(want.shape):
                raise ValueError(f"Rank mismatch for {name}: expected {want.shape} and called with {x.shape}")
            for i, (n, m) in enumerate(zip(want.shape, x.shape, strict=True)):
                if n != m and not is_symbolic_dim(n):
                    raise ValueError(
                        f"Shape mismatch for {name}.shape[{i}] (expected same constant): expected {want.shape} "
                        f"and called with {x.shape}"
                    )
            if x.dtype != want.dtype:
                raise ValueError(f"Dtype mismatch for {name}: expected {want.dtype} and called with {x.dtype}")
        here = default_export_platform()
        if here not in self.platforms and DisabledSafetyCheck.platform() not in self.disabled_safety_checks:
            raise ValueError(
                f"Function '{self.fun_name}' was exported for platforms '{self.platforms}' but it is used on "
                f"'({here!r},)'."
            )


def _name(path: Any) -> str:
    """`args[0]['k']` or `kwargs['n']` of a path in `(args, kwargs)`."""
    return ("args", "kwargs")[path[0].idx] + tree_util.keystr(path[1:]) if path else "(args, kwargs)"


def _called(exported: Exported) -> Callable[..., list[Any]]:
    """A function of flat values, whose derivative is the exported pullback."""

    def run(*values: Any) -> list[Any]:
        program = exported._for([x.shape for x in values])
        return list(_ferrax.run_jaxpr(program, list(values), [False] * len(values), []))

    run.__name__ = exported.fun_name
    called = custom_vjp(run)

    def backward(values: Any, cotangents: Any) -> Any:
        pullback = exported.vjp()
        given = [ct if _differs(a) else np.zeros(ct.shape, bool) for a, ct in zip(exported.out_avals, cotangents)]
        pulled = _called(pullback)(*values, *map(asarray, given))
        return tuple(ct if _differs(a) else None for a, ct in zip(exported.in_avals, pulled, strict=True))

    called.defvjp(lambda *values: (run(*values), values), backward)
    return called


def _differs(aval: Any) -> bool:
    return bool(issubdtype(aval.dtype, np.inexact))


def default_export_platform() -> str:
    """The platform that `export` is for when nothing is said: that of the default device.

    >>> import ferrax as jax
    >>> jax.export.default_export_platform()
    'cpu'
    """
    from ferrax._devices import default_backend

    return default_backend()


def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """Exports a jitted function.

    Args:
      fun_jit: a jitted function, or a function of the library's.
      platforms: names of the platforms that it may be called on; None for the default one.
      disabled_checks: checks to leave out.
      _override_lowering_rules: must be None.

    Returns:
      A function of arguments (arrays, or `ShapeDtypeStruct`s of their types) that gives an `Exported`.

    Raises:
      ValueError: the function is not jitted, or the setting `jax_export_calling_convention_version` is none that is
        known.
      NotImplementedError: it calls Python, or has an operation that is not implemented for symbolic sizes.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> exported = jax.export.export(jax.jit(lambda x: 2 * x))(1.0)
    >>> print(exported.call(4.0), jax.grad(exported.call)(4.0))
    8.0 2.0
    """
    jitted, shardings_of = without_placing(fun_jit)
    if not isinstance(jitted, _ferrax.jit_type()) and _is_library_function(jitted):
        jitted = jit(jitted)
    if not isinstance(jitted, _ferrax.jit_type()):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {short(fun_jit)}")
    if _override_lowering_rules:
        raise NotImplementedError("export with _override_lowering_rules is not implemented")
    if isinstance(platforms, str):
        raise ValueError(f"platforms must be a sequence of names, got the string {platforms!r}")
    wanted = tuple(platforms) if platforms is not None else (default_export_platform(),)

    def exporter(*args: Any, **kwargs: Any) -> Exported:
        if "ferrax._symbolic._scopes" in sys.modules:  # without it, there is no symbolic size
            from ferrax._symbolic._programs import check_scopes

            check_scopes(args, kwargs, getattr(jitted, "__name__", "<unnamed function>"))
        version = convention()
        with noting(jitted) as uses:
            stage = jitted.trace(*args, **kwargs)
        check_donation(wanted, stage.donate_argnums)
        program = stage.jaxpr
        if program.captured:
            raise ValueError("a function that closes over traced values cannot be exported")
        # arguments that are no arrays are static, and no leaves of the program
        leaves = tree_util.tree_leaves((args, kwargs))
        shardings = leaves if len(leaves) == len(program.in_avals) else [None] * len(program.in_avals)
        if shardings_of is not None:
            asked = shardings_of(args, kwargs)
            shardings = [x if s is None else SimpleNamespace(sharding=s) for s, x in zip(asked, shardings, strict=True)]
        exported = _exported(
            stage.fun_name,
            program,
            stage.in_tree,
            stage.out_tree,
            wanted,
            tuple(disabled_checks),
            shardings,
            devices=over_mesh_in_use(),
        )
        return replace(
            exported,
            calling_convention_version=version,
            uses_global_constants=exported.uses_global_constants or uses[0],
        )

    return exporter


def _is_library_function(fun: Any) -> bool:
    """Whether it is a function of arrays such as `ferrax.numpy.cos`: most of these are jitted in JAX."""
    module = getattr(fun, "__module__", None) or ""
    return callable(fun) and not isinstance(fun, type) and module.startswith(("ferrax.numpy", "ferrax.nn"))


def _without_rules(program: Any) -> Any:
    """A program without functions of Python's."""

    def rule(equation: Any, values: list[Any]) -> Any:
        name = equation.primitive.name
        if name in _CALLBACKS:
            raise NotImplementedError(f"serialization of host_callbacks is not yet implemented: the program has {name}")
        if name == "sharding_constraint":  # the results' are fields of the file; between, they move nothing
            return values
        inner = _RULES.get(name)
        if inner:
            return evaluate(own(equation.params)[inner], values, rule)
        primitive = equation.primitive
        if primitive._ferrax_built_in:
            return None
        # one of Python's is known by its name here alone: what it is lowered to takes its place
        types = [_ferrax.typeof(x) for x in values]
        lowered = traced(lambda *args: primitive._ferrax_lower(list(args), equation.params), types, "export")
        return evaluate(lowered, [*lowered.captured, *values], rule)

    return traced(lambda *args: evaluate(program, args, rule), program.in_avals)


_ARGUMENT = re.compile(r"(%arg(\d+): tensor<[^>]*>(?: \{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})?)(?=[,)])")


def _named(text: str, name: str, arguments: Any) -> str:
    """The text of a module with the names of the function and its arguments, which the program in the file lacks."""
    text = text.replace('loc("jit()/', f'loc("jit({name})/')
    if not isinstance(arguments, list) or not all(isinstance(x, str) for x in arguments):
        return text
    lines = text.split("\n")
    # the main function comes first
    at = next((i for i, line in enumerate(lines) if "func.func public @main" in line), None)
    if at is None:
        return text

    def with_name(found: re.Match[str]) -> str:
        number = int(found[2])
        return f'{found[1]} loc("{arguments[number]}")' if number < len(arguments) else found[1]

    head, arrow, results = lines[at].partition(" -> ")
    lines[at] = _ARGUMENT.sub(with_name, head) + arrow + results
    return "\n".join(lines)


def _exported(
    name: str,
    program: Any,
    in_tree: Any,
    out_tree: Any,
    platforms: tuple[str, ...],
    disabled: tuple[Any, ...],
    arguments: Sequence[Any],
    results: Sequence[Any] | None = None,
    devices: int = 1,
) -> Exported:
    results = of_results(program) if results is None else results
    plain = _without_rules(program)
    text, consts = _ferrax.write_program(plain)
    header = _with_symbolic_sizes(plain, text) if _ferrax.symbolic_sizes_in(text) else {"program": text}
    header["names"] = list(program.jaxpr.debug_info.arg_names or ())
    in_avals, out_avals = tuple(program.in_avals), tuple(program.out_avals)
    exported = Exported(
        fun_name=name,
        in_tree=in_tree,
        in_avals=in_avals,
        out_tree=out_tree,
        out_avals=out_avals,
        **_places([*arguments, *(SimpleNamespace(sharding=s) for s in results)], len(in_avals), devices),
        platforms=platforms,
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=disabled,
        mlir_module_serialized=bytes(pack(header, [np.asarray(c) for c in consts])),
        calling_convention_version=maximum_supported_calling_convention_version,
        module_kept_var_idx=tuple(range(len(in_avals))),
        uses_global_constants="sizes" in header or len(platforms) > 1,
        _get_vjp=lambda exported: _pullback(exported, program),
    )
    # what cannot be read back is no export
    _ = exported._program
    if "sizes" in header:
        from ferrax._symbolic._solve import check_solvable

        check_solvable([(name, aval.shape) for name, aval in exported._named_avals])
    return exported


def written(name: str, program: Any) -> bytes:
    """A program as bytes that `deserialize` reads, its arguments a tuple, and its results one."""
    arguments = [SimpleNamespace(sharding=None) for _ in program.in_avals]
    in_tree = tree_util.tree_structure((tuple(0 for _ in arguments), {}))
    out_tree = tree_util.tree_structure(tuple(0 for _ in program.out_avals))
    exported = _exported(name, program, in_tree, out_tree, (default_export_platform(),), (), arguments)
    return bytes(exported.serialize())


def _with_symbolic_sizes(program: Any, text: str) -> dict[str, Any]:
    """The header of a file for a program with symbolic sizes."""
    from ferrax._symbolic import _programs
    from ferrax._symbolic._solve import check_known

    _programs.scope_of([a.shape for a in program.in_avals])
    text, sizes = _programs.marked(text)
    check_known(sizes, [a.shape for a in program.in_avals])
    return {"program": text, "sizes": [str(s) for s in sizes]}


def _places(leaves: Sequence[Any], arguments: int, otherwise: int = 1) -> dict[str, Any]:
    """The fields that say where arguments and results are, from things with a sharding for each of them.

    Args:
      leaves: the arguments, and the results.
      arguments: how many of these are arguments.
      otherwise: the number of devices, where none of them has a sharding.
    """
    shardings, devices = of_arguments(leaves)
    if all(s is None for s in shardings):
        devices = otherwise
    results = len(shardings) - arguments
    return {
        "_has_named_shardings": True,
        "_in_named_shardings": shardings[:arguments],
        "_out_named_shardings": shardings[arguments:],
        "in_shardings_hlo": (None,) * arguments,
        "out_shardings_hlo": (None,) * results,
        "nr_devices": devices,
    }


def _pullback(exported: Exported, program: Any) -> Exported:
    """The pullback of a program, from before its rules were left out."""
    from ferrax.numpy import zeros

    n = len(exported.in_avals)

    def pulled(*args: Any) -> tuple[Any, ...]:
        primals, cotangents = args[:n], args[n:]
        on = [i for i, a in enumerate(exported.in_avals) if _differs(a)]
        of = [i for i, a in enumerate(exported.out_avals) if _differs(a)]

        def fun(*active: Any) -> list[Any]:
            values = list(primals)
            for i, x in zip(on, active, strict=True):
                values[i] = x
            outs = program.eval(*values)
            return [outs[i] for i in of]

        _, pull = vjp(fun, *(primals[i] for i in on))
        of_active = iter(pull([cotangents[i] for i in of]))
        return tuple(next(of_active) if _differs(a) else zeros(a.shape, bool) for a in exported.in_avals)

    pulled.__name__ = f"{exported.fun_name}_vjp"
    types = [*exported.in_avals, *(a if _differs(a) else ShapedArray(a.shape, bool) for a in exported.out_avals)]
    structs = [ShapeDtypeStruct(a.shape, a.dtype) for a in types]
    stage = jit(pulled).trace(*structs)
    cotangents = exported._in_named_shardings
    return _exported(
        pulled.__name__,
        stage.jaxpr,
        stage.in_tree,
        stage.out_tree,
        exported.platforms,
        tuple(exported.disabled_safety_checks),
        [SimpleNamespace(sharding=s) for s in (*cotangents, *exported._out_named_shardings)],
        cotangents,
        exported.nr_devices,
    )


def _fields(e: Exported) -> dict[str, Any]:
    """The fields of a function that a file has, as JSON."""
    size = lambda d: str(d) if is_symbolic_dim(d) else d
    types = lambda avals: [[list(map(size, a.shape)), str(a.dtype), bool(a.weak_type)] for a in avals]
    symbolic = next((d for a in e.in_avals for d in a.shape if is_symbolic_dim(d)), None)
    return {
        "fun_name": e.fun_name,
        "in_tree": write_tree(e.in_tree),
        "in_avals": types(e.in_avals),
        "out_tree": write_tree(e.out_tree),
        "out_avals": types(e.out_avals),
        "in_shardings": [write_sharding(s) for s in e._in_named_shardings],
        "out_shardings": [write_sharding(s) for s in e._out_named_shardings],
        "platforms": list(e.platforms),
        "disabled_safety_checks": [c._impl for c in e.disabled_safety_checks],
        "calling_convention_version": e.calling_convention_version,
        "uses_global_constants": e.uses_global_constants,
        "nr_devices": e.nr_devices,
        "symbolic_constraints": None if symbolic is None else symbolic.scope._texts,
    }


def deserialize(blob: bytes | bytearray) -> Exported:
    """Reads an exported function.

    Args:
      blob: bytes that `Exported.serialize` gave. Reading them runs no code of theirs.

    Returns:
      The function.

    Raises:
      ValueError: the bytes are damaged or no exported function, or name classes that are not registered here.

    >>> import ferrax as jax
    >>> try:
    ...     jax.export.deserialize(b"something else")
    ... except ValueError as error:
    ...     print(error)
    the bytes are no function that ferrax exported
    """
    header, parts = unpack(blob)
    try:
        e = _read(header["function"], parts)
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"the file is malformed: {type(error).__name__}: {error}") from None
    _ = e._program
    return e


def _read(fields: dict[str, Any], parts: list[Any]) -> Exported:
    if len(parts) not in (1, 2) or not all(p.dtype == np.uint8 and p.ndim == 1 for p in parts):
        raise ValueError("the file is malformed: it does not hold one program, or one and its pullback")
    in_tree, out_tree = read_tree(fields["in_tree"]), read_tree(fields["out_tree"])
    scope = None
    if fields.get("symbolic_constraints") is not None:
        from ferrax._symbolic._scopes import SymbolicScope

        scope = SymbolicScope(list(map(str, fields["symbolic_constraints"])))
    in_avals, out_avals = (tuple(_type(t, scope) for t in fields[key]) for key in ("in_avals", "out_avals"))
    if (in_tree.num_leaves, out_tree.num_leaves) != (len(in_avals), len(out_avals)):
        raise ValueError("the file is malformed: structures have other numbers of leaves than there are types")
    # files of older versions have no shardings
    places: list[Any] = []
    for key, avals in (("in_shardings", in_avals), ("out_shardings", out_avals)):
        read = [read_sharding(s) for s in fields.get(key, [None] * len(avals))]
        if len(read) != len(avals):
            raise ValueError("the file is malformed: it has another number of shardings than of arguments or results")
        places += (SimpleNamespace(sharding=s) for s in read)
    pullback = deserialize(parts[1].tobytes()) if len(parts) == 2 else None
    return Exported(
        fun_name=str(fields["fun_name"]),
        in_tree=in_tree,
        in_avals=in_avals,
        out_tree=out_tree,
        out_avals=out_avals,
        **_places(places, len(in_avals), int(fields.get("nr_devices", 1))),
        platforms=tuple(map(str, fields["platforms"])),
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=tuple(DisabledSafetyCheck(str(c)) for c in fields["disabled_safety_checks"]),
        mlir_module_serialized=parts[0].tobytes(),
        calling_convention_version=int(fields["calling_convention_version"]),
        module_kept_var_idx=tuple(range(len(in_avals))),
        uses_global_constants=bool(fields.get("uses_global_constants", False)),
        _get_vjp=None if pullback is None else lambda _: pullback,
    )


def _type(data: Any, scope: Any) -> Any:
    shape, name, weak = data
    if scope is not None:
        from ferrax._symbolic._programs import read

        sizes = tuple(read(d, scope) for d in shape)
        shape = [1 if is_symbolic_dim(d) else d for d in sizes]
    if not all(type(n) is int and 0 <= n < 2**48 for n in shape):
        raise ValueError(f"the file is malformed: a shape {shape}")
    if str(name).startswith("key<"):
        dtype = _key_dtype(str(name))
    else:
        dtype = np.dtype(getattr(ml_dtypes, str(name), None) or str(name))
    return ShapedArray(tuple(shape) if scope is None else sizes, dtype, bool(weak))


def _key_dtype(name: str) -> Any:
    from ferrax.random import key

    dtype = key(0).dtype
    if str(dtype) != name:
        raise ValueError(f"the file has random keys of a kind that is not known here: {name}")
    return dtype
