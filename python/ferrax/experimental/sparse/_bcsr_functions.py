"""Functions of BCSR arrays, by way of the coordinate format: rows are running sums of their ends.

Read next: `_bcoo_core.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax, numpy as jnp
from ferrax._core import Array, asarray
from ferrax._out_sharding import no_sharding
from ferrax.experimental.sparse import _bcoo_core
from ferrax.experimental.sparse._base import (
    bound,
    compiled,
    fitting,
    is_traced,
    over_batch,
    require_sparse,
    spread,
    user_index_dtype,
    wide,
)
from ferrax.experimental.sparse._bcoo import BCOO, parts, split_shape
from ferrax.experimental.sparse._bcoo_core import (
    bcoo_eliminate_zeros,
    bcoo_fromdense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    to_dense,
)
from ferrax.experimental.sparse._bcoo_dot import DotDimensionNumbers, bcoo_dot_general, canonical, dot_shape
from ferrax.experimental.sparse._bcoo_layout import bcoo_broadcast_in_dim
from ferrax.experimental.sparse._bcoo_shape import bcoo_concatenate
from ferrax.experimental.sparse._bcsr import BCSR
from ferrax.typing import ArrayLike, DTypeLike

__all__ = [
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_eliminate_zeros",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
]


def rows_of(indptr: Any, nse: int) -> Any:
    """The row (nse,) of each element, out of range for those after the last row's end."""
    ends = wide(lax.slice_in_dim(indptr, 1, indptr.shape[0]))
    # how many rows end at each place; their running sum is the number of rows before it
    counts = jnp.zeros(nse, ends.dtype).at[ends].add(lax.full_like(ends, 1), mode="drop", indices_are_sorted=True)
    return lax.cumsum(counts)


def indptr_of(rows: Any, count: int) -> Any:
    """Where each row's elements start, for sorted rows (nse,)."""
    rows = lax.convert_element_type(rows, fitting(rows.dtype, (count + 1, rows.shape[0])))
    counts = jnp.zeros(count + 1, rows.dtype).at[lax.add(rows, lax.full_like(rows, 1))]
    return lax.cumsum(counts.add(lax.full_like(rows, 1), mode="drop"))


@compiled()
def to_bcoo(mat: BCSR) -> BCOO:
    """The array in coordinate format."""
    batch = mat.shape[: mat.n_batch]
    dtype = fitting(mat.indices.dtype, mat._sparse_shape)

    def one(indices: Any, indptr: Any) -> Any:
        rows = lax.convert_element_type(rows_of(indptr, mat.nse), dtype)
        return jnp.stack([rows, lax.convert_element_type(indices, dtype)], axis=1)

    indices = over_batch(one, batch, mat.indices, mat.indptr)
    return BCOO(
        (mat.data, indices),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def from_bcoo(arr: BCOO) -> BCSR:
    """The array in compressed row format."""
    require_sparse("BCSR.from_bcoo", arr, BCOO)
    if arr.n_sparse != 2:
        raise NotImplementedError(f"BSCR.from_bcoo requires n_sparse=2; got arr.n_sparse={arr.n_sparse}")
    return _compressed(arr if arr.indices_sorted else bcoo_sort_indices(arr))


@compiled()
def _compressed(arr: BCOO) -> BCSR:
    batch, (rows, _), _ = parts(arr)

    def one(indices: Any) -> tuple[Any, Any]:
        first, second = (lax.index_in_dim(indices, i, 1, keepdims=False) for i in range(2))
        return second, indptr_of(first, rows)

    indices, indptr = over_batch(one, batch, arr.indices)
    return BCSR((spread(arr.data, batch), indices, indptr), shape=arr.shape)


def bcsr_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = jnp.int32,
) -> BCSR:
    """The elements of a dense array that are not zero.

    Args:
      mat: the array.
      nse: number of elements of each batch, as of `bcoo_fromdense`.
      n_batch: number of batch axes.
      n_dense: number of dense axes.
      index_dtype: type of the indices.

    Returns:
      A BCSR array.

    Raises:
      ValueError: there are not two sparse axes.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcsr_fromdense(jnp.array([[0.0, 5.0], [0.0, 0.0]])).indptr)
    [0 1 1]
    """
    mat = asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")
    if nse is None or not is_traced(mat):
        return from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))
    dtype = user_index_dtype(index_dtype, split_shape(mat.shape, n_batch, n_dense)[1])
    arrays = bound(
        "bcsr_fromdense_p", mat, nse=operator.index(nse), n_batch=n_batch, n_dense=n_dense, index_dtype=dtype
    )
    return BCSR(arrays, shape=mat.shape)


