"""Values that `vmap` takes apart by functions of their type, instead of along an axis of each array in them.

A library registers a type with `interpreters.batching.register_vmappable`. Its functions say what one element of a
value is, and how elements become a value again; they ask a continuation for the parts. A call of a mapped function is
then a call of one over those parts: functions of the type run once outside, which finds the parts, and once where the
function is traced, on their elements. Types that stand for arguments (`ShapeDtypeStruct`) lose the mapped axis. Read
next: `interpreters/batching.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ferrax import _ferrax, lax, tree_util
from ferrax._core import shape
from ferrax._prefixes import prefix_leaves
from ferrax._shape_dtype import ShapeDtypeStruct

__all__ = [
    "has_specs",
    "has_vmappable",
    "is_vmappable",
    "make_iota",
    "mapped",
    "register_vmappable",
    "spec_types",
    "unregister_vmappable",
    "vmappables",
]


class _Functions(NamedTuple):
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


#: By type of values: the type of their entries in `in_axes` and `out_axes`, and of sizes of their axes.
vmappables: dict[type, tuple[type, type]] = {}
#: The types that entries in `in_axes` and `out_axes` may have, beside numbers.
spec_types: set[type] = set()
_functions: dict[type, _Functions] = {}
_iotas: dict[type, Callable[[Any], Any]] = {}


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[[Any], Any] | None,
) -> None:
    """Lets `vmap` map over values of a type as that type says.

    Args:
      data_type: the type of the values; they are leaves of `vmap`'s arguments and results from now on.
      spec_type: the type of the entries of `in_axes` and `out_axes` for them; `int` for numbers of axes.
      axis_size_type: the type of sizes of their mapped axes.
      to_elt: called with a continuation, a function that gives the index of the element, the value and its entry of
        `in_axes`; returns an element. The continuation takes a part (array or registered value) and its entry, and
        gives the part's element.
      from_elt: called with a continuation, the size of the mapped axis, an element and its entry of `out_axes`; returns
        the value. The continuation takes a size, a part's element and its entry, and gives the part.
      make_iota: makes the indices of an axis from its size; None for sizes that are numbers.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> class Columns:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> jax.interpreters.batching.register_vmappable(
    ...     Columns, int, int, lambda cont, _, c, axis: Columns(cont(c.x, axis + 1)),
    ...     lambda cont, size, c, axis: Columns(cont(size, c.x, axis + 1)), None,
    ... )
    >>> jax.vmap(lambda c: c.x.sum())(Columns(jnp.ones((2, 3)))).tolist()
    [2.0, 2.0, 2.0]
    """
    vmappables[data_type] = (spec_type, axis_size_type)
    spec_types.add(spec_type)
    _functions[data_type] = _Functions(to_elt, from_elt)
    if make_iota is not None:
        _iotas[axis_size_type] = make_iota
    _ferrax.use_vmappable_types(True)


def unregister_vmappable(data_type: type) -> None:
    """Accepted for compatibility: as in JAX, a type that was registered stays so.

    Args:
      data_type: the type.

    >>> import ferrax as jax
    >>> jax.interpreters.batching.unregister_vmappable(float)
    """


def is_vmappable(x: Any) -> bool:
    """Whether a value's type is registered.

    >>> is_vmappable(1.0)
    False
    """
    return type(x) in vmappables


def has_vmappable(tree: Any) -> bool:
    """Whether values of registered types are among a tree's.

    >>> has_vmappable([1.0, {"a": 2}])
    False
    """
    return any(map(is_vmappable, tree_util.tree_leaves(tree, is_leaf=is_vmappable)))


def make_iota(axis_size: Any) -> Any:
    """The indices of a mapped axis, int32[axis_size] where its size is a number.

    >>> make_iota(3).tolist()
    [0, 1, 2]
    """
    made = _iotas.get(type(axis_size))
    return lax.iota("int32", int(axis_size)) if made is None else made(axis_size)


class _Parts:
    """The arrays that arguments or results consist of, with the axis of each."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.axes: list[int | None] = []

    def add(self, part: Any, axis: Any) -> None:
        if type(axis) is not int and axis is not None:
            raise TypeError(
                f"vmap maps an array along an axis, which is an int or None, but got {axis!r}, which is an entry of "
                "in_axes or out_axes for values of a registered type"
            )
        self.arrays.append(part)
        self.axes.append(axis)

    def first(self, part: Any, axis: Any) -> Any:
        """Notes an argument's part; its first element."""
        self.add(part, axis)
        return part if axis is None else lax.index_in_dim(part, 0, axis, keepdims=False)

    def repeated(self, size: Any, part: Any, axis: Any) -> Any:
        """Notes the element of a result's part; what stands for the part while the function is traced."""
        self.add(part, axis)
        if axis is None:
            return part
        at = axis + len(shape(part)) + 1 if axis < 0 else axis
        return lax.broadcast_in_dim(
            part, (*shape(part)[:at], int(size), *shape(part)[at:]), [i + (i >= at) for i in range(len(shape(part)))]
        )


