"""Changing the shape of an array and the order of its axes.

All of these are views of the data in a compiled program or copies at most; none computes. Read `_args.py` first,
`_join.py` and `_rearrange.py` next.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._rust import with_shortcut
from ferrax._shapes import is_symbolic_dim
from ferrax.errors import InconclusiveDimensionOperation
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    broadcast_to_shape,
    common_shape,
    entries,
    normalize_axes,
    normalize_axis,
    require,
    shape_of,
    static_shape,
    static_sizes,
    to_array,
    to_arrays,
    with_out_sharding,
)  # fmt: skip

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims",
    "matrix_transpose", "moveaxis", "ndim", "permute_dims", "ravel", "reshape", "rollaxis", "shape", "size", "squeeze",
    "swapaxes", "transpose",
]  # fmt: skip


def shape(a: ArrayLike) -> tuple[int, ...]:
    """The shape of an array.

    Args:
      a: array or scalar.

    Returns:
      Tuple of integers.

    >>> import ferrax.numpy as jnp
    >>> jnp.shape(jnp.zeros((2, 3)))
    (2, 3)
    """
    _warn_of_lists("shape", a)
    return shape_of(a)


def _warn_of_lists(name: str, a: Any) -> None:
    if a is None or isinstance(a, (list, tuple)):
        warnings.warn(
            f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. "
            "Convert it with jnp.asarray first: this will be an error.",
            DeprecationWarning,
            stacklevel=3,
        )


def ndim(a: ArrayLike) -> int:
    """The number of axes of an array.

    Args:
      a: array or scalar.

    Returns:
      Integer.

    >>> import ferrax.numpy as jnp
    >>> jnp.ndim(jnp.zeros((2, 3)))
    2
    """
    _warn_of_lists("ndim", a)
    return len(shape_of(a))


def size(a: ArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements of an array, in all or along axes.

    Args:
      a: array or scalar.
      axis: the axis or axes to count along; None for all.

    Returns:
      Integer.

    >>> import ferrax.numpy as jnp
    >>> jnp.size(jnp.zeros((2, 3))), jnp.size(jnp.zeros((2, 3)), axis=1)
    (6, 3)
    """
    _warn_of_lists("size", a)
    dims = shape_of(a)
    if axis is None:
        return math.prod(dims)
    return math.prod(dims[i] for i in normalize_axes(axis, len(dims), repeated="repeated axis"))


def _new_shape(old: tuple[int, ...], new: Any) -> tuple[int, ...]:
    """`new` with its -1 worked out; TypeError when the sizes differ."""
    dims = list(static_sizes(new))
    total = math.prod(old)
    unknown = [i for i, d in enumerate(dims) if d == -1]
    if len(unknown) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {tuple(dims)}")
    if unknown:
        known = math.prod(d for d in dims if d != -1)
        if known == 0 and total == 0:
            dims[unknown[0]] = 0
        elif known == 0 or (left := total % known) != 0:
            if known != 0 and is_symbolic_dim(left):
                raise InconclusiveDimensionOperation(
                    f"Cannot divide evenly the sizes of shapes {tuple(old)} and {tuple(dims)}. The remainder {left} "
                    "should be 0."
                )
            raise TypeError(
                f"cannot reshape array of shape {old} (size {total}) into shape {tuple(dims)} because the product of "
                f"specified axis sizes ({known}) does not evenly divide {total}"
            )
        else:
            dims[unknown[0]] = total // known
    if any(d < 0 for d in dims):
        raise TypeError(f"reshape new_sizes must all be positive, got {tuple(dims)}.")
    if math.prod(dims) != total:
        raise TypeError(
            f"cannot reshape array of shape {old} (size {total}) into shape {tuple(dims)} (size {math.prod(dims)})"
        )
    return tuple(dims)


