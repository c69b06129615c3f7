"""What the sparse formats share: the base class, its pytree form, warnings, and functions over batches.

A sparse array is a pytree of arrays whose number of elements (`nse`) is static. Elements with indices out of range are
padding, and take part in nothing. Read next: `_bcoo.py`, the format that has the most functions.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from ferrax import lax
from ferrax._api import jit, vmap
from ferrax._boundary import shielded
from ferrax._core import Array, Tracer, asarray, canonicalize_dtype, is_tracer
from ferrax._shapes import static_shape
from ferrax._texts import short
from ferrax.numpy._args import broadcast_to_shape, common_shape
from ferrax.tree_util import register_pytree_node, tree_leaves, tree_map

__all__ = [
    "CuSparseEfficiencyWarning",
    "JAXSparse",
    "Properties",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseInfo",
    "bound",
    "columns",
    "compiled",
    "in_range",
    "is_sparse",
    "is_traced",
    "over_batch",
    "register_sparse",
    "spread",
    "wide",
    "wrapped",
]


F = TypeVar("F", bound=Callable[..., Any])
Shape = tuple[int, ...]


class SparseEfficiencyError(ValueError):
    """A conversion would store many more elements than it was given.

    >>> from ferrax.experimental import sparse
    >>> issubclass(sparse.SparseEfficiencyError, ValueError)
    True
    """


class SparseEfficiencyWarning(UserWarning):
    """A conversion stores many more elements than it was given.

    >>> from ferrax.experimental import sparse
    >>> issubclass(sparse.SparseEfficiencyWarning, UserWarning)
    True
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """JAX's warning of operations that cuSPARSE does not have; nothing here issues it.

    >>> from ferrax.experimental import sparse
    >>> issubclass(sparse.CuSparseEfficiencyWarning, sparse.SparseEfficiencyWarning)
    True
    """


class SparseInfo(NamedTuple):
    """The static part of a BCOO or BCSR array.

    Args:
      shape: the sizes of the axes.
      indices_sorted: whether the indices are known to be in lexicographic order.
      unique_indices: whether no index is known to be there twice.

    >>> from ferrax.experimental.sparse import util
    >>> util.SparseInfo((2, 3))
    SparseInfo(shape=(2, 3), indices_sorted=False, unique_indices=False)
    """

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


class Properties(NamedTuple):
    """How the axes of a BCOO array divide, and the number of elements of each batch.

    Args:
      n_batch: number of batch axes.
      n_sparse: number of sparse axes.
      n_dense: number of dense axes.
      nse: number of elements.

    >>> from ferrax.experimental import sparse
    >>> sparse.bcoo.BCOOProperties(1, 2, 0, nse=5).n_sparse
    2
    """

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


