"""Ahead-of-time compilation: `jit(f).trace(...)`, `.lower(...)`, `.compile()`.

`Traced` holds the program, `Lowered` its text, `Compiled` runs it on arguments of exactly the traced types.
Read next: `_api.py`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ferrax import _ferrax, tree_util
from ferrax._boundary import expose as _expose, shielded
from ferrax._stage_arguments import (
    anywhere,
    committed_sharding,
    formats_of,
    has_devices,
    same_place,
    shape_and_dtype,
    type_text,
)
from ferrax._texts import differences


class CacheInfo(NamedTuple):
    """Counters of a jitted function's programs.

    All that `jit` makes of one function object with one set of options share programs and counters.

    Args:
      hits: calls that found their program.
      misses: calls that traced.
      currsize: programs kept.
      bytes: memory they take, about.
    """

    hits: int
    misses: int
    currsize: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ArgInfo:
    """What is known of one argument: its type, and whether it is donated.

    Args:
      _aval: shape, dtype and weak type.
      donated: whether the call may take its buffer.

    >>> import ferrax
    >>> ferrax.jit(lambda x: x + 1).lower(2.0).args_info[0][0].donated
    False
    """

    _aval: Any
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self._aval.dtype


@dataclass(frozen=True)
class _Function:
    """A traced function, which the stages hand on.

    Attributes:
      name: its name.
      program: its program.
      in_tree: structure of `(args, kwargs)`.
      donated: for each argument whether it is donated; empty where none is.
      shardings: for each argument where it is, or None.
      compiler_options: what the engine's compiler is told, as names and values.
      out_shardings: where results are asked to be, or None.
      moves: whether arguments that are committed to other devices are moved.
    """

    name: str
    program: Any
    in_tree: Any
    donated: Sequence[bool]
    shardings: Sequence[Any]
    compiler_options: Sequence[tuple[str, Any]] = ()
    out_shardings: Any = None
    moves: bool = False

    def args_info(self) -> Any:
        donated = self.donated or [False] * len(self.program.in_avals)
        return self.in_tree.unflatten([ArgInfo(a, d) for a, d in zip(self.program.in_avals, donated, strict=True)])


class _Stage:
    """What every stage knows of the function."""

    def __init__(self, function: _Function, args_info: Any, out_tree: Any):
        self._shardings = function.shardings
        self._name = function.name
        self._program = function.program
        self._in_tree = function.in_tree
        self._donated = function.donated
        self._function = function
        self._out_tree = out_tree
        self._args_info = args_info

    @property
    def in_tree(self) -> Any:
        """Structure of `(args, kwargs)`."""
        return self._in_tree

    @property
    def out_tree(self) -> Any:
        """Structure of the result."""
        return self._out_tree

    @property
    def in_avals(self) -> Any:
        """Types of the arguments, as a tree."""
        return self._in_tree.unflatten(self._program.in_avals)

    @property
    def args_info(self) -> Any:
        """Types of the arguments and whether they are donated, as a tree."""
        return self._args_info

    @property
    def out_info(self) -> Any:
        """Types of the results, as a tree of `ShapeDtypeStruct`."""
        from ferrax._shape_dtype import struct_of

        info = self._out_tree.unflatten([struct_of(a) for a in self._program.out_avals])
        if self._function.out_shardings is None:
            return info
        from ferrax.sharding._jit import told

        return told(info, self._function.out_shardings)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Flat positions of the donated arguments."""
        return tuple(i for i, d in enumerate(self._donated) if d)


def result_names(tree: Any) -> list[str]:
    """What the results of a function are called, such as `result['a'][0]`."""
    paths, _ = tree_util.tree_flatten_with_path(tree.unflatten(range(tree.num_leaves)))
    return [f"result{tree_util.keystr(path)}" for path, _ in paths]