@with_shortcut("reshape")
def reshape(
    a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: None = None
) -> Array:
    """The elements of an array in another shape.

    Args:
      a: array or scalar.
      shape: integer or sequence of integers; one of them may be -1 and is worked out.
      order: "C" for rows first, "F" for columns first.
      copy: False is refused, for a view is not promised.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array of `shape` and the dtype of `a`; an array or scalar of NumPy becomes one of NumPy, in programs, too.

    Raises:
      TypeError: when the sizes differ.

    >>> import ferrax.numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(lambda: reshape(a, shape, order, copy=copy), out_sharding, "reshape")
    if isinstance(a, (np.ndarray, np.generic)) and copy is not False:
        return a.reshape(shape, order=order)  # known while a program is traced, as its caller expects
    x = to_array("reshape", a)
    if copy is False:
        raise NotImplementedError("jnp.reshape: copy=False is not supported, for a view cannot be promised.")
    dims = _new_shape(x.shape, shape)
    if order == "C":
        return lax.reshape(x, dims)
    if order == "F":
        flipped = lax.reshape(lax.transpose(x, tuple(range(x.ndim))[::-1]), dims[::-1])
        return lax.transpose(flipped, tuple(range(len(dims)))[::-1])
    if order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


@with_shortcut("ravel")
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: None = None) -> Array:
    """The elements of an array in one dimension.

    Args:
      a, order, out_sharding: as in `reshape`.

    Returns:
      One-dimensional array.

    >>> import ferrax.numpy as jnp
    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    x = to_array("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    return reshape(x, (x.size,), order, out_sharding=out_sharding)


@with_shortcut("transpose")
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """An array with its axes in another order.

    Args:
      a: array or scalar.
      axes: for each axis of the result, the axis of `a` it comes from; None to reverse all.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.transpose(jnp.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = to_array("transpose", a)
    if axes is None:
        return lax.transpose(x, tuple(range(x.ndim))[::-1])
    order = tuple(normalize_axis(i, x.ndim, "the axes argument of jnp.transpose") for i in entries(axes))
    return lax.transpose(x, order)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """An array with its axes in another order: `transpose` by the array API standard's name.

    Args:
      a: array or scalar.
      axes: for each axis of the result, the axis of `a` it comes from.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.permute_dims(jnp.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    require("permute_dims", a)
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """An array with its last two axes exchanged.

    Args:
      x: array with at least two axes.

    Returns:
      Array.

    Raises:
      ValueError: when `x` has fewer than two axes.

    >>> import ferrax.numpy as jnp
    >>> jnp.matrix_transpose(jnp.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    x = to_array("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}")
    order = list(range(x.ndim))
    order[-2:] = order[-1], order[-2]
    return lax.transpose(x, order)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """An array with some axes moved to other places; the rest keep their order.

    Args:
      a: array.
      source: the axis or axes to move.
      destination: where each goes.

    Returns:
      Array.

    Raises:
      ValueError: when the numbers of axes differ.

    >>> import ferrax.numpy as jnp
    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = to_array("moveaxis", a)
    sources, destinations = normalize_axes(source, x.ndim), normalize_axes(destination, x.ndim)
    if len(sources) != len(destinations):
        raise ValueError(f"Inconsistent number of elements: {len(sources)} vs {len(destinations)}")
    order = [i for i in range(x.ndim) if i not in sources]
    for to, origin in sorted(zip(destinations, sources)):
        order.insert(to, origin)
    return lax.transpose(x, order)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """An array with two axes exchanged.

    Args:
      a: array.
      axis1: an axis.
      axis2: the axis to exchange it with.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = to_array("swapaxes", a)
    i, j = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    order = list(range(x.ndim))
    order[i], order[j] = order[j], order[i]
    return lax.transpose(x, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """An array with one axis rolled back until it lies before another; `moveaxis` is clearer.

    Args:
      a: array.
      axis: the axis to move.
      start: the axis before which it goes.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = to_array("rollaxis", a)
    start = operator.index(start)
    if not -x.ndim <= start <= x.ndim:
        raise ValueError(f"start={start} must satisfy {-x.ndim}<=start<={x.ndim}")
    axis = normalize_axis(axis, x.ndim)
    if start < 0:
        start += x.ndim
    if start > axis:
        start -= 1
    return moveaxis(x, axis, start)


@with_shortcut("expand_dims")
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """An array with new axes of length 1.

    Args:
      a: array or scalar.
      axis: where the new axis or axes stand in the result.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.expand_dims(jnp.zeros(3), (0, 2)).shape
    (1, 3, 1)
    """
    x = to_array("expand_dims", a)
    axes = entries(axis)
    places = normalize_axes(axes, x.ndim + len(axes), repeated="repeated axis in expand_dims")
    return lax.expand_dims(x, places)


@with_shortcut("squeeze")
def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """An array without its axes of length 1.

    Args:
      a: array or scalar.
      axis: which axes to remove; None for all of length 1.

    Returns:
      Array.

    Raises:
      ValueError: when a given axis is longer than 1.

    >>> import ferrax.numpy as jnp
    >>> jnp.squeeze(jnp.zeros((1, 3, 1))).shape
    (3,)
    """
    x = to_array("squeeze", a)
    if axis is None:
        axes = tuple(i for i, d in enumerate(x.shape) if d == 1)
    else:
        axes = normalize_axes(axis, x.ndim)
        for i in axes:
            if x.shape[i] != 1:
                raise ValueError(
                    f"cannot select an axis to squeeze out which has size not equal to one, got shape={x.shape} "
                    f"and dimensions={axes}"
                )
    return lax.squeeze(x, axes)


@with_shortcut("broadcast_to")
def broadcast_to(array: ArrayLike, shape: Any, *, out_sharding: None = None) -> Array:
    """An array repeated to a larger shape by NumPy's broadcasting rules.

    Args:
      array: array or scalar.
      shape: integer or sequence of integers.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array of `shape`.

    Raises:
      ValueError: when the shapes do not fit.

    >>> import ferrax.numpy as jnp
    >>> jnp.broadcast_to(jnp.arange(2), (2, 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(lambda: broadcast_to(array, shape), out_sharding, "jnp.broadcast_to")
    return broadcast_to_shape(to_array("broadcast_to", array), static_shape(shape))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which shapes broadcast together.

    Args:
      *shapes: integers or sequences of integers.

    Returns:
      Tuple of integers.

    Raises:
      ValueError: when the shapes do not fit.

    >>> import ferrax.numpy as jnp
    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return common_shape(*(static_shape(s) for s in shapes))


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Arrays broadcast to their common shape.

    Args:
      *args: arrays or scalars.

    Returns:
      List of arrays.

    >>> import ferrax.numpy as jnp
    >>> [x.shape for x in jnp.broadcast_arrays(jnp.zeros((2, 1)), jnp.zeros(3))]
    [(2, 3), (2, 3)]
    """
    arrays = to_arrays("broadcast_arrays", *args)
    target = common_shape(*(x.shape for x in arrays))
    return [broadcast_to_shape(x, target) for x in arrays]


def _atleast(name: str, arys: tuple[Any, ...], widen: Any) -> Any:
    if len(arys) == 1 and isinstance(arys[0], (list, tuple)):
        require(name, arys[0])
    arrays = [widen(x) for x in to_arrays(name, *arys)]
    return arrays[0] if len(arrays) == 1 else arrays


def _to_1d(x: Array) -> Array:
    return lax.reshape(x, (1,)) if x.ndim == 0 else x


def _to_2d(x: Array) -> Array:
    return lax.expand_dims(_to_1d(x), (0,)) if x.ndim < 2 else x


def _to_3d(x: Array) -> Array:
    if x.ndim == 0:
        return lax.reshape(x, (1, 1, 1))
    if x.ndim == 1:
        return lax.expand_dims(x, (0, 2))
    return lax.expand_dims(x, (2,)) if x.ndim == 2 else x


def atleast_1d(*arys: ArrayLike) -> Any:
    """Arrays with at least one axis.

    Args:
      *arys: arrays or scalars.

    Returns:
      Array, or a list of arrays for several arguments.

    >>> import ferrax.numpy as jnp
    >>> jnp.atleast_1d(jnp.float32(3))
    Array([3.], dtype=float32)
    """
    return _atleast("atleast_1d", arys, _to_1d)


def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays with at least two axes; new ones come first.

    Args, Returns: as in `atleast_1d`.

    >>> import ferrax.numpy as jnp
    >>> jnp.atleast_2d(jnp.arange(3)).shape
    (1, 3)
    """
    return _atleast("atleast_2d", arys, _to_2d)


def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays with at least three axes; a vector becomes (1, n, 1), a matrix (m, n, 1).

    Args, Returns: as in `atleast_1d`.

    >>> import ferrax.numpy as jnp
    >>> jnp.atleast_3d(jnp.arange(3)).shape
    (1, 3, 1)
    """
    return _atleast("atleast_3d", arys, _to_3d)
