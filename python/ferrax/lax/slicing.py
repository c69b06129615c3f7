"""Static and dynamic slices, joining, splitting and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrax._ferrax import Array, lax as _lax
from ferrax.typing import ArrayLike

__all__ = [
    "concatenate",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "index_in_dim",
    "pad",
    "slice",
    "slice_in_dim",
    "split",
]


def slice(
    operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """The window ``operand[start:limit:stride]`` on every axis.

    Args:
      operand: array of rank n.
      start_indices: n integers, the first entry on each axis.
      limit_indices: n integers, the end (exclusive) on each axis.
      strides: n positive integers, or None for 1 everywhere.

    Returns:
      Array of the operand's dtype and rank.

    Raises:
      TypeError: the bounds do not fit the operand's shape.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.slice(jnp.arange(12).reshape(3, 4), (1, 0), (3, 4), (1, 2))
      Array([[ 4,  6],
             [ 8, 10]], dtype=int32)
    """
    return _lax.slice(operand, start_indices, limit_indices, strides)


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """A slice along one axis, bounds as Python's slices take them.

    Args:
      operand: array of rank at least 1.
      start_index: first entry; negative counts from the end; None is the beginning.
      limit_index: end (exclusive); negative counts from the end; None is the end.
      stride: positive step.
      axis: the axis to slice.

    Returns:
      Array of the operand's dtype and rank.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.slice_in_dim(jnp.arange(6), 1, None, stride=2)
      Array([1, 3, 5], dtype=int32)
    """
    return _lax.slice_in_dim(operand, start_index, limit_index, stride, axis)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """One entry along an axis, at a static place.

    Args:
      operand: array of rank at least 1.
      index: which entry; negative counts from the end.
      axis: the axis to index.
      keepdims: keep the axis with size 1.

    Returns:
      Array of the operand's dtype.

    Raises:
      IndexError: the index is out of bounds.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.index_in_dim(jnp.arange(6).reshape(2, 3), -1, axis=1, keepdims=False)
      Array([2, 5], dtype=int32)
    """
    return _lax.index_in_dim(operand, index, axis, keepdims)


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A window of static size that starts at a place known at run time.

    Starts beyond the operand are clamped so that the window lies inside it.

    Args:
      operand: array of rank n.
      start_indices: n integer scalars, or an integer array of shape (n,).
      slice_sizes: n integers, the window's shape.
      allow_negative_indices: negative starts count from the end; one truth value, or one for each axis.

    Returns:
      Array of shape ``slice_sizes`` and the operand's dtype.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.dynamic_slice(jnp.arange(12).reshape(3, 4), (1, 1), (2, 3))
      Array([[ 5,  6,  7],
             [ 9, 10, 11]], dtype=int32)
    """
    return _lax.dynamic_slice(operand, start_indices, slice_sizes, allow_negative_indices)


def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """``slice_size`` entries along one axis from a start known at run time.

    Args:
      operand: array of rank at least 1.
      start_index: integer scalar; clamped so that the window lies inside.
      slice_size: number of entries.
      axis: the axis to slice.
      allow_negative_indices: negative starts count from the end.

    Returns:
      Array of the operand's dtype and rank.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.dynamic_slice_in_dim(jnp.arange(5), 3, 3)
      Array([2, 3, 4], dtype=int32)
    """
    return _lax.dynamic_slice_in_dim(operand, start_index, slice_size, axis, allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """One entry along an axis at a place known at run time.

    Args:
      operand: array of rank at least 1.
      index: integer scalar; clamped into range.
      axis, keepdims: as in `index_in_dim`.
      allow_negative_indices: a negative index counts from the end.

    Returns: as in `index_in_dim`.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.dynamic_index_in_dim(jnp.arange(6).reshape(2, 3), 1, keepdims=False)
      Array([3, 4, 5], dtype=int32)
    """
    return _lax.dynamic_index_in_dim(operand, index, axis, keepdims, allow_negative_indices)


def dynamic_update_slice(
    operand: ArrayLike, update: ArrayLike, start_indices: Any, *, allow_negative_indices: bool | Sequence[bool] = True
) -> Array:
    """The operand with the window that starts at a place known at run time replaced.

    Args:
      operand: array of rank n.
      update: array of rank n and the operand's dtype, no larger than the operand on any axis.
      start_indices: n integer scalars, or an integer array of shape (n,); clamped so that the window lies inside.
      allow_negative_indices: negative starts count from the end; one truth value, or one for each axis.

    Returns:
      Array of the operand's shape and dtype.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.dynamic_update_slice(jnp.zeros(6), jnp.ones(3), (2,))
      Array([0., 0., 1., 1., 1., 0.], dtype=float32)
    """
    return _lax.dynamic_update_slice(operand, update, start_indices, allow_negative_indices)


def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """The operand with consecutive entries of one axis replaced, from a start known at run time.

    Args:
      operand: array of rank n.
      update: array of rank n and the operand's dtype.
      start_index: integer scalar; clamped so that the window lies inside.
      axis: the axis to update.
      allow_negative_indices: negative starts count from the end.

    Returns:
      Array of the operand's shape and dtype.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, axis=0)
      Array([0., 1., 1., 0.], dtype=float32)
    """
    return _lax.dynamic_update_slice_in_dim(operand, update, start_index, axis, allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """The operand with one entry of an axis replaced, at a place known at run time.

    Args:
      operand: array of rank n.
      update: array of rank n with size 1 on the axis, or of rank n - 1 without it.
      index: integer scalar; clamped into range.
      axis: the axis to update.
      allow_negative_indices: a negative index counts from the end.

    Returns:
      Array of the operand's shape and dtype.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.dynamic_update_index_in_dim(jnp.zeros(4), 1.0, 2, axis=0)
      Array([0., 0., 1., 0.], dtype=float32)
    """
    return _lax.dynamic_update_index_in_dim(operand, update, index, axis, allow_negative_indices)


def concatenate(operands: Any, dimension: int) -> Array:
    """Arrays joined along one axis.

    Args:
      operands: a sequence of arrays of one dtype, whose shapes are equal but for ``dimension``.
      dimension: the axis along which they are joined.

    Returns:
      Array of the operands' dtype.

    Raises:
      TypeError: shapes or dtypes do not fit together.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.concatenate([jnp.arange(2), jnp.arange(3)], 0)
      Array([0, 1, 0, 1, 2], dtype=int32)
    """
    return _lax.concatenate(list(operands), dimension)


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """The operand with low, high and interior padding on each axis.

    Args:
      operand: array of rank n.
      padding_value: scalar of the operand's dtype.
      padding_config: n triples (low, high, interior). Negative low and high padding crops; interior padding goes
        between entries.

    Returns:
      Array of the operand's dtype and rank.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.pad(jnp.arange(1, 4), 0, [(1, 0, 1)])
      Array([0, 1, 0, 2, 0, 3], dtype=int32)
    """
    return _lax.pad(operand, padding_value, padding_config)


def split(operand, sizes: Sequence[int], axis: int = 0) -> Sequence[Any]:
    """Consecutive parts of an array along one axis.

    Args:
      operand: array of rank at least 1.
      sizes: the length of each part; they add up to the axis's size.
      axis: the axis that is divided.

    Returns:
      A list of arrays, one for each size.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.split(jnp.arange(5), [2, 3])
      [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    return _lax.split(operand, sizes, axis)
