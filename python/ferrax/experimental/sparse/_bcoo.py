"""The batched coordinate format: data and indices of the elements, with batch axes before and dense axes after.

An array of shape (batch axes, sparse axes, dense axes) has data (batch axes, nse, dense axes) and indices (batch axes,
nse, number of sparse axes). Batch axes of data and indices may have size 1 where the array's are larger. Elements of
the same index add up. Read next: `_bcoo_core.py` for the first functions, `_bcoo_layout.py` for
conversions between layouts, `_bcoo_dot.py` for products, `_bcoo_shape.py` for slices and shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ferrax import numpy as jnp
from ferrax._core import Array, asarray, is_tracer
from ferrax._shapes import static_shape
from ferrax.experimental.sparse._base import (
    JAXSparse,
    Properties,
    SparseInfo,
    arrays_of,
    is_sparse,
    mapped_shape,
    over_rows,
    register_sparse,
    sizes,
    user_index_dtype,
)
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["BCOO"]


def properties(data: Any, indices: Any, shape: Sequence[int]) -> Properties:
    """How the axes divide; ValueError where data, indices and shape do not go together."""
    assert np.issubdtype(indices.dtype, np.integer), f"indices must be integers, got {indices.dtype}"
    shape = tuple(shape)
    n_batch, (nse, n_sparse) = indices.ndim - 2, indices.shape[-2:]
    n_dense = len(shape) - n_batch - n_sparse
    assert n_dense >= 0, f"{indices.shape=} has more axes than {shape=}"

    def compatible(batch: Sequence[int]) -> bool:
        return len(batch) == n_batch and all(d in (1, s) for d, s in zip(batch, shape))

    if not compatible(data.shape[:n_batch]):
        raise ValueError(f"data batch dimensions not compatible for {data.shape=}, {shape=}")
    if not compatible(indices.shape[:n_batch]):
        raise ValueError(f"indices batch dimensions not compatible for {indices.shape=}, {shape=}")
    if tuple(data.shape[n_batch:]) != (nse, *shape[len(shape) - n_dense :]):
        raise ValueError(f"Invalid {data.shape=} for {nse=}, {n_batch=}, {n_dense=}")
    return Properties(n_batch, n_sparse, n_dense, nse)


class Buffer(Protocol):
    """What has a shape and a dtype, as the arrays of a sparse array do.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.sparse import bcoo
    >>> def size(x: bcoo.Buffer) -> int:
    ...     return len(x.shape)
    >>> size(jnp.ones((2, 3)))
    2
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        ...

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        ...


