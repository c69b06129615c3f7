"""Functions of BCOO arrays that keep their layout: from dense and to dense, order of indices, transposes.

Read next: `_bcoo_layout.py`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax, numpy as jnp
from ferrax._core import Array, asarray, concrete_or_error, is_tracer
from ferrax.experimental.sparse._base import (
    bound,
    columns,
    compiled,
    in_range,
    is_traced,
    masked,
    masked_indices,
    over_batch,
    require_sparse,
    sizes,
    stored_batch,
    user_index_dtype,
    wide,
    wrapped,
)
from ferrax.experimental.sparse._bcoo import BCOO, parts, split_shape, with_shape
from ferrax.typing import ArrayLike, DTypeLike

__all__ = [
    "bcoo_eliminate_zeros",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_sort_indices",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
]


# --- from dense, to dense


def bcoo_fromdense(
    mat: Array,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = jnp.int32,
) -> BCOO:
    """The elements of a dense array that are not zero.

    Args:
      mat: the array.
      nse: number of elements of each batch. More than there are, and padding fills the rest; fewer, and the last ones
        are dropped. Where none is given, it is counted, which a traced `mat` does not allow.
      n_batch: number of batch axes.
      n_dense: number of dense axes; an element is an array of their sizes.
      index_dtype: type of the indices.

    Returns:
      A BCOO array.

    Raises:
      ConcretizationTypeError: `mat` is traced and no `nse` is given.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.bcoo_fromdense(jnp.array([[0.0, 5.0], [0.0, 0.0]]))
    >>> print(mat.data, mat.indices)
    [5.] [[0 1]]
    """
    mat = asarray(mat)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"Invalid {n_batch=}, {n_dense=} for shape={mat.shape}")
    if nse is None:
        nse = concrete_or_error(operator.index, _most(mat, n_batch, n_dense), _NSE_TEXT)
    nse = concrete_or_error(operator.index, nse, _NSE_TEXT)
    if nse < 0:
        raise ValueError(f"nse must be non-negative, got {nse}")
    dtype = user_index_dtype(index_dtype, split_shape(mat.shape, n_batch, n_dense)[1])
    made = functools.partial(bound, "bcoo_fromdense_p") if is_traced(mat) else from_dense
    data, indices = made(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=dtype)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _filled(mat: Any, n_dense: int) -> Any:
    """Which elements are not zero: a mask (batch axes, sparse axes)."""
    mask = lax.ne(mat, lax.full_like(mat, 0))
    return jnp.any(mask, axis=tuple(range(mat.ndim - n_dense, mat.ndim)))


@compiled("n_batch", "n_dense")
def _most(mat: Any, n_batch: int, n_dense: int) -> Any:
    """The largest number of elements of a batch."""
    mask = _filled(mat, n_dense)
    return jnp.max(jnp.sum(mask, axis=tuple(range(n_batch, mask.ndim)), dtype=np.int32), initial=0)


@compiled("nse", "n_batch", "n_dense", "index_dtype")
def from_dense(mat: Any, nse: int, n_batch: int, n_dense: int, index_dtype: Any) -> tuple[Any, Any]:
    """Data and indices of the elements of a dense array that are not zero."""
    dtype = index_dtype
    batch, inner, dense = split_shape(mat.shape, n_batch, n_dense)

    def one(mask: Any, mat: Any) -> tuple[Any, Any]:
        if not inner:
            indices = jnp.zeros((nse, 0), dtype)
            first = lax.eq(lax.iota(np.int32, nse), lax.full((nse,), 0, np.int32))
            return masked(lax.broadcast_in_dim(mat, (nse, *dense), tuple(range(1, 1 + len(dense)))), first), indices
        if 0 in inner:
            return jnp.zeros((nse, *dense), mat.dtype), jnp.broadcast_to(sizes(inner, dtype), (nse, len(inner)))
        found = jnp.nonzero(mask, size=nse, fill_value=inner)
        indices = jnp.stack([lax.convert_element_type(x, np.int32) for x in found], axis=1)
        return _extract(indices, mat), lax.convert_element_type(indices, dtype)

    return over_batch(one, batch, _filled(mat, n_dense), mat)


_NSE_TEXT = (
    "The error arose for the nse argument of bcoo_fromdense. Pass the number of stored elements to BCOO.fromdense() in "
    "a traced program, where it has to be a concrete value."
)


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array of a sparse one.

    Args:
      mat: a BCOO array.

    Returns:
      An array of the same shape and dtype.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_todense(sparse.eye(2)))
    [[1. 0.]
     [0. 1.]]
    """
    require_sparse("bcoo_todense", mat, BCOO)
    if is_traced(mat):
        return bound("bcoo_todense_p", mat.data, mat.indices, spinfo=mat._info)
    return to_dense(mat)


