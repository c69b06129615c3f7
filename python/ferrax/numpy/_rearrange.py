"""Moving, inserting and removing elements along axes.

Read `_join.py` first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray, concrete_or_error, is_tracer
from ferrax._shapes import static_size
from ferrax.numpy import _join, _reductions, _shape
from ferrax.numpy._args import (  # fmt: skip
    Array,
    ArrayLike,
    Axis,
    broadcast_to_shape,
    cast,
    cast_to,
    entries,
    normalize_axes,
    normalize_axis,
    require,
    static_int,
    static_shape,
    to_array,
)
from ferrax.numpy._dtype_functions import default_int, dtype_kind
from ferrax.numpy._ufuncs import where as _where

__all__ = [
    "append", "delete", "flip", "fliplr", "flipud", "insert", "resize", "roll", "rot90", "trim_zeros",
]  # fmt: skip


def flip(m: ArrayLike, axis: Axis = None) -> Array:
    """An array with its elements in reverse order along axes.

    Args:
      m: array or scalar.
      axis: the axis or axes to reverse; None for all.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.flip(jnp.arange(3))
    Array([2, 1, 0], dtype=int32)
    """
    x = to_array("flip", m)
    return lax.rev(x, normalize_axes(axis, x.ndim))


def fliplr(m: ArrayLike) -> Array:
    """An array with its second axis reversed.

    Args:
      m: array with at least two axes.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    require("fliplr", m)
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """An array with its first axis reversed.

    Args:
      m: array with at least one axis.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    require("flipud", m)
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """An array turned by right angles in the plane of two axes, from the first towards the second.

    Args:
      m: array with at least two axes.
      k: how many right angles.
      axes: the plane.

    Returns:
      Array.

    Raises:
      ValueError: for one axis given twice or too few axes.

    >>> import ferrax.numpy as jnp
    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = to_array("rot90", m)
    if x.ndim < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got first argument of shape "
            f"{x.shape}, which has ndim {x.ndim}"
        )
    first, second = axes
    i, j = normalize_axis(first, x.ndim), normalize_axis(second, x.ndim)
    if i == j:
        raise ValueError("Axes must be different")
    turns = operator.index(k) % 4
    if turns == 0:
        return x
    if turns == 2:
        return lax.rev(x, (i, j))
    if turns == 1:
        return _shape.swapaxes(lax.rev(x, (j,)), i, j)
    return lax.rev(_shape.swapaxes(x, i, j), (j,))


