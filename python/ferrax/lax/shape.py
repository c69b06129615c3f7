"""Functions that change shapes, and those that make arrays.

Read next: `slicing.py`, `reductions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax._ferrax import Array, KeyTy, Tracer, explicit_in_use, lax as _lax
from ferrax._out_sharding import with_out_sharding
from ferrax._shapes import static_sizes
from ferrax.dtypes import issubdtype
from ferrax.lax.conversion import wide_number
from ferrax.typing import ArrayLike

__all__ = [
    "broadcast",
    "broadcast_in_dim",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "collapse",
    "empty",
    "expand_dims",
    "full",
    "full_like",
    "iota",
    "reshape",
    "rev",
    "shape_as_value",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unstack",
]


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Repeats an array along new leading axes.

    Args:
      operand: array.
      sizes: sizes of the new axes.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array of shape ``(*sizes, *operand.shape)``.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.broadcast(jnp.ones(3), (2,)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return with_out_sharding(lambda: broadcast(operand, sizes), out_sharding, "broadcast_in_dim")
    return _lax.broadcast_front(operand, sizes)


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """Repeats an array along new axes and along axes of size one.

    Args:
      operand: array of rank n.
      shape: the result's shape.
      broadcast_dimensions: n different axes of the result, one for each axis of the operand.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array of that shape.

    Raises:
      TypeError: the operand does not fit the shape.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,)))
    [[1 1 1]
     [2 2 2]]
    """
    if out_sharding is not None:
        return with_out_sharding(
            lambda: broadcast_in_dim(operand, shape, broadcast_dimensions), out_sharding, "broadcast_in_dim"
        )
    return _lax.broadcast_in_dim(operand, shape, broadcast_dimensions)


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """Repeats an array along new leading axes up to the shape of another.

    Args:
      arr: array.
      like_arr: array whose last axes have the sizes of those of arr, or those of arr are one.

    Returns:
      Array of the shape of like_arr.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.broadcast_like(jnp.ones(3), jnp.ones((2, 3))).shape
    (2, 3)
    """
    from ferrax._core import shape

    target = shape(like_arr)
    rank = len(shape(arr))
    return _lax.broadcast_in_dim(arr, target, range(len(target) - rank, len(target)))


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to, by NumPy's rules.

    Args:
      *shapes: shapes.

    Returns:
      A shape.

    Raises:
      ValueError: the shapes do not combine.

    >>> from ferrax import lax
    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return _lax.broadcast_shapes(*shapes)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Adds leading axes of size one up to a rank.

    Args:
      x: array.
      rank: the result's number of axes; the array itself when it has as many or more.

    Returns:
      Array with the elements of x.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.broadcast_to_rank(jnp.ones(3), 3).shape
    (1, 1, 3)
    """
    from ferrax._core import shape

    return _lax.expand_dims(x, tuple(range(max(rank - len(shape(x)), 0))))