def _only(what: str, given: Any, cls: type) -> Any:
    """An argument of a stage's constructor, which is what another stage gave."""
    if not isinstance(given, cls):
        raise TypeError(f"{what} is made by the stage before it: jit(f).trace(...), .lower(), .compile()")
    return given


class Traced(_Stage):
    """A function traced for arguments of certain types; `jit(f).trace(...)` makes it.

    Args:
      meta_tys_flat: types of the arguments.
      params: the program and what is known of it: `name`, `jaxpr`, `donated_invars`, `in_shardings`.
      in_tree: structure of `(args, kwargs)`.
      out_tree: structure of the result.
      consts: values of the program's constants, in front of its arguments; must be empty: programs have them.

    >>> import ferrax as jax
    >>> traced = jax.jit(lambda x: x + 1).trace(1)
    >>> print(traced.fun_name)
    <lambda>
    """

    def __init__(self, meta_tys_flat: Any, params: dict[str, Any], in_tree: Any, out_tree: Any, consts: Any):
        if consts:
            raise NotImplementedError("Traced with consts: programs of ferrax hold their constants")
        function = _Function(
            params["name"],
            _only("Traced", params["jaxpr"], _ferrax.ClosedJaxpr),
            in_tree,
            params["donated_invars"],
            params["in_shardings"],
            params.get("compiler_options_kvs", ()),
            params.get("out_shardings"),
            params.get("moves", False),
        )
        super().__init__(function, function.args_info(), out_tree)
        self._types = list(meta_tys_flat)

    @property
    def jaxpr(self) -> Any:
        """The program."""
        return self._program

    @property
    def lojax(self) -> Traced:
        """The function with arrays alone: itself."""
        return self

    @property
    def fun_name(self) -> str:
        """The function's name."""
        return self._name

    @property
    def out_avals(self) -> Any:
        """Types of the results, as a tree."""
        return self._out_tree.unflatten(self._program.out_avals)

    def lower(self, *, lowering_platforms: Any = None, _private_parameters: Any = None) -> Lowered:
        """The function lowered for this machine."""
        from ferrax.sharding._assignment import check_abstract

        _check_devices(self._function)
        check_abstract(self._shardings, lowering_platforms)
        effects = sys.modules.get("ferrax.extend.core._effects")  # without it, nobody has defined a primitive
        if effects is not None:
            from ferrax._src.effects import lowerable_effects

            effects.refuse_effects(ValueError, "Cannot lower jaxpr with effects", lowerable_effects, self._program)
        return Lowered(self._function, self._args_info, self._out_tree)