def _elements(leaf: Any, spec: Any, part: Callable[[Any, Any], Any], index: Callable[[], Any]) -> Any:
    """An argument's element, whose arrays' elements a function gives, in an order that does not change."""
    if isinstance(leaf, ShapeDtypeStruct):
        return _element_type(leaf, spec)
    if not is_vmappable(leaf):
        return part(leaf, spec)
    return _functions[type(leaf)].to_elt(lambda x, s: _elements(x, s, part, index), index, leaf, spec)


def _element_type(struct: ShapeDtypeStruct, axis: int | None) -> ShapeDtypeStruct:
    """The type of an argument's element, where a type stands for the argument."""
    if axis is None:
        return struct
    at = axis + struct.ndim if axis < 0 else axis
    return struct.update(shape=(*struct.shape[:at], *struct.shape[at + 1 :]), sharding=None)


def _whole(leaf: Any, spec: Any, size: Any, part: Callable[[Any, Any, Any], Any]) -> Any:
    """A result from its element, whose arrays a function gives, in an order that does not change."""
    if isinstance(leaf, ShapeDtypeStruct):
        at = None if spec is None else spec + leaf.ndim + 1 if spec < 0 else spec
        return leaf if at is None else leaf.update(shape=(*leaf.shape[:at], int(size), *leaf.shape[at:]), sharding=None)
    if not is_vmappable(leaf):
        return part(size, leaf, spec)
    return _functions[type(leaf)].from_elt(lambda n, x, s: _whole(x, s, n, part), size, leaf, spec)


def mapped(fun: Callable[..., Any], axes: tuple[Any, ...]) -> Callable[..., Any]:
    """A mapped function whose arguments and results may be values of registered types.

    Args:
      fun: function to map.
      axes: `in_axes`, `out_axes`, `axis_name`, `axis_size` and the number of what divides the axis.
    """
    in_axes, out_axes, axis_name, axis_size, spread = axes

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_util.tree_flatten((args, kwargs), is_leaf=is_vmappable)
        places = tree.unflatten([0] * len(leaves))
        arguments = list(zip(leaves, prefix_leaves((in_axes, 0), places, _is_spec), strict=True))
        return _by_parts(fun, tree, arguments, out_axes, (axis_name, axis_size, spread))

    return call


def _is_spec(x: Any) -> bool:
    return x is None or type(x) in spec_types


def has_specs(axes: Any) -> bool:
    """Whether entries of `in_axes` and `out_axes` are there that are no numbers of axes, but of registered types.

    >>> has_specs((0, (None, 1)))
    False
    """
    return any(type(x) in spec_types and type(x) is not int for x in tree_util.tree_leaves(axes, is_leaf=_is_spec))


def _by_parts(fun: Callable[..., Any], tree: Any, arguments: list[Any], out_axes: Any, rest: tuple[Any, ...]) -> Any:
    """A call of a mapped function over the arrays that its arguments consist of."""
    parts, results = _Parts(), _Parts()
    for leaf, spec in arguments:
        _elements(leaf, spec, parts.first, lambda: lax.full((), 0, "int32"))
    structs = [(x, s) for x, s in arguments if isinstance(x, ShapeDtypeStruct)]
    name, axis_size, spread = rest
    size = _size([*zip(parts.arrays, parts.axes, strict=True), *structs], axis_size)
    found: list[Any] = []

    @functools.wraps(fun)
    def inner(index: Any, arrays: list[Any]) -> list[Any]:
        given = iter(arrays)
        elements = [_elements(x, s, lambda *_: next(given), lambda: index) for x, s in arguments]
        args, kwargs = tree.unflatten(elements)
        out, out_tree = tree_util.tree_flatten(fun(*args, **kwargs), is_leaf=is_vmappable)
        specs = prefix_leaves(out_axes, out_tree.unflatten([0] * len(out)), _is_spec)
        for leaf, spec in zip(out, specs, strict=True):
            _whole(leaf, spec, size, results.repeated)
        found[:] = out, specs, out_tree
        return results.arrays

    wholes = _ferrax.vmap(inner, (0, parts.axes), results.axes, name, size, spread, True)(make_iota(size), parts.arrays)
    ready: Iterator[Any] = iter(wholes)
    out, specs, out_tree = found
    return out_tree.unflatten([_whole(x, s, size, lambda *_: next(ready)) for x, s in zip(out, specs, strict=True)])


def _size(mapped: list[tuple[Any, int | None]], given: int | None) -> int:
    """The size of the mapped axis of arrays, or of what is said of it."""
    sizes = [shape(x)[axis] for x, axis in mapped if axis is not None]
    if given is None and not sizes:
        raise ValueError("vmap must have at least one non-None value in in_axes or axis_size must be specified")
    size = sizes[0] if given is None else given
    if any(n != size for n in sizes):
        raise ValueError(f"vmap got inconsistent sizes for array axes to be mapped: {sorted({size, *sizes})}")
    return size
