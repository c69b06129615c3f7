"""The plain coordinate format: matrices as data, rows and columns. BCOO does more. Read next: `_csr.py`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ferrax import lax, numpy as jnp
from ferrax._core import Array, asarray, concrete_or_error
from ferrax.experimental.sparse._base import (
    JAXSparse,
    arrays_of,
    bound,
    compiled,
    is_sparse,
    is_traced,
    register_sparse,
    require_sparse,
    user_index_dtype,
    wide,
)
from ferrax.experimental.sparse._bcoo_core import scattered
from ferrax.numpy._args import promote
from ferrax.typing import DTypeLike

__all__ = ["COO", "COOInfo", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense"]


class COOInfo(NamedTuple):
    """The static part of a COO array.

    Args:
      shape: the sizes of the axes.
      rows_sorted: whether the rows are known to be in order.
      cols_sorted: whether the columns are known to be in order.

    >>> from ferrax.experimental import sparse
    >>> sparse.coo.COOInfo((2, 3))
    COOInfo(shape=(2, 3), rows_sorted=False, cols_sorted=False)
    """

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


@register_sparse
class COO(JAXSparse):
    """A sparse matrix in coordinate format.

    Args:
      args: data, rows and columns of the elements, each (nse,).
      shape: the sizes of the axes.
      rows_sorted: whether the caller knows that the rows are in order.
      cols_sorted: whether the caller knows that the columns are in order.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.COO((jnp.array([1.0, 3.0]), jnp.array([0, 1]), jnp.array([2, 0])), shape=(2, 3))
    >>> print(mat.todense())
    [[0. 0. 1.]
     [3. 0. 0.]]
    """

    data: Array
    row: Array
    col: Array
    nse: Any = property(lambda self: self.data.size, doc="Number of stored elements.")
    dtype: Any = property(lambda self: self.data.dtype, doc="Type of the elements.")
    _info = property(lambda self: COOInfo(self.shape, self._rows_sorted, self._cols_sorted))
    _bufs = property(lambda self: (self.data, self.row, self.col))

    def __init__(
        self,
        args: tuple[Array, Array, Array],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ):
        self.data, self.row, self.col = arrays_of(args)
        self._rows_sorted = rows_sorted
        self._cols_sorted = cols_sorted
        super().__init__(args, shape=shape)

    @classmethod
    def fromdense(cls, mat: Array, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
        """The elements of a dense matrix that are not zero. See `coo_fromdense`.

        Args:
          mat: the matrix.
          nse: number of elements; counted where none is given.
          index_dtype: type of the indices.

        Returns:
          A COO array.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental import sparse
        >>> sparse.COO.fromdense(jnp.eye(2))
        COO(float32[2, 2], nse=2)
        """
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def _sort_indices(self) -> COO:
        """The array with its elements in the order of rows, and of columns in each."""
        if self._rows_sorted:
            return self
        row, col, order = lax.sort((self.row, self.col, lax.iota(np.int32, self.nse)), num_keys=2)
        data = self.data.at[order].get(mode="promise_in_bounds", unique_indices=True)
        return COO((data, row, col), shape=self.shape, rows_sorted=True)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: DTypeLike = "int32") -> COO:
        """A matrix without elements."""
        shape = tuple(shape)
        if len(shape) != 2:
            raise ValueError(f"COO must have ndim=2; got shape={shape}")
        index = jnp.zeros(0, user_index_dtype(index_dtype, shape))
        return cls((jnp.zeros(0, dtype), index, index), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: DTypeLike = "int32") -> COO:
        """Ones on a diagonal."""
        rows = np.arange(max(0, -k), min(N, M - k))
        index_dtype = user_index_dtype(index_dtype, (N, M))
        row, col = (asarray(x.astype(index_dtype)) for x in (rows, rows + k))
        return cls((jnp.ones(len(rows), dtype), row, col), shape=(N, M), rows_sorted=True, cols_sorted=True)

    def todense(self) -> Array:
        """The dense matrix.

        Returns:
          An array of the same shape and dtype.

        >>> from ferrax.experimental import sparse
        >>> print(sparse.eye(2, sparse_format="coo").todense())
        [[1. 0.]
         [0. 1.]]
        """
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The transpose, of the same elements.

        Args:
          axes: None.

        Returns:
          A COO array.

        Raises:
          NotImplementedError: axes are given.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(2, 3, sparse_format="coo").T
        COO(float32[3, 2], nse=2)
        """
        if axes is not None:
            raise NotImplementedError("axes argument to transpose()")
        return COO(
            (self.data, self.col, self.row),
            shape=self.shape[::-1],
            rows_sorted=self._cols_sorted,
            cols_sorted=self._rows_sorted,
        )

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], dict[str, Any]]:
        """The three arrays, and a dict of the static part.

        Returns:
          A pair.

        >>> from ferrax.experimental import sparse
        >>> len(sparse.eye(2, sparse_format="coo").tree_flatten()[0])
        3
        """
        return (self.data, self.row, self.col), dict(self._info._asdict())

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> COO:
        """The array of its parts.

        Args:
          aux_data: what `tree_flatten` gives second.
          children: the three arrays, or objects of any kind in their place.

        Returns:
          The array.

        >>> from ferrax.experimental import sparse
        >>> arrays, rest = sparse.eye(2, sparse_format="coo").tree_flatten()
        >>> sparse.COO.tree_unflatten(rest, arrays)
        COO(float32[2, 2], nse=2)
        """
        new = object.__new__(cls)
        new.data, new.row, new.col = children
        if aux_data.keys() != {"shape", "rows_sorted", "cols_sorted"}:
            raise ValueError(f"COO.tree_unflatten: invalid {aux_data=}")
        new.shape = aux_data["shape"]
        new._rows_sorted = aux_data["rows_sorted"]
        new._cols_sorted = aux_data["cols_sorted"]
        return new

    def __matmul__(self, other: Any) -> Any:
        def matrix(data: Any) -> COO:
            return COO((data, self.row, self.col), **self._info._asdict())

        return matmul(other, matrix, self.data, coo_product)


