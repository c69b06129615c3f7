"""The batched compressed row format. Read next: `_bcsr_functions.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ferrax import numpy as jnp
from ferrax._core import Array, asarray, is_tracer
from ferrax._shapes import static_shape
from ferrax.experimental.sparse._base import (
    JAXSparse,
    SparseInfo,
    arrays_of,
    is_sparse,
    mapped_shape,
    register_sparse,
    user_index_dtype,
)
from ferrax.experimental.sparse._bcoo import BCOO, sparsified, split_shape
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["BCSR", "BCSRProperties"]


class BCSRProperties(NamedTuple):
    """How the axes of a BCSR array divide, and the number of elements of each batch.

    Args:
      n_batch: number of batch axes.
      n_dense: number of dense axes.
      nse: number of elements.

    >>> from ferrax.experimental import sparse
    >>> sparse.bcsr.BCSRProperties(0, 0, 3).nse
    3
    """

    n_batch: int
    n_dense: int
    nse: int


def properties(data: Any, indices: Any, indptr: Any, shape: Sequence[int]) -> BCSRProperties:
    """How the axes divide; ValueError where arrays and shape do not go together."""
    for name, x in (("indices", indices), ("indptr", indptr)):
        assert np.issubdtype(x.dtype, np.integer), f"{name} must be integers, got {x.dtype}"
    shape = tuple(shape)
    n_batch, nse = indices.ndim - 1, indices.shape[-1]
    n_dense = len(shape) - n_batch - 2
    if n_dense < 0 or n_batch < 0:
        raise ValueError(f"BCSR array has {indices.shape=} for {shape=}")
    batch, (rows, _), dense = split_shape(shape, n_batch, n_dense)
    for name, x, rest in (("data", data, (nse, *dense)), ("indices", indices, (nse,)), ("indptr", indptr, (rows + 1,))):
        if x.ndim < n_batch or not all(d in (1, s) for d, s in zip(x.shape[:n_batch], batch)):
            raise ValueError(f"{name} batch dimensions not compatible for {name}.shape={x.shape}, {shape=}")
        if tuple(x.shape[n_batch:]) != rest:
            raise ValueError(f"Invalid {name}.shape={x.shape} for {nse=}, {n_batch=}, {n_dense=}, {shape=}")
    return BCSRProperties(n_batch, n_dense, nse)


@register_sparse
class BCSR(JAXSparse):
    """A sparse array in batched compressed row format.

    Args:
      args: data (batch axes, nse, dense axes), column indices (batch axes, nse), and for each row where its elements
        start (batch axes, number of rows + 1). Elements after the last row's end are padding.
      shape: the sizes of batch axes, rows and columns, and dense axes.
      indices_sorted: whether the caller knows that the columns of each row are in order.
      unique_indices: whether the caller knows that no index is there twice.

    Raises:
      ValueError: the shapes do not go together.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 4.0]]))
    >>> print(mat.data, mat.indices, mat.indptr)
    [2. 3. 4.] [1 0 1] [0 1 3]
    """

    data: Array
    indices: Array
    indptr: Array
    nse: Any = property(lambda self: self.indices.shape[-1], doc="Number of stored elements of each batch.")
    dtype: Any = property(lambda self: self.data.dtype, doc="Type of the elements.")
    n_batch: Any = property(lambda self: self.indices.ndim - 1, doc="Number of batch axes.")
    n_sparse: Any = property(lambda _: 2, doc="Number of sparse axes.")
    n_dense: Any = property(lambda self: self.data.ndim - 1 - self.n_batch, doc="Number of dense axes.")
    indices_sorted: bool
    unique_indices: bool
    _bufs = property(lambda self: (self.data, self.indices, self.indptr))
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _sparse_shape = property(lambda self: split_shape(self.shape, self.n_batch, self.n_dense)[1])

    def __init__(
        self,
        args: tuple[Array, Array, Array],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices, self.indptr = arrays_of(args)
        super().__init__(args, shape=shape)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        properties(self.data, self.indices, self.indptr, self.shape)

    def __repr__(self) -> str:
        try:
            parts = ("n_batch", self.n_batch), ("n_dense", self.n_dense)
        except Exception:
            parts = ()
        return self._repr_of("".join(f", {name}={n}" for name, n in parts if n))

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        """The three arrays, and a dict of the static part.

        Returns:
          A pair.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental import sparse
        >>> len(sparse.BCSR.fromdense(jnp.eye(2)).tree_flatten()[0])
        3
        """
        return (self.data, self.indices, self.indptr), dict(self._info._asdict())

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> BCSR:
        """The array of its parts; batch axes that `vmap` takes or adds change the shape.

        Args:
          aux_data: what `tree_flatten` gives second.
          children: the three arrays, or objects of any kind in their place.

        Returns:
          The array.

        >>> import ferrax as jax, ferrax.numpy as jnp
        >>> from ferrax.experimental import sparse
        >>> mats = sparse.BCSR.fromdense(jnp.ones((4, 2, 3)), n_batch=1)
        >>> jax.tree.map(lambda x: x[0], mats).shape
        (2, 3)
        """
        new = object.__new__(cls)
        new.data, new.indices, new.indptr = children
        if aux_data.keys() != {"shape", "indices_sorted", "unique_indices"}:
            raise ValueError(f"BCSR.tree_unflatten: invalid {aux_data=}")
        vars(new).update(aux_data)
        shapes = [getattr(x, "shape", None) for x in children]
        if all(isinstance(s, tuple) for s in shapes):
            n_batch = len(shapes[1]) - 1  # type: ignore[arg-type]
            ndim = n_batch + 2 + len(shapes[0]) - 1 - n_batch  # type: ignore[arg-type]
            if ndim != len(new.shape) and ndim >= n_batch + 2 and (n_batch >= 0 or is_tracer(new.data)):
                new.shape = mapped_shape("BCSR", new.shape, shapes, n_batch, ndim)  # type: ignore[arg-type]
        return new

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: Any = None,
        index_dtype: DTypeLike = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCSR:
        """An array without elements other than padding."""
        shape = static_shape(shape)
        if n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}")
        if len(shape) != n_batch + 2 + n_dense:
            raise ValueError("BCSR sparse.empty: must have 2 sparse dimensions.")
        batch, (rows, cols), dense = split_shape(shape, n_batch, n_dense)
        index_dtype = user_index_dtype(index_dtype, (rows, cols, nse))
        data = jnp.zeros((*batch, nse, *dense), dtype)
        indices = jnp.full((*batch, nse), cols, index_dtype)
        return cls((data, indices, jnp.zeros((*batch, rows + 1), index_dtype)), shape=shape)

    @classmethod
    def _eye(
        cls,
        N: int,
        M: int,
        k: int,
        *,
        dtype: Any = None,
        index_dtype: DTypeLike = "int32",
        n_batch: int = 0,
        n_dense: int = 0,
    ) -> BCSR:
        """Ones on a diagonal."""
        return cls.from_bcoo(BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, n_batch=n_batch, n_dense=n_dense))

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """The elements of a dense array that are not zero. See `bcsr_fromdense`.

        Args:
          mat: the array.
          nse: number of elements of each batch; counted where none is given.
          index_dtype: type of the indices.
          n_dense: number of dense axes.
          n_batch: number of batch axes.

        Returns:
          A BCSR array.

        Raises:
          ValueError: there are not two sparse axes.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental import sparse
        >>> sparse.BCSR.fromdense(jnp.eye(3))
        BCSR(float32[3, 3], nse=3)
        """
        return _functions().bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The array in another format.

        Args:
          arr: a BCOO array of two sparse axes.

        Returns:
          A BCSR array.

        Raises:
          NotImplementedError: there are not two sparse axes.

        >>> from ferrax.experimental import sparse
        >>> print(sparse.BCSR.from_bcoo(sparse.eye(2, 3, k=1)).indices)
        [1 2]
        """
        return _functions().from_bcoo(arr)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """The array of one of SciPy's.

        Args:
          mat: a sparse matrix or array of SciPy's.
          index_dtype: type of the indices.
          n_dense: 0.
          n_batch: 0.

        Returns:
          A BCSR array.

        Raises:
          NotImplementedError: batch or dense axes are asked for.

        >>> import scipy.sparse
        >>> from ferrax.experimental import sparse
        >>> sparse.BCSR.from_scipy_sparse(scipy.sparse.eye(3, dtype="float32"))
        BCSR(float32[3, 3], nse=3)
        """
        if n_dense != 0 or n_batch != 0:
            raise NotImplementedError("BCSR from_scipy_sparse with nonzero n_dense/n_batch.")
        if mat.ndim != 2:
            raise ValueError(f"BCSR from_scipy_sparse requires 2D array; {mat.ndim}D is given.")
        mat = mat.tocsr()
        kind = index_dtype or np.int32
        arrays = (asarray(mat.data), asarray(mat.indices.astype(kind)), asarray(mat.indptr.astype(kind)))
        return cls(arrays, shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """The array in coordinate format.

        Returns:
          A BCOO array.

        >>> from ferrax.experimental import sparse
        >>> sparse.BCSR.from_bcoo(sparse.eye(2)).to_bcoo()
        BCOO(float32[2, 2], nse=2)
        """
        return _functions().to_bcoo(self)

    def todense(self) -> Array:
        """The dense array.

        Returns:
          An array of the same shape and dtype.

        >>> from ferrax.experimental import sparse
        >>> print(sparse.BCSR.from_bcoo(sparse.eye(2)).todense())
        [[1. 0.]
         [0. 1.]]
        """
        return _functions().bcsr_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with sorted indices, each there once.

        Args:
          nse: number of elements of the result, as of `BCOO.sum_duplicates`.
          remove_zeros: whether elements that are zero count as padding; derivatives need False.

        Returns:
          A BCSR array.

        Raises:
          ValueError: the array is traced and no `nse` is given.

        >>> from ferrax.experimental import sparse
        >>> sparse.BCSR.from_bcoo(sparse.eye(3)).sum_duplicates(nse=5).nse
        5
        """
        if remove_zeros:
            return _functions().bcsr_eliminate_zeros(self, nse=nse)
        return _functions().bcsr_sum_duplicates(self, nse=nse)

    def transpose(self, *args: Any, **kwargs: Any) -> Any:
        """Not there: the transpose of compressed rows has compressed columns.

        Args:
          *args: no matter.
          **kwargs: no matter.

        Returns:
          Nothing.

        Raises:
          NotImplementedError: always. `to_bcoo()` has a transpose.

        >>> from ferrax.experimental import sparse
        >>> sparse.BCSR.from_bcoo(sparse.eye(2)).to_bcoo().T
        BCOO(float32[2, 2], nse=2)
        """
        raise NotImplementedError("Transpose is not implemented.")

    def __matmul__(self, other: Any) -> Any:
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _matmul(other, self)

    def __getitem__(self, index: Any) -> Any:
        from ferrax.experimental.sparse._transform import sparsify

        return sparsify(lambda x: x[index])(self)


def _matmul(left: Any, right: Any) -> Any:
    left, right = (x if is_sparse(x) else asarray(x) for x in (left, right))
    if left.ndim != 2 or right.ndim not in (1, 2):
        return sparsified("matmul")(left, right)
    numbers, dtype = (((1,), (0,)), ((), ())), jnp.promote_types(left.dtype, right.dtype)
    return _functions().bcsr_dot_general(left, right, dimension_numbers=numbers, preferred_element_type=dtype)


def _functions() -> Any:
    """The module of functions, which imports the class."""
    from ferrax.experimental.sparse import _bcsr_functions

    return _bcsr_functions