def from_dense(mat: Any, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> tuple[Any, Any, Any]:
    """Data, columns and starts of rows of the elements of a dense array that are not zero."""
    out = from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))
    return out.data, out.indices, out.indptr


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array of a sparse one.

    Args:
      mat: a BCSR array.

    Returns:
      An array of the same shape and dtype.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcsr_todense(sparse.bcsr_fromdense(jnp.eye(2))))
    [[1. 0.]
     [0. 1.]]
    """
    require_sparse("bcsr_todense", mat, BCSR)
    if is_traced(mat):
        return bound("bcsr_todense_p", mat.data, mat.indices, mat.indptr, spinfo=mat._info)
    return to_dense(to_bcoo(mat))


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """The values of a dense array at sparse indices.

    Args:
      indices: column indices (batch axes, nse).
      indptr: where rows start (batch axes, rows + 1).
      mat: a dense array (batch axes, rows, columns, dense axes).

    Returns:
      The data of BCSR: an array (batch axes, nse, dense axes), zero for padding.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    [2. 3.]
    """
    indices, indptr, mat = asarray(indices), asarray(indptr), asarray(mat)
    if is_traced(indices, indptr, mat):
        return bound("bcsr_extract_p", indices, indptr, mat)
    return extracted(indices, indptr, mat)


def extracted(indices: Any, indptr: Any, mat: Any) -> Any:
    """The values of a dense array at sparse indices."""
    n_batch = indices.ndim - 1
    dense = split_shape(mat.shape, n_batch, mat.ndim - n_batch - 2)[2]
    data = jnp.zeros((*indices.shape, *dense), mat.dtype)
    where = to_bcoo(BCSR((data, indices, indptr), shape=mat.shape))
    return _bcoo_core.extracted(where.indices, mat, assume_unique=True)


def bcsr_dot_general(
    lhs: BCSR | Array,
    rhs: Array,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """A contraction, as `lax.dot_general` has it.

    Args:
      lhs: a BCSR array.
      rhs: a dense array.
      dimension_numbers, precision, preferred_element_type, out_sharding: as in `bcoo_dot_general`.

    Returns:
      A dense array.

    Raises:
      NotImplementedError: `rhs` is sparse, or the contraction is none that `bcoo_dot_general` has.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> print(sparse.bcsr_dot_general(mat, jnp.array([1.0, 10.0]), dimension_numbers=(([1], [0]), ([], []))))
    [20.  3.]
    """
    no_sharding("bcsr_dot_general", out_sharding)
    if not isinstance(rhs, (Array, np.ndarray)) or not isinstance(lhs, (BCSR, Array, np.ndarray)):
        raise NotImplementedError("bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs.")
    if isinstance(lhs, BCSR) and is_traced(lhs, rhs):
        dot_shape(lhs, rhs, canonical(dimension_numbers))
        return bound(
            "bcsr_dot_general_p",
            *(lhs.data, lhs.indices, lhs.indptr, asarray(rhs)),
            dimension_numbers=canonical(dimension_numbers),
            preferred_element_type=None if preferred_element_type is None else jnp.dtype(preferred_element_type),
            lhs_spinfo=lhs._info,
        )
    return bcoo_dot_general(
        to_bcoo(lhs) if isinstance(lhs, BCSR) else lhs,
        rhs,
        dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
    )


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The array with sorted indices, each there once; padding is gone or at the end.

    Args:
      mat: a BCSR array.
      nse: number of elements of the result, as of `bcoo_sum_duplicates`.

    Returns:
      A BCSR array.

    Raises:
      ValueError: the indices are traced and no `nse` is given.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCSR((jnp.ones(3), jnp.array([1, 1, 0]), jnp.array([0, 2, 3])), shape=(2, 2))
    >>> print(sparse.bcsr_sum_duplicates(mat).data)
    [2. 1.]
    """
    require_sparse("bcsr_sum_duplicates", mat, BCSR)
    return from_bcoo(bcoo_sum_duplicates(to_bcoo(mat), nse=nse))


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """The array with sorted indices, each there once, without the elements that are zero.

    Args, Returns: as in `bcsr_sum_duplicates`.

    Raises:
      ValueError: the array is traced and no `nse` is given.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCSR((jnp.array([0.0, 1.0]), jnp.array([1, 0]), jnp.array([0, 1, 2])), shape=(2, 2))
    >>> sparse.bcsr.bcsr_eliminate_zeros(mat)
    BCSR(float32[2, 2], nse=1)
    """
    require_sparse("bcsr_eliminate_zeros", mat, BCSR)
    return from_bcoo(bcoo_eliminate_zeros(to_bcoo(mat), nse=nse))


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """The array repeated along new batch or dense axes, as `lax.broadcast_in_dim` has it.

    Args:
      mat: a BCSR array.
      shape, broadcast_dimensions, sharding: as in `bcoo_broadcast_in_dim`.

    Returns:
      A BCSR array.

    Raises:
      NotImplementedError: a sparse axis would come in or repeat.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCSR.fromdense(jnp.eye(3))
    >>> sparse.bcsr_broadcast_in_dim(mat, shape=(2, 3, 3), broadcast_dimensions=(1, 2))
    BCSR(float32[2, 3, 3], nse=3, n_batch=1)
    """
    require_sparse("bcsr_broadcast_in_dim", mat, BCSR)
    out = bcoo_broadcast_in_dim(to_bcoo(mat), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding)
    return from_bcoo(out)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Arrays one after the other, as `lax.concatenate` has it.

    Args:
      operands: BCSR arrays of the same layout, whose shapes differ along the axis alone.
      dimension: the axis, a batch or sparse one.

    Returns:
      A BCSR array.

    Raises: as in `bcoo_concatenate`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCSR.fromdense(jnp.eye(2))
    >>> sparse.bcsr_concatenate([mat, mat], dimension=1)
    BCSR(float32[2, 4], nse=4)
    """
    operands = list(operands)
    for mat in operands:
        require_sparse("bcsr_concatenate", mat, BCSR)
    return from_bcoo(bcoo_concatenate([to_bcoo(mat) for mat in operands], dimension=dimension))