def matmul(other: Any, matrix: Callable[[Any], Any], data: Any, product: Callable[..., Any]) -> Any:
    """The product of a matrix with a vector or matrix of a type that promotes with the data."""
    if is_sparse(other):
        raise NotImplementedError("matmul between two sparse objects.")
    data, other = promote("matmul", data, other)
    if other.ndim not in (1, 2):
        raise NotImplementedError(f"matmul with object of shape {other.shape}")
    return product(matrix(data), other, False)


def coo_product(mat: COO, x: Any, transpose: bool) -> Any:
    """The product of a matrix, or of its transpose, with a vector or matrix of its dtype."""
    if not is_traced(mat, x):
        return product(mat.data, mat.row, mat.col, mat.shape, x, transpose)
    name = "coo_matvec_p" if np.ndim(x) == 1 else "coo_matmat_p"
    return bound(name, mat.data, mat.row, mat.col, asarray(x), spinfo=mat._info, transpose=bool(transpose))


@compiled("shape", "transpose")
def product(data: Any, row: Any, col: Any, shape: Sequence[int], x: Any, transpose: bool) -> Any:
    """The product of the matrix of elements, or of its transpose, with a vector or matrix."""
    rows, cols = shape
    if transpose:
        row, col, rows, cols = col, row, cols, rows
    x = asarray(x)
    assert x.shape[0] == cols, f"the operand has shape {x.shape}, the matrix {cols} columns"
    assert x.dtype == data.dtype, f"the operand has dtype {x.dtype}, the matrix {data.dtype}"
    taken = x.at[wide(col)].get(mode="fill", fill_value=0)
    data = lax.broadcast_in_dim(data, taken.shape, (0,))
    terms = lax.bitwise_and(data, taken) if data.dtype == np.bool_ else lax.mul(data, taken)
    return scattered(terms, lax.expand_dims(row, (1,)), (rows, *x.shape[1:]))


def counted(mat: Any, nse: Any, name: str) -> int:
    """The number of elements of a matrix that are not zero, unless it is given."""
    if nse is None:
        nse = jnp.sum(lax.ne(mat, lax.full_like(mat, 0)), dtype=np.int32)
    return concrete_or_error(operator.index, nse, f"The error arose for the nse argument of {name}.")


