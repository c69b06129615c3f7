"""Top-level functions: `jit`, `vmap`, programs and shapes without running, names, waiting.

The work is done in Rust (`ferrax._ferrax`); this module gives the functions their signatures, resolves names and
numbers of arguments once, and documents them. Read next: `_derivatives.py` for `grad` and its kin, `_stages.py` for
ahead-of-time compilation, `lax/control_flow.py` for loops.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, overload

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._boundary import shielded, shielded_for
from ferrax._high_values import classes as high_classes
from ferrax._named_functions import name_of
from ferrax._rust import implemented_by
from ferrax._shape_dtype import ShapeDtypeStruct, struct_of
from ferrax._texts import differences, short
from ferrax._typed import Jitted, P, R

__all__ = [
    "block_until_ready",
    "clear_caches",
    "closure_convert",
    "copy_to_host_async",
    "device_get",
    "effects_barrier",
    "ensure_compile_time_eval",
    "eval_shape",
    "jit",
    "make_jaxpr",
    "typeof",
    "vmap",
]


def _indices(value: int | Iterable[int] | None, name: str) -> list[int]:
    if value is None:
        return []
    try:
        return [operator.index(value)]  # type: ignore[arg-type]
    except TypeError:
        pass
    if not isinstance(value, Iterable):
        raise TypeError(f"{name} must be an int or a sequence of ints, got {short(value)}")
    return [operator.index(v) for v in value]


def _names(value: str | Iterable[str] | None, name: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    names = list(value)
    if not all(isinstance(v, str) for v in names):
        raise TypeError(f"{name} must be a str or a sequence of strs, got {short(value)}")
    return names


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NOT_BY_KEYWORD = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)


def _resolve(
    fun: Callable[..., Any], nums: list[int], names: list[str], what: str, both: bool = False
) -> tuple[list[int], list[str]]:
    """Completes argument numbers by names and the other way round, and checks both against the signature.

    Where the caller gave both, even empty ones, nothing is completed.
    """
    if not nums and not names:
        return nums, names
    try:
        parameters = inspect.signature(fun).parameters
    except (TypeError, ValueError):
        if names and what == "donate":
            raise ValueError(
                f"Getting the signature of function {fun} failed. Pass donate_argnums instead of donate_argnames."
            ) from None
        return nums, names
    positional = [n for n, p in parameters.items() if p.kind in _POSITIONAL]
    by_keyword = [n for n, p in parameters.items() if p.kind not in _NOT_BY_KEYWORD]
    variadic = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values())
    keywords = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    name = getattr(fun, "__qualname__", repr(fun))
    for n in nums:
        if not variadic and not -len(positional) <= n < len(positional):
            raise ValueError(
                f"Jitted function has {what}_argnums={tuple(nums)}, but only accepts {len(positional)} positional "
                f"arguments. Function {name} has no argument {n}; its positional arguments are {', '.join(positional)}."
            )
    for key in names:
        if key not in by_keyword and (key in parameters or not keywords):
            why = "These are positional-only or variadic" if key in parameters else "Function does not take these args"
            raise ValueError(
                f"Jitted function has invalid argnames {{{key!r}}} in {what}_argnames. {why}. "
                f"The arguments of {name} are {', '.join(parameters)}."
            )
    return (nums, names) if both else completed(parameters, nums, names)


def completed(
    parameters: Mapping[str, inspect.Parameter], nums: list[int], names: list[str]
) -> tuple[list[int], list[str]]:
    """Numbers of arguments with their names, or the other way round, where one of the two is empty."""
    positional = [n for n, p in parameters.items() if p.kind in _POSITIONAL]
    if not names:
        picked = [positional[n] for n in nums if -len(positional) <= n < len(positional)]
        names = [n for n in picked if parameters[n].kind not in _NOT_BY_KEYWORD]
    elif not nums:
        nums = [i for i, n in enumerate(positional) if n in names]
    return nums, names


def _sharding_of_type(aval: Any) -> Any:
    from ferrax.sharding._named import of_type

    return of_type(aval)


_in_types = property(_sharding_of_type, doc="How such values are spread over the mesh in use, as far as types say it.")
setattr(_ferrax.ShapedArray, "sharding", _in_types)  # noqa: B010


def _unspecified(shardings: Any, caller: str = "jit") -> bool:
    """Whether shardings say nothing; `None` says something to `pjit`."""
    return (shardings is None and caller == "jit") or type(shardings).__name__ == "_Unspecified"


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
    donate: str = ...,
) -> Jitted[P, R]: ...
@overload
def jit(
    fun: None = ...,
    /,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
    donate: str = ...,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
    donate: str = "may",
) -> Any:
    """Compiles a function: it is traced once per signature of its arguments, then runs as one program.

    The signature of a call is the tree structure of the arguments, the shape, dtype and weak type of every leaf, and
    the values of the static arguments. Jitting the same function object again, with the same options, finds the
    programs it has. Programs are dropped with the function, and when all programs of the process pass a limit in
    bytes. Without `fun`, returns a decorator.

    Args:
      fun: function of arrays, or of pytrees of arrays, that is free of side effects.
      in_shardings: where the arguments are: a pytree prefix of the tuple of positional arguments, of shardings and,
        with a mesh in use, `PartitionSpec`s. `None` follows the data. Uncommitted arguments are put there.
      out_shardings: where the results go, a pytree prefix of the result.
      static_argnums: positions of arguments that are compile-time constants. They must be hashable.
      static_argnames: names of such arguments. Numbers and names complete each other through the signature.
      donate_argnums: positions of arguments whose memory the results may take over.
      donate_argnames: names of such arguments; they are donated when passed by keyword, too. A path such as
        ``"state['params']"`` or ``"state.opt[0]"`` donates what lies at and below it.
      keep_unused: accepted for compatibility: unused arguments cost nothing.
      device: deprecated: the device that uncommitted arguments are put on.
      backend: deprecated: the platform whose first device they are put on.
      inline: whether the program is copied into programs that call it.
      compiler_options: options of the engine's compiler, by name: XLA's flags such as
        ``"xla_cpu_enable_fast_math"`` for plugins. The embedded engine has no use for them; names are checked. Values
        are bools, numbers or texts. Functions with options are called from outside of other programs.
      donate: ``"may"`` warns once of donated arguments whose memory no result can use; ``"must"`` makes each call
        an error, with the reason, in which a donated argument's memory cannot be taken.

    Returns:
      A function with `fun`'s signature, and the methods `lower`, `trace`, `eval_shape`, `cache_info` and `clear_cache`.

    Raises:
      TypeError: an argument is neither static nor a pytree of arrays.
      ValueError: a static argument is not hashable, or was mutated after the function was traced; or an argument that
        must be donated cannot be; or a function with compiler options is called inside of another transformation.
      JaxRuntimeError: the compiler knows no option of this name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> @jax.jit
    ... def norm(x):
    ...     return jnp.sqrt(jnp.sum(x * x))
    >>> print(norm(jnp.array([3.0, 4.0])))
    5.0
    """
    shardings: dict[str, Any] = {
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "device": device,
        "backend": backend,
    }
    statics: dict[str, Any] = {"static_argnums": static_argnums, "static_argnames": static_argnames}
    donated: dict[str, Any] = {"donate_argnums": donate_argnums, "donate_argnames": donate_argnames, "donate": donate}
    if fun is None:
        options = {**shardings, **statics, **donated}
        return partial(jit, keep_unused=keep_unused, inline=inline, compiler_options=compiler_options, **options)
    return jit_called("jit", fun, inline=inline, compiler_options=compiler_options, **shardings, **statics, **donated)


def jit_called(
    caller: str,
    fun: Any,
    *,
    in_shardings: Any,
    out_shardings: Any,
    static_argnums: Any,
    static_argnames: Any,
    donate_argnums: Any,
    donate_argnames: Any,
    device: Any,
    backend: Any,
    inline: bool,
    compiler_options: Any,
    donate: str,
) -> Any:
    """`jit`, or `pjit`, which is `jit` that finds its mesh in `with mesh:`, too.

    Args:
      caller: `"jit"` or `"pjit"`; the others as in `jit`.
    """
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun}")
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {short(fun)}")
    if donate not in ("may", "must"):
        raise ValueError(f"donate must be 'may' or 'must', got {donate!r}")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun!r}")
    statics = _resolve(
        fun,
        _indices(static_argnums, "static_argnums"),
        _names(static_argnames, "static_argnames"),
        "static",
        static_argnums is not None and static_argnames is not None,
    )
    names = _names(donate_argnames, "donate_argnames")
    paths = [n for n in names if not n.isidentifier()]
    names = [n for n in names if n.isidentifier()]
    numbers, names = _resolve(fun, _indices(donate_argnums, "donate_argnums"), names, "donate")
    made = (statics, numbers, names + paths, donate == "must", inline, compiler_options)
    placed = not (_unspecified(in_shardings) and _unspecified(out_shardings) and device is None and backend is None)
    if not placed and caller == "jit":
        return _with_options(fun, *made)
    from ferrax.sharding import _jit

    if device is not None or backend is not None:
        given = {"in_shardings": in_shardings, "out_shardings": out_shardings}
        at = _jit.of_device(device, backend, [name for name, s in given.items() if not _unspecified(s)])
        return standing_for(fun, _jit.on_device(_with_options(fun, *made), at, statics, caller))
    _jit.check(in_shardings, "in_shardings")
    _jit.check(out_shardings, "out_shardings")
    constrained = fun if _unspecified(out_shardings, caller) else _jit.constrained(fun, out_shardings, caller)
    compiled = _with_options(constrained, *made)
    if not _unspecified(out_shardings, caller):
        compiled._out_shardings = out_shardings, caller
    if not _unspecified(in_shardings, caller):
        compiled = _jit.with_arguments(compiled, in_shardings, statics[0], caller)
    return standing_for(fun, compiled if caller == "jit" else _jit.over_mesh(compiled))


def standing_for(fun: Any, compiled: Any) -> Any:
    """A jitted function, whose `__wrapped__` is what the user wrote, not what places its values."""
    compiled.__wrapped__ = fun
    return compiled


def _with_options(fun: Any, statics: Any, numbers: Any, names: Any, must: bool, inline: bool, options: Any) -> Any:
    """A jitted function, which knows its compiler's options for its stages."""
    compiled = _ferrax.jit(fun, statics[0], statics[1], numbers, names, must, inline, list((options or {}).items()))
    compiled._numbers = (statics[0], statics[1], numbers, names), inline
    if options:
        compiled._compiler_options = dict(options)
    return compiled


