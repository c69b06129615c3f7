"""Reading and writing elements at given indices, and making indices.

Everything here comes down to one gather or one `.at` update. Read `_select.py` next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray, concrete_or_error, is_tracer
from ferrax._ferrax import lax as _lax
from ferrax._shapes import broadcast_shapes, static_size
from ferrax.lax.gather_scatter import GatherScatterMode
from ferrax.numpy._args import (  # fmt: skip
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    broadcast_together,
    cast,
    cast_to,
    no_out,
    normalize_axis,
    promote,
    require,
    static_shape,
    to_array,
    to_arrays,
    user_dtype,
)
from ferrax.numpy._dtype_functions import default_int, dtype_kind
from ferrax.numpy._ufuncs import where as _where

__all__ = [
    "indices", "ix_", "meshgrid", "put", "put_along_axis", "ravel_multi_index", "take", "take_along_axis",
    "unravel_index",
]  # fmt: skip


def _wrapped(index: Array, n: int) -> Array:
    """Indices with those from the end counted from the start."""
    if dtype_kind(index.dtype) == "u":
        return index
    return _where(index < 0, index + asarray(n, index.dtype), index)


def _wide_enough(index: Array, n: int) -> Array:
    """Indices in a dtype that can hold `n`, so that wrapping does not overflow."""
    return cast(index, default_int()) if index.dtype.itemsize < 4 or dtype_kind(index.dtype) == "b" else index


def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None, mode: str | None = None,
         unique_indices: bool = False, indices_are_sorted: bool = False,
         fill_value: ArrayLike | None = None) -> Array:  # fmt: skip
    """Slices of an array at indices along an axis.

    Args:
      a: array.
      indices: integers of any shape; negative ones count from the end.
      axis: axis to index; None for the flattened array.
      out: not supported.
      mode: what an index out of bounds gives: "fill" (the default) `fill_value`, "clip" the nearest element, "wrap" the
        element at the index modulo the length.
      unique_indices: promise that no index occurs twice.
      indices_are_sorted: promise that the indices ascend.
      fill_value: by default NaN, the smallest integer, the largest unsigned integer, or True.

    Returns:
      Array with the axes of `indices` in place of `axis`.

    Raises:
      NotImplementedError: for mode "raise".

    >>> import ferrax.numpy as jnp
    >>> jnp.take(jnp.array([10., 20., 30.]), jnp.array([2, 0, 5]))
    Array([30., 10., nan], dtype=float32)
    """
    no_out("jnp.take", out)
    require("take", a, indices)
    x, index = asarray(a), asarray(indices)
    index = cast(index, default_int()) if dtype_kind(index.dtype) == "b" else index
    if dtype_kind(index.dtype) not in "iu":
        raise ValueError(f"jnp.take: indices must have an integer type, got {index.dtype}.")
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis]
    if n == 0 and index.size != 0:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    if mode not in (None, "fill", "clip", "wrap", "raise"):
        raise ValueError(f"Invalid mode '{mode}' for jnp.take: expected 'fill', 'clip' or 'wrap'.")
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode is None:
        _lax.check_index(index, axis, n, True)
    index = _wide_enough(index, n)
    if mode == "wrap":
        index = index % n if n else index
    elif mode != "clip":
        index = _wrapped(index, n)
    return _gather_axis(x, index, axis, "clip" if mode in ("clip", "wrap") else "fill", unique_indices,
                        indices_are_sorted, fill_value)  # fmt: skip


def _gather_axis(x, index, axis, mode, unique_indices, indices_are_sorted, fill_value):
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(axis)) + tuple(range(axis + index.ndim, x.ndim + index.ndim - 1)),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = x.shape[:axis] + (min(1, x.shape[axis]),) + x.shape[axis + 1 :]
    if x.shape[axis] == 0:
        return lax.full(x.shape[:axis] + index.shape + x.shape[axis + 1 :], 0, x.dtype)
    return lax.gather(
        x, lax.expand_dims(index, (index.ndim,)), numbers, sizes, unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted, mode=mode, fill_value=fill_value,
    )  # fmt: skip


def _take_one_hot(x: Array, index: Array, axis: int) -> Array:
    """`x` at `index` along an axis, as a product with a matrix of zeros and ones."""
    rows, places = (lax.transpose(v, [*(i for i in range(v.ndim) if i != axis), axis]) for v in (x, index))
    last = x.ndim - 1
    shape = (*places.shape, x.shape[axis])
    hot = lax.broadcast_in_dim(places, shape, range(places.ndim)) == lax.broadcasted_iota(index.dtype, shape, last + 1)
    batch = tuple(range(last))
    taken = lax.dot_general(
        cast(hot, x.dtype), rows, (((last + 1,), (last,)), (batch, batch)), precision=lax.Precision.HIGHEST
    )
    return lax.transpose(taken, [*range(axis), last, *range(axis, last)])


def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1, mode: str | None = None,
                    fill_value: ArrayLike | None = None, *,
                    wrap_negative_indices: bool | None = None) -> Array:  # fmt: skip
    """Elements of an array at indices along an axis, each row with its own indices.

    Args:
      arr: array.
      indices: integers, with as many axes as `arr` and shapes that broadcast but for `axis`.
      axis: axis to index; None for the flattened array.
      mode: "fill" (the default), "clip" or "promise_in_bounds"; "one_hot" sums over products with zeros and ones,
        and an index out of bounds gives zero.
      fill_value: what an index out of bounds gives under "fill".
      wrap_negative_indices: whether negative indices count from the end; by default they do.

    Returns:
      Array of the shape of `indices`, broadcast.

    Raises:
      TypeError: when `indices` are not integers.
      ValueError: when the numbers of axes differ.

    >>> import ferrax.numpy as jnp
    >>> x = jnp.array([[3, 1, 2], [4, 6, 5]])
    >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
    Array([[1, 2, 3],
           [4, 5, 6]], dtype=int32)
    """
    require("take_along_axis", arr, indices)
    x, index = asarray(arr), asarray(indices)
    if dtype_kind(index.dtype) not in "iu":
        raise TypeError(f"take_along_axis indices must be of integer type, got {index.dtype}")
    if axis is None:
        if index.ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {index.shape}")
        x, axis = lax.reshape(x, (x.size,)), 0
    if x.ndim != index.ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {index.ndim} vs. {x.ndim}")
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis]
    if mode is None:
        _lax.check_index(index, axis, n, wrap_negative_indices is not False)
    index = _wide_enough(index, n)
    if wrap_negative_indices is not False:
        index = _wrapped(index, n)
    outer = broadcast_shapes(
        x.shape[:axis] + (1,) + x.shape[axis + 1 :], index.shape[:axis] + (1,) + index.shape[axis + 1 :]
    )
    x = broadcast_to_shape(x, outer[:axis] + (n,) + outer[axis + 1 :])
    index = broadcast_to_shape(index, outer[:axis] + (index.shape[axis],) + outer[axis + 1 :])
    if index.size == 0 or n == 0:  # nothing is taken, or there is nothing to take
        return lax.full(index.shape, 0, x.dtype)
    if GatherScatterMode.from_any(mode) is GatherScatterMode.ONE_HOT:
        return _take_one_hot(x, index, axis)
    batch = tuple(i for i in range(x.ndim) if i != axis)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(), collapsed_slice_dims=(axis,), start_index_map=(axis,), operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )  # fmt: skip
    return lax.gather(
        x, lax.expand_dims(index, (index.ndim,)), numbers, (1,) * x.ndim, mode=mode or "fill", fill_value=fill_value
    )


def _immutable(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. "
            "Pass inplace=False to instead return an updated array."
        )


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """An array with values put at flat indices.

    Args:
      a: array.
      ind: integers; negative ones count from the end.
      v: values, repeated as needed.
      mode: what an index out of bounds means: "wrap" the index modulo the size, "clip" the nearest place (0 for all
        negative ones), None the nearest place once negative ones are counted from the end.
      inplace: must be False: arrays are immutable and the result is a new one.

    Returns:
      Array of the shape of `a`.

    Raises:
      ValueError: unless `inplace=False`.

    >>> import ferrax.numpy as jnp
    >>> jnp.put(jnp.zeros(3), jnp.array([0, 2]), 7, inplace=False)
    Array([7., 0., 7.], dtype=float32)
    """
    _immutable("put", inplace)
    x, index, values = to_arrays("put", a, ind, v)
    if dtype_kind(index.dtype) not in "iu":
        raise TypeError(f"jnp.put requires integer indices, got {index.dtype}.")
    index, values = lax.reshape(index, (index.size,)), lax.reshape(values, (values.size,))
    if x.size == 0 or index.size == 0 or values.size == 0:
        return x
    from ferrax.numpy._rearrange import resize

    values = cast_to(resize(values, (index.size,)), x.dtype)
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    if mode == "wrap":
        index = index % x.size
    else:
        index = index if mode == "clip" else _wrapped(index, x.size)
        index = lax.clamp(asarray(0, index.dtype), index, asarray(x.size - 1, index.dtype))
    return lax.reshape(lax.reshape(x, (x.size,)).at[index].set(values, mode="drop"), x.shape)


def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None, inplace: bool = True, *,
                   mode: str | None = None) -> Array:  # fmt: skip
    """An array with values put at indices along an axis, each row with its own indices.

    Args:
      arr: array.
      indices: integers with as many axes as `arr`.
      values: values that broadcast to the shape of `indices`.
      axis: axis to index; None for the flattened array.
      inplace: must be False: arrays are immutable and the result is a new one.
      mode: as for `.at[...].set`.

    Returns:
      Array of the shape of `arr`.

    Raises:
      ValueError: unless `inplace=False`.

    >>> import ferrax.numpy as jnp
    >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[0], [1]]), 7, axis=1, inplace=False)
    Array([[7., 0.],
           [0., 7.]], dtype=float32)
    """
    _immutable("put_along_axis", inplace)
    x, index, new = to_arrays("put_along_axis", arr, indices, values)
    shape = x.shape
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    if dtype_kind(index.dtype) not in "iu":
        raise TypeError(f"put_along_axis indices must be of integer type, got {index.dtype}")
    if index.ndim != x.ndim:
        raise ValueError(
            f"put_along_axis arguments 'arr' and 'indices' must have same ndim. Got {x.ndim} and {index.ndim}."
        )
    axis = normalize_axis(axis, x.ndim)
    outer = x.shape[:axis] + (index.shape[axis],) + x.shape[axis + 1 :]
    index = broadcast_to_shape(index, outer)
    places = tuple(index if i == axis else lax.broadcasted_iota(default_int(), outer, i) for i in range(x.ndim))
    return lax.reshape(x.at[places].set(broadcast_to_shape(cast(new, x.dtype), outer), mode=mode), shape)


def unravel_index(indices: ArrayLike, shape: Any) -> tuple[Array, ...]:
    """The index tuples of flat indices.

    Args:
      indices: integers; negative ones count from the end, those out of bounds are clipped.
      shape: shape of the array that is indexed; its sizes may be traced.

    Returns:
      Tuple of arrays of the shape of `indices`, one for each axis.

    >>> import ferrax.numpy as jnp
    >>> jnp.unravel_index(jnp.array([5, 1]), (2, 3))
    (Array([1, 0], dtype=int32), Array([2, 1], dtype=int32))
    """
    index = to_array("unravel_index", indices)
    if isinstance(shape, (tuple, list)) and any(map(is_tracer, shape)):
        return _unravelled_by_arrays(index, shape)
    dims = static_shape(shape)
    total = math.prod(dims)
    # Python numbers keep the weak type of an index that was one.
    index = _where(index < 0, index + total, index)
    index = _where(index < 0, 0, index)
    index = _where(index > total - 1, total - 1, index)
    out = []
    for n in dims[::-1]:
        out.append(index % n if n else index)
        index = index // n if n else index
    return tuple(out[::-1])


def _unravelled_by_arrays(index: Array, sizes: Sequence[ArrayLike]) -> tuple[Array, ...]:
    """`unravel_index` where sizes are computed: whole turns around the array say what is out of bounds."""
    parts, turns = [], index
    for n in reversed(sizes):
        parts.append(turns % n)
        turns = turns // n
    if dtype_kind(turns.dtype) != "u":
        parts = [_where(turns < -1, 0, part) for part in parts]
    return tuple(_where(turns > 0, n - 1, part) for n, part in zip(sizes, parts[::-1]))


def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "raise", order: str = "C", *,
                      dtype: DTypeLike = None) -> Array:  # fmt: skip
    """The flat indices of index tuples.

    Args:
      multi_index: one array of integers for each axis.
      dims: shape of the array that is indexed.
      mode: for an index out of bounds: "raise" (concrete indices only), "clip", "wrap", or "ignore" to compute with it.
      order: "C" or "F".
      dtype: dtype of the result; by default that of the indices.

    Returns:
      Array of integers.

    Raises:
      ValueError: for an index out of bounds under "raise".

    >>> import ferrax.numpy as jnp
    >>> jnp.ravel_multi_index((jnp.array([1, 0]), jnp.array([2, 1])), (2, 3))
    Array([5, 1], dtype=int32)
    """
    if len(multi_index) != len(dims):
        raise ValueError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    dims = tuple(map(static_size, dims))
    parts = to_arrays("ravel_multi_index", *multi_index)
    for x in parts:
        if dtype_kind(x.dtype) not in "iu":
            raise TypeError("only int indices permitted")
    if mode == "raise":
        context = (
            "The error occurred because ravel_multi_index was jit-compiled with mode='raise'. "
            "Use mode='wrap' or mode='clip' instead."
        )
        for x, n in zip(parts, dims):
            host = np.asarray(concrete_or_error(np.asarray, x, context))
            if ((host < 0) | (host >= n)).any():
                raise ValueError("invalid entry in coordinates array")
    elif mode == "clip":
        parts = [lax.clamp(asarray(0, x.dtype), x, asarray(n - 1, x.dtype)) for x, n in zip(parts, dims)]
    elif mode == "wrap":
        parts = [x % n for x, n in zip(parts, dims)]
    elif mode != "ignore":
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'.")
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    if order == "F":
        parts, dims = parts[::-1], dims[::-1]
    parts = broadcast_together(*promote("ravel_multi_index", *parts))
    target = user_dtype(dtype) if dtype is not None else parts[0].dtype
    result = lax.full(parts[0].shape, 0, target)
    for x, n in zip(parts, dims):
        result = result * n + cast(x, target)
    return result


def indices(dimensions: Sequence[int], dtype: DTypeLike = None, sparse: bool = False) -> Any:
    """The indices of a grid: for each axis, an array that holds each element's index along it.

    Args:
      dimensions: shape of the grid.
      dtype: dtype; by default the default integer.
      sparse: return a tuple of arrays that broadcast instead of one full array.

    Returns:
      Array of shape (number of axes, *dimensions), or with `sparse` a tuple of arrays.

    >>> import ferrax.numpy as jnp
    >>> jnp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    dims = tuple(map(static_size, dimensions))
    target = user_dtype(dtype, default_int())
    if sparse:
        shapes = [tuple(n if i == j else 1 for j in range(len(dims))) for i, n in enumerate(dims)]
        return tuple(lax.broadcasted_iota(target, s, i) for i, s in enumerate(shapes))
    if not dims:
        return lax.full((0,), 0, target)
    return lax.concatenate([lax.expand_dims(lax.broadcasted_iota(target, dims, i), (0,)) for i in range(len(dims))], 0)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Index arrays that broadcast to the open mesh of vectors of indices.

    Args:
      *args: vectors of integers.

    Returns:
      Tuple of arrays with as many axes as arguments.

    Raises:
      NotImplementedError: for bool vectors.

    >>> import ferrax.numpy as jnp
    >>> [x.shape for x in jnp.ix_(jnp.array([0, 1]), jnp.array([1, 2, 3]))]
    [(2, 1), (1, 3)]
    """
    vectors = to_arrays("ix_", *args)
    out = []
    for i, x in enumerate(vectors):
        if x.ndim != 1:
            raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {x.shape}")
        if dtype_kind(x.dtype) == "b":
            raise NotImplementedError("Boolean arguments to jnp.ix_ are not implemented")
        if x.size == 0:
            x = cast(x, default_int())
        out.append(lax.expand_dims(x, [j for j in range(len(vectors)) if j != i]))
    return tuple(out)


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """Coordinate arrays of the grid that vectors span.

    Args:
      *xi: vectors of coordinates.
      copy: must be True.
      sparse: return arrays that broadcast to the grid instead of full ones.
      indexing: "xy" to have the first two axes exchanged, "ij" to have the axes in the order of the arguments.

    Returns:
      List of arrays, one for each argument.

    Raises:
      ValueError: for arguments that are not one-dimensional.

    >>> import ferrax.numpy as jnp
    >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([3, 4]))[0]
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    vectors = to_arrays("meshgrid", *xi)
    if not copy:
        raise ValueError("jnp.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    if any(x.ndim != 1 for x in vectors):
        raise ValueError(f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {[x.shape for x in vectors]}")
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) >= 2:
        axes[0], axes[1] = 1, 0
    shape = [0] * len(vectors)
    for x, axis in zip(vectors, axes):
        shape[axis] = 1 if sparse else x.shape[0]
    out = []
    for x, axis in zip(vectors, axes):
        full = tuple(shape[:axis]) + x.shape + tuple(shape[axis + 1 :])
        out.append(lax.broadcast_in_dim(x, full, (axis,)))
    return out
