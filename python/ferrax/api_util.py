"""Functions of trees as functions of flat lists, for libraries that write transformations.

Read next: `extend/linear_util.py` for the wrapped functions that these take.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ferrax import tree_util
from ferrax._api import typeof as _typeof
from ferrax._boundary import expose as _expose
from ferrax._core import ShapedArray
from ferrax.extend.linear_util import (
    DebugInfo,
    WrappedFun,
    initial_result_paths,
    transformation2,
    transformation_with_aux2,
)

__all__ = [
    "argnums_partial",
    "debug_info",
    "donation_vector",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "rebase_donate_argnums",
    "safe_map",
    "shaped_abstractify",
]


def debug_info(
    traced_for: str,
    fun: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = initial_result_paths,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """Names of a function and its arguments, for error texts.

    Args:
      traced_for: the transformation's name.
      fun: the function.
      args: positional arguments.
      kwargs: keyword arguments.
      static_argnums: positions of arguments that are not traced.
      static_argnames: names of arguments that are not traced.
      result_paths_thunk: paths of the results, or a function that gives them.
      sourceinfo: text that says what and where the function is.
      signature: the function's signature, when it is known.

    Returns:
      A `DebugInfo`.

    >>> import ferrax as jax
    >>> info = jax.api_util.debug_info("jit", lambda x, y: x, (1.0, {"a": 2.0}), {})
    >>> info.arg_names
    ('x', "y['a']")
    """
    known = getattr(fun, "__fun_debug_info__", None)
    if known is not None:
        return known
    names = _argument_names(fun, args, kwargs, static_argnums, static_argnames, signature)
    return DebugInfo(traced_for, sourceinfo or fun_sourceinfo(fun), names, result_paths_thunk)


def fun_sourceinfo(fun: Any) -> str:
    """A function's name and place; `<unknown>` for a callable object that has no name.

    >>> from ferrax.api_util import fun_sourceinfo
    >>> fun_sourceinfo(max)
    'max'
    """
    while isinstance(fun, functools.partial):
        fun = fun.func
    fun = inspect.unwrap(fun)
    code = getattr(fun, "__code__", None)
    if code is not None:
        return f"{fun.__name__} at {code.co_filename}:{code.co_firstlineno}"
    return fun.__name__ if isinstance(fun, types.BuiltinFunctionType) else "<unknown>"


def _argument_names(
    fun: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    static_argnums: Sequence[int],
    static_argnames: Sequence[str],
    signature: inspect.Signature | None,
) -> tuple[str, ...]:
    """Names of the leaves: positional arguments, then those by name in their order; `args[0]` where none fits."""
    static = object()
    args = [static if i in {n % len(args) for n in static_argnums if args} else x for i, x in enumerate(args)]
    kwargs = {k: static if k in static_argnames else x for k, x in sorted(kwargs.items())}
    try:
        signature = signature or inspect.signature(fun)
        bound = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        named = [("args", args), *((f"kwargs['{k}']", x) for k, x in kwargs.items())]
    else:
        kinds = {p.kind: name for name, p in signature.parameters.items()}
        rest = kinds.get(inspect.Parameter.VAR_KEYWORD)
        named = [(name, x) for name, x in bound.items() if name not in kwargs and name != rest]
        named += [(k if k in bound else f"{rest}['{k}']", x) for k, x in kwargs.items()]
    leaves = [(name, *leaf) for name, x in named for leaf in tree_util.tree_flatten_with_path(x)[0]]
    return tuple(name + tree_util.keystr(path) for name, path, leaf in leaves if leaf is not static)


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Any, in_tree: Any, *args_flat: Any) -> Any:
    """A function of flat arguments that returns flat results; the second value gives the results' structure.

    Args:
      f: function wrapped by `linear_util.wrap_init`.
      store: given by the wrapper.
      in_tree: structure of `(args, kwargs)`.
      *args_flat: leaves.

    Returns:
      The flat results.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> leaves, tree = jax.tree.flatten(((1.0,), {"y": 2.0}))
    >>> flat, out_tree = jax.api_util.flatten_fun(lu.wrap_init(lambda x, y: {"sum": x + y}), tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([3.0], PyTreeDef({'sum': *}))
    """
    args, kwargs = in_tree.unflatten(args_flat)
    leaves, tree = tree_util.tree_flatten(f(*args, **kwargs))
    store.store(tree)
    return leaves


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., Any], store: Any, in_tree: Any, *args_flat: Any) -> Any:
    """As `flatten_fun`, for functions without keyword arguments.

    Args:
      f: function wrapped by `linear_util.wrap_init`.
      store: given by the wrapper.
      in_tree: structure of the arguments.
      *args_flat: leaves.

    Returns:
      The flat results.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> flat, out_tree = jax.api_util.flatten_fun_nokwargs(lu.wrap_init(lambda x: [x, x]), jax.tree.structure((1.0,)))
    >>> flat.call_wrapped(1.0), out_tree()
    ([1.0, 1.0], PyTreeDef([*, *]))
    """
    leaves, tree = tree_util.tree_flatten(f(*in_tree.unflatten(args_flat)))
    store.store(tree)
    return leaves


@transformation2
def _with_fixed(f: Callable[..., Any], positions: tuple[int, ...], fixed: tuple[Any, ...], *args: Any) -> Any:
    given = iter(args)
    held = iter(fixed)
    return f(*[next(given) if i in positions else next(held) for i in range(len(args) + len(fixed))])


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """A function of some of its arguments, the others fixed.

    Args:
      f: function wrapped by `linear_util.wrap_init`.
      dyn_argnums: positions of the arguments that stay.
      args: all arguments.
      require_static_args_hashable: whether fixed arguments must be hashable.

    Returns:
      The function, and the arguments that stay.

    Raises:
      ValueError: a fixed argument is not hashable.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> f, given = jax.api_util.argnums_partial(lu.wrap_init(lambda x, y: x - y), 1, (5, 3))
    >>> f.call_wrapped(*given)
    2
    """
    wanted = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    positions = tuple(i % len(args) for i in wanted)
    fixed = tuple(a for i, a in enumerate(args) if i not in positions)
    if require_static_args_hashable:
        for value in fixed:
            try:
                hash(value)
            except TypeError:
                raise ValueError(f"a static argument of type {type(value)} is not hashable: {value!r}") from None
    return _with_fixed(f, positions, fixed), tuple(args[i] for i in sorted(positions))


def donation_vector(donate_argnums: Any, donate_argnames: Any, in_tree: Any, kws: bool = True) -> tuple[bool, ...]:
    """Which leaves of a call are donated.

    Args:
      donate_argnums: positions of donated arguments.
      donate_argnames: names of donated arguments.
      in_tree: structure of `(args, kwargs)`, of `args` where `kws` is False.
      kws: whether the structure has keyword arguments.

    Returns:
      A tuple, one bool a leaf.

    >>> import ferrax as jax
    >>> jax.api_util.donation_vector((0,), (), jax.tree.structure((([1, 2], 3), {})))
    (True, True, False)
    """
    args, kwargs = (
        in_tree.unflatten([0] * in_tree.num_leaves) if kws else (in_tree.unflatten([0] * in_tree.num_leaves), {})
    )
    out: list[bool] = []
    for i, arg in enumerate(args):
        out += [i in tuple(donate_argnums or ())] * len(tree_util.tree_leaves(arg))
    for name, arg in sorted(kwargs.items()):
        out += [name in tuple(donate_argnames or ())] * len(tree_util.tree_leaves(arg))
    return tuple(out)


def rebase_donate_argnums(donate_argnums: Sequence[int], static_argnums: Sequence[int]) -> tuple[int, ...]:
    """Positions of donated arguments among those that are not static.

    Args:
      donate_argnums: positions of donated arguments.
      static_argnums: positions of static arguments.

    Returns:
      The positions.

    Raises:
      ValueError: an argument is both.

    >>> import ferrax as jax
    >>> jax.api_util.rebase_donate_argnums((1, 3), (0, 2))
    (0, 1)
    """
    both = set(donate_argnums) & set(static_argnums)
    if both:
        static, donated = sorted(static_argnums), sorted(donate_argnums)
        raise ValueError(f"`static_argnums` {static} and `donate_argnums` {donated} cannot intersect.")
    return tuple(sorted({d - sum(s < d for s in static_argnums) for d in donate_argnums}))


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False) -> list[Any]:
    """The axes of every leaf, from a tree of axes that is a prefix.

    Args:
      name: what the axes are called, for the error.
      treedef: structure of the values.
      axis_tree: a prefix of it, with an axis or None in the place of each subtree.
      kws: whether the structure is of `(args, kwargs)`.
      tupled_args: whether the arguments are a tuple.

    Returns:
      A list, one axis a leaf.

    Raises:
      ValueError: the tree of axes is no prefix.

    >>> import ferrax as jax
    >>> jax.api_util.flatten_axes("in_axes", jax.tree.structure(([1, 2], 3)), (0, None))
    [0, 0, None]
    """
    values = treedef.unflatten([0] * treedef.num_leaves)
    try:
        return _axes(axis_tree, values)
    except (TypeError, ValueError) as error:
        from ferrax._prefixes import specification_error

        raise specification_error(name, axis_tree, values, lambda x: x is None, str(error)) from None


class _Axis:
    def __init__(self, axis: Any):
        self.axis = axis


def _axes(axis_tree: Any, values: Any) -> list[Any]:
    spread = tree_util.tree_map(
        lambda axis, sub: tree_util.tree_map(lambda _: _Axis(axis), sub), axis_tree, values, is_leaf=lambda x: x is None
    )
    return [leaf.axis for leaf in tree_util.tree_leaves(spread)]


def safe_map(f: Callable[..., Any] | None = None, /, *args: Sequence[Any]) -> list[Any]:
    """`map` over lists that must be of one length.

    Args:
      f: function.
      *args: sequences, one at least.

    Returns:
      A list.

    Raises:
      ValueError: lengths differ.
      TypeError: there is no sequence.

    >>> import ferrax as jax
    >>> jax.api_util.safe_map(lambda x, y: x + y, [1, 2], [3, 4])
    [4, 6]
    """
    if f is None or not args:
        raise TypeError("safe_map requires at least 2 arguments")
    return [f(*row) for row in same_lengths("safe_map()", args)]


def same_lengths(name: str, args: Sequence[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """The rows of lists that must be of one length, for a function of a name."""
    if not args:
        raise TypeError(f"{name} requires at least 2 arguments")
    lists = [list(a) for a in args]
    for i, values in enumerate(lists[1:], 2):
        if len(values) != len(lists[0]):
            than = "shorter" if len(values) < len(lists[0]) else "longer"
            raise ValueError(f"{name} argument {i} is {than} than argument 1")
    return zip(*lists, strict=True)


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of a value.

    Args:
      x: an array, a number, or anything with a shape and a dtype.

    Returns:
      A `ShapedArray`.

    >>> import ferrax as jax
    >>> jax.api_util.shaped_abstractify(jax.ShapeDtypeStruct((2,), "float32"))
    ShapedArray(float32[2])
    """
    if isinstance(x, ShapedArray):
        return x
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__array__"):
        return ShapedArray(tuple(x.shape), x.dtype, bool(getattr(x, "weak_type", False)))
    return _typeof(x)


_expose(globals())