def vmap(
    fun: Callable[P, R],
    in_axes: int | Sequence[Any] | None = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Vectorizes a function over an axis of its arguments.

    Args:
      fun: function to map.
      in_axes: axis to map of each argument: an int, `None` (not mapped), or a tuple with one entry a positional
        argument, each a pytree prefix of it. Keyword arguments are mapped over axis 0.
      out_axes: axis where the mapped axis stands in each result: an int, `None`, or a pytree prefix of the result.
      axis_name: name of the mapped axis, for collectives.
      axis_size: size of the mapped axis; needed when no argument is mapped.
      spmd_axis_name: mesh axes that divide the mapped axis where `fun` says how values are sharded; a name, or a
        tuple of names.
      sum_match: accepted for compatibility.

    Returns:
      A function with `fun`'s arguments.

    Raises:
      ValueError: sizes of mapped axes differ, or an axis is out of range.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x, y: x * y, in_axes=(0, None))(jnp.arange(3), 2))
    [0 2 4]
    """
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    spread = 0
    if spmd_axis_name is not None:
        from ferrax.sharding._typed import of_axis

        spread = of_axis(spmd_axis_name if isinstance(spmd_axis_name, str) else tuple(spmd_axis_name))
    mapped = _ferrax.vmap(fun, in_axes, out_axes, axis_name, axis_size, spread)
    if _all_first(in_axes) and _all_first(out_axes):
        return mapped
    return _with_batch_axes(mapped, in_axes, out_axes)


def _all_first(axes: Any) -> bool:
    """Whether all of `vmap`'s axes are the first ones."""
    return all(a is None or (isinstance(a, int) and a == 0) for a in tree_util.tree_leaves(axes))