@compiled()
def to_dense(mat: BCOO) -> Any:
    """The dense array of a sparse one."""
    batch, inner, dense = parts(mat)
    shape = (*inner, *dense)
    return over_batch(lambda data, indices: scattered(data, indices, shape), batch, mat.data, mat.indices)


def scattered(data: Any, indices: Any, shape: Sequence[int]) -> Any:
    """The sums of elements (nse, dense axes) at their indices (nse, n_sparse), an array of a shape."""
    if data.dtype == np.bool_:
        # what is true anywhere; scatters add numbers alone
        return lax.ne(scattered(lax.convert_element_type(data, np.int32), indices, shape), np.int32(0))
    if indices.shape[-1] == 0:
        return lax.reduce_sum(data, (0,))
    return jnp.zeros(tuple(shape), data.dtype).at[columns(wide(indices))].add(data, mode="drop")


def _extract(indices: Any, mat: Any) -> Any:
    """The values (nse, dense axes) of a dense array at indices (nse, n_sparse), zero for padding."""
    if indices.shape[-1] == 0:
        return lax.broadcast_in_dim(mat, (indices.shape[0], *mat.shape), tuple(range(1, mat.ndim + 1)))
    return mat.at[columns(wide(indices))].get(mode="fill", fill_value=0)


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """The values of a dense array at a sparse array's indices.

    Args:
      sparr: a BCOO array.
      arr: a dense array of the same shape.
      assume_unique: whether every element gets its value. Where it is False, that is the first one of each index, and
        the others get zero. By default, what `sparr` says of its indices.

    Returns:
      A BCOO array with `sparr`'s indices.

    Raises:
      ValueError: the shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_extract(sparse.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]])).data)
    [1. 4.]
    """
    require_sparse("bcoo_extract", sparr, BCOO)
    a = asarray(arr)
    if a.shape != sparr.shape:
        raise ValueError(f"shape mismatch: sparr.shape={sparr.shape} a.shape={a.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    found = functools.partial(bound, "bcoo_extract_p") if is_traced(sparr, a) else extracted
    data = found(sparr.indices, a, assume_unique=bool(unique))
    return with_shape((data, sparr.indices), sparr.shape, like=sparr)


@compiled("assume_unique")
def extracted(indices: Any, a: Any, assume_unique: bool) -> Any:
    """The data of a sparse array: the values of a dense array at indices."""
    n, n_sparse = indices.ndim - 2, indices.shape[-1]
    batch, inner, unique = a.shape[:n], a.shape[n : n + n_sparse], assume_unique

    def one(indices: Any, a: Any) -> Any:
        values = _extract(indices, a)
        return values if unique else masked(values, _first_of_each(indices, inner))

    return over_batch(one, batch, indices, a)


# --- order of indices


def _order(indices: Any) -> tuple[Any, Any]:
    """The permutation that sorts indices (nse, n_sparse), and the sorted indices."""
    count = lax.iota(np.int32, indices.shape[0])
    if indices.shape[-1] == 0:
        return count, indices
    *keys, order = lax.sort((*columns(indices), count), num_keys=indices.shape[-1], is_stable=True)
    return order, jnp.stack(keys, axis=1)


def _starts(indices: Any) -> Any:
    """Which of sorted indices (nse, n_sparse) differ from the one before."""
    nse = indices.shape[0]
    if not nse:
        return jnp.zeros(0, np.bool_)
    different = lax.ne(lax.slice_in_dim(indices, 1, nse, axis=0), lax.slice_in_dim(indices, 0, nse - 1, axis=0))
    return lax.concatenate([jnp.ones(1, np.bool_), jnp.any(different, axis=1)], 0)


def _first_of_each(indices: Any, inner: Sequence[int]) -> Any:
    """The mask (nse,) of elements whose index no element before has; padding is none."""
    indices = wide(indices)
    order, ordered = _order(indices)
    first = jnp.zeros(indices.shape[0], np.bool_).at[order].set(_starts(ordered))
    return lax.bitwise_and(first, in_range(indices, inner))


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The array with its indices in lexicographic order.

    Args:
      mat: a BCOO array.

    Returns:
      A BCOO array.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_sort_indices(sparse.eye(3, k=-1).T).indices)
    [[0 1]
     [1 2]]
    """
    require_sparse("bcoo_sort_indices", mat, BCOO)
    if not is_traced(mat):
        return sorted_indices(mat)
    arrays = bound("bcoo_sort_indices_p", mat.data, mat.indices, spinfo=mat._info)
    return BCOO(arrays, shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


@compiled()
def sorted_indices(mat: BCOO) -> BCOO:
    """The array with its indices in lexicographic order."""

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        order, indices = _order(indices)
        return data.at[order].get(mode="promise_in_bounds", unique_indices=True), indices

    data, indices = over_batch(one, stored_batch(mat.n_batch, mat.data, mat.indices), mat.data, mat.indices)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with sorted indices, each there once; padding is gone or at the end.

    Args:
      mat: a BCOO array.
      nse: number of elements of the result. More than there are, and padding fills the rest; fewer, and the last ones
        are dropped. Where none is given, it is counted, which traced indices do not allow.

    Returns:
      A BCOO array.

    Raises:
      ValueError: the indices are traced and no `nse` is given.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[4], [4]])), shape=(9,))
    >>> print(sparse.bcoo_sum_duplicates(mat).data)
    [3.]
    """
    return _sum_duplicates(mat, nse, remove_zeros=False)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """The array with sorted indices, each there once, without the elements that are zero.

    Args:
      mat: a BCOO array.
      nse: number of elements of the result, as of `bcoo_sum_duplicates`.

    Returns:
      A BCOO array.

    Raises:
      ValueError: the array is traced and no `nse` is given.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCOO((jnp.array([0.0, 2.0]), jnp.array([[3], [4]])), shape=(9,))
    >>> sparse.bcoo.bcoo_eliminate_zeros(mat)
    BCOO(float32[9], nse=1)
    """
    return _sum_duplicates(mat, nse, remove_zeros=True)