class JAXSparse:
    """The base class of sparse arrays.

    Args:
      args: arrays that a subclass documents.
      shape: the sizes of the axes.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> isinstance(sparse.BCOO.fromdense(jnp.eye(2)), sparse.JAXSparse)
    True
    """

    data: Array
    shape: tuple[int, ...]
    nse: Any = property(lambda self: self._missing("nse"), doc="Number of stored elements of each batch.")
    dtype: Any = property(lambda self: self._missing("dtype"), doc="Type of the elements.")

    # NumPy leaves its operators to this class's
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, args: tuple[Array, ...], *, shape: Sequence[int]):
        self.shape = static_shape(shape)

    size = property(lambda self: math.prod(self.shape), doc="Number of elements of the dense array.")
    ndim = property(lambda self: len(self.shape), doc="Number of axes.")
    T = property(lambda self: self.transpose(), doc="The transpose.")

    def _missing(self, name: str) -> Any:
        raise NotImplementedError(f"{type(self)}.{name}")

    def _repr_of(self, suffix: str) -> str:
        name = type(self).__name__
        try:
            text = f"{name}({self.dtype}{list(self.shape)}, nse={self.nse}{suffix})"
        except Exception:
            # leaves that are no arrays, as in a structure that is printed
            return f"{name}(<invalid>)"
        if any(is_tracer(x) for x in tree_leaves(self)):
            return f"{type(self._first_tracer()).__name__}[{text}]"
        return text

    def _first_tracer(self) -> Any:
        return next(x for x in tree_leaves(self) if is_tracer(x))

    def __repr__(self) -> str:
        return self._repr_of("")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def block_until_ready(self) -> JAXSparse:
        """Waits for the arrays.

        Returns:
          The array itself.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(2).block_until_ready()
        BCOO(float32[2, 2], nse=2)
        """
        for leaf in tree_leaves(self):
            if hasattr(leaf, "block_until_ready"):
                leaf.block_until_ready()
        return self

    def tree_flatten(self) -> tuple[tuple[Array, ...], dict[str, Any]]:
        """The arrays, and a dict of the static part.

        Returns:
          A pair.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(2, sparse_format="csr").tree_flatten()[1]
        {'shape': (2, 2)}
        """
        return self._missing("tree_flatten")

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Any:
        """The array of its parts.

        Args:
          aux_data: what `tree_flatten` gives second.
          children: what it gives first; objects of any kind may be in the place of arrays.

        Returns:
          The array.

        >>> from ferrax.experimental import sparse
        >>> arrays, rest = sparse.eye(2).tree_flatten()
        >>> sparse.BCOO.tree_unflatten(rest, arrays)
        BCOO(float32[2, 2], nse=2)
        """
        raise NotImplementedError(f"{cls}.tree_unflatten")

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its axes in another order.

        Args:
          axes: the permutation; the reverse order where none is given.

        Returns:
          A sparse array.

        Raises:
          NotImplementedError: the format has no such transpose.

        >>> from ferrax.experimental import sparse
        >>> sparse.eye(2, 3).T
        BCOO(float32[3, 2], nse=2)
        """
        return self._missing("transpose")

    def todense(self) -> Array:
        """The dense array.

        Returns:
          An array of the same shape and dtype.

        >>> from ferrax.experimental import sparse
        >>> print(sparse.eye(2, sparse_format="coo").todense())
        [[1. 0.]
         [0. 1.]]
        """
        return self._missing("todense")

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The sum over axes, for formats that have it.

        Args:
          *args: see `BCOO.sum`.
          **kwargs: see `BCOO.sum`.

        Returns:
          A dense or sparse array.

        Raises:
          NotImplementedError: the format has no sum.

        >>> from ferrax.experimental import sparse
        >>> print(sparse.eye(2).sum())
        2.0
        """
        return self._missing("sum")


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: JAXSparse, *args: Any) -> Any:
        return self._missing(name)

    method.__name__ = name
    method.__qualname__ = f"JAXSparse.{name}"
    return shielded(method)


for _name in ["neg", "pos", "matmul", "rmatmul", "mul", "rmul", "add", "radd", "sub", "rsub", "getitem"]:
    setattr(JAXSparse, f"__{_name}__", _refusing(f"__{_name}__"))


class _Static(dict[str, Any]):
    """The static part of a sparse array: a dict that structures can hash."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def register_sparse(cls: type) -> type:
    """Class decorator: makes instances containers by their methods, as `register_pytree_node_class` does."""

    def flatten(x: Any) -> tuple[Any, Any]:
        children, static = x.tree_flatten()
        return children, _Static(static)

    register_pytree_node(cls, flatten, cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def compiled(*static: str) -> Callable[[F], F]:
    """Decorator of functions that run as one program; `static` are their arguments that are no arrays."""
    return cast("Callable[[F], F]", functools.partial(jit, static_argnames=static, inline=True))


def bound(name: str, *operands: Any, **params: Any) -> Any:
    """What a primitive of `_primitives.py` gives."""
    from ferrax.experimental.sparse import _primitives

    return getattr(_primitives, name).bind(*operands, **params)


def is_traced(*values: Any) -> bool:
    """Whether an array, or one of a sparse array, is traced."""
    return any(is_tracer(leaf) for x in values for leaf in (tree_leaves(x) if is_sparse(x) else [x]))


def is_sparse(x: Any) -> bool:
    """Whether a value is a sparse array.

    Args:
      x: any object.

    Returns:
      A Python bool.

    >>> from ferrax.experimental import sparse
    >>> sparse.test_util.is_sparse(sparse.eye(2)), sparse.test_util.is_sparse(2.0)
    (True, False)
    """
    return isinstance(x, JAXSparse)


def arrays_of(args: Any) -> list[Any]:
    """The constructor's arrays: what is no array yet is converted."""
    return [x if isinstance(x, (Array, Tracer)) else asarray(x) for x in args]


