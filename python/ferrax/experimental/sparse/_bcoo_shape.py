"""BCOO arrays cut, joined, reversed, reshaped, gathered, summed over axes, and convolved.

Shapes are those that the functions of `lax` give to dense arrays, and so are errors of shapes. Read next:
`_transform.py`, which puts these functions in the place of `lax`'s.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import lax, numpy as jnp
from ferrax._api import eval_shape, vmap
from ferrax._core import Array, asarray, is_tracer
from ferrax._out_sharding import no_sharding
from ferrax._shape_dtype import ShapeDtypeStruct
from ferrax.config import config
from ferrax.experimental.sparse._base import (
    columns,
    compiled,
    fitting,
    in_range,
    is_sparse,
    masked,
    masked_indices,
    require_sparse,
    spread,
    stored_batch,
    wide,
    wrapped,
)
from ferrax.experimental.sparse._bcoo import BCOO, parts, with_shape
from ferrax.experimental.sparse._bcoo_core import bcoo_fromdense, bcoo_sum_duplicates, bcoo_transpose
from ferrax.experimental.sparse._bcoo_layout import bcoo_squeeze, bcoo_update_layout
from ferrax.numpy._args import normalize_axes
from ferrax.typing import DTypeLike

__all__ = [
    "bcoo_concatenate",
    "bcoo_conv_general_dilated",
    "bcoo_dynamic_slice",
    "bcoo_gather",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
]


def dense_shape(function: Callable[..., Any], *operands: Any) -> tuple[int, ...]:
    """The shape that a function of dense arrays gives for arrays of the operands' shapes and dtypes."""
    structs = [ShapeDtypeStruct(x.shape, x.dtype) for x in operands]
    return tuple(eval_shape(function, *structs).shape)


def _at_most(mat: BCOO, count: int) -> BCOO:
    """The array without the elements that are more than its sparse axes have positions."""
    return bcoo_sum_duplicates(mat, nse=count) if mat.nse > count else mat


def _unsorted(mat: BCOO) -> BCOO:
    return BCOO((mat.data, mat.indices), shape=mat.shape)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Arrays one after the other, as `lax.concatenate` has it.

    Args:
      operands: BCOO arrays of the same layout, whose shapes differ along the axis alone.
      dimension: the axis, a batch or sparse one.

    Returns:
      A BCOO array.

    Raises:
      NotImplementedError: the axis is dense.
      ValueError: the layouts differ.

    >>> from ferrax.experimental import sparse
    >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(3, 2)], dimension=0)
    BCOO(float32[5, 2], nse=4)
    """
    operands = list(operands)
    dimension = operator.index(dimension)
    if any(not isinstance(op, BCOO) for op in operands):
        raise ValueError(f"bcoo_concatenate: expected operands to be a sequence of BCOO arrays. Got {operands}")
    shape = dense_shape(lambda *xs: lax.concatenate(xs, dimension), *operands)
    first = operands[0]
    for kind in ("batch", "dense"):
        if any(getattr(op, f"n_{kind}") != getattr(first, f"n_{kind}") for op in operands):
            raise ValueError(f"bcoo_concatenate requires inputs to have matching {kind} dimensions.")
    if dimension >= first.n_batch + first.n_sparse:
        raise NotImplementedError("Concatenation along dense dimensions.")
    return _concatenated(operands, dimension, shape)


@compiled("dimension", "shape")
def _concatenated(operands: list[BCOO], dimension: int, shape: tuple[int, ...]) -> BCOO:
    n_batch, n_sparse = operands[0].n_batch, operands[0].n_sparse
    index_dtype = fitting(np.result_type(*(op.indices.dtype for op in operands)), shape[n_batch : n_batch + n_sparse])
    datas, indices = [], []
    along = dimension - n_batch
    if along < 0:
        nse = max(op.nse for op in operands)
        for op in operands:
            batch, inner, dense = parts(op)
            pad = (*batch, nse - op.nse)
            datas.append(lax.concatenate([spread(op.data, batch), jnp.zeros((*pad, *dense), op.dtype)], n_batch))
            index = lax.convert_element_type(op.indices, index_dtype)
            padding = jnp.broadcast_to(jnp.asarray(np.array(inner, index_dtype)), (*pad, len(inner)))
            indices.append(lax.concatenate([spread(index, batch), padding], n_batch))
        return with_shape((lax.concatenate(datas, dimension), lax.concatenate(indices, dimension)), shape)
    batch = stored_batch(n_batch, *(x for op in operands for x in (op.data, op.indices)))
    inner = shape[n_batch : n_batch + n_sparse]
    offset = 0
    for op in operands:
        old = parts(op)[1]
        index = lax.convert_element_type(wrapped(op.indices, old), index_dtype)
        step = jnp.asarray(np.where(np.arange(n_sparse) == along, offset, 0).astype(index_dtype))
        moved = lax.add(index, lax.broadcast_in_dim(step, index.shape, (index.ndim - 1,)))
        indices.append(spread(masked_indices(moved, in_range(op.indices, old), inner), batch))
        datas.append(spread(op.data, batch))
        offset += op.shape[dimension]
    return with_shape((lax.concatenate(datas, n_batch), lax.concatenate(indices, n_batch)), shape)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array reversed along axes, as `lax.rev` has it.

    Args:
      operand: a BCOO array.
      dimensions: the axes.

    Returns:
      A BCOO array.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_rev(sparse.eye(2), (0,)).todense())
    [[0. 1.]
     [1. 0.]]
    """
    require_sparse("bcoo_rev", operand, BCOO)
    return _reversed(operand, normalize_axes(tuple(dimensions), operand.ndim, "the dimensions argument of bcoo_rev"))