def _sum_duplicates(mat: BCOO, nse: int | None, remove_zeros: bool) -> BCOO:
    require_sparse("bcoo_sum_duplicates", mat, BCOO)
    if nse is None:
        if is_tracer(mat.indices) or (remove_zeros and is_tracer(mat.data)):
            raise ValueError(_COUNTED)
        nse = int(_different(mat, True)) if remove_zeros else count_of_different(mat)
    nse = operator.index(nse)
    if remove_zeros or not is_traced(mat):
        return summed(mat, nse, remove_zeros)
    arrays = bound("bcoo_sum_duplicates_p", mat.data, mat.indices, spinfo=mat._info, nse=nse)
    return BCOO(arrays, shape=mat.shape, indices_sorted=True, unique_indices=True)


def count_of_different(mat: BCOO) -> int:
    """The largest number of different indices of a batch, which must not be traced.

    Raises:
      ValueError: they are.
    """
    if is_tracer(mat.indices):
        raise ValueError(_COUNTED)
    # data may be traced where the indices are not
    return int(_different(BCOO((jnp.zeros(mat.data.shape, np.int32), mat.indices), shape=mat.shape), False))


_COUNTED = (
    "bcoo_sum_duplicates: nse must be specified when using the function within jit, vmap, and other transformations "
    "requiring abstract evaluation."
)


def _grouped(data: Any, indices: Any, inner: Sequence[int], remove_zeros: bool) -> tuple[Any, Any, Any]:
    """The mask of elements that stay, the order that sorts the elements, and the sorted indices, padding at the end."""
    mask = in_range(indices, inner)
    if remove_zeros:
        filled = lax.ne(data, lax.full_like(data, 0))
        mask = lax.bitwise_and(mask, jnp.any(filled, axis=tuple(range(1, data.ndim))))
    return mask, *_order(masked_indices(wrapped(indices, inner), mask, inner))


