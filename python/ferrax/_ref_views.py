"""Views of references: `ref.at[1:3]`, `ref.reshape(-1)`, `ref.T`, `ref.bitcast("int32")`.

A view is a reference and a chain of transforms, each of which gives an array for an array, and puts a changed one
back. Reading goes down the chain; writing goes down it and up again. Views are no arrays; as arguments of `jit`,
branches and loops they are taken apart into their reference and the arrays among their indices (`_refs_calls.take`).
Read next: `_refs.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ferrax import _ferrax, _refs, tree_util
from ferrax._core import canonicalize_dtype

__all__ = [
    "BitcastTransform",
    "IndexTransform",
    "RefIndexer",
    "ReshapeTransform",
    "TransformedRef",
    "TransformedRefAvalError",
    "TransposeTransform",
    "ViewParts",
    "bits_as",
    "changed",
    "taken_apart",
    "view_of",
]


class TransformedRefAvalError(Exception):
    """A view of a reference stands where a value with a type is wanted."""


@dataclass(frozen=True, eq=False)
class IndexTransform:
    """The elements at an index."""

    idx: Any

    def apply(self, x: Any) -> Any:
        """The elements of an array."""
        _refs.check_index(x.shape, self.idx)
        return x[self.idx]

    def put(self, x: Any, new: Any) -> Any:
        """The array with other elements there."""
        return x.at[self.idx].set(new, mode=_refs.mode_of_index(x.shape, self.idx))


@dataclass(frozen=True)
class ReshapeTransform:
    """The elements in another shape."""

    shape: tuple[int, ...]

    def apply(self, x: Any) -> Any:
        """The array in the shape."""
        return x.reshape(self.shape)

    def put(self, x: Any, new: Any) -> Any:
        """The array that such a one was made of."""
        return new.reshape(x.shape)


@dataclass(frozen=True)
class TransposeTransform:
    """The axes in another order."""

    permutation: tuple[int, ...]

    def apply(self, x: Any) -> Any:
        """The array with its axes in the order."""
        return x.transpose(self.permutation)

    def put(self, x: Any, new: Any) -> Any:
        """The array that such a one was made of."""
        return new.transpose(tuple(int(i) for i in np.argsort(self.permutation)))


@dataclass(frozen=True)
class BitcastTransform:
    """The bits as numbers of another dtype; where widths differ, the axis before the last one has others."""

    dtype: Any

    def apply(self, x: Any) -> Any:
        """The array's bits in the dtype."""
        return bits_as(x, self.dtype)

    def put(self, x: Any, new: Any) -> Any:
        """The array that such a one was made of."""
        return bits_as(new, x.dtype)