def reshape(
    operand: ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Array:
    """Gives the elements, in row-major order, another shape.

    Args:
      operand: array.
      new_sizes: the shape; its size is the operand's.
      dimensions: an order of the operand's axes to take the elements in, instead of row-major order.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array of that shape.

    Raises:
      TypeError: the sizes differ, or one is negative.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reshape(jnp.arange(6), (2, 3)))
    [[0 1 2]
     [3 4 5]]
    """
    if out_sharding is not None:
        return with_out_sharding(lambda: reshape(operand, new_sizes, dimensions), out_sharding, "reshape")
    try:
        return _lax.reshape(operand, new_sizes, dimensions)
    except TypeError:
        static_sizes(new_sizes)  # says what is wrong where a size is no integer
        raise


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Permutes the axes of an array.

    Args:
      operand: array of rank n.
      permutation: the n axes in their new order.

    Returns:
      Array whose axis i is the operand's axis ``permutation[i]``.

    Raises:
      TypeError: not a permutation of the axes.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.transpose(jnp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return _lax.transpose(operand, permutation)


def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """Drops axes of size one.

    Args:
      array: array.
      dimensions: axes to drop; negative ones count from the end.

    Returns:
      Array without these axes.

    Raises:
      ValueError: an axis has another size.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.squeeze(jnp.ones((1, 3)), (0,)).shape
    (3,)
    """
    return _lax.squeeze(array, dimensions)


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """Adds axes of size one.

    Args:
      array: array.
      dimensions: places of the new axes in the result; negative ones count from its end.

    Returns:
      Array with these axes.

    Raises:
      ValueError: a place is given twice or does not exist.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.expand_dims(jnp.ones(3), (0, 2)).shape
    (1, 3, 1)
    """
    return _lax.expand_dims(array, tuple(dimensions))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverses the order of elements along axes.

    Args:
      operand: array.
      dimensions: the axes.

    Returns:
      Array of the operand's shape and dtype.

    Raises:
      TypeError: an axis is given twice or does not exist.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.rev(jnp.arange(3), (0,)))
    [2 1 0]
    """
    return _lax.rev(operand, dimensions)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merges neighbouring axes into one.

    Args:
      operand: array.
      start_dimension: the first axis; negative ones count from the end.
      stop_dimension: the axis after the last, the end when None.

    Returns:
      Array with one axis in place of those.

    Raises:
      ValueError: the stop lies before the start.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.collapse(jnp.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    return _lax.collapse(operand, start_dimension, stop_dimension)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeats an array along its axes.

    Args:
      operand: array of rank n.
      reps: n numbers of copies.

    Returns:
      Array of n axes, each reps times as long.

    Raises:
      TypeError: not one number for each axis.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.tile(jnp.array([1, 2]), (2,)))
    [1 2 1 2]
    """
    return _lax.tile(operand, reps)


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Joins arrays along a new axis.

    Args:
      operands: arrays of one shape and dtype.
      axis: place of the new axis in the result.

    Returns:
      Array with one axis more.

    Raises:
      ValueError: there are no operands, or their ranks differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.stack([jnp.zeros(3), jnp.ones(3)], axis=1).shape
    (3, 2)
    """
    return _lax.stack(list(operands), axis)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """Splits an array into its slices along an axis, without that axis.

    Args:
      x: array of rank at least 1.
      axis: the axis.

    Returns:
      Tuple of arrays.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> [int(v) for v in lax.unstack(jnp.arange(3))]
    [0, 1, 2]
    """
    return _lax.unstack(x, axis)


def in_floats(fill_value: Any, dtype: Any) -> Any:
    """The number, or the nearest one of a floating dtype to an integer that the default integers do not hold."""
    if type(fill_value) is not int or -(2**31) <= fill_value < 2**31 or dtype is None:
        return fill_value
    return wide_number(fill_value, dtype) if issubdtype(dtype, np.inexact) else fill_value


def full(shape: Sequence[int], fill_value: ArrayLike, dtype: Any = None, *, sharding: Any = None) -> Array:
    """An array with one number in every place.

    Args:
      shape: the shape.
      fill_value: scalar.
      dtype: dtype of the result; that of the scalar when None.
      sharding: how the result is spread over devices.

    Returns:
      Array of that shape.

    Raises:
      TypeError: fill_value is not a scalar.

    >>> from ferrax import lax
    >>> print(lax.full((2,), 7))
    [7 7]
    """
    if sharding is not None:
        return with_out_sharding(lambda: full(shape, fill_value, dtype), sharding, "lax.full")
    if isinstance(dtype, KeyTy) and not _is_key(fill_value):
        return _keys_of_words(shape, fill_value, dtype)
    return _lax.full(shape, in_floats(fill_value, dtype), dtype)


def _is_key(x: Any) -> bool:
    return isinstance(getattr(x, "dtype", None), KeyTy)


def _keys_of_words(shape: Sequence[int], word: ArrayLike, dtype: KeyTy) -> Array:
    """Keys of which each word is a number."""
    from ferrax import random
    from ferrax.lax.conversion import convert_element_type

    word = convert_element_type(word, np.uint32)
    return random.wrap_key_data(_lax.full((*shape, dtype.itemsize // 4), word, np.uint32))


def full_like(x: ArrayLike, fill_value: ArrayLike, dtype: Any = None, shape: Any = None, sharding: Any = None) -> Array:
    """As `full`, with the shape and dtype of another array where they are not given.

    Args:
      x: array or its abstract type.
      fill_value: scalar.
      dtype: dtype of the result.
      shape: shape of the result.
      sharding: how the result is spread over devices.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.full_like(jnp.arange(2.0), 7))
    [7. 7.]
    """
    fill_value = in_floats(fill_value, dtype if dtype is not None else getattr(x, "dtype", None))
    if (isinstance(dtype, KeyTy) or (dtype is None and _is_key(x))) and not _is_key(fill_value):
        own: Any = x
        key_type = own.dtype if dtype is None else dtype
        fill_value = _keys_of_words((), fill_value, key_type)
    if sharding is not None:
        return with_out_sharding(lambda: full_like(x, fill_value, dtype, shape), sharding, "lax.full_like")
    concrete = isinstance(x, Array) and not isinstance(x, Tracer) and x.committed
    if concrete and (shape is None or len(x.sharding.device_set) == 1):
        from ferrax._devices import device_put

        return device_put(_lax.full_like(x, fill_value, dtype, shape), x.sharding)
    if shape is None and explicit_in_use():
        from ferrax.numpy._creation import sharding_of_like

        like = sharding_of_like(x)
        if like is not None:
            return with_out_sharding(lambda: _lax.full_like(x, fill_value, dtype, shape), like, "lax.full_like")
    return _lax.full_like(x, fill_value, dtype, shape)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array whose content does not matter; it holds zeros.

    Args:
      shape: the shape.
      dtype: the dtype.
      out_sharding: must be None.

    Returns:
      Array of that shape and dtype.

    >>> from ferrax import lax
    >>> lax.empty((2, 3), "float32").shape
    (2, 3)
    """
    if out_sharding is not None:
        return with_out_sharding(lambda: empty(shape, dtype), out_sharding, "lax.empty")
    return _lax.full(shape, 0, dtype)


