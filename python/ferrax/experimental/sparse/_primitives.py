"""The operations of sparse arrays as primitives, with JAX's names, operands and parameters.

Each is a function of dense arrays (data, indices and so on) and of the static part of the sparse arrays that they make.
The functions of the formats bind them where arrays are traced, so that programs show one equation for each. Read next:
`ferrax/_composites.py`, which gives them their rules, and `_bcoo_core.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrax import tree_util
from ferrax._composites import Composite
from ferrax._primitives import Primitive
from ferrax.experimental.sparse import _bcoo_core, _bcoo_dot, _bcsr_functions, _coo, _csr
from ferrax.experimental.sparse._base import SparseInfo, is_sparse
from ferrax.experimental.sparse._bcoo import BCOO
from ferrax.experimental.sparse._bcsr import BCSR
from ferrax.experimental.sparse._coo import COO, COOInfo
from ferrax.experimental.sparse._csr import CSR

__all__ = [
    "bcoo_dot_general_p",
    "bcoo_dot_general_sampled_p",
    "bcoo_extract_p",
    "bcoo_fromdense_p",
    "bcoo_sort_indices_p",
    "bcoo_spdot_general_p",
    "bcoo_sum_duplicates_p",
    "bcoo_todense_p",
    "bcoo_transpose_p",
    "bcsr_dot_general_p",
    "bcsr_extract_p",
    "bcsr_fromdense_p",
    "bcsr_todense_p",
    "coo_fromdense_p",
    "coo_matmat_p",
    "coo_matvec_p",
    "coo_spmm_p",
    "coo_spmv_p",
    "coo_todense_p",
    "csr_fromdense_p",
    "csr_matmat_p",
    "csr_matvec_p",
    "csr_todense_p",
    "todense_p",
]


def _bcoo(data: Any, indices: Any, spinfo: SparseInfo) -> BCOO:
    return BCOO((data, indices), **spinfo._asdict())


def _bcsr(data: Any, indices: Any, indptr: Any, spinfo: SparseInfo) -> BCSR:
    return BCSR((data, indices, indptr), **spinfo._asdict())


def _coo_of(data: Any, row: Any, col: Any, spinfo: COOInfo) -> COO:
    return COO((data, row, col), **spinfo._asdict())


# --- batched coordinates


def _bcoo_todense(data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
    return _bcoo_core.to_dense(_bcoo(data, indices, spinfo))


def _bcoo_fromdense(mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> tuple[Any, Any]:
    return _bcoo_core.from_dense(mat, nse, n_batch, n_dense, index_dtype)


def _bcoo_extract(indices: Any, arr: Any, *, assume_unique: bool) -> Any:
    return _bcoo_core.extracted(indices, arr, assume_unique)


def _bcoo_transpose(data: Any, indices: Any, *, permutation: Sequence[int], spinfo: SparseInfo) -> tuple[Any, Any]:
    out = _bcoo_core.transposed(_bcoo(data, indices, spinfo), permutation)
    return out.data, out.indices


def _bcoo_sort_indices(data: Any, indices: Any, *, spinfo: SparseInfo) -> tuple[Any, Any]:
    out = _bcoo_core.sorted_indices(_bcoo(data, indices, spinfo))
    return out.data, out.indices


def _bcoo_sum_duplicates(data: Any, indices: Any, *, spinfo: SparseInfo, nse: int | None) -> tuple[Any, Any]:
    mat = _bcoo(data, indices, spinfo)
    out = _bcoo_core.summed(mat, _bcoo_core.count_of_different(mat) if nse is None else nse, False)
    return out.data, out.indices


def _bcoo_dot_general(
    lhs_data: Any,
    lhs_indices: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any,
    lhs_spinfo: SparseInfo,
) -> Any:
    mat = _bcoo(lhs_data, lhs_indices, lhs_spinfo)
    return _bcoo_dot.sparse_dense(mat, rhs, dimension_numbers, preferred_element_type)


def _bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    return _bcoo_dot.sampled(A, B, indices, dimension_numbers)


def _bcoo_spdot_general(
    lhs_data: Any,
    lhs_indices: Any,
    rhs_data: Any,
    rhs_indices: Any,
    *,
    lhs_spinfo: SparseInfo,
    rhs_spinfo: SparseInfo,
    dimension_numbers: Any,
    preferred_element_type: Any,
) -> tuple[Any, Any]:
    lhs, rhs = _bcoo(lhs_data, lhs_indices, lhs_spinfo), _bcoo(rhs_data, rhs_indices, rhs_spinfo)
    out = _bcoo_dot.sparse_sparse(lhs, rhs, dimension_numbers, preferred_element_type)
    return out.data, out.indices


bcoo_todense_p = Composite("bcoo_todense", _bcoo_todense, linear=(0,))
bcoo_fromdense_p = Composite("bcoo_fromdense", _bcoo_fromdense, multiple_results=True)
bcoo_extract_p = Composite("bcoo_extract", _bcoo_extract, linear=(1,))
bcoo_transpose_p = Composite("bcoo_transpose", _bcoo_transpose, multiple_results=True, linear=(0,))
bcoo_sort_indices_p = Composite("bcoo_sort_indices", _bcoo_sort_indices, multiple_results=True, linear=(0,))
bcoo_sum_duplicates_p = Composite("bcoo_sum_duplicates", _bcoo_sum_duplicates, multiple_results=True, linear=(0,))
bcoo_dot_general_p = Composite("bcoo_dot_general", _bcoo_dot_general, linear=(0, 2))
bcoo_dot_general_sampled_p = Composite("bcoo_dot_general_sampled", _bcoo_dot_general_sampled, linear=(0, 1))
bcoo_spdot_general_p = Composite("bcoo_spdot_general", _bcoo_spdot_general, multiple_results=True, linear=(0, 2))


# --- batched compressed rows


def _bcsr_todense(data: Any, indices: Any, indptr: Any, *, spinfo: SparseInfo) -> Any:
    return _bcoo_core.to_dense(_bcsr_functions.to_bcoo(_bcsr(data, indices, indptr, spinfo)))


def _bcsr_fromdense(mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> tuple[Any, Any, Any]:
    return _bcsr_functions.from_dense(mat, nse, n_batch, n_dense, index_dtype)


def _bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    return _bcsr_functions.extracted(indices, indptr, mat)


def _bcsr_dot_general(
    lhs_data: Any,
    lhs_indices: Any,
    lhs_indptr: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any,
    lhs_spinfo: SparseInfo,
) -> Any:
    mat = _bcsr_functions.to_bcoo(_bcsr(lhs_data, lhs_indices, lhs_indptr, lhs_spinfo))
    return _bcoo_dot.sparse_dense(mat, rhs, dimension_numbers, preferred_element_type)


bcsr_todense_p = Composite("bcsr_todense", _bcsr_todense, linear=(0,))
bcsr_fromdense_p = Composite("bcsr_fromdense", _bcsr_fromdense, multiple_results=True)
bcsr_extract_p = Composite("bcsr_extract", _bcsr_extract, linear=(2,))
bcsr_dot_general_p = Composite("bcsr_dot_general", _bcsr_dot_general, linear=(0, 3))


# --- plain coordinates and compressed rows


def _coo_todense(data: Any, row: Any, col: Any, *, spinfo: COOInfo) -> Any:
    return _coo.to_dense(_coo_of(data, row, col, spinfo))


def _coo_fromdense(mat: Any, *, nse: int, index_dtype: Any) -> tuple[Any, Any, Any]:
    return _coo.found(mat, nse, index_dtype)


def _coo_product(data: Any, row: Any, col: Any, x: Any, *, spinfo: COOInfo, transpose: bool) -> Any:
    return _coo.product(data, row, col, spinfo.shape, x, transpose)


def _coo_raw_product(data: Any, row: Any, col: Any, x: Any, *, shape: tuple[int, ...], transpose: bool) -> Any:
    return _coo.product(data, row, col, shape, x, transpose)


def _csr_todense(data: Any, indices: Any, indptr: Any, *, shape: tuple[int, ...]) -> Any:
    return _csr.to_dense(CSR((data, indices, indptr), shape=shape))


def _csr_fromdense(mat: Any, *, nse: int, index_dtype: Any) -> tuple[Any, Any, Any]:
    return _csr.found(mat, nse, index_dtype)


def _csr_product(data: Any, indices: Any, indptr: Any, x: Any, *, shape: tuple[int, ...], transpose: bool) -> Any:
    return _csr.product_of(CSR((data, indices, indptr), shape=shape), x, transpose)


coo_todense_p = Composite("coo_todense", _coo_todense, linear=(0,))
coo_fromdense_p = Composite("coo_fromdense", _coo_fromdense, multiple_results=True)
coo_matvec_p = Composite("coo_matvec", _coo_product, linear=(0, 3))
coo_matmat_p = Composite("coo_matmat", _coo_product, linear=(0, 3))
coo_spmv_p = Composite("coo_spmv", _coo_raw_product, linear=(0, 3))
coo_spmm_p = Composite("coo_spmm", _coo_raw_product, linear=(0, 3))
csr_todense_p = Composite("csr_todense", _csr_todense, linear=(0,))
csr_fromdense_p = Composite("csr_fromdense", _csr_fromdense, multiple_results=True)
csr_matvec_p = Composite("csr_matvec", _csr_product, linear=(0, 3))
csr_matmat_p = Composite("csr_matmat", _csr_product, linear=(0, 3))


# --- any format


def _todense(*bufs: Any, tree: Any) -> Any:
    arr = tree_util.tree_unflatten(tree, bufs)
    return arr.todense() if is_sparse(arr) else arr


todense_p: Primitive = Composite("todense", _todense, linear=(0,))