@compiled("dims")
def _reversed(operand: BCOO, dims: tuple[int, ...]) -> BCOO:
    n_batch, end = operand.n_batch, operand.n_batch + operand.n_sparse
    batch = tuple(d for d in dims if d < n_batch)
    dense = tuple(d - operand.n_sparse + 1 for d in dims if d >= end)
    data = lax.rev(operand.data, (*batch, *dense))
    indices = lax.rev(operand.indices, batch)
    inner = parts(operand)[1]
    flip = np.array([d in dims for d in range(n_batch, end)], bool)
    if flip.any():
        index = wrapped(indices, inner)
        last = jnp.asarray(np.array(inner).astype(index.dtype) - 1)
        mirrored = lax.sub(lax.broadcast_in_dim(last, index.shape, (index.ndim - 1,)), index)
        flips = lax.broadcast_in_dim(jnp.asarray(flip), index.shape, (index.ndim - 1,))
        index = masked_indices(lax.select(flips, mirrored, index), in_range(indices, inner), inner)
        indices = lax.convert_element_type(index, indices.dtype)
    return with_shape((data, indices), operand.shape)


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """A part of the array, as `lax.slice` has it.

    Args:
      mat: a BCOO array.
      start_indices: where the part starts, for each axis.
      limit_indices: where it ends.
      strides: its steps; 1 where none are given.

    Returns:
      A BCOO array; elements outside of the part become padding.

    Raises:
      ValueError: the part is not within the array, or a step is not positive.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_slice(sparse.eye(3), start_indices=(1, 0), limit_indices=(3, 2)).todense())
    [[0. 1.]
     [0. 0.]]
    """
    require_sparse("bcoo_slice", mat, BCOO)
    starts = [operator.index(i) for i in start_indices]
    limits = [operator.index(i) for i in limit_indices]
    steps = [1] * len(starts) if strides is None else [operator.index(i) for i in strides]
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ValueError(
            f"bcoo_slice: start_indices={starts}, limit_indices={limits} and strides={steps} must have one number for "
            f"each axis of shape={mat.shape}"
        )
    if not all(0 <= start <= limit <= size for start, limit, size in zip(starts, limits, mat.shape)):
        raise ValueError(
            f"bcoo_slice: invalid indices. Got start_indices={starts}, limit_indices={limits} and shape={mat.shape}"
        )
    if any(step < 1 for step in steps):
        raise ValueError(f"strides must be a sequence of positive integers; got {steps}")
    shape = dense_shape(lambda x: lax.slice(x, starts, limits, steps), mat)
    return _sliced(mat, shape, tuple(zip(starts, limits, steps)))