def iota(dtype: Any, size: int) -> Array:
    """The numbers 0, 1, ..., size - 1.

    Args:
      dtype: a number dtype.
      size: how many.

    Returns:
      Array of shape ``(size,)``.

    >>> from ferrax import lax
    >>> print(lax.iota("int32", 3))
    [0 1 2]
    """
    return _lax.broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None) -> Array:
    """The index of every element along one axis.

    Args:
      dtype: a number dtype.
      shape: the result's shape.
      dimension: the axis.
      out_sharding: must be None.

    Returns:
      Array of that shape.

    Raises:
      ValueError: there is no such axis.

    >>> from ferrax import lax
    >>> print(lax.broadcasted_iota("int32", (2, 2), 1))
    [[0 1]
     [0 1]]
    """
    if out_sharding is not None:
        return with_out_sharding(lambda: broadcasted_iota(dtype, shape, dimension), out_sharding, "broadcasted_iota")
    return _lax.broadcasted_iota(dtype, shape, dimension)


def shape_as_value(shape: Sequence[int]) -> Array:
    """A shape as an array.

    Args:
      shape: the shape.

    Returns:
      Integer array with one element for each axis.

    >>> from ferrax import lax
    >>> print(lax.shape_as_value((2, 3)))
    [2 3]
    """
    if len(shape) == 0:
        return _lax.full((0,), 0, int)
    return _lax.stack([_lax.full((), d, int) for d in shape], 0)