def _with_batch_axes(mapped: Any, in_axes: Any, out_axes: Any) -> Any:
    """The mapped function, which checks that axes of sparse arrays are batch axes."""

    @functools.wraps(mapped)
    def checked(*args: Any, **kwargs: Any) -> Any:
        sparse = sys.modules.get("ferrax.experimental.sparse._base")
        if sparse is None:
            return mapped(*args, **kwargs)
        sparse.check_mapped(in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args), args)
        out = mapped(*args, **kwargs)
        sparse.check_mapped_out(out_axes, out)
        return out

    return shielded(checked)


def named_as(wrapper: Any, fun: Any, what: str) -> Any:
    """The wrapper of a function under its name, documented as `what` of it."""
    made: Any = shielded_for(wrapper, fun)
    made.__name__ = name_of(fun)
    made.__qualname__ = getattr(fun, "__qualname__", made.__name__)
    made.__doc__ = f"{what} of {made.__name__}."
    return made


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that returns the program that `fun` traces to, instead of running it.

    Args:
      fun: function to trace.
      static_argnums: positions of arguments that are compile-time constants.
      axis_env: pairs of a name and a size: mapped axes that `fun` may use, as if it were called under a map over them;
        operations across them stay in the program.
      return_shape: whether to return `(program, result structure)` too.

    Returns:
      A function with `fun`'s arguments (arrays, or `ShapeDtypeStruct`) that returns a `ClosedJaxpr`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.make_jaxpr(jnp.sin)(jnp.ones(3)))
    { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
    >>> print(jax.make_jaxpr(lambda x: jax.lax.pmax(x, "i"), axis_env=[("i", 4)])(1.0))
    { lambda ; a:f32[]. let b:f32[] = pmax[axes=('i',) axis_index_groups=None] a in (b,) }
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {short(fun)}")
    axes = [(name, operator.index(size)) for name, size in axis_env or ()]
    static = _indices(static_argnums, "static_argnums")  # type: ignore[arg-type]

    def make(*args: Any, **kwargs: Any) -> Any:
        places = {n % len(args) for n in static} if args else set()
        dynamic = tuple(a for i, a in enumerate(args) if i not in places)

        def call(*values: Any, **named: Any) -> Any:
            rest = iter(values)
            return fun(*(args[i] if i in places else next(rest) for i in range(len(args))), **named)

        target = _with_axes(axes, call if places else fun)
        clock = _ferrax.trace_clock()
        program = None
        if not _has_types_of_references((dynamic, kwargs)):
            program = _program_of_arrays(target, dynamic, kwargs)
            if program is None and high_classes:
                target, dynamic, kwargs = _of_high_values(target, dynamic, kwargs)
                program = _program_of_arrays(target, dynamic, kwargs)
        if program is None or _ferrax.references_since(clock):
            from ferrax._ref_programs import program_of_call

            program = program_of_call(target, dynamic, kwargs, clock)
        if not return_shape:
            return program
        return program, program.out_tree.unflatten([struct_of(a) for a in program.out_avals])

    made = named_as(make, fun, "Program")
    made.__name__ = f"make_jaxpr({made.__name__})"
    made.__qualname__ = f"make_jaxpr({made.__qualname__})"
    made.__module__ = "ferrax"
    return made


def _program_of_arrays(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The program of a function, or None where it takes, gives or uses what is no array."""
    with contextlib.suppress(_ferrax.ReferenceUsed), types_in_use((args, kwargs)):
        return _ferrax.trace_to_jaxpr(fun, args, kwargs, "make_jaxpr")
    return None


def _of_high_values(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A function that takes and gives the arrays of values that do not change, and its arguments."""
    from ferrax._high_tangents import closed, opened

    @functools.wraps(fun)
    def of_arrays(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = opened((args, kwargs))
        return closed(fun(*args, **kwargs))

    return of_arrays, *closed((args, kwargs))


def _has_types_of_references(args: Any) -> bool:
    """Whether a type of a reference stands among arguments."""
    refs = sys.modules.get("ferrax._refs")
    return refs is not None and any(isinstance(x, refs.AbstractRef) for x in tree_util.tree_leaves(args))


def _with_axes(axes: list[tuple[Any, int]], fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is traced with named axes in force."""
    if not axes:
        return fun

    @functools.wraps(fun)
    def called(*args: Any, **kwargs: Any) -> Any:
        return _ferrax.lax.with_axes(axes, lambda: fun(*args, **kwargs))

    return called


def types_in_use(args: Any) -> Any:
    """Enters the mesh whose explicit axes divide arguments, if no other mesh is in use.

    Args:
      args: pytree of arguments.

    Returns:
      A context manager.
    """
    if not _ferrax.is_eager():
        return contextlib.nullcontext()
    kinds = (ShapeDtypeStruct, _ferrax.ArrayImpl)
    shardings = [x.sharding for x in tree_util.tree_leaves(args) if type(x) in kinds and x.sharding is not None]
    if not shardings:
        return contextlib.nullcontext()
    from ferrax.sharding._context import explicit_mesh

    return explicit_mesh(shardings)


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of a function's result, without computing it.

    Args:
      fun: function to trace.
      *args: arguments: arrays, or anything with a shape and a dtype.
      **kwargs: keyword arguments, likewise.

    Returns:
      The result's structure with a `ShapeDtypeStruct` for every array.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jax.eval_shape(lambda x: x @ x.T, jax.ShapeDtypeStruct((2, 3), jnp.float32))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    if hasattr(fun, "_out_shardings") and hasattr(fun, "eval_shape"):
        return fun.eval_shape(*args, **kwargs)
    with types_in_use((args, kwargs)):
        try:
            program = _types_of_arrays(fun, args, kwargs)
        except _ferrax.ReferenceUsed:
            program = _types_of_places(fun, args, kwargs)
        types = program.out_tree.unflatten([struct_of(a) for a in program.out_avals])
        return types if not high_classes else _with_high_types(types)


def _types_of_arrays(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return _ferrax.trace_to_jaxpr(_of_values(fun), args, kwargs, "eval_shape", fun)


def _types_of_places(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The program of a function that takes or gives what is no array."""
    from ferrax._refs_calls import of_places

    if high_classes:
        fun, args, kwargs = _of_high_values(fun, args, kwargs)
        with contextlib.suppress(_ferrax.ReferenceUsed):
            return _types_of_arrays(fun, args, kwargs)
    return _types_of_arrays(*of_places(fun, args, kwargs))


def _with_high_types(tree: Any) -> Any:
    """A tree with types in the place of the arrays of values."""
    from ferrax._high_values import State

    is_state = lambda x: isinstance(x, State)
    return tree_util.tree_map(lambda x: x.aval if is_state(x) else x, tree, is_leaf=is_state)


def _of_values(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function with zeros in the place of the `ShapeDtypeStruct`s that it returns."""
    if not callable(fun):
        return fun

    def call(*args: Any, **kwargs: Any) -> Any:
        out = fun(*args, **kwargs)
        if not any(isinstance(leaf, ShapeDtypeStruct) for leaf in tree_util.tree_leaves(out)):
            return out
        return tree_util.tree_map(_zeros_for, out)

    with contextlib.suppress(AttributeError, TypeError):
        functools.update_wrapper(call, fun)
    return call


def _zeros_for(leaf: Any) -> Any:
    if not isinstance(leaf, ShapeDtypeStruct):
        return leaf
    from ferrax.lax import full

    zeros = full(leaf.shape, 0, leaf.dtype)
    return _ferrax.with_weak_type(zeros, True) if leaf.weak_type else zeros


def typeof(x: Any) -> Any:
    """The abstract value of an array or Python number: shape, dtype and weak type.

    Args:
      x: an array of any shape and dtype, a traced value, or a number.

    Returns:
      An object with `shape`, `dtype`, `weak_type` and `sharding`. It prints as `float32[8@X,4]` for an array whose
      first axis is divided by the explicit mesh axis `X`.

    Raises:
      TypeError: `x` is nothing that a program can compute with.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.typeof(jnp.ones(3)).shape)
    (3,)
    """
    if type(x) in high_classes:
        return high_classes[type(x)](x)
    try:
        avals = _ferrax.trace_to_jaxpr(lambda v: v, (x,), None, "eval_shape").in_avals
    except _ferrax.ReferenceUsed:
        return x.aval
    if not tree_util.all_leaves([x]):
        raise TypeError(f"Argument '{short(x)}' of type '{type(x)}' is not a valid JAX type")
    aval = avals[0]
    sharding = None if _ferrax.is_tracer(x) else getattr(x, "sharding", None)
    if sharding is None or isinstance(sharding, _ferrax.SingleDeviceSharding):
        return aval
    from ferrax.sharding._typed import of_sharding

    return _ferrax.with_spread(aval, of_sharding(sharding, len(aval.shape)))


@implemented_by(_ferrax.tree_function("block_until_ready"))
def block_until_ready(x: Any) -> Any:
    """Waits until every array in a pytree is computed, and returns the pytree.

    Jitted programs that take long run while their caller goes on; whatever reads a result waits for it, so this is
    needed for timing only.

    Args:
      x: a pytree.

    Returns:
      `x` itself.

    Raises:
      MemoryError: the program found no memory; its results raise this wherever they are used.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.block_until_ready(jnp.ones(2)))
    [1. 1.]
    """


def effects_barrier() -> None:
    """Waits until the effects of every dispatched program are done; programs with effects run at once here.

    >>> import ferrax as jax
    >>> jax.effects_barrier()
    """


def copy_to_host_async(x: Any) -> Any:
    """Starts copying every array in a pytree to the host, by the method of this name that leaves have; others stay.

    Args, Returns: as in `block_until_ready`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.copy_to_host_async(jnp.ones(2)))
    [1. 1.]
    """
    for leaf in tree_util.tree_leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


def device_get(x: Any) -> Any:
    """A pytree with every array as a NumPy array.

    Args:
      x: a pytree.

    Returns:
      A pytree of the same structure; what is no array stays as it is, and so do traced arrays, random keys and
      references.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jax.device_get(jnp.arange(2))
    array([0, 1], dtype=int32)
    """
    return tree_util.tree_map(_on_host, x)


def _on_host(x: Any) -> Any:
    """A leaf as a NumPy array, if it can be one."""
    if isinstance(x, _ferrax.Array):
        return x if _ferrax.is_tracer(x) or isinstance(x.dtype, _ferrax.KeyTy) else np.asarray(x)
    convert = getattr(x, "__array__", None)
    return x if convert is None or isinstance(x, type) or _ferrax.is_reference(x) else convert()


#: Caches of users, which are cleared with those of the core (`ferrax.extend.backend.register_backend_cache`).
registered_caches: list[Any] = []


def clear_caches() -> None:
    """Forgets every compiled program and cached transformation.

    >>> import ferrax as jax
    >>> jax.clear_caches()
    """
    _ferrax.clear_caches()
    for cache in registered_caches:
        cache.cache_clear()


def ensure_compile_time_eval() -> Any:
    """A context in which operations on plain arrays run at once, even while a function is being traced.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> @jax.jit
    ... def f(x):
    ...     with jax.ensure_compile_time_eval():
    ...         n = int(jnp.sum(jnp.arange(3)))
    ...     return x + n
    >>> print(f(1))
    4
    """
    return _ferrax.EagerScope()


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Makes explicit what a function closes over, so that custom derivatives can see it.

    Args:
      fun: function to convert.
      *example_args: arguments with the shapes and dtypes that it will be called with.

    Returns:
      `(converted, consts)`: `converted(*args, *consts)` computes `fun(*args)`; `consts` are the traced values that
      `fun` closed over.

    >>> import ferrax as jax
    >>> converted, consts = jax.closure_convert(lambda x: 2.0 * x, 1.0)
    >>> print(converted(3.0, *consts))
    6.0
    """
    program = _ferrax.trace_to_jaxpr(fun, example_args, None, "closure_convert")
    in_tree = tree_util.tree_structure(example_args)
    captured = program.captured

    def converted(*args: Any) -> Any:
        own = args[: len(example_args)]
        consts = args[len(example_args) :]
        if len(consts) != len(captured):
            raise TypeError(
                f"The inputs to the closure produced by closure_convert must end with {len(captured)} constants, got "
                f"{len(consts)}"
            )
        leaves, tree = tree_util.tree_flatten(own)
        if tree != in_tree:
            raise TypeError(
                f"The inputs to the closure produced by closure_convert must have structure {short(in_tree)}, got "
                f"{short(tree)}:{differences(in_tree, tree, 'the example arguments', 'the arguments')}"
            )
        return program.out_tree.unflatten(program.eval_captured(list(consts), leaves))

    return shielded(converted), captured