@compiled("shape", "windows")
def _sliced(mat: BCOO, shape: tuple[int, ...], windows: tuple[tuple[int, int, int], ...]) -> BCOO:
    batch, inner, _ = parts(mat)
    n, end = len(batch), len(batch) + len(inner)

    def outer(x: Any, rest: Sequence[tuple[int, int, int]]) -> Any:
        """The array cut along its batch axes (unless they are one for all) and the axes at its end."""
        at = [w if size == s else (0, min(1, w[1] - w[0]), 1) for w, size, s in zip(windows[:n], x.shape, batch)]
        at += [(0, size, 1) for size in x.shape[n : x.ndim - len(rest)]] + list(rest)
        return lax.slice(x, *([w[i] for w in at] for i in range(3)))

    data, indices = outer(mat.data, windows[end:]), outer(mat.indices, [])
    if any(w != (0, size, 1) for w, size in zip(windows[n:end], inner)):
        data, indices = _window(data, indices, inner, shape[n:end], windows[n:end])
    out = BCOO((data, indices), shape=shape)
    return _at_most(out, math.prod(shape[n:end])) if inner else out


def _window(
    data: Any, indices: Any, inner: Sequence[int], new: Sequence[int], windows: Sequence[tuple[Any, Any, int]]
) -> tuple[Any, Any]:
    """Data and indices of the elements in a window of the sparse axes; the others become padding."""
    index = wrapped(indices, inner)
    moved = []
    keep = in_range(indices, inner)
    for column, size, (start, _, step) in zip(columns(index), new, windows):
        first = lax.full_like(column, start) if isinstance(start, int) else _spread_scalar(start, column)
        column = lax.sub(column, first)
        if step != 1:
            every = lax.full_like(column, step)
            keep = lax.bitwise_and(keep, lax.eq(lax.rem(column, every), lax.full_like(column, 0)))
            column = lax.div(column, every)
        keep = lax.bitwise_and(keep, lax.ge(column, lax.full_like(column, 0)))
        keep = lax.bitwise_and(keep, lax.lt(column, lax.full_like(column, size)))
        moved.append(column)
    index = masked_indices(jnp.stack(moved, axis=-1), keep, new)
    batch = tuple(max(a, b) for a, b in zip(data.shape, keep.shape[:-1]))
    data = masked(spread(data, batch), spread(keep, batch))
    return data, lax.convert_element_type(index, indices.dtype)


