"""BCOO arrays in other layouts: axes that change between batch, sparse and dense, or come new.

Read next: `_bcoo_shape.py`.
"""

from __future__ import annotations

import itertools
import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax, numpy as jnp
from ferrax._out_sharding import no_sharding
from ferrax.experimental.sparse._base import (
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    columns,
    compiled,
    fitting,
    in_range,
    masked,
    masked_indices,
    over_batch,
    require_sparse,
    spread,
    wide,
)
from ferrax.experimental.sparse._bcoo import BCOO, parts, split_shape, with_shape

__all__ = ["bcoo_broadcast_in_dim", "bcoo_squeeze", "bcoo_update_layout"]


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The array with other numbers of batch and dense axes.

    Sparse axes that become batch or dense ones make room for an element at each of their positions, so that only axes
    of size 0 or 1 do so without `on_inefficient`.

    Args:
      mat: a BCOO array.
      n_batch: the number of batch axes; as it is where none is given.
      n_dense: the number of dense axes; as it is where none is given.
      on_inefficient: ``"error"``, ``"warn"`` or None, for layouts that store many more elements.

    Returns:
      A BCOO array.

    Raises:
      SparseEfficiencyError: the layout would store many more elements.
      ValueError: the array has not so many axes.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCOO.fromdense(jnp.eye(3), n_batch=1)
    >>> print(sparse.bcoo_update_layout(mat, n_batch=0).indices)
    [[0 0]
     [1 1]
     [2 2]]
    """
    require_sparse("bcoo_update_layout", mat, BCOO)
    n_batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    n_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    for name, n in (("n_batch", n_batch), ("n_dense", n_dense)):
        if n < 0:
            raise ValueError(f"{name} must be non-negative; got {n}.")
    if n_batch + n_dense > mat.ndim:
        raise ValueError(f"sum of {n_batch=} and {n_dense=} cannot be larger than mat.ndim={mat.ndim}.")
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"{on_inefficient=!r} must be one of ['error', 'warn', None].")
    _say_inefficient(mat, n_batch, n_dense, on_inefficient)
    if n_batch < mat.n_batch:
        mat = _batch_to_sparse(mat, n_batch)
    if n_dense < mat.n_dense:
        mat = _dense_to_sparse(mat, n_dense)
    if n_batch > mat.n_batch:
        mat = _sparse_to_batch(mat, n_batch)
    if n_dense > mat.n_dense:
        mat = _sparse_to_dense(mat, n_dense)
    return mat


def _say_inefficient(mat: BCOO, n_batch: int, n_dense: int, what: str | None) -> None:
    shape = mat.shape
    for name, old, new, grown in (
        ("n_batch", mat.n_batch, n_batch, shape[mat.n_batch : n_batch]),
        ("n_dense", mat.n_dense, n_dense, shape[mat.ndim - n_dense : mat.ndim - mat.n_dense]),
    ):
        if what is None or new <= old or not any(d > 1 for d in grown):
            continue
        text = f"For matrix of {shape=}, increasing {name} from {old} to {new} results in inefficient storage."
        text = text.replace("shape=", "shape ")
        if what == "error":
            raise SparseEfficiencyError(
                f"{text} To disable this error, set the on_inefficient argument of bcoo_update_layout to 'warn' or "
                "None."
            )
        warnings.warn(
            f"{text} To disable this warning, set the on_inefficient argument of bcoo_update_layout to None.",
            SparseEfficiencyWarning,
            stacklevel=4,
        )


def _positions(shape: Sequence[int], dtype: Any) -> Any:
    """The indices (number of elements, axes) of all elements of a shape, in order."""
    grid = np.indices(tuple(shape), dtype=np.int64).reshape(len(shape), math.prod(shape)).T
    return jnp.asarray(grid.astype(dtype))


@compiled("n_batch")
def _batch_to_sparse(mat: BCOO, n_batch: int) -> BCOO:
    """Batch axes from `n_batch` on become sparse."""
    batch, inner, dense = parts(mat)
    kept, moved, nse = batch[:n_batch], batch[n_batch:], mat.nse
    count = math.prod(moved)
    data = lax.reshape(spread(mat.data, batch), (*kept, count * nse, *dense))
    indices = lax.reshape(spread(mat.indices, batch), (*kept, count, nse, len(inner)))
    dtype = fitting(mat.indices.dtype, moved)
    indices = lax.convert_element_type(indices, dtype)
    places = _positions(moved, dtype)
    places = lax.broadcast_in_dim(places, (*kept, count, nse, len(moved)), (len(kept), len(kept) + 2))
    indices = lax.concatenate([places, indices], len(kept) + 2)
    indices = lax.reshape(indices, (*kept, count * nse, len(moved) + len(inner)))
    return with_shape((data, indices), mat.shape)


@compiled("n_dense")
def _dense_to_sparse(mat: BCOO, n_dense: int) -> BCOO:
    """Dense axes but for the last `n_dense` become sparse."""
    _, inner, dense = parts(mat)
    moved, kept, nse, n = dense[: len(dense) - n_dense], dense[len(dense) - n_dense :], mat.nse, mat.n_batch
    count = math.prod(moved)
    data = lax.reshape(mat.data, (*mat.data.shape[:n], nse * count, *kept))
    dtype = fitting(mat.indices.dtype, moved)
    places = _positions(moved, dtype)
    lead = mat.indices.shape[:n]
    places = lax.broadcast_in_dim(places, (*lead, nse, count, len(moved)), (n + 1, n + 2))
    shape = (*lead, nse, count, len(inner))
    indices = lax.broadcast_in_dim(lax.convert_element_type(mat.indices, dtype), shape, (*range(n + 1), n + 2))
    indices = lax.concatenate([indices, places], n + 2)
    indices = lax.reshape(indices, (*lead, nse * count, len(inner) + len(moved)))
    return with_shape((data, indices), mat.shape)


@compiled("n_batch")
def _sparse_to_batch(mat: BCOO, n_batch: int) -> BCOO:
    """The first sparse axes become batch axes, until there are `n_batch`."""
    batch, inner, dense = parts(mat)
    moved = inner[: n_batch - mat.n_batch]
    places = wide(_positions(moved, fitting(mat.indices.dtype, moved)))

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        nse = data.shape[0]
        head = lax.convert_element_type(lax.slice_in_dim(indices, 0, len(moved), axis=1), places.dtype)
        rest = lax.slice_in_dim(indices, len(moved), len(inner), axis=1)
        shape = (places.shape[0], nse, len(moved))
        here = lax.eq(lax.broadcast_in_dim(places, shape, (0, 2)), lax.broadcast_in_dim(head, shape, (1, 2)))
        here = jnp.all(here, axis=2)
        data = masked(lax.broadcast_in_dim(data, (*shape[:2], *dense), (1, *range(2, 2 + len(dense)))), here)
        rest = lax.broadcast_in_dim(rest, (*shape[:2], rest.shape[1]), (1, 2))
        rest = masked_indices(rest, here, inner[len(moved) :])
        return lax.reshape(data, (*moved, nse, *dense)), lax.reshape(rest, (*moved, nse, rest.shape[-1]))

    data, indices = over_batch(one, batch, mat.data, mat.indices)
    return with_shape((data, indices), mat.shape)


@compiled("n_dense")
def _sparse_to_dense(mat: BCOO, n_dense: int) -> BCOO:
    """The last sparse axes become dense, until there are `n_dense`."""
    batch, inner, dense = parts(mat)
    kept, moved = split_shape(inner, 0, n_dense - mat.n_dense)[1:]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        nse = data.shape[0]
        rest = lax.slice_in_dim(indices, 0, len(kept), axis=1)
        places = columns(lax.slice_in_dim(wide(indices), len(kept), len(inner), axis=1))
        rows = lax.iota(places[0].dtype, nse)
        zeros = jnp.zeros((nse, *moved, *dense), data.dtype)
        if data.dtype == np.bool_:
            return zeros.at[(rows, *places)].set(data, mode="drop"), rest
        return zeros.at[(rows, *places)].add(data, mode="drop", unique_indices=True), rest

    data, indices = over_batch(one, batch, mat.data, mat.indices)
    return with_shape((data, indices), mat.shape)


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """The array repeated along new axes, as `lax.broadcast_in_dim` has it.

    New axes before the sparse ones become batch axes, those of size 1 among and after them sparse axes, others after
    them dense axes.

    Args:
      mat: a BCOO array.
      shape: the sizes of the result.
      broadcast_dimensions: which axis of the result each axis of `mat` is.
      sharding: not supported.

    Returns:
      A BCOO array.

    Raises:
      NotImplementedError: a sparse axis would repeat.

    >>> from ferrax.experimental import sparse
    >>> sparse.bcoo_broadcast_in_dim(sparse.eye(3), shape=(2, 3, 3), broadcast_dimensions=(1, 2))
    BCOO(float32[2, 3, 3], nse=3, n_batch=1)
    """
    require_sparse("bcoo_broadcast_in_dim", mat, BCOO)
    no_sharding("bcoo_broadcast_in_dim", sharding)
    shape = tuple(operator.index(d) for d in shape)
    dims = [operator.index(d) for d in broadcast_dimensions]
    _check_broadcast(mat, shape, dims)
    n_batch, n_sparse, n_dense = mat.n_batch, mat.n_sparse, mat.n_dense
    # where the sparse block starts and ends in the result
    if n_sparse:
        first, last = dims[n_batch], dims[n_batch + n_sparse - 1] + 1
        end = dims[-n_dense] if n_dense else len(shape)
        last = end if all(size == 1 for size in shape[last:end]) else last
    else:
        first = last = dims[n_batch - 1] + 1 if n_batch else (dims[0] if n_dense else len(shape))
    batch, inner, dense = shape[:first], shape[first:last], shape[last:]
    for i, size in enumerate(inner):
        old = mat.shape[dims.index(first + i)] if first + i in dims else 1
        if size != old:
            raise NotImplementedError("Adding sparse dimensions with lengths != 1")
    nse = mat.nse
    batch_dims = tuple(dims[:n_batch])
    dense_dims = tuple(d - last for d in dims[n_batch + n_sparse :])
    data = lax.broadcast_in_dim(
        mat.data,
        (*batch, nse, *dense),
        (*batch_dims, len(batch), *(len(batch) + 1 + d for d in dense_dims)),
    )
    indices = lax.broadcast_in_dim(mat.indices, (*batch, nse, n_sparse), (*batch_dims, len(batch), len(batch) + 1))
    if len(inner) != n_sparse:
        taken = dict(zip((dims.index(first + i) for i in range(len(inner)) if first + i in dims), columns(indices)))
        zero = jnp.zeros((*batch, nse), indices.dtype)
        new = [taken[dims.index(first + i)] if first + i in dims else zero for i in range(len(inner))]
        indices = jnp.stack(new, axis=-1)
    return with_shape((data, indices), shape)


def _check_broadcast(mat: BCOO, shape: Sequence[int], dims: Sequence[int]) -> None:
    if len(dims) != mat.ndim:
        raise TypeError(
            f"broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got "
            f"broadcast_dimensions {tuple(dims)} for operand ndim {mat.ndim}."
        )
    if any(a >= b for a, b in itertools.pairwise(dims)) or any(not 0 <= d < len(shape) for d in dims):
        raise TypeError(
            f"broadcast_in_dim broadcast_dimensions must be strictly increasing axes of the result; got {tuple(dims)}."
        )
    if any(size not in (1, shape[d]) for size, d in zip(mat.shape, dims)):
        raise TypeError(
            f"broadcast_in_dim operand dimension sizes must either be 1, or be equal to their corresponding dimensions "
            f"in the target broadcast shape; got operand of shape {mat.shape}, target broadcast shape {tuple(shape)}, "
            f"broadcast_dimensions {tuple(dims)}"
        )


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without axes of size 1.

    Args:
      arr: a BCOO array.
      dimensions: the axes.

    Returns:
      A BCOO array.

    Raises:
      ValueError: an axis has another size.

    >>> from ferrax.experimental import sparse
    >>> sparse.bcoo_squeeze(sparse.eye(1, 3), dimensions=(0,))
    BCOO(float32[3], nse=1)
    """
    require_sparse("bcoo_squeeze", arr, BCOO)
    dims = {
        operator.index(d) % max(arr.ndim, 1) if -arr.ndim <= d < arr.ndim else _out_of_range(d, arr) for d in dimensions
    }
    if not dims:
        return arr
    if any(arr.shape[d] != 1 for d in dims):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={arr.shape} and dimensions={tuple(dimensions)}"
        )
    return _squeezed(arr, tuple(sorted(dims)))