def require_sparse(name: str, x: Any, cls: type) -> None:
    """Raises TypeError unless `x` is of the format."""
    if not isinstance(x, cls):
        raise TypeError(f"{name}: expected a {cls.__name__} array, got {short(x)}")


# --- indices and batches


def columns(indices: Any) -> tuple[Any, ...]:
    """The columns of indices (…, nse, n_sparse): an array (…, nse) for each sparse axis."""
    return tuple(lax.index_in_dim(indices, i, indices.ndim - 1, keepdims=False) for i in range(indices.shape[-1]))


def wide(indices: Any) -> Any:
    """Indices of at least 32 bits, which every size fits."""
    if indices.dtype.itemsize < 4:
        return lax.convert_element_type(indices, np.int32)
    return indices


def fitting(dtype: Any, sizes: Sequence[int]) -> Any:
    """A dtype of indices up to these sizes: the given one, unless it is too narrow."""
    largest = max(sizes, default=0)
    if largest <= np.iinfo(dtype).max:
        return np.dtype(dtype)
    return np.dtype(np.int32) if largest <= np.iinfo(np.int32).max else canonicalize_dtype(np.int64)


def user_index_dtype(dtype: Any, sizes: Sequence[int]) -> Any:
    """The dtype that a user asks of indices; ValueError where it cannot count to these sizes."""
    dtype = canonicalize_dtype(dtype)
    if max(sizes, default=0) > np.iinfo(dtype).max:
        raise ValueError(f"indices of {dtype} cannot count to {max(sizes)}")
    return dtype


def in_range(indices: Any, shape: Sequence[int]) -> Any:
    """Which elements are no padding: a mask (…, nse) for indices (…, nse, n_sparse). Negative indices wrap."""
    valid = None
    indices = wide(indices)
    for column, size in zip(columns(indices), shape, strict=True):
        inside = lax.lt(column, lax.full_like(column, size))
        if np.issubdtype(indices.dtype, np.signedinteger):
            inside = lax.bitwise_and(inside, lax.ge(column, lax.full_like(column, -size)))
        valid = inside if valid is None else lax.bitwise_and(valid, inside)
    if valid is None:
        return lax.full(indices.shape[:-1], True, np.bool_)
    return valid


def wrapped(indices: Any, shape: Sequence[int]) -> Any:
    """Indices of at least 32 bits, counted from the start where they are negative."""
    indices = wide(indices)
    if not (len(shape) and np.issubdtype(indices.dtype, np.signedinteger)):
        return indices
    size = lax.broadcast_in_dim(sizes(shape, indices.dtype), indices.shape, (indices.ndim - 1,))
    return lax.select(lax.lt(indices, lax.full_like(indices, 0)), lax.add(indices, size), indices)


def masked(data: Any, mask: Any) -> Any:
    """The data (…, nse, dense axes) with zeros where the mask (…, nse) is false."""
    mask = lax.broadcast_in_dim(mask, data.shape, tuple(range(mask.ndim)))
    return lax.select(mask, data, lax.full_like(data, 0))


def masked_indices(indices: Any, mask: Any, shape: Sequence[int]) -> Any:
    """The indices (…, nse, n_sparse) with padding where the mask (…, nse) is false."""
    mask = lax.broadcast_in_dim(mask, indices.shape, tuple(range(mask.ndim)))
    return lax.select(
        mask, indices, lax.broadcast_in_dim(sizes(shape, indices.dtype), indices.shape, (indices.ndim - 1,))
    )


def sizes(shape: Sequence[int], dtype: Any) -> Any:
    """The sparse shape as an array of the indices' dtype: the index of padding."""
    return asarray(np.array(shape, np.int64).astype(dtype))


