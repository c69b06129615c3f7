"""Matrices of compressed rows (CSR) and of compressed columns (CSC). BCSR does more. Read next: `_bcsr.py`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax, numpy as jnp
from ferrax._core import Array, asarray
from ferrax.experimental.sparse._base import (
    JAXSparse,
    arrays_of,
    bound,
    compiled,
    fitting,
    is_traced,
    register_sparse,
    require_sparse,
    user_index_dtype,
)
from ferrax.experimental.sparse._bcoo_core import scattered
from ferrax.experimental.sparse._bcsr_functions import indptr_of, rows_of
from ferrax.experimental.sparse._coo import counted, from_dense, matmul, product
from ferrax.typing import DTypeLike

__all__ = ["CSC", "CSR", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense"]


class _Compressed(JAXSparse):
    """What the two formats share."""

    data: Array
    indices: Array
    indptr: Array
    nse: Any = property(lambda self: self.data.size, doc="Number of stored elements.")
    dtype: Any = property(lambda self: self.data.dtype, doc="Type of the elements.")
    _bufs = property(lambda self: (self.data, self.indices, self.indptr))

    def __init__(self, args: Any, *, shape: Sequence[int]):
        self.data, self.indices, self.indptr = arrays_of(args)
        super().__init__(args, shape=shape)

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        """The three arrays, and a dict of the static part.

        Returns:
          A pair.

        >>> from ferrax.experimental import sparse
        >>> len(sparse.eye(2, sparse_format="csr").tree_flatten()[0])
        3
        """
        return (self.data, self.indices, self.indptr), {"shape": self.shape}

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Any:
        """The array of its parts.

        Args:
          aux_data: what `tree_flatten` gives second.
          children: the three arrays, or objects of any kind in their place.

        Returns:
          The array.

        >>> from ferrax.experimental import sparse
        >>> arrays, rest = sparse.eye(2, sparse_format="csr").tree_flatten()
        >>> sparse.CSR.tree_unflatten(rest, arrays)
        CSR(float32[2, 2], nse=2)
        """
        new = object.__new__(cls)
        new.data, new.indices, new.indptr = children
        if aux_data.keys() != {"shape"}:
            raise ValueError(f"{cls.__name__}.tree_unflatten: invalid {aux_data=}")
        new.shape = aux_data["shape"]
        return new


@register_sparse
class CSR(_Compressed):
    """A sparse matrix of compressed rows.

    Args:
      args: data (nse,), column indices (nse,), and for each row where its elements start (rows + 1,).
      shape: the sizes of the axes.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.CSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 4.0]]))
    >>> print(mat.data, mat.indices, mat.indptr)
    [2. 3. 4.] [1 0 1] [0 1 3]
    """

    def __init__(self, args: Any, *, shape: Sequence[int]):
        super().__init__(args, shape=shape)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
        """The elements of a dense matrix that are not zero. See `csr_fromdense`.

        Args:
          mat: the matrix.
          nse: number of elements; counted where none is given.
          index_dtype: type of the indices.

        Returns:
          A CSR array.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental import sparse
        >>> sparse.CSR.fromdense(jnp.eye(2))
        CSR(float32[2, 2], nse=2)
        """
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: DTypeLike = "int32") -> CSR:
        """A matrix without elements."""
        return cls(_empty(shape, 0, dtype, index_dtype, "CSR"), shape=shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: DTypeLike = "int32") -> CSR:
        """Ones on a diagonal."""
        return cls(_eye(N, M, k, dtype, index_dtype), shape=(N, M))

    def todense(self) -> Array:
        """The dense matrix.

        Returns:
          An array of the same shape and dtype.

        >>> from ferrax.experimental import sparse
        >>> print(sparse.eye(2, sparse_format="csr").todense())
        [[1. 0.]
         [0. 1.]]
        """
        return csr_todense(self)

    def transpose(self, axes: Any = None) -> CSC:
        """The transpose, of the same elements.

        Args:
          axes: None.

        Returns:
          A CSC array.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(2, 3, sparse_format="csr").T
        CSC(float32[3, 2], nse=2)
        """
        assert axes is None, "CSR.transpose takes no axes"
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    def __matmul__(self, other: Any) -> Any:
        return matmul(other, lambda data: CSR((data, self.indices, self.indptr), shape=self.shape), self.data, _product)


@register_sparse
class CSC(_Compressed):
    """A sparse matrix of compressed columns.

    Args:
      args: data (nse,), row indices (nse,), and for each column where its elements start (columns + 1,).
      shape: the sizes of the axes.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.CSC.fromdense(jnp.array([[0.0, 2.0], [3.0, 4.0]]))
    >>> print(mat.data, mat.indices, mat.indptr)
    [3. 2. 4.] [1 0 1] [0 1 3]
    """

    def __init__(self, args: Any, *, shape: Sequence[int]):
        super().__init__(args, shape=shape)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSC:
        """The elements of a dense matrix that are not zero.

        Args:
          mat: the matrix.
          nse: number of elements; counted where none is given.
          index_dtype: type of the indices.

        Returns:
          A CSC array.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental import sparse
        >>> sparse.CSC.fromdense(jnp.eye(2))
        CSC(float32[2, 2], nse=2)
        """
        return csr_fromdense(asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: DTypeLike = "int32") -> CSC:
        """A matrix without elements."""
        return cls(_empty(shape, 1, dtype, index_dtype, "CSC"), shape=shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: DTypeLike = "int32") -> CSC:
        """Ones on a diagonal."""
        return cls(_eye(M, N, -k, dtype, index_dtype), shape=(N, M))

    def todense(self) -> Array:
        """The dense matrix.

        Returns:
          An array of the same shape and dtype.

        >>> from ferrax.experimental import sparse
        >>> print(sparse.eye(2, sparse_format="csc").todense())
        [[1. 0.]
         [0. 1.]]
        """
        return csr_todense(self.T).T

    def transpose(self, axes: Any = None) -> CSR:
        """The transpose, of the same elements.

        Args:
          axes: None.

        Returns:
          A CSR array.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(2, 3, sparse_format="csc").T
        CSR(float32[3, 2], nse=2)
        """
        assert axes is None, "CSC.transpose takes no axes"
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    def __matmul__(self, other: Any) -> Any:
        def turned(mat: CSR, x: Any, _: bool) -> Any:
            return _product(mat, x, True)

        shape = self.shape[::-1]
        return matmul(other, lambda data: CSR((data, self.indices, self.indptr), shape=shape), self.data, turned)


def _empty(shape: Sequence[int], axis: int, dtype: Any, index_dtype: Any, name: str) -> tuple[Any, Any, Any]:
    shape = tuple(shape)
    if len(shape) != 2:
        raise ValueError(f"{name} must have ndim=2; got shape={shape}")
    index_dtype = user_index_dtype(index_dtype, shape)
    return jnp.zeros(0, dtype), jnp.zeros(0, index_dtype), jnp.zeros(shape[axis] + 1, index_dtype)


def _eye(N: int, M: int, k: int, dtype: Any, index_dtype: Any) -> tuple[Any, Any, Any]:
    """Data, columns and starts of rows of ones on a diagonal."""
    rows = np.arange(max(0, -k), min(N, M - k))
    index_dtype = user_index_dtype(index_dtype, (N, M))
    indptr = np.searchsorted(rows, np.arange(N + 1))
    columns, indptr = (asarray(x.astype(index_dtype)) for x in (rows + k, indptr))
    return jnp.ones(len(rows), dtype), columns, indptr


def _rows(mat: CSR) -> Any:
    return rows_of(mat.indptr, mat.nse)


def _product(mat: CSR, x: Any, transpose: bool) -> Any:
    """The product of a matrix, or of its transpose, with a vector or matrix of its dtype."""
    if not is_traced(mat, x):
        return product_of(mat, x, transpose)
    name = "csr_matvec_p" if np.ndim(x) == 1 else "csr_matmat_p"
    arrays = (mat.data, mat.indices, mat.indptr, asarray(x))
    return bound(name, *arrays, shape=tuple(mat.shape), transpose=bool(transpose))


@compiled("transpose")
def product_of(mat: CSR, x: Any, transpose: bool) -> Any:
    """The product of the arrays of a matrix, or of its transpose, with a vector or matrix."""
    return product(mat.data, _rows(mat), mat.indices, mat.shape, x, transpose)


def csr_fromdense(mat: Array, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """The elements of a dense matrix that are not zero.

    Args:
      mat: the matrix.
      nse: number of elements; counted where none is given, which a traced `mat` does not allow.
      index_dtype: type of the indices.

    Returns:
      A CSR array.

    Raises:
      ConcretizationTypeError: `mat` is traced and no `nse` is given.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> print(sparse.csr_fromdense(jnp.array([[0.0, 5.0], [0.0, 0.0]])).indptr)
    [0 1 1]
    """
    mat = asarray(mat)
    assert mat.ndim == 2, f"csr_fromdense takes a matrix, got an array of shape {mat.shape}"
    nse = counted(mat, nse, "csr_fromdense")
    made = functools.partial(bound, "csr_fromdense_p") if is_traced(mat) else found
    return CSR(made(mat, nse=nse, index_dtype=user_index_dtype(index_dtype, mat.shape)), shape=mat.shape)


def found(mat: Any, nse: int, index_dtype: Any) -> tuple[Any, Any, Any]:
    """Data, columns and starts of rows of the elements of a matrix that are not zero."""
    data, row, col = from_dense(mat, nse, index_dtype, "csr_fromdense")
    count = jnp.sum(lax.ne(mat, lax.full_like(mat, 0)), dtype=np.int32)
    beyond = lax.ge(lax.iota(np.int32, nse), jnp.broadcast_to(count, (nse,)))
    row = lax.select(beyond, lax.full_like(row, mat.shape[0]), row)
    return data, col, indptr_of(row, mat.shape[0])


def csr_todense(mat: CSR) -> Array:
    """The dense matrix of a sparse one.

    Args:
      mat: a CSR array.

    Returns:
      An array of the same shape and dtype.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> print(sparse.csr_todense(sparse.csr_fromdense(jnp.eye(2))))
    [[1. 0.]
     [0. 1.]]
    """
    require_sparse("csr_todense", mat, CSR)
    if is_traced(mat):
        return bound("csr_todense_p", mat.data, mat.indices, mat.indptr, shape=tuple(mat.shape))
    return to_dense(mat)


@compiled()
def to_dense(mat: CSR) -> Any:
    """The dense matrix of a sparse one."""
    dtype = fitting(mat.indices.dtype, mat.shape)
    index = [lax.convert_element_type(x, dtype) for x in (_rows(mat), mat.indices)]
    return scattered(mat.data, jnp.stack(index, axis=1), mat.shape)


def csr_matvec(mat: CSR, v: Array, transpose: bool = False) -> Array:
    """The product of a sparse matrix and a dense vector.

    Args:
      mat: a CSR array.
      v: a vector of its dtype.
      transpose: whether it is the transpose that multiplies.

    Returns:
      A vector.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.csr_fromdense(jnp.array([[0.0, 5.0], [0.0, 1.0]]))
    >>> print(sparse.csr_matvec(mat, jnp.array([1.0, 2.0])))
    [10.  2.]
    """
    require_sparse("csr_matvec", mat, CSR)
    assert np.ndim(v) == 1, "csr_matvec takes a vector"
    return _product(mat, v, transpose)


def csr_matmat(mat: CSR, B: Array, *, transpose: bool = False) -> Array:
    """The product of a sparse matrix and a dense one.

    Args:
      mat: a CSR array.
      B: a matrix of its dtype.
      transpose: whether it is the transpose of `mat` that multiplies.

    Returns:
      A matrix.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.csr_fromdense(jnp.array([[0.0, 5.0], [0.0, 1.0]]))
    >>> print(sparse.csr_matmat(mat, jnp.eye(2)))
    [[0. 5.]
     [0. 1.]]
    """
    require_sparse("csr_matmat", mat, CSR)
    assert np.ndim(B) == 2, "csr_matmat takes a matrix"
    return _product(mat, B, transpose)