def _roll_axis(x: Array, shift: Any, axis: int) -> Array:
    n = x.shape[axis]
    if n == 0:
        return x
    if is_tracer(shift):
        doubled = lax.concatenate([x, x], axis)
        start = (n - cast(shift, default_int())) % n
        return lax.dynamic_slice_in_dim(doubled, start, n, axis=axis)
    try:
        cut = (-static_size(shift)) % n
    except TypeError:  # no integer: the whole part of a number
        cut = -int(cast(asarray(shift), default_int())) % n
    if cut == 0:
        return x
    tail, head = lax.slice_in_dim(x, cut, n, axis=axis), lax.slice_in_dim(x, 0, cut, axis=axis)
    return lax.concatenate([tail, head], axis)


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axis = None) -> Array:
    """An array with its elements moved along axes; those pushed out at the end come in at the start.

    Args:
      a: array or scalar.
      shift: how far, one number for all axes or one for each; may be traced.
      axis: the axis or axes to move along; None to roll the flattened array.

    Returns:
      Array of the shape of `a`.

    >>> import ferrax.numpy as jnp
    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = to_array("roll", a)
    if not isinstance(shift, (list, tuple)):
        require("roll", shift)
        shift = asarray(shift) if hasattr(shift, "__jax_array__") else shift
    if axis is None:
        return lax.reshape(roll(lax.reshape(x, (x.size,)), shift, 0), x.shape)
    axes = tuple(normalize_axis(i, x.ndim) for i in entries(axis))
    if isinstance(shift, (list, tuple)):
        shifts = list(shift)
    elif np.ndim(shift) == 0:
        shifts = [shift]
    else:
        shifts = list(asarray(shift))
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={[(len(shifts),), (len(axes),)]}")
    # One shift or axis goes with each of the others, of which there may be none.
    for s, i in zip(shifts * len(axes) if len(shifts) == 1 else shifts, axes * len(shifts) if len(axes) == 1 else axes):
        x = _roll_axis(x, s, i)
    return x


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """The elements of an array in another shape, repeated or cut as its size needs.

    Args:
      a: array.
      new_shape: integer or sequence of integers.

    Returns:
      Array of `new_shape`; zeros when `a` is empty.

    >>> import ferrax.numpy as jnp
    >>> jnp.resize(jnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int32)
    """
    x = to_array("resize", a)
    shape = static_shape(new_shape)
    size = math.prod(shape)
    if x.size == 0 or size == 0:
        return lax.full(shape, 0, x.dtype)
    flat = lax.reshape(x, (x.size,))
    copies = -(-size // x.size)
    if copies > 1:
        flat = lax.concatenate([flat] * copies, 0)
    return lax.reshape(lax.slice_in_dim(flat, 0, size, axis=0), shape)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """An array with values added at the end of an axis.

    Args:
      arr: array.
      values: array of the shape of `arr` but for `axis`.
      axis: axis to extend; None to join the flattened arrays.

    Returns:
      Array of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> jnp.append(jnp.arange(2), jnp.array([7, 8]))
    Array([0, 1, 7, 8], dtype=int32)
    """
    parts = to_array("append", arr), to_array("append", values)
    if axis is None:
        return _join.concatenate([lax.reshape(x, (x.size,)) for x in parts], 0)
    return _join.concatenate(parts, axis)


def _take_static(x: Array, index: np.ndarray, axis: int) -> Array:
    from ferrax.numpy._take import take

    return take(x, asarray(index.astype(default_int())), axis=axis, mode="clip")


def _delete_many(x: Array, index: Array, axis: int) -> Array:
    """Removes distinct places that may be traced: each later element steps over the removed ones before it."""
    from ferrax.numpy._take import take

    n = x.shape[axis]
    index = cast(lax.reshape(index, (index.size,)), default_int())
    removed = lax.sort(_where(index < 0, index + n, index))
    k = index.size
    threshold = removed - lax.iota(default_int(), k)
    kept = lax.iota(default_int(), n - k)
    steps = _reductions.sum(lax.expand_dims(kept, (0,)) >= lax.expand_dims(threshold, (1,)), axis=0)
    return take(x, kept + cast(steps, default_int()), axis=axis, mode="clip")


def delete(arr: ArrayLike, obj: ArrayLike | slice, axis: int | None = None, *,
           assume_unique_indices: bool = False) -> Array:  # fmt: skip
    """An array without some of its slices along an axis.

    Args:
      arr: array.
      obj: which to remove: an integer (may be traced), a slice, an array of integers or a bool mask (static).
      axis: axis to remove along; None for the flattened array.
      assume_unique_indices: promise that the integers are distinct; they may then be traced.

    Returns:
      Array.

    Raises:
      ValueError: for a mask of the wrong length or an index out of bounds.

    >>> import ferrax.numpy as jnp
    >>> jnp.delete(jnp.arange(4), jnp.array([0, 2]))
    Array([1, 3], dtype=int32)
    """
    x = to_array("delete", arr)
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis]
    if isinstance(obj, slice):
        kept = np.delete(np.arange(n), obj)
        return _take_static(x, kept, axis)
    require("delete", obj)
    context = "the obj argument of jnp.delete"
    obj = asarray(obj)
    if dtype_kind(obj.dtype) == "b":
        mask = np.asarray(concrete_or_error(np.asarray, obj, context))
        if mask.shape != (n,):
            raise ValueError(
                "jnp.delete(arr, obj): for boolean indices, obj must be one-dimensional with length matching "
                "specified axis."
            )
        return _take_static(x, np.flatnonzero(~mask), axis)
    if dtype_kind(obj.dtype) not in "iu":
        raise ValueError(f"jnp.delete(arr, obj): got obj.dtype={obj.dtype}; must be integer or bool.")
    if obj.ndim == 0 and not is_tracer(obj):
        place = normalize_axis(static_int(obj, context), n)
        ends = [lax.slice_in_dim(x, 0, place, axis=axis), lax.slice_in_dim(x, place + 1, n, axis=axis)]
        return lax.concatenate(ends, axis)
    if obj.ndim == 0 or assume_unique_indices:
        return _delete_many(x, obj, axis)
    places = np.asarray(concrete_or_error(np.asarray, obj, context)).reshape(-1).astype(np.int64)
    for place in places[(places < -n) | (places >= n)]:
        raise IndexError(f"index {place} is out of bounds for axis {axis} with size {n}")
    return _take_static(x, np.delete(np.arange(n), places), axis)


def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None) -> Array:
    """An array with values put in before given places along an axis.

    Args:
      arr: array.
      obj: an integer, a slice or an array of integers: the places in `arr` before which to insert; may be traced.
      values: what to insert, converted to the dtype of `arr`.
      axis: axis to insert along; None for the flattened array.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.insert(jnp.arange(3), 1, 9)
    Array([0, 9, 1, 2], dtype=int32)
    """
    x, new = to_array("insert", arr), to_array("insert", values)
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis]
    if isinstance(obj, slice):
        index = asarray(np.arange(n)[obj].astype(default_int()))
    else:
        index = to_array("insert", obj)
        if dtype_kind(index.dtype) == "b":
            index = asarray(
                np.flatnonzero(np.asarray(concrete_or_error(np.asarray, index, "jnp.insert"))).astype(default_int())
            )
    if index.ndim > 1:
        raise ValueError(f"jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar; got {obj}")
    index = cast(index, default_int())
    new = new if new.dtype == x.dtype else cast_to(new, x.dtype)
    new = lax.expand_dims(new, tuple(range(x.ndim - new.ndim)))
    if index.ndim == 0:
        new = _shape.moveaxis(new, 0, axis)
        if isinstance(obj, (int, np.integer)) and -n <= obj <= n:
            at = obj + n if obj < 0 else obj
            new = broadcast_to_shape(new, (*x.shape[:axis], new.shape[axis], *x.shape[axis + 1 :]))
            before, after = lax.slice_in_dim(x, 0, at, axis=axis), lax.slice_in_dim(x, at, n, axis=axis)
            return lax.concatenate([before, new, after], axis)
    return _insert_at(x, index, new, axis, n)


def _insert_at(x: Array, index: Array, new: Array, axis: int, n: int) -> Array:
    index = _where(index < 0, index + n, index)
    index = lax.clamp(asarray(0, index.dtype), index, asarray(n, index.dtype))
    if index.size == 0:
        return x
    k = new.shape[axis] if index.size == 1 else index.size
    index = broadcast_to_shape(index, (k,))
    new = broadcast_to_shape(new, x.shape[:axis] + (k,) + x.shape[axis + 1 :])
    _, order = lax.sort((index, lax.iota(default_int(), k)), num_keys=1)
    places = index.at[order].add(lax.iota(default_int(), k))
    total = n + k
    is_new = lax.full((total,), False, np.bool_).at[places].set(True)
    rank = cast(lax.cumsum(cast(~is_new, default_int()), 0), default_int()) - 1
    source = _where(is_new, 0, rank).at[places].set(n + lax.iota(default_int(), k))
    from ferrax.numpy._take import take

    return take(lax.concatenate([x, new], axis), source, axis=axis, mode="clip")


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axis = None) -> Array:
    """An array without the zeros at its ends.

    Args:
      filt: array with concrete values.
      trim: "f" for the front, "b" for the back, "fb" for both.
      axis: the axis or axes to trim; None for all.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    x = asarray(filt) if not isinstance(filt, (list, tuple)) else asarray(np.asarray(filt))
    host = np.asarray(concrete_or_error(np.asarray, x, "Error arose in the `filt` argument of trim_zeros()"))
    axes = normalize_axes(axis, x.ndim)
    places = np.nonzero(host) if host.ndim else ()
    for i in axes:
        low = int(places[i].min()) if places[i].size else x.shape[i]
        high = int(places[i].max()) + 1 if places[i].size else low
        low = low if "f" in trim.lower() else 0
        high = high if "b" in trim.lower() else x.shape[i]
        x = lax.slice_in_dim(x, low, max(low, high), axis=i)
    return x
