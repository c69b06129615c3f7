"""Functions of the arrays that sparse arrays are made of, under the private names by which JAX's tests know them.

Each is the public function of its name without the underscore, applied to a sparse array of the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ferrax.numpy as jnp
from ferrax import Array
from ferrax.experimental.sparse import _bcoo_core, _bcoo_dot, _bcoo_shape, _bcsr_functions, _coo, _csr
from ferrax.experimental.sparse._base import SparseInfo
from ferrax.experimental.sparse._bcoo import BCOO, properties
from ferrax.experimental.sparse._bcsr import BCSR, properties as bcsr_properties
from ferrax.experimental.sparse._primitives import _bcoo as bcoo_of, _coo_of as coo_of

Shape = tuple[int, ...]


def _bcoo(data: Any, indices: Any, spinfo: Any) -> BCOO:
    return bcoo_of(data, indices, SparseInfo(*spinfo))


def _of_indices(indices: Any, shape: Sequence[int], dtype: Any = jnp.float32) -> BCOO:
    """An array of zeros at these indices."""
    n_batch = indices.ndim - 2
    dense = tuple(shape[n_batch + indices.shape[-1] :])
    batch = tuple(s if n == 1 else n for s, n in zip(shape[:n_batch], indices.shape, strict=False))
    return BCOO((jnp.zeros((*batch, indices.shape[-2], *dense), dtype), indices), shape=tuple(shape))


def _validate_bcoo(data: Any, indices: Any, shape: Sequence[int]) -> Any:
    """How the axes divide; ValueError where the parts do not fit."""
    return properties(data, indices, shape)


def _validate_bcoo_indices(indices: Any, shape: Sequence[int]) -> Any:
    """As `_validate_bcoo`, of any elements."""
    return properties(_of_indices(indices, shape).data, indices, shape)


def _bcoo_todense(data: Any, indices: Any, *, spinfo: Any) -> Array:
    """The dense array."""
    return _bcoo_core.bcoo_todense(_bcoo(data, indices, spinfo))


def _bcoo_fromdense(
    mat: Any, *, nse: int, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = jnp.int32
) -> tuple[Array, Array]:
    """Elements and indices of a dense array."""
    out = _bcoo_core.bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return out.data, out.indices


def _bcoo_extract(indices: Any, arr: Any, *, assume_unique: bool = True) -> Array:
    """The elements of a dense array at indices."""
    arr = jnp.asarray(arr)
    return _bcoo_core.bcoo_extract(_of_indices(indices, arr.shape, arr.dtype), arr, assume_unique=assume_unique).data


def _bcoo_transpose(data: Any, indices: Any, *, permutation: Sequence[int], spinfo: Any) -> tuple[Array, Array]:
    """Elements and indices with the axes in another order."""
    out = _bcoo_core.bcoo_transpose(_bcoo(data, indices, spinfo), permutation=permutation)
    return out.data, out.indices


def _bcoo_sum_duplicates(data: Any, indices: Any, *, spinfo: Any, nse: int | None) -> tuple[Array, Array]:
    """Elements and indices, each of these once."""
    out = _bcoo_core.bcoo_sum_duplicates(_bcoo(data, indices, spinfo), nse=nse)
    return out.data, out.indices


def _bcoo_dot_general(
    lhs_data: Any,
    lhs_indices: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any = None,
    lhs_spinfo: Any,
) -> Any:
    """The product with a dense array."""
    lhs = _bcoo(lhs_data, lhs_indices, lhs_spinfo)
    return _bcoo_dot.bcoo_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


def _bcoo_rdot_general(
    lhs: Any,
    rhs_data: Any,
    rhs_indices: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any = None,
    rhs_spinfo: Any,
) -> Any:
    """The product of a dense array with a sparse one."""
    rhs = _bcoo(rhs_data, rhs_indices, rhs_spinfo)
    return _bcoo_dot.bcoo_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


def _bcoo_multiply_dense(data: Any, indices: Any, v: Any, *, spinfo: Any) -> Array:
    """The elements of the product with a dense array, element by element."""
    return _bcoo_dot.bcoo_multiply_dense(_bcoo(data, indices, spinfo), v)


def _bcoo_multiply_sparse(
    lhs_data: Any, lhs_indices: Any, rhs_data: Any, rhs_indices: Any, *, lhs_spinfo: Any, rhs_spinfo: Any
) -> tuple[Array, Array, Shape]:
    """Elements, indices and shape of the product of two arrays, element by element."""
    lhs, rhs = _bcoo(lhs_data, lhs_indices, lhs_spinfo), _bcoo(rhs_data, rhs_indices, rhs_spinfo)
    out = _bcoo_dot.bcoo_multiply_sparse(lhs, rhs)
    return out.data, out.indices, out.shape


def _bcoo_reduce_sum(data: Any, indices: Any, *, spinfo: Any, axes: Sequence[int]) -> tuple[Array, Array, Shape]:
    """Elements, indices and shape of the sum over axes."""
    out = _bcoo_shape.bcoo_reduce_sum(_bcoo(data, indices, spinfo), axes=axes)
    return out.data, out.indices, out.shape


# ---- compressed rows in batches --------------------------------------------------------------------------------------


def _validate_bcsr(data: Any, indices: Any, indptr: Any, shape: Sequence[int]) -> Any:
    """How the axes divide; ValueError where the parts do not fit."""
    return bcsr_properties(data, indices, indptr, shape)


def _bcsr_fromdense(
    mat: Any, *, nse: int, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = jnp.int32
) -> tuple[Array, Array, Array]:
    """The three parts of a dense array's compressed rows."""
    out = _bcsr_functions.bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return out.data, out.indices, out.indptr