def _spread_scalar(x: Any, like: Any) -> Any:
    return lax.broadcast_in_dim(lax.convert_element_type(x, like.dtype), like.shape, ())


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A part of the array whose start may be traced, as `lax.dynamic_slice` has it.

    Args:
      mat: a BCOO array.
      start_indices: a scalar for each axis; starts are moved so that the part lies inside.
      slice_sizes: the sizes of the part.

    Returns:
      A BCOO array; elements outside of the part become padding.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_dynamic_slice(sparse.eye(3), (1, 1), (2, 2)).todense())
    [[1. 0.]
     [0. 1.]]
    """
    require_sparse("bcoo_dynamic_slice", mat, BCOO)
    takes = [operator.index(s) for s in slice_sizes]
    starts = [asarray(i) for i in start_indices]
    shape = dense_shape(lambda x, *i: lax.dynamic_slice(x, i, takes), mat, *starts)
    return _dynamically_sliced(mat, starts, tuple(takes), shape)


@compiled("takes", "shape")
def _dynamically_sliced(mat: BCOO, starts: list[Any], takes: tuple[int, ...], shape: tuple[int, ...]) -> BCOO:
    starts = [_clamped(i, size, take) for i, size, take in zip(starts, mat.shape, takes)]
    batch, inner, _ = parts(mat)
    n, end = len(batch), len(batch) + len(inner)

    def outer(x: Any, last: int) -> Any:
        middle = x.shape[n : x.ndim - last]
        zeros = [np.int32(0)] * len(middle)
        at = [*starts[:n], *zeros, *(starts[end:] if last else [])]
        return lax.dynamic_slice(x, at, (*takes[:n], *middle, *(takes[end:] if last else [])))

    data, indices = mat.data, mat.indices
    if n:
        data, indices = spread(data, batch), outer(spread(indices, batch), 0)
    if n or end < mat.ndim:
        data = outer(data, mat.ndim - end)
    if inner:
        windows = [(start, None, 1) for start in starts[n:end]]
        data, indices = _window(data, indices, inner, shape[n:end], windows)
    out = BCOO((data, indices), shape=shape)
    return _at_most(out, math.prod(shape[n:end])) if inner else out


def _clamped(start: Any, size: int, take: int) -> Any:
    """A start from which a part lies inside of an axis; counted from the end where it is negative."""
    start = wide(start)
    limit, whole, zero = (lax.full_like(start, n) for n in (size - take, size, 0))
    if np.issubdtype(start.dtype, np.signedinteger):
        start = lax.select(lax.lt(start, zero), lax.add(start, whole), start)
    return lax.clamp(zero, start, limit)


def bcoo_gather(
    operand: BCOO,
    start_indices: Array,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """Parts of the array at many starts, as `lax.gather` has it.

    Args:
      operand: a BCOO array.
      start_indices: the starts.
      dimension_numbers: a `lax.GatherDimensionNumbers`, without batching axes.
      slice_sizes: the sizes of a part.
      unique_indices: no matter.
      indices_are_sorted: no matter.
      mode: no matter: starts are moved so that parts lie inside.
      fill_value: not supported.

    Returns:
      A BCOO array, whose first axes, of the starts, are batch axes.

    Raises:
      NotImplementedError: the axes of the starts would stand among sparse axes, or `fill_value` is given.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> from ferrax.experimental import sparse
    >>> numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> sparse.bcoo_gather(sparse.eye(3), jnp.array([[0], [2]]), numbers, (1, 3))
    BCOO(float32[2, 3], nse=3, n_batch=1)
    """
    require_sparse("bcoo_gather", operand, BCOO)
    if fill_value is not None:
        raise NotImplementedError("bcoo_gather with a fill_value")
    numbers = dimension_numbers
    if numbers.operand_batching_dims or numbers.start_indices_batching_dims:
        raise NotImplementedError("bcoo_gather with batching dimensions")
    start_indices = asarray(start_indices)
    dense_shape(lambda x, i: lax.gather(x, i, numbers, slice_sizes), operand, start_indices)
    lead = start_indices.shape[:-1]
    zero = np.zeros((), start_indices.dtype)

    def one(vector: Any) -> BCOO:
        components = columns(vector)
        starts = [zero] * operand.ndim
        for axis, component in zip(numbers.start_index_map, components):
            starts[axis] = component
        part = bcoo_dynamic_slice(operand, starts, slice_sizes)
        return bcoo_squeeze(part, dimensions=numbers.collapsed_slice_dims)

    function = one
    for _ in lead:
        function = vmap(function)
    out = _unsorted(function(start_indices))
    rest = iter(range(len(lead), out.ndim))
    first = iter(range(len(lead)))
    order = [next(rest) if d in numbers.offset_dims else next(first) for d in range(out.ndim)]
    return bcoo_transpose(out, permutation=order)


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None
) -> BCOO:
    """The array in another shape, as `lax.reshape` has it.

    Args:
      mat: a BCOO array.
      new_sizes: the sizes; those of batch, sparse and dense axes do not mix.
      dimensions: a permutation of the axes that comes first.
      sharding: not supported.

    Returns:
      A BCOO array.

    Raises:
      ValueError: batch, sparse and dense axes would mix.
      TypeError: the array has another number of elements.
      NotImplementedError: the data or the indices have one row for a whole batch axis.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_reshape(sparse.eye(2), new_sizes=(4,)).indices)
    [[0]
     [3]]
    """
    require_sparse("bcoo_reshape", mat, BCOO)
    no_sharding("bcoo_reshape", sharding)
    shape = tuple(operator.index(d) for d in new_sizes)
    dense_shape(lambda x: lax.reshape(x, shape), mat)
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    batch, inner, dense = parts(mat)
    n = _prefix(shape, math.prod(batch)) if batch else 0
    last = _prefix(shape[n:][::-1], math.prod(dense)) if dense else 0
    for kind, found in (("batch and sparse", n), ("sparse and dense", last)):
        if found is None:
            raise ValueError(
                f"bcoo_reshape: new shape cannot mix {kind} dimensions; got shape={mat.shape} new_shape={shape} with "
                f"n_batch={mat.n_batch}" + (f" n_dense={mat.n_dense}" if mat.n_dense else "")
            )
    if tuple(mat.data.shape[: len(batch)]) != tuple(batch) or tuple(mat.indices.shape[: len(batch)]) != tuple(batch):
        raise NotImplementedError("reshape of arrays with broadcasted batch dimensions.")
    end = len(shape) - last
    new_inner = shape[n:end]
    nse = mat.nse
    data = lax.reshape(mat.data, (*shape[:n], nse, *shape[end:]))
    indices = _reshaped_indices(mat.indices, inner, new_inner)
    return with_shape((data, lax.reshape(indices, (*shape[:n], nse, len(new_inner)))), shape)


def _prefix(shape: Sequence[int], size: int) -> int | None:
    """How many first axes have a number of positions; None where no number does."""
    product = 1
    for i, d in enumerate(shape):
        if product == size:
            return i
        product *= d
    return len(shape) if product == size else None


@compiled("old", "new")
def _reshaped_indices(indices: Any, old: Sequence[int], new: Sequence[int]) -> Any:
    """Indices of positions in another shape; padding stays padding."""
    if tuple(old) == tuple(new):
        return indices
    index = columns(wrapped(indices, old))
    dtype = wide(indices).dtype
    out = []
    i = 0
    for block_old, block_new in _blocks(old, new):
        flat = _flat(index[i : i + len(block_old)], block_old, indices, dtype)
        i += len(block_old)
        for k in range(len(block_new)):
            step = math.prod(block_new[k + 1 :])
            place = lax.div(flat, lax.full_like(flat, max(step, 1)))
            out.append(lax.rem(place, lax.full_like(place, max(block_new[k], 1))))
    if not out:
        return jnp.zeros((*indices.shape[:-1], 0), indices.dtype)
    stacked = lax.convert_element_type(jnp.stack(out, axis=-1), fitting(indices.dtype, new))
    return masked_indices(stacked, in_range(indices, old), new)


def _flat(index: Sequence[Any], shape: Sequence[int], indices: Any, dtype: Any) -> Any:
    """The positions of a block of axes in order."""
    if math.prod(shape) > np.iinfo(dtype).max:
        if not config.read("jax_enable_x64"):
            raise OverflowError(f"bcoo_reshape: {dtype} cannot count the positions of {tuple(shape)}; enable x64")
        dtype = np.dtype(np.int64)
    flat = lax.full(indices.shape[:-1], 0, dtype)
    for column, size in zip(index, shape):
        flat = lax.add(lax.mul(flat, lax.full_like(flat, size)), lax.convert_element_type(column, dtype))
    return flat


def _blocks(old: Sequence[int], new: Sequence[int]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The shortest runs of axes of two shapes that have the same number of positions."""
    if 0 in old or 0 in new:
        return [(tuple(old), tuple(new))]
    blocks, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        a, b = i, j
        left = right = 1
        while left != right or (a == i and b == j):
            if left <= right and a < len(old):
                left, a = left * old[a], a + 1
            elif b < len(new):
                right, b = right * new[b], b + 1
            else:
                left, a = left * old[a], a + 1
        blocks.append((tuple(old[i:a]), tuple(new[j:b])))
        i, j = a, b
    return blocks


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over axes, as a sparse array: elements that come to the same index are not added up.

    Args:
      mat: a BCOO array.
      axes: the axes.

    Returns:
      A BCOO array.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_reduce_sum(sparse.eye(3), axes=(0,)).todense())
    [1. 1. 1.]
    """
    require_sparse("bcoo_reduce_sum", mat, BCOO)
    dims = set(normalize_axes(tuple(set(axes)), mat.ndim, "the axes argument of bcoo_reduce_sum"))
    return _reduced(mat, tuple(sorted(dims)))


@compiled("dims")
def _reduced(mat: BCOO, dims: tuple[int, ...]) -> BCOO:
    batch, inner, _ = parts(mat)
    n, end = len(batch), len(batch) + len(inner)
    data, indices = mat.data, mat.indices
    data = lax.reduce_sum(data, tuple(d - len(inner) + 1 for d in dims if d >= end))
    kept = [i for i in range(len(inner)) if n + i not in dims]
    gone = sorted(d for d in dims if d < n)
    if len(kept) < len(inner) or gone:
        data, indices = spread(data, batch), spread(indices, batch)
        if len(kept) < len(inner):
            data = masked(data, in_range(indices, inner))
            taken = columns(indices)
            indices = (
                jnp.stack([taken[i] for i in kept], axis=-1)
                if kept
                else jnp.zeros((*indices.shape[:-1], 0), indices.dtype)
            )
    nse = mat.nse
    if gone:
        rest = [d for d in range(n) if d not in gone]
        lead = tuple(batch[d] for d in rest)
        nse *= math.prod(batch[d] for d in gone)
        order = [*rest, *gone]
        data = lax.transpose(data, (*order, *range(n, data.ndim)))
        data = lax.reshape(data, (*lead, nse, *data.shape[n + 1 :]))
        indices = lax.transpose(indices, (*order, n, n + 1))
        indices = lax.reshape(indices, (*lead, nse, indices.shape[-1]))
    shape = tuple(s for d, s in enumerate(mat.shape) if d not in dims)
    return with_shape((data, indices), shape)


def bcoo_conv_general_dilated(
    lhs: BCOO,
    rhs: BCOO,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> BCOO:
    """The convolution, as `lax.conv_general_dilated` has it: each element of one array meets each of the other.

    Args:
      lhs: a BCOO or dense array.
      rhs: the window, a BCOO or dense array.
      window_strides: steps of the window.
      padding: a string, or a pair of numbers for each spatial axis.
      lhs_dilation: dilation of `lhs`.
      rhs_dilation: dilation of the window.
      dimension_numbers: as of `lax.conv_general_dilated`.
      feature_group_count: 1.
      batch_group_count: 1.
      precision: no matter.
      preferred_element_type: dtype of the result.
      out_sharding: not supported.

    Returns:
      A BCOO array.

    Raises:
      NotImplementedError: the convolution has groups.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.array([[[0.0, 2.0, 0.0, 0.0]]]))
    >>> window = sparse.BCOO.fromdense(jnp.array([[[1.0, 0.0, 3.0]]]))
    >>> out = sparse.bcoo_conv_general_dilated(x, window, window_strides=(1,), padding="SAME")
    >>> print(out.todense())
    [[[6. 0. 2. 0.]]]
    """
    no_sharding("bcoo_conv_general_dilated", out_sharding)
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError("bcoo convolution with feature_group_count or batch_group_count.")
    lhs, rhs = (_flat_layout(x) for x in (lhs, rhs))
    dtype = jnp.promote_types(lhs.dtype, rhs.dtype)
    spatial = lhs.ndim - 2
    ones = (1,) * spatial
    lhs_dilation, rhs_dilation = tuple(lhs_dilation or ones), tuple(rhs_dilation or ones)
    specs = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    if isinstance(padding, str):
        window = [(rhs.shape[a] - 1) * d + 1 for a, d in zip(specs.rhs_spec[2:], rhs_dilation)]
        padding = lax.padtype_to_pads([lhs.shape[a] for a in specs.lhs_spec[2:]], window, window_strides, padding)

    def dense(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated(
            x, y, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers=specs
        )

    shape = dense_shape(dense, *(ShapeDtypeStruct(x.shape, dtype) for x in (lhs, rhs)))
    index, keep = _meetings(lhs, rhs, specs, shape, window_strides, padding, lhs_dilation, rhs_dilation)
    left, right = (lax.convert_element_type(x.data, preferred_element_type or dtype) for x in (lhs, rhs))
    nse = (lhs.nse, rhs.nse)
    data = lax.mul(lax.broadcast_in_dim(left, nse, (0,)), lax.broadcast_in_dim(right, nse, (1,)))
    count = math.prod(nse)
    data = lax.reshape(masked(data, keep), (count,))
    index = masked_indices(index, keep, shape)
    out = _at_most(BCOO((data, lax.reshape(index, (count, len(shape)))), shape=shape), math.prod(shape))
    if shape[:2] == (1, 1):
        return bcoo_update_layout(out, n_batch=2)
    return out


def _flat_layout(x: Any) -> BCOO:
    """An operand of a convolution with sparse axes alone; of a traced dense one, all elements are stored."""
    if not is_sparse(x):
        x = asarray(x)
        return bcoo_fromdense(x, nse=x.size if is_tracer(x) else None)
    require_sparse("bcoo_conv_general_dilated", x, BCOO)
    return bcoo_update_layout(x, n_batch=0, n_dense=0)


def _meetings(
    lhs: BCOO,
    rhs: BCOO,
    specs: Any,
    shape: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
) -> tuple[Any, Any]:
    """Where the result has the product of each pair of elements, and whether it has."""
    size = (lhs.nse, rhs.nse)

    def spread_columns(mat: BCOO, axis: int) -> list[Any]:
        found = columns(lax.convert_element_type(wrapped(mat.indices, mat.shape), np.int32))
        return [lax.broadcast_in_dim(c, size, (axis,)) for c in found]

    left, right = spread_columns(lhs, 0), spread_columns(rhs, 1)
    keep = lax.bitwise_and(
        lax.broadcast_in_dim(in_range(lhs.indices, lhs.shape), size, (0,)),
        lax.broadcast_in_dim(in_range(rhs.indices, rhs.shape), size, (1,)),
    )
    keep = lax.bitwise_and(keep, lax.eq(left[specs.lhs_spec[1]], right[specs.rhs_spec[1]]))
    out: list[Any] = [None] * len(shape)
    out[specs.out_spec[0]], out[specs.out_spec[1]] = left[specs.lhs_spec[0]], right[specs.rhs_spec[0]]
    for k in range(len(shape) - 2):
        a, b, c = specs.lhs_spec[2 + k], specs.rhs_spec[2 + k], specs.out_spec[2 + k]
        place = lax.mul(left[a], lax.full_like(left[a], lhs_dilation[k]))
        place = lax.add(place, lax.full_like(place, padding[k][0]))
        place = lax.sub(place, lax.mul(right[b], lax.full_like(right[b], rhs_dilation[k])))
        step = lax.full_like(place, strides[k])
        zero = lax.full_like(place, 0)
        keep = lax.bitwise_and(keep, lax.eq(lax.rem(place, step), zero))
        place = lax.div(place, step)
        inside = lax.bitwise_and(lax.ge(place, zero), lax.lt(place, lax.full_like(place, shape[c])))
        keep, out[c] = lax.bitwise_and(keep, inside), place
    return jnp.stack(out, axis=-1), keep