def spread(x: Any, batch: Sequence[int]) -> Any:
    """An array with its batch axes (of these sizes, or 1) broadcast."""
    return broadcast_to_shape(x, (*batch, *x.shape[len(batch) :]))


def stored_batch(n_batch: int, *arrays: Any) -> tuple[int, ...]:
    """The sizes of batch axes that are stored: 1 where one row of each array stands for all."""
    return common_shape(*(x.shape[:n_batch] for x in arrays)) if n_batch else ()


def over_batch(fun: Callable[..., Any], batch: Sequence[int], *arrays: Any) -> Any:
    """The results of a function of one batch for all of them.

    Args:
      fun: a function of arrays without batch axes; gives a pytree of arrays.
      batch: the sizes of the batch axes, which come first.
      *arrays: arrays whose batch axes have these sizes, or 1.

    Returns:
      `fun`'s results with the batch axes in front.
    """
    batch = tuple(batch)
    if not batch:
        return fun(*arrays)
    flat = [lax.reshape(spread(x, batch), (math.prod(batch), *x.shape[len(batch) :])) for x in arrays]
    out = vmap(fun)(*flat)
    return tree_map(lambda x: lax.reshape(x, (*batch, *x.shape[1:])), out)


# JAX's errors of the two formats differ
_WORD = {"BCSR": "batched"}


def mapped_shape(name: str, shape: tuple[int, ...], shapes: Sequence[Any], n_batch: int, ndim: int) -> tuple[int, ...]:
    """The shape of a sparse array that `vmap` gave or took batch axes.

    Args:
      name: the format.
      shape: the static shape that it had.
      shapes: the shapes of its arrays, which have changed.
      n_batch: the number of batch axes that they have now; negative where there is none to take.
      ndim: the number of axes that they make.
    """
    if n_batch < 0:
        raise ValueError(
            f"Cannot map in_axis=0 for {name} array with n_batch=0. in_axes for batched {name} operations must "
            f"correspond to a {_WORD.get(name, 'batch')} dimension."
        )
    rest = shape[len(shape) - (ndim - n_batch) :] if ndim > n_batch else ()
    batches = [x[:n_batch] for x in shapes]
    return (*(max(b[i] for b in batches) for i in range(n_batch)), *rest)


def _axes_of(axes: Any, values: Any) -> Iterator[tuple[int, Any]]:
    """The sparse arrays with batch axes among mapped values, each with its mapped axis."""
    pairs: list[tuple[int, Any]] = []

    def visit(axis: Any, value: Any) -> None:
        found = tree_leaves(value, is_leaf=is_sparse)
        pairs.extend((axis, x) for x in found if hasattr(x, "n_batch") and isinstance(axis, int))

    # what is no prefix is the mapped function's to refuse
    with contextlib.suppress(ValueError, TypeError):
        tree_map(visit, axes, values, is_leaf=lambda x: x is None)
    return iter(pairs)


def check_mapped(axes: tuple[Any, ...], args: tuple[Any, ...]) -> None:
    """Raises ValueError where `vmap` maps an axis of a sparse argument that is no batch axis."""
    for axis, x in _axes_of(axes, args):
        if not 0 <= axis < x.n_batch:
            name = type(x).__name__
            raise ValueError(
                f"Cannot map in_axis={axis} for {name} array with n_batch={x.n_batch}. in_axes for batched {name} "
                f"operations must correspond to a {_WORD.get(name, 'batch')} dimension."
            )


def check_mapped_out(axes: Any, out: Any) -> None:
    """Raises ValueError where `vmap` put an axis among others than the batch axes of a sparse result."""
    for axis, x in _axes_of(axes, out):
        if not 0 <= axis < x.n_batch:
            name = type(x).__name__
            raise ValueError(
                f"{name}: cannot add out_axis={axis} for {name} array with n_batch={x.n_batch - 1}. {name} batch axes "
                "must be a contiguous block of leading dimensions."
            )


def over_rows(sparse: Any) -> Iterator[Any]:
    """The parts of an array along its first axis, for iteration."""
    if not sparse.shape:
        raise TypeError("iteration over a 0-d array")
    return (sparse[i] for i in range(sparse.shape[0]))