@compiled("nse", "remove_zeros")
def summed(mat: BCOO, nse: int, remove_zeros: bool) -> BCOO:
    """The array with sorted indices, each there once."""
    _, inner, dense = parts(mat)

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        mask, order, ordered = _grouped(data, indices, inner, remove_zeros)
        groups = lax.cumsum(lax.convert_element_type(_starts(ordered), np.int32))
        groups = lax.sub(groups, lax.full_like(groups, 1))
        data = masked(data, mask).at[order].get(mode="promise_in_bounds", unique_indices=True)
        out = scattered(data, lax.expand_dims(groups, (1,)), (nse, *dense))
        padding = jnp.broadcast_to(sizes(inner, ordered.dtype), (nse, len(inner)))
        ordered = padding.at[groups].set(ordered, mode="drop")
        return out, lax.convert_element_type(ordered, indices.dtype)

    data, indices = over_batch(one, stored_batch(mat.n_batch, mat.data, mat.indices), mat.data, mat.indices)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


@compiled("remove_zeros")
def _different(mat: BCOO, remove_zeros: bool) -> Any:
    """The largest number of different indices of a batch."""
    batch, inner, _ = parts(mat)
    if not inner:
        return np.int32(min(1, mat.nse))

    def one(data: Any, indices: Any) -> Any:
        _, _, ordered = _grouped(data, indices, inner, remove_zeros)
        return jnp.sum(lax.bitwise_and(_starts(ordered), in_range(ordered, inner)), dtype=np.int32)

    return jnp.max(over_batch(one, batch, mat.data, mat.indices), initial=0)


# --- transpose


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its axes in another order.

    Args:
      mat: a BCOO array.
      permutation: which axis of `mat` each axis of the result is.

    Returns:
      A BCOO array.

    Raises:
      TypeError: `permutation` is none of the axes.
      NotImplementedError: batch, sparse and dense axes would mix.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_transpose(sparse.eye(3, k=1), permutation=(1, 0)).indices)
    [[1 0]
     [2 1]]
    """
    require_sparse("bcoo_transpose", mat, BCOO)
    permutation = tuple(operator.index(p) for p in permutation)
    if sorted(permutation) != list(range(mat.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{permutation} for shape {mat.shape}."
        )
    if permutation == tuple(range(mat.ndim)):
        return mat
    if not is_traced(mat):
        return transposed(mat, permutation)
    data, indices = bound("bcoo_transpose_p", mat.data, mat.indices, permutation=permutation, spinfo=mat._info)
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    # indices that stay are the same object, by which `sparsify` knows them
    still = permutation[n:end] == tuple(range(n, end))
    indices = mat.indices if still and permutation[:n] == tuple(range(n)) else indices
    return BCOO(
        (data, indices),
        shape=tuple(mat.shape[p] for p in permutation),
        indices_sorted=mat.indices_sorted and still,
        unique_indices=mat.unique_indices,
    )


def transposed(mat: BCOO, permutation: Sequence[int]) -> BCOO:
    """The array with its axes in another order, of all its axes."""
    n_batch, n_sparse = mat.n_batch, mat.n_sparse
    end = n_batch + n_sparse
    for kind, first, last in (("batch", 0, n_batch), ("dense", end, mat.ndim)):
        if sorted(permutation[first:last]) != list(range(first, last)):
            raise NotImplementedError(
                f"transpose permutation cannot permute {kind} axes with non-{kind} axes; got permutation "
                f"{permutation}, with n_{kind}={last - first}."
            )
    batch = permutation[:n_batch]
    inner = [p - n_batch for p in permutation[n_batch:end]]
    dense = [p - n_sparse + 1 for p in permutation[end:]]
    indices = lax.transpose(mat.indices, (*batch, n_batch, n_batch + 1))
    still = inner == list(range(n_sparse))
    if not still:
        indices = _permuted(indices, inner)
    return BCOO(
        (lax.transpose(mat.data, (*batch, n_batch, *dense)), indices),
        shape=tuple(mat.shape[p] for p in permutation),
        indices_sorted=mat.indices_sorted and still,
        unique_indices=mat.unique_indices,
    )


def _permuted(indices: Any, order: Sequence[int]) -> Any:
    """The columns of indices in another order."""
    taken = columns(indices)
    return jnp.stack([taken[i] for i in order], axis=-1)