@compiled("dims")
def _squeezed(arr: BCOO, dims: tuple[int, ...]) -> BCOO:
    n_batch, end = arr.n_batch, arr.n_batch + arr.n_sparse
    batch = tuple(d for d in dims if d < n_batch)
    inner = [d for d in range(n_batch, end) if d not in dims]
    dense = tuple(d - arr.n_sparse + 1 for d in dims if d >= end)
    indices = lax.squeeze(arr.indices, batch)
    if len(inner) != arr.n_sparse:
        taken = columns(indices)
        # the axis that goes has one index that is in range; elements with others are padding
        gone = [taken[d - n_batch] for d in range(n_batch, end) if d in dims]
        data, indices = _without_columns(arr, indices, taken, inner, gone)
    else:
        data = arr.data
    data = lax.squeeze(data, batch + dense)
    shape = tuple(s for i, s in enumerate(arr.shape) if i not in dims)
    return with_shape((data, indices), shape, like=arr)


def _without_columns(
    arr: BCOO, indices: Any, taken: Sequence[Any], inner: Sequence[int], gone: Sequence[Any]
) -> tuple[Any, Any]:
    """Data and indices without columns; what was padding by these columns stays padding, or zero."""
    mask = in_range(jnp.stack(gone, axis=-1), [1] * len(gone))
    if not inner:
        batch = arr.shape[: arr.n_batch]
        whole = lax.reshape(spread(lax.reshape(mask, arr.indices.shape[:-1]), batch), (*batch, arr.nse))
        # batch axes of size 1 go with the caller's squeeze
        return masked(spread(arr.data, batch), whole), jnp.zeros((*taken[0].shape, 0), indices.dtype)
    rest = jnp.stack([taken[d - arr.n_batch] for d in inner], axis=-1)
    return arr.data, masked_indices(rest, mask, [arr.shape[d] for d in inner])


def _out_of_range(d: int, arr: Any) -> int:
    raise ValueError(f"axis {d} is out of bounds for array of dimension {arr.ndim}")