def _bcsr_todense(data: Any, indices: Any, indptr: Any, *, spinfo: Any) -> Array:
    """The dense array."""
    return _bcsr_functions.bcsr_todense(BCSR((data, indices, indptr), shape=SparseInfo(*spinfo).shape))


def _bcsr_to_bcoo(indices: Any, indptr: Any, *, shape: Sequence[int]) -> Array:
    """The indices of compressed rows as pairs of row and column."""
    dense = tuple(shape[indices.ndim + 1 :])
    data = jnp.zeros((*indices.shape, *dense))
    return BCSR((data, indices, indptr), shape=tuple(shape)).to_bcoo().indices


def _bcoo_to_bcsr(indices: Any, *, shape: Sequence[int], index_dtype: Any = jnp.int32) -> tuple[Array, Array]:
    """Columns and bounds of rows, from pairs of row and column in order."""
    known = _of_indices(indices, shape)
    out = BCSR.from_bcoo(_bcoo(known.data, indices, (tuple(shape), True)))
    return out.indices.astype(index_dtype), out.indptr.astype(index_dtype)


def _bcsr_dot_general(
    lhs_data: Any,
    lhs_indices: Any,
    lhs_indptr: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any = None,
    lhs_spinfo: Any,
) -> Any:
    """The product with a dense array."""
    lhs = BCSR((lhs_data, lhs_indices, lhs_indptr), shape=SparseInfo(*lhs_spinfo).shape)
    return _bcsr_functions.bcsr_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


# ---- coordinates, and compressed rows of one matrix ------------------------------------------------------------------


def _coo_fromdense(mat: Any, *, nse: int, index_dtype: Any = jnp.int32) -> list[Array]:
    """Elements, rows and columns of a dense matrix."""
    out = _coo.coo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return [out.data, out.row, out.col]


def _coo_todense(data: Any, row: Any, col: Any, *, spinfo: Any) -> Array:
    """The dense matrix."""
    return _coo.coo_todense(coo_of(data, row, col, spinfo))


def _coo_matvec(data: Any, row: Any, col: Any, v: Any, *, spinfo: Any, transpose: bool = False) -> Array:
    """The product with a vector."""
    return _coo.coo_matvec(coo_of(data, row, col, spinfo), v, transpose=transpose)


def _coo_matmat(data: Any, row: Any, col: Any, B: Any, *, spinfo: Any, transpose: bool = False) -> Array:
    """The product with a dense matrix."""
    return _coo.coo_matmat(coo_of(data, row, col, spinfo), B, transpose=transpose)


def _csr_fromdense(mat: Any, *, nse: int, index_dtype: Any = jnp.int32) -> list[Array]:
    """Elements, columns and bounds of rows of a dense matrix."""
    out = _csr.csr_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return [out.data, out.indices, out.indptr]


def _csr_todense(data: Any, indices: Any, indptr: Any, *, shape: Shape) -> Array:
    """The dense matrix."""
    return _csr.csr_todense(_csr.CSR((data, indices, indptr), shape=shape))


def _csr_matvec(data: Any, indices: Any, indptr: Any, v: Any, *, shape: Shape, transpose: bool = False) -> Array:
    """The product with a vector."""
    return _csr.csr_matvec(_csr.CSR((data, indices, indptr), shape=shape), v, transpose=transpose)


def _csr_matmat(data: Any, indices: Any, indptr: Any, B: Any, *, shape: Shape, transpose: bool = False) -> Array:
    """The product with a dense matrix."""
    return _csr.csr_matmat(_csr.CSR((data, indices, indptr), shape=shape), B, transpose=transpose)


# ---- counting --------------------------------------------------------------------------------------------------------


def _count_stored_elements_per_batch(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Array:
    """How many elements of each batch are not zero: dense axes make up one element."""
    mat = jnp.asarray(mat)
    some = (mat != 0).any(axis=tuple(range(mat.ndim - n_dense, mat.ndim)))
    return some.sum(axis=tuple(range(n_batch, some.ndim)))


def _count_stored_elements(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Array:
    """How many elements must be kept: as many as the batch with the most has that are not zero."""
    counts = _count_stored_elements_per_batch(mat, n_batch, n_dense)
    return counts.max(initial=0)


def _coo_extract(row: Any, col: Any, mat: Any) -> Array:
    """The elements of a dense matrix at rows and columns."""
    return jnp.asarray(mat)[row, col]


def _csr_extract(indices: Any, indptr: Any, mat: Any) -> Array:
    """The elements of a dense matrix at compressed rows."""
    from ferrax.experimental.sparse.util import _csr_to_coo

    return _coo_extract(*_csr_to_coo(indices, indptr), mat)