class StableHLO:
    """A program in the dialect StableHLO.

    Args:
      text: the module.

    >>> import ferrax as jax
    >>> str(jax.jit(lambda x: x + 1).lower(1).compiler_ir()).startswith("module")
    True
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<StableHLO module of {len(self._text.splitlines())} lines>"


class MemoryStats(NamedTuple):
    """Bytes that a run of a compiled program takes.

    Args:
      generated_code_size_in_bytes: 0: the embedded engine makes no machine code.
      argument_size_in_bytes: in the arguments.
      output_size_in_bytes: in the results.
      alias_size_in_bytes: of the results', what donated arguments give.
      temp_size_in_bytes: beside these, at most; 0 where the engine does not know.
      peak_memory_in_bytes: all of it at one time, at most.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jax.jit(lambda x: x + 1).lower(jnp.ones(8)).compile().memory_analysis().output_size_in_bytes
    32
    """

    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    peak_memory_in_bytes: int


def _check_dialect(dialect: str | None) -> None:
    if dialect not in (None, "stablehlo"):
        raise ValueError(f"unknown dialect: {dialect}")


def _cost(program: Any) -> dict[str, float]:
    flops, transcendentals, moved = _ferrax.work(program)
    counts = {"flops": flops, "transcendentals": transcendentals, "bytes accessed": moved}
    return {name: count for name, count in counts.items() if count}


class Lowered(_Stage):
    """A function lowered for a platform, not yet compiled; `jit(f).lower(...)` makes it.

    Args:
      lowering: the function, as the stage before it knows it.
      args_info: types of the arguments and whether they are donated, as a tree.
      out_tree: structure of the result.
      no_kwargs: whether calls of what is compiled take no keyword arguments.
      in_types, out_types: accepted for compatibility: the program knows them.

    >>> import ferrax as jax
    >>> lowered = jax.jit(lambda x: x + 1).lower(1)
    >>> print(lowered.as_text("jaxpr"))
    { lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }
    >>> "stablehlo.add" in lowered.as_text()
    True
    """

    def __init__(
        self,
        lowering: Any,
        args_info: Any,
        out_tree: Any,
        no_kwargs: bool = False,
        in_types: Any = None,
        out_types: Any = None,
    ):
        super().__init__(_only("Lowered", lowering, _Function), args_info, out_tree)
        self._no_kwargs = no_kwargs

    @property
    def out_info(self) -> Any:
        """Types of the results, as a tree of `ShapeDtypeStruct`; none is weak any more."""
        return tree_util.tree_map(lambda s: s.update(weak_type=False), super().out_info)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text.

        Args:
          dialect: `"stablehlo"` (also `None`) for what plugins of XLA compile, `"jaxpr"` for the traced program,
            `"kernels"` for what runs on the default device, `"hlo"` for the traced program in XLA's own form.
          debug_info: whether StableHLO and HLO say what arguments are called, and which operation, in which scopes
            (`named_scope`), their operations are from; StableHLO says the line, too.

        Returns:
          A text of several lines.

        Raises:
          ValueError: the dialect is unknown.
          NotImplementedError: the dialect is `"hlo"`, and an operation of the program has no text in it.

        >>> import ferrax as jax
        >>> '%arg0: tensor<f32> loc("x")' in jax.jit(lambda x: x + 1).lower(1.0).as_text(debug_info=True)
        True
        """
        if dialect == "kernels":
            return str(_ferrax.kernels_text(self._program, []))
        if dialect == "jaxpr":
            return str(self._program)
        if dialect == "hlo":
            return self._hlo(debug_info).as_hlo_text()
        _check_dialect(dialect)
        return self._stablehlo(debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program as an object, whose `str` is its text: as `"stablehlo"` (also `None`), `"jaxpr"` or `"hlo"`."""
        if dialect == "jaxpr":
            return self._program
        if dialect == "hlo":
            return self._hlo(False)
        _check_dialect(dialect)
        return StableHLO(self._stablehlo(False))

    def _hlo(self, named: bool) -> Any:
        from ferrax._hlo_text import HloModule

        return HloModule(self._name, self._program, named)

    def _stablehlo(self, placed: bool) -> str:
        from ferrax._stablehlo_text import readable

        names = result_names(self._out_tree)
        shown = self._shown()
        if shown is None:
            return readable(str(_ferrax.stablehlo_text(self._program, self._mask(), placed)), self._name, names)
        # a program that is made here has no names and lines
        text = str(_ferrax.stablehlo_text(self._program if placed else shown.program, self._mask(), placed))
        return readable(shown.counted(text), self._name, names, shown.results)

    def _shown(self) -> Any:
        """The program with what is known of its shardings, for its text; `None` where nobody says where it runs."""
        from ferrax.sharding._jit import flat_results
        from ferrax.sharding._sdy import Shown

        results = flat_results(self._program.out_avals, self._out_tree, self._function.out_shardings)
        shown = Shown(self._program, self._shardings, results)
        return shown if shown.over_a_mesh else None

    def _mask(self) -> list[bool]:
        """Which parameters of the program are donated; empty where none is."""
        return [False] * len(self._program.captured) + list(self._donated) if self._donated else []

    def cost_analysis(self) -> dict[str, float]:
        """Counts of what the program computes: see `Compiled.cost_analysis`."""
        return _cost(self._program)

    def compile(self, compiler_options: Any = None, *, device_assignment: Any = None) -> Compiled:
        """The function compiled for this machine.

        Args:
          compiler_options: options of the engine's compiler, by name, beside those of `jit`, which they replace.
          device_assignment: the devices to run on, in the order of the mesh, where arguments have shardings over an
            abstract mesh; otherwise those that the arguments' shardings say.

        Returns:
          A `Compiled`.

        Raises:
          JaxRuntimeError: the compiler knows no option of this name.
          RuntimeError: shardings are over an abstract mesh, and no devices are given.
          ValueError: the devices are not those of the shardings, or their number is not the size of the mesh.

        >>> import ferrax as jax
        >>> print(jax.jit(lambda x: x + 1).lower(1).compile(compiler_options={})(2))
        3
        """
        from ferrax.sharding._assignment import on_devices
        from ferrax.sharding._propagation import inspected

        options = {**dict(self._function.compiler_options), **(compiler_options or {})}
        shardings = on_devices(self._shardings, device_assignment)
        function = replace(self._function, compiler_options=tuple(options.items()), shardings=shardings)
        _ferrax.compile_jaxpr(self._program, self._mask(), function.compiler_options)
        compiled = Compiled(function, self._program.captured, self._args_info, self._out_tree, self._no_kwargs)
        if inspected():
            _ = compiled.output_shardings  # the program is gone through, and those who ask are told
        return compiled


class Compiled(_Stage):
    """A compiled function: takes arguments of exactly the traced types; `jit(f).lower(...).compile()` makes it.

    Args:
      executable: the function, as the stage before it knows it.
      const_args: values in front of the arguments: those that the function closes over.
      args_info: types of the arguments and whether they are donated, as a tree.
      out_tree: structure of the result.
      no_kwargs: whether calls take no keyword arguments.
      in_types, out_types: accepted for compatibility: the program knows them.

    >>> import ferrax as jax
    >>> compiled = jax.jit(lambda x: x + 1).lower(1).compile()
    >>> print(compiled(2))
    3
    """

    def __init__(
        self,
        executable: Any,
        const_args: Any,
        args_info: Any,
        out_tree: Any,
        no_kwargs: bool = False,
        in_types: Any = None,
        out_types: Any = None,
    ):
        super().__init__(_only("Compiled", executable, _Function), args_info, out_tree)
        self._consts, self._no_kwargs = list(const_args), no_kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._no_kwargs and kwargs:
            raise NotImplementedError(
                "function was compiled by a transformation that does not support keyword arguments, but called with "
                f"keyword arguments: {', '.join(kwargs)}"
            )
        leaves, tree = tree_util.tree_flatten((args, kwargs))
        if tree != self._in_tree:
            lines = differences(self._in_tree, tree, "the compiled call", "this call", "(args, kwargs)")
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was called with. The function "
                f"is {self._name}:" + lines.replace("(args, kwargs)[0]", "args").replace("(args, kwargs)[1]", "kwargs")
            )
        tracer = next((x for x in leaves if _ferrax.is_tracer(x)), None)
        if tracer is not None:
            raise TypeError(
                "Cannot apply JAX transformations to a function lowered and compiled for a particular signature. "
                f"Detected argument of Tracer type {type(tracer)}."
            )
        self._check_types(leaves)
        leaves = self._placed(leaves)
        donated = [False] * len(self._consts) + list(self._donated or [False] * len(leaves))
        options = self._function.compiler_options
        return self._out_tree.unflatten(_ferrax.run_jaxpr(self._program, [*self._consts, *leaves], donated, options))

    def _placed(self, leaves: list[Any]) -> list[Any]:
        """The arguments over the devices that the program was lowered for; those that are committed must be there."""
        if not any(map(has_devices, self._shardings)):
            return leaves
        from ferrax._devices import device_put

        places = self._places()
        single = any(isinstance(s, _ferrax.SingleDeviceSharding) for s in self._shardings)
        asked = [has_devices(places[i] if single else s) for i, s in enumerate(self._shardings)]
        moved, wrong = [], []
        for i, (leaf, sharding, moves) in enumerate(zip(leaves, places, asked, strict=True)):
            have = getattr(leaf, "sharding", None) if getattr(leaf, "committed", False) else None
            if self._function.moves:
                have = None
            if moves and have is not None and not same_place(have, sharding, leaf.ndim):
                shape = type_text(leaf.shape, leaf.dtype)
                asked_text = f"  Passed sharding: {have}\n  Required sharding: {sharding}"
                wrong.append(f"{self._argument(i)} with shape {shape}:\n{asked_text}")
            moved.append(device_put(leaf, sharding) if moves and have is None else leaf)
        if wrong:
            lines = "\n".join(wrong)
            raise ValueError(
                "Computation was compiled for input shardings that disagree with the shardings of arguments passed to "
                f"it. Here are the {len(wrong)} mismatches:\n{lines}"
            )
        return moved

    def _places(self) -> list[Any]:
        """Where each argument has to be."""
        mesh = next((s.mesh for s in self._shardings if hasattr(s, "mesh")), None)
        single = next((s for s in self._shardings if isinstance(s, _ferrax.SingleDeviceSharding)), None)
        return [(single or anywhere(mesh)) if s is None else s for s in self._shardings]

    def _operands(self) -> list[Any]:
        """The places that the program's operands are committed to; none where they are on the default device."""
        from ferrax.sharding._placement import place

        if not any(map(has_devices, self._shardings)):
            return []
        places = [place(s) if has_devices(s) else None for s in self._places()]
        return [*[None] * len(self._program.captured), *places]

    def _argument(self, i: int) -> str:
        names = self._program.argument_names()
        return f"Argument {names[i]}" if i < len(names) else f"Argument number {i}"

    def _check_types(self, leaves: list[Any]) -> None:
        """Raises where arguments have other types than the program was compiled for, and names each of them."""
        wrong = []
        for i, (leaf, want) in enumerate(zip(leaves, self._program.in_avals, strict=True)):
            shape, dtype = shape_and_dtype(leaf)
            if shape != want.shape or dtype != want.dtype:
                wrong.append((i, type_text(want.shape, want.dtype), type_text(shape, dtype)))
        if not wrong:
            return
        names = self._program.argument_names()
        lines = (
            f"Argument '{names[i] if i < len(names) else f'number {i}'}' compiled with {want} and called with {got}\n"
            for i, want, got in wrong
        )
        raise TypeError(
            "Argument types differ from the types for which this computation was compiled. Perhaps you are calling the "
            "compiled executable with a different enable_x64 mode than when it was AOT compiled? The mismatches are:\n"
            f"{''.join(lines)}It is a call of {self._name}."
        )

    @property
    def out_info(self) -> Any:
        """Types of the results, with their formats, as a tree of `ShapeDtypeStruct`."""
        from ferrax.experimental.layout import row_by_row

        placed = lambda s, sharding: s.update(sharding=row_by_row(s.shape, sharding), weak_type=False)
        return tree_util.tree_map(placed, super().out_info, self.output_shardings)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program."""
        return self(*args, **kwargs)

    def as_text(self) -> str:
        """What runs, as text: kernels of the embedded engine, XLA's program of a plugin.

        Where arguments were lowered with shardings over several devices of a plugin, it is the program of one of them.
        """
        return str(_ferrax.kernels_text(self._program, self._operands()))

    def cost_analysis(self) -> dict[str, float]:
        """Counts of what the program computes, before any engine fuses it.

        Returns:
          A dictionary: `flops` (additions, multiplications and the like of elements), `transcendentals` (exponentials,
          sines, powers) and `bytes accessed` by all operations, those that are not zero.

        >>> import ferrax as jax, ferrax.numpy as jnp
        >>> jax.jit(jnp.dot).lower(jnp.ones((2, 3)), jnp.ones((3, 4))).compile().cost_analysis()["flops"]
        48.0
        """
        return _cost(self._program)

    def memory_analysis(self) -> MemoryStats:
        """Bytes that a run takes, as `MemoryStats`; on one of several devices of a plugin."""
        captured = [False] * len(self._program.captured)
        donated = [*captured, *self._donated] if self._donated else []
        arguments, results, given, temporary = _ferrax.memory_use(self._program, self._operands(), donated)
        temporary = temporary or 0
        return MemoryStats(0, arguments, results, given, temporary, arguments + results - given + temporary)

    @property
    def input_shardings(self) -> Any:
        """Where the arguments are that the program was lowered for, as a tree."""
        return self._in_tree.unflatten(self._places())

    @property
    def output_shardings(self) -> Any:
        """Where the results of such arguments go, as a tree."""
        from ferrax.sharding._placement import concrete
        from ferrax.sharding._propagation import shardings

        captured = [None] * len(self._program.captured)
        operands = [*captured, *(concrete(s) for s in self._shardings)]
        return self._out_tree.unflatten(shardings(self._program, operands))

    @property
    def input_formats(self) -> Any:
        """Where the arguments are, and the order of their axes in memory, as a tree of `Format`."""
        return formats_of(self._in_tree, self._program.in_avals, self.input_shardings)

    @property
    def output_formats(self) -> Any:
        """Where the results go, and the order of their axes in memory, as a tree of `Format`."""
        return formats_of(self._out_tree, self._program.out_avals, self.output_shardings)

    def runtime_executable(self) -> Any:
        """The object that runs: the compiled function itself."""
        return self

    @property
    def _executable(self) -> Any:
        from ferrax._executables import MeshExecutable

        return MeshExecutable.of(self)


def function_of(compiled: Compiled) -> tuple[str, Any, Sequence[bool], bool]:
    """The name of a compiled function, its program, which arguments are donated, whether it takes no keywords.

    Raises:
      NotImplementedError: it was lowered for arguments over several devices, or with options of the compiler.
    """
    function = compiled._function
    if any(s is not None for s in function.shardings) or function.compiler_options:
        raise NotImplementedError("a compiled function with shardings or compiler options is not written")
    return function.name, function.program, function.donated, compiled._no_kwargs


def compiled_of(
    name: str, program: Any, in_tree: Any, out_tree: Any, donated: Sequence[bool], no_kwargs: bool
) -> Compiled:
    """A compiled function made of what `function_of` gives."""
    function = _Function(name, program, in_tree, donated, [None] * len(program.in_avals))
    _ferrax.compile_jaxpr(program, [*[False] * len(program.captured), *donated] if donated else [], ())
    return Compiled(function, program.captured, function.args_info(), out_tree, no_kwargs)


def _check_devices(function: _Function) -> None:
    """Raises where arguments are committed to different devices."""
    found: dict[tuple[int, ...], str] = {}
    names = function.program.argument_names()
    for i, (sharding, aval) in enumerate(zip(function.shardings, function.program.in_avals, strict=True)):
        if not has_devices(sharding):
            continue
        devices = list(sharding._device_assignment)
        ids = tuple(d.id for d in devices)
        argument = names[i] if i < len(names) else f"number {i}"
        found.setdefault(
            ids,
            f"argument {argument} of {function.name} with shape {aval.str_short()} and with device ids {list(ids)} on "
            f"platform {devices[0].platform.upper()}",
        )
    if len(found) > 1:
        first, second, *_ = found.values()
        raise ValueError(f"Received incompatible devices for jitted computation. Got {first} and {second}")


def _trace(self: Any, *args: Any, **kwargs: Any) -> Traced:
    """Traces the function for arguments of these types, without running it."""
    clock = _ferrax.trace_clock()
    if any(getattr(x, "is_ref", False) for x in tree_util.tree_leaves((args, kwargs))):
        from ferrax._refs_stages import as_references

        args, kwargs = as_references((args, kwargs))
    try:
        return trace_over(self, args, kwargs)
    except (_ferrax.ReferenceUsed, NotImplementedError) as error:
        used = isinstance(error, _ferrax.ReferenceUsed) or _ferrax.references_since(clock)
        if not used or not hasattr(self, "_numbers") or hasattr(self, "_compiler_options"):
            raise
    from ferrax._refs_stages import traced

    return traced(self, args, kwargs, clock)


def trace_over(
    self: Any, args: tuple[Any, ...], kwargs: dict[str, Any], asked: list[Any] | None = None, moves: bool = False
) -> Traced:
    """Traces a jitted function for arguments of these types, which are where they say or as is asked.

    Args:
      self: the function.
      args, kwargs: its arguments.
      asked: for each leaf of the arguments that are not static the sharding it will have, or None.
      moves: whether a call moves arguments that are committed to other devices.
    """
    from ferrax._api import types_in_use

    with types_in_use((args, kwargs)):
        program, in_tree, out_tree, donated = _ferrax.jit_trace(self, args, kwargs)
    leaves = tree_util.tree_leaves((args, kwargs))
    # static arguments are no leaves of the program
    known = len(leaves) == in_tree.num_leaves
    shardings = [committed_sharding(x) if known else None for x in (leaves if known else range(in_tree.num_leaves))]
    if asked is not None:
        shardings = [own if s is None else s for s, own in zip(asked, shardings, strict=True)]
    out_shardings = None
    if hasattr(self, "_out_shardings"):
        from ferrax.sharding._jit import resolved

        asked_out, caller = self._out_shardings
        out_shardings = resolved(asked_out, "out_shardings", caller)  # in the mesh that is in use now
    params = {
        "name": getattr(self, "__name__", "<unknown>"),
        "jaxpr": program,
        "donated_invars": donated,
        "in_shardings": shardings,
        "out_shardings": out_shardings,
        "moves": moves,
        "compiler_options_kvs": tuple(getattr(self, "_compiler_options", {}).items()),
    }
    return Traced(program.in_avals, params, in_tree, out_tree, ())


def _lower(self: Any, *args: Any, **kwargs: Any) -> Lowered:
    """Traces and lowers the function for arguments of these types."""
    return _trace(self, *args, **kwargs).lower()


def _eval_shape(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Types of the result for arguments of these types."""
    return _trace(self, *args, **kwargs).out_info


def _cache_size(self: Any) -> int:
    """Number of programs kept."""
    return _cache_info(self).currsize


def _cache_info(self: Any) -> CacheInfo:
    """Counters: calls that found their program, calls that traced, programs kept and their bytes."""
    return CacheInfo(*_ferrax.jit_cache_info(self))


def _clear_cache(self: Any) -> None:
    """Forgets the programs of this function."""
    _ferrax.jit_clear_cache(self)


_METHODS: dict[str, Callable[..., Any]] = {
    "trace": _trace,
    "lower": _lower,
    "eval_shape": _eval_shape,
    "_cache_size": _cache_size,
    "cache_info": _cache_info,
    "clear_cache": _clear_cache,
    "_clear_cache": _clear_cache,
}
for _name, _method in _METHODS.items():
    setattr(_ferrax.jit_type(), _name, shielded(_method))
# for those who do not look through wrappers
_ferrax.jit_type().__signature__ = property(lambda self: inspect.signature(self.__wrapped__))
_ferrax.jit_type().__doc__ = """A jitted function.

>>> import ferrax
>>> isinstance(ferrax.jit(lambda x: x), ferrax.stages.Wrapped)
True
"""

_expose(globals())