def bits_as(x: Any, dtype: Any) -> Any:
    """An array's bits as numbers of another dtype; where widths differ, the axis before the last one has others."""
    from ferrax.dtypes import itemsize_bits
    from ferrax.lax import bitcast_convert_type

    old, new = itemsize_bits(x.dtype), itemsize_bits(dtype)
    if old == new:
        return bitcast_convert_type(x, dtype)
    if len(x.shape) < 2:
        raise NotImplementedError("Bitcast 1D ref with bitwidth change is not supported.")
    *lead, rows, columns = x.shape
    if rows * old % new:
        raise ValueError(
            f"a bitcast of {x.dtype} to {canonicalize_dtype(dtype)} needs bits in the axis before the last one (of "
            f"size {rows}) that fill whole elements"
        )
    if old < new:
        ratio = new // old
        return bitcast_convert_type(x.reshape(*lead, rows // ratio, ratio, columns).swapaxes(-1, -2), dtype)
    return bitcast_convert_type(x, dtype).swapaxes(-1, -2).reshape(*lead, rows * old // new, columns)


@dataclass(frozen=True, eq=False)
class RefIndexer:
    """What `ref.at` is: indexed, it gives a view."""

    ref_or_view: Any

    def __getitem__(self, idx: Any) -> TransformedRef:
        return view_of(self.ref_or_view, IndexTransform(idx))


class TransformedRef:
    """A view of a reference: part of its elements, or all of them in another shape or order.

    Args:
      ref: the reference.
      transforms: what is done to its array, in this order.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> ref = jax.new_ref(jnp.arange(6))
    >>> rows = ref.reshape(2, 3).at[1]
    >>> rows[0] = 9
    >>> rows.shape
    (3,)
    >>> print(ref[...])
    [0 1 2 9 4 5]
    """

    __slots__ = ("_type", "ref", "transforms")
    __array_priority__ = 1000

    def __init__(self, ref: Any, transforms: Sequence[Any]):
        self.ref, self.transforms = ref, tuple(transforms)
        self._type: Any = None

    @property
    def type(self) -> Any:
        """The type of a reference to what is seen: an `AbstractRef`."""
        if self._type is None:
            from ferrax._api import eval_shape

            whole = self.ref.aval
            seen = eval_shape(lambda x: _applied(x, self.transforms), whole.inner_aval)
            self._type = whole.update(shape=seen.shape, dtype=seen.dtype)
        return self._type

    @property
    def aval(self) -> Any:
        """Views have no type of their own: see `type`."""
        raise TransformedRefAvalError("TransformedRefs cannot be abstractified.")

    shape = property(lambda self: self.type.shape, doc="Shape of what is seen.")
    dtype = property(lambda self: self.type.dtype, doc="Dtype of what is seen.")
    ndim = property(lambda self: len(self.shape), doc="Number of its axes.")
    size = property(lambda self: math.prod(self.shape), doc="Number of its elements.")
    weak_type = property(lambda self: self.ref.weak_type, doc="Whether the reference's array is weakly typed.")
    multiref = property(lambda self: False, doc="Whether it is a choice among references: no.")
    is_dynamic_size = property(lambda self: False, doc="Whether its shape depends on values: no.")
    at = property(RefIndexer, doc="Views of parts: `view.at[idx]`.")
    T = property(lambda self: self.transpose(range(self.ndim)[::-1]), doc="The view with its axes reversed.")

    def reshape(self, *shape: Any) -> TransformedRef:
        """A view in another shape, of which one size may be -1."""
        return view_of(self, ReshapeTransform(_wanted_shape(self.shape, shape)))

    def transpose(self, *permutation: Any) -> TransformedRef:
        """A view with the axes in another order."""
        axes = permutation[0] if len(permutation) == 1 and not isinstance(permutation[0], int) else permutation
        return view_of(self, TransposeTransform(tuple(operator.index(i) for i in axes)))

    def bitcast(self, dtype: Any) -> TransformedRef:
        """A view of the bits as numbers of another dtype."""
        return view_of(self, BitcastTransform(canonicalize_dtype(dtype)))

    def get(self, idx: Any = ()) -> Any:
        """Reads: `view[idx]`."""
        return self[idx]

    def set(self, value: Any, idx: Any = ()) -> None:
        """Writes: `view[idx] = value`."""
        self.swap(value, idx)

    def swap(self, value: Any, idx: Any = (), name: str = "swap") -> Any:
        """Writes, and gives what was there."""
        return self._changed(value, idx, name, lambda x, v: v, lambda at, v, mode: at.set(v, mode=mode))

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Adds to elements: both values where one is named twice."""
        self._changed(x, idx, "addupdate", lambda x, v: x + v, lambda at, v, mode: at.add(v, mode=mode))

    def _changed(self, value: Any, idx: Any, name: str, whole: Any, part: Any) -> Any:
        target = self if _refs.is_all(idx) else self.at[idx]
        done, old = _refs.recording(self.ref, name, target.transforms, value)
        if done:
            return old
        found: list[Any] = []

        def leaf(x: Any, last: Any) -> Any:
            old = x if last is None else last.apply(x)
            found.append(old)
            new = _refs.fitting(self, name, value, old.shape)
            return whole(x, new) if last is None else part(x.at[last.idx], new, _refs.mode_of_index(x.shape, last.idx))

        _refs.write(self.ref, _put(_refs.read(self.ref), target.transforms, leaf))
        return found[0]

    def __getitem__(self, idx: Any) -> Any:
        target = self if _refs.is_all(idx) else self.at[idx]
        done, seen = _refs.recording(self.ref, "get", target.transforms)
        if done:
            return seen
        seen = _applied(_refs.read(self.ref), self.transforms)
        return seen if _refs.is_all(idx) else IndexTransform(idx).apply(seen)

    def __setitem__(self, idx: Any, value: Any) -> None:
        self.swap(value, idx)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"TransformedRef(ref={self.ref!r}, transforms={self.transforms!r})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(f"a view of a reference of type {self.ref.aval} is no array: read it by view[...] first")


def _applied(x: Any, transforms: Sequence[Any]) -> Any:
    for transform in transforms:
        x = transform.apply(x)
    return x


def _put(x: Any, transforms: Sequence[Any], leaf: Callable[[Any, Any], Any]) -> Any:
    """The array with what a chain of transforms sees changed by `leaf`, of an array and the last index or None."""
    if not transforms:
        return leaf(x, None)
    first, *rest = transforms
    if not rest and isinstance(first, IndexTransform):
        return leaf(x, first)
    return first.put(x, _put(first.apply(x), rest, leaf))


def changed(x: Any, transforms: Sequence[Any], value: Any, adds: bool) -> Any:
    """An array with what a chain of transforms sees replaced by a value, or with the value added to it."""

    def leaf(x: Any, last: Any) -> Any:
        if last is None:
            return x + value if adds else value
        at, mode = x.at[last.idx], _refs.mode_of_index(x.shape, last.idx)
        return at.add(value, mode=mode) if adds else at.set(value, mode=mode)

    return _put(x, transforms, leaf)


def view_of(ref: Any, transform: Any) -> TransformedRef:
    """A view of a reference, or of a view."""
    if isinstance(ref, TransformedRef):
        return TransformedRef(ref.ref, (*ref.transforms, transform))
    return TransformedRef(ref, (transform,))


def _wanted_shape(shape: tuple[int, ...], wanted: Any) -> tuple[int, ...]:
    if len(wanted) == 1 and isinstance(wanted[0], (tuple, list)):
        wanted = wanted[0]
    sizes = tuple(operator.index(s) for s in wanted)
    known, size = math.prod(s for s in sizes if s != -1), math.prod(shape)
    if sizes.count(-1) > 1:
        raise ValueError(f"At most one dimension can be -1, but got {sizes}")
    if -1 in sizes:
        if not known or size % known:
            raise ValueError(f"Specified dims {sizes} do not evenly divide the size of the ref ({size}).")
        return tuple(size // known if s == -1 else s for s in sizes)
    if known != size:
        raise ValueError(f"cannot reshape shape {shape} into shape {sizes}")
    return sizes


class ViewParts:
    """A view in a tree that functions are called with: its reference, or the place of one, and its transforms.

    Index arrays are leaves, all other parts of indices belong to the structure.
    """

    __slots__ = ("ref", "transforms")

    def __init__(self, ref: Any, transforms: tuple[Any, ...]):
        self.ref, self.transforms = ref, transforms

    def tree_flatten(self) -> tuple[Any, Any]:
        """The reference and the arrays among the indices; the rest."""
        arrays: list[Any] = []
        rest = []
        for transform in self.transforms:
            if not isinstance(transform, IndexTransform):
                rest.append(transform)
                continue
            leaves, tree = tree_util.tree_flatten(transform.idx, is_leaf=lambda x: x is None)
            fixed = tuple(None if _is_array(x) else _Fixed(x) for x in leaves)
            arrays += [x for x in leaves if _is_array(x)]
            rest.append((tree, fixed))
        return (self.ref, tuple(arrays)), tuple(rest)

    @classmethod
    def tree_unflatten(cls, rest: Any, children: Any) -> Any:
        """The view, once its reference is there again."""
        ref, arrays = children
        each = iter(arrays)
        transforms = []
        for part in rest:
            if not isinstance(part, tuple):
                transforms.append(part)
                continue
            tree, fixed = part
            transforms.append(IndexTransform(tree.unflatten([next(each) if f is None else f.value for f in fixed])))
        if isinstance(ref, _refs.Ref):
            return TransformedRef(ref, transforms)
        return cls(ref, tuple(transforms))


class _Fixed:
    """A part of an index that is known; slices are compared by their ends."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any):
        self.value = value
        self.key = ("slice", value.start, value.stop, value.step) if isinstance(value, slice) else (type(value), value)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Fixed) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic, _ferrax.Array)) or _ferrax.is_tracer(x)


tree_util.register_pytree_node_class(ViewParts)


def taken_apart(tree: Any) -> Any:
    """A tree with `ViewParts` for its views."""
    return tree_util.tree_map(lambda x: ViewParts(x.ref, x.transforms) if isinstance(x, TransformedRef) else x, tree)


_ferrax.set_view_class(TransformedRef)