@register_sparse
class BCOO(JAXSparse):
    """A sparse array in batched coordinate format.

    Args:
      args: the pair of data (batch axes, nse, dense axes) and integer indices (batch axes, nse, number of sparse axes).
      shape: the sizes of batch, sparse and dense axes.
      indices_sorted: whether the caller knows that the indices are in lexicographic order.
      unique_indices: whether the caller knows that no index is there twice.

    Raises:
      ValueError: the shapes do not go together.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCOO((jnp.array([1.0, 3.0]), jnp.array([[0, 2], [1, 0]])), shape=(2, 3))
    >>> mat
    BCOO(float32[2, 3], nse=2)
    >>> print(mat.todense())
    [[0. 0. 1.]
     [3. 0. 0.]]
    """

    data: Array
    indices: Array
    nse: Any = property(lambda self: self.indices.shape[-2], doc="Number of stored elements of each batch.")
    dtype: Any = property(lambda self: self.data.dtype, doc="Type of the elements.")
    n_batch: Any = property(lambda self: self.indices.ndim - 2, doc="Number of batch axes.")
    n_sparse: Any = property(lambda self: self.indices.shape[-1], doc="Number of sparse axes.")
    n_dense: Any = property(lambda self: self.data.ndim - 1 - self.n_batch, doc="Number of dense axes.")
    indices_sorted: bool
    unique_indices: bool
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _bufs = property(lambda self: (self.data, self.indices))

    def __init__(
        self,
        args: tuple[Array, Array],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        data, indices = args
        self.data, self.indices = arrays_of((data, indices))
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        super().__init__(args, shape=shape)
        properties(self.data, self.indices, self.shape)

    def __repr__(self) -> str:
        try:
            parts = ("n_batch", self.n_batch), ("n_dense", self.n_dense)
        except Exception:
            parts = ()
        return self._repr_of("".join(f", {name}={n}" for name, n in parts if n))

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        """Data and indices, and a dict of the static part.

        Returns:
          A pair.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(2).tree_flatten()[1]
        {'shape': (2, 2), 'indices_sorted': True, 'unique_indices': True}
        """
        return (self.data, self.indices), dict(self._info._asdict())

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> BCOO:
        """The array of its parts; batch axes that `vmap` takes or adds change the shape.

        Args:
          aux_data: what `tree_flatten` gives second.
          children: data and indices, or objects of any kind in their place.

        Returns:
          The array.

        >>> import ferrax as jax, ferrax.numpy as jnp
        >>> from ferrax.experimental import sparse
        >>> mats = sparse.BCOO.fromdense(jnp.ones((4, 2, 3)), n_batch=1)
        >>> jax.tree.map(lambda x: x[0], mats).shape
        (2, 3)
        """
        new = object.__new__(cls)
        new.data, new.indices = children
        if aux_data.keys() != {"shape", "indices_sorted", "unique_indices"}:
            raise ValueError(f"BCOO.tree_unflatten: invalid {aux_data=}")
        vars(new).update(aux_data)
        data, indices = (getattr(x, "shape", None) for x in children)
        if isinstance(data, tuple) and isinstance(indices, tuple) and indices:
            n_batch = len(indices) - 2
            n_dense = len(data) - 1 - n_batch
            ndim = n_batch + indices[-1] + n_dense if isinstance(indices[-1], int) else len(new.shape)
            if ndim != len(new.shape) and n_dense >= 0 and (n_batch >= 0 or is_tracer(new.data)):
                new.shape = mapped_shape("BCOO", new.shape, (data, indices), n_batch, ndim)
        return new

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """The elements of a dense array that are not zero. See `bcoo_fromdense`.

        Args:
          mat: the array.
          nse: number of elements of each batch; counted where none is given.
          index_dtype: type of the indices.
          n_dense: number of dense axes.
          n_batch: number of batch axes.

        Returns:
          A BCOO array.

        Raises:
          ConcretizationTypeError: `mat` is traced and no `nse` is given.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental import sparse
        >>> sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [0.0, 0.0]]))
        BCOO(float32[2, 2], nse=1)
        """
        return _functions().bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The array of one of SciPy's.

        Args:
          mat: a sparse matrix or array of SciPy's.
          index_dtype: type of the indices.
          n_dense: 0.
          n_batch: 0.

        Returns:
          A BCOO array.

        Raises:
          NotImplementedError: batch or dense axes are asked for.

        >>> import scipy.sparse
        >>> from ferrax.experimental import sparse
        >>> sparse.BCOO.from_scipy_sparse(scipy.sparse.eye(3, dtype="float32"))
        BCOO(float32[3, 3], nse=3)
        """
        if n_dense != 0 or n_batch != 0:
            raise NotImplementedError("BCOO.from_scipy_sparse with nonzero n_dense/n_batch")
        mat = mat.tocoo()
        indices = np.stack([mat.row, mat.col], axis=1)
        return cls(
            (asarray(mat.data), asarray(indices.astype(index_dtype or np.int32))),
            shape=mat.shape,
            indices_sorted=False,
            unique_indices=False,
        )

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
    ) -> BCOO:
        """An array without elements other than padding."""
        shape = static_shape(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: {shape=}, {n_dense=}, {n_batch=}, {nse=}")
        batch, inner, dense = split_shape(shape, n_batch, n_dense)
        data = jnp.zeros((*batch, nse, *dense), dtype)
        indices = jnp.broadcast_to(sizes(inner, user_index_dtype(index_dtype, inner)), (*batch, nse, n_sparse))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

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
    ) -> BCOO:
        """Ones on a diagonal."""
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0 or n_dense < 0 or n_batch < 0:
            raise ValueError(f"Invalid inputs: shape={(N, M)}, {n_dense=}, {n_batch=}")
        rows = np.arange(max(0, -k), min(N, M - k))
        index_dtype = user_index_dtype(index_dtype, split_shape((N, M), n_batch, n_dense)[1])
        if n_batch == n_dense == 0:
            indices = asarray(np.stack([rows, rows + k], axis=1).astype(index_dtype))
            return cls((jnp.ones(len(rows), dtype), indices), shape=(N, M), indices_sorted=True, unique_indices=True)
        dense = jnp.eye(N, M, k, dtype)
        nse = 1 if n_batch else max(len(rows), 0)
        if n_batch + n_dense == 2:
            nse = 1
        elif n_batch and not len(rows):
            nse = 0
        return _functions().bcoo_fromdense(dense, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    def todense(self) -> Array:
        """The dense array.

        Returns:
          An array of the same shape and dtype.

        >>> from ferrax.experimental import sparse
        >>> print(sparse.eye(2, k=1).todense())
        [[0. 1.]
         [0. 0.]]
        """
        return _functions().bcoo_todense(self)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The array with other numbers of batch and dense axes. See `bcoo_update_layout`.

        Args:
          n_batch: the number of batch axes; as it is where none is given.
          n_dense: the number of dense axes; as it is where none is given.
          on_inefficient: ``"error"``, ``"warn"`` or None, for layouts that store many more elements.

        Returns:
          A BCOO array.

        Raises:
          SparseEfficiencyError: the layout would store many more elements.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental import sparse
        >>> sparse.BCOO.fromdense(jnp.eye(2), n_batch=1).update_layout(n_batch=0)
        BCOO(float32[2, 2], nse=2)
        """
        from ferrax.experimental.sparse._bcoo_layout import bcoo_update_layout

        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with sorted indices, each there once.

        Args:
          nse: number of elements of the result. More than there are, and padding fills the rest; fewer, and the last
            ones are dropped. Where none is given, it is counted, which traced indices do not allow.
          remove_zeros: whether elements that are zero count as padding; derivatives need False.

        Returns:
          A BCOO array.

        Raises:
          ValueError: the array is traced and no `nse` is given.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental import sparse
        >>> mat = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[4], [4]])), shape=(9,))
        >>> print(mat.sum_duplicates().data)
        [3.]
        """
        if remove_zeros:
            return _functions().bcoo_eliminate_zeros(self, nse=nse)
        return _functions().bcoo_sum_duplicates(self, nse=nse)

    def sort_indices(self) -> BCOO:
        """The array with its indices in lexicographic order.

        Returns:
          A BCOO array.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(3).T.sort_indices().indices_sorted
        True
        """
        return _functions().bcoo_sort_indices(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The array with its axes in another order. See `bcoo_transpose`.

        Args:
          axes: the permutation; the reverse order where none is given.

        Returns:
          A BCOO array.

        Raises:
          NotImplementedError: batch, sparse and dense axes would mix.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(2, 3).transpose()
        BCOO(float32[3, 2], nse=2)
        """
        return _functions().bcoo_transpose(self, permutation=tuple(range(self.ndim)[::-1]) if axes is None else axes)

    def reshape(self, *args: Any, **kwargs: Any) -> BCOO:
        """The array in another shape, as `jnp.reshape` has it; batch, sparse and dense axes do not mix.

        Args:
          *args: the sizes, or a sequence of them.
          **kwargs: `order`.

        Returns:
          A BCOO array.

        Raises:
          ValueError: the sizes are not the array's, or mix kinds of axes.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(2).reshape(4)
        BCOO(float32[4], nse=2)
        """
        return _sparsify(lambda x: x.reshape(*args, **kwargs))(self)

    def astype(self, *args: Any, **kwargs: Any) -> BCOO:
        """The array with elements of another type.

        Args:
          *args: the dtype.
          **kwargs: as of `jnp.ndarray.astype`.

        Returns:
          A BCOO array.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(2).astype("int32")
        BCOO(int32[2, 2], nse=2)
        """
        return _sparsify(lambda x: x.astype(*args, **kwargs))(self)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The sum over axes, as `jnp.sum` has it.

        Args:
          *args: the axes.
          **kwargs: arguments of `jnp.sum`.

        Returns:
          A BCOO array; a dense one when the sum is over all axes.

        >>> from ferrax.experimental import sparse
        >>> print(sparse.eye(3).sum())
        3.0
        """
        return _sparsify(lambda x: x.sum(*args, **kwargs))(self)

    def __iter__(self) -> Iterator[BCOO]:
        return over_rows(self)


def _functions() -> Any:
    """The module of functions, which imports the class."""
    from ferrax.experimental.sparse import _bcoo_core

    return _bcoo_core


def sparsified(name: str) -> Callable[..., Any]:
    """An operator of dense arrays for sparse ones."""
    return _sparsify(getattr(operator, name))


def _sparsify(function: Callable[..., Any]) -> Callable[..., Any]:
    from ferrax.experimental.sparse._transform import sparsify

    return sparsify(function)


_OPERANDS = (Array, np.ndarray, np.generic, bool, int, float, complex)


def _binary(name: str, reflected: bool) -> Callable[..., Any]:
    function = getattr(operator, name)

    def method(self: BCOO, other: Any) -> Any:
        if not (is_sparse(other) or isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__")):
            return NotImplemented
        if isinstance(other, (bool, int, float, complex)):
            # a static exponent is another operation than a traced one
            return _sparsify(lambda x: function(other, x) if reflected else function(x, other))(self)
        left, right = (other, self) if reflected else (self, other)
        return _sparsify(function)(left, right)

    method.__name__ = f"__{'r' if reflected else ''}{name}__"
    method.__qualname__ = f"BCOO.{method.__name__}"
    return method


def _unary(name: str) -> Callable[..., Any]:
    def method(self: BCOO) -> Any:
        return sparsified(name)(self)

    method.__name__ = f"__{name}__"
    method.__qualname__ = f"BCOO.{method.__name__}"
    return method


def _matmul(left: Any, right: Any) -> Any:
    """The matrix product; of matrices and vectors without a detour over a program."""
    left, right = (x if is_sparse(x) else asarray(x) for x in (left, right))
    for position, x in enumerate((left, right)):
        if x.ndim == 0:
            raise ValueError(f"matmul input operand {position} must have ndim at least 1, but it has ndim 0")
    if left.ndim > 2 or right.ndim > 2:
        return sparsified("matmul")(left, right)
    from ferrax.experimental.sparse._bcoo_dot import bcoo_dot_general

    numbers = (((left.ndim - 1,), (0,)), ((), ()))
    dtype = jnp.promote_types(left.dtype, right.dtype)
    return bcoo_dot_general(left, right, dimension_numbers=numbers, preferred_element_type=dtype)


def _getitem(self: BCOO, index: Any) -> Any:
    return _sparsify(lambda x: x[index])(self)


def _define_operators() -> None:
    for name in ("abs", "neg", "pos"):
        setattr(BCOO, f"__{name}__", _unary(name))
    for name in ("mul", "truediv", "add", "sub", "pow"):
        setattr(BCOO, f"__{name}__", _binary(name, False))
        setattr(BCOO, f"__r{name}__", _binary(name, True))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(BCOO, f"__{name}__", _binary(name, False))
    BCOO.__matmul__ = _matmul  # type: ignore[attr-defined]
    BCOO.__rmatmul__ = lambda self, other: _matmul(other, self)  # type: ignore[attr-defined]
    BCOO.__getitem__ = _getitem  # type: ignore[attr-defined, misc]
    BCOO.__hash__ = None  # type: ignore[assignment]


_define_operators()


def split_shape(shape: Sequence[int], n_batch: int, n_dense: int) -> tuple[tuple[int, ...], ...]:
    """The sizes of batch, sparse and dense axes."""
    shape = tuple(shape)
    end = len(shape) - n_dense
    return shape[:n_batch], shape[n_batch:end], shape[end:]


def parts(mat: BCOO) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The sizes of an array's batch, sparse and dense axes."""
    return split_shape(mat.shape, mat.n_batch, mat.n_dense)  # type: ignore[return-value]


def with_shape(arrays: tuple[Any, Any], shape: Sequence[int], like: Any = None) -> BCOO:
    """An array of data and indices, which is as sorted and unique as another one."""
    return BCOO(
        arrays,
        shape=tuple(shape),
        indices_sorted=like is not None and like.indices_sorted,
        unique_indices=like is not None and like.unique_indices,
    )