def coo_fromdense(mat: Array, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32) -> COO:
    """The elements of a dense matrix that are not zero.

    Args:
      mat: the matrix.
      nse: number of elements; counted where none is given, which a traced `mat` does not allow.
      index_dtype: type of the indices.

    Returns:
      A COO array. Elements more than there are are zeros at (0, 0).

    Raises:
      ConcretizationTypeError: `mat` is traced and no `nse` is given.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> print(sparse.coo_fromdense(jnp.array([[0.0, 5.0], [0.0, 0.0]])).col)
    [1]
    """
    mat = asarray(mat)
    if nse is not None and is_traced(mat) and mat.ndim == 2:
        dtype = user_index_dtype(index_dtype, mat.shape)
        arrays = bound("coo_fromdense_p", mat, nse=counted(mat, nse, "coo_fromdense"), index_dtype=dtype)
        return COO(arrays, shape=mat.shape, rows_sorted=True)
    data, row, col = from_dense(mat, nse, index_dtype, "coo_fromdense")
    return COO((data, row, col), shape=mat.shape, rows_sorted=True)


def from_dense(mat: Any, nse: Any, index_dtype: Any, name: str) -> tuple[Any, Any, Any]:
    """Data, rows and columns of the elements of a matrix that are not zero."""
    assert mat.ndim == 2, f"{name} takes a matrix, got an array of shape {mat.shape}"
    return found(mat, counted(mat, nse, name), user_index_dtype(index_dtype, mat.shape))


@compiled("nse", "index_dtype")
def found(mat: Any, nse: int, index_dtype: Any) -> tuple[Any, Any, Any]:
    """Data, rows and columns of the elements of a matrix that are not zero."""
    if not mat.size:
        return jnp.zeros(nse, mat.dtype), jnp.zeros(nse, index_dtype), jnp.zeros(nse, index_dtype)
    mask = lax.ne(mat, lax.full_like(mat, 0))
    row, col = jnp.nonzero(mask, size=nse, fill_value=0)
    data = mat.at[row, col].get(mode="promise_in_bounds")
    there = lax.lt(lax.iota(np.int32, nse), jnp.broadcast_to(jnp.sum(mask, dtype=np.int32), (nse,)))
    data = lax.select(there, data, lax.full_like(data, 0))
    return data, lax.convert_element_type(row, index_dtype), lax.convert_element_type(col, index_dtype)


def coo_todense(mat: COO) -> Array:
    """The dense matrix of a sparse one.

    Args:
      mat: a COO array.

    Returns:
      An array of the same shape and dtype.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> print(sparse.coo_todense(sparse.coo_fromdense(jnp.eye(2))))
    [[1. 0.]
     [0. 1.]]
    """
    require_sparse("coo_todense", mat, COO)
    if is_traced(mat):
        return bound("coo_todense_p", mat.data, mat.row, mat.col, spinfo=mat._info)
    return to_dense(mat)


@compiled()
def to_dense(mat: COO) -> Any:
    """The dense matrix of a sparse one."""
    index = [lax.convert_element_type(x, np.result_type(mat.row.dtype, mat.col.dtype)) for x in (mat.row, mat.col)]
    return scattered(mat.data, jnp.stack(index, axis=1), mat.shape)


def coo_matvec(mat: COO, v: Array, transpose: bool = False) -> Array:
    """The product of a sparse matrix and a dense vector.

    Args:
      mat: a COO array.
      v: a vector of its dtype.
      transpose: whether it is the transpose that multiplies.

    Returns:
      A vector.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.coo_fromdense(jnp.array([[0.0, 5.0], [0.0, 1.0]]))
    >>> print(sparse.coo_matvec(mat, jnp.array([1.0, 2.0])))
    [10.  2.]
    """
    require_sparse("coo_matvec", mat, COO)
    assert np.ndim(v) == 1, "coo_matvec takes a vector"
    return coo_product(mat, v, transpose)


def coo_matmat(mat: COO, B: Array, *, transpose: bool = False) -> Array:
    """The product of a sparse matrix and a dense one.

    Args:
      mat: a COO array.
      B: a matrix of its dtype.
      transpose: whether it is the transpose of `mat` that multiplies.

    Returns:
      A matrix.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.coo_fromdense(jnp.array([[0.0, 5.0], [0.0, 1.0]]))
    >>> print(sparse.coo_matmat(mat, jnp.eye(2)))
    [[0. 5.]
     [0. 1.]]
    """
    require_sparse("coo_matmat", mat, COO)
    assert np.ndim(B) == 2, "coo_matmat takes a matrix"
    return coo_product(mat, B, transpose)
