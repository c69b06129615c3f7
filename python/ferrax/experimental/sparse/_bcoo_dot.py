"""Products of BCOO arrays: contractions with dense and with sparse arrays, and products of elements.

A contraction with a dense array gathers its rows at the contracted indices, multiplies, and adds up at the indices
that remain. One of two sparse arrays compares all pairs of elements. Read next: `_bcoo_shape.py`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import lax, numpy as jnp
from ferrax._api import eval_shape, vmap
from ferrax._core import Array, asarray, promote_dtypes
from ferrax._out_sharding import no_sharding
from ferrax._shape_dtype import ShapeDtypeStruct
from ferrax.experimental.sparse._base import (
    bound,
    columns,
    compiled,
    in_range,
    is_sparse,
    is_traced,
    masked,
    masked_indices,
    over_batch,
    require_sparse,
    spread,
    stored_batch,
    wide,
    wrapped,
)
from ferrax.experimental.sparse._bcoo import BCOO, parts, with_shape
from ferrax.experimental.sparse._bcoo_core import extracted, scattered, summed
from ferrax.experimental.sparse._bcoo_layout import bcoo_update_layout
from ferrax.numpy._args import broadcast_to_shape, common_shape
from ferrax.typing import DTypeLike

__all__ = [
    "bcoo_dot_general",
    "bcoo_dot_general_sampled",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
]

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def canonical(dimension_numbers: DotDimensionNumbers) -> Any:
    """Dimension numbers as tuples of ints."""
    return tuple(tuple(tuple(operator.index(d) for d in dims) for dims in pair) for pair in dimension_numbers)


def dot_shape(lhs: Any, rhs: Any, dimension_numbers: Any) -> tuple[int, ...]:
    """The shape of a contraction; raises what `lax.dot_general` raises for dense arrays."""
    dtype = jnp.promote_types(lhs.dtype, rhs.dtype)
    structs = [ShapeDtypeStruct(x.shape, dtype) for x in (lhs, rhs)]
    return tuple(eval_shape(lambda x, y: lax.dot_general(x, y, dimension_numbers), *structs).shape)


def bcoo_dot_general(
    lhs: BCOO | Array,
    rhs: BCOO | Array,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> BCOO | Array:
    """A contraction, as `lax.dot_general` has it.

    Args:
      lhs: a BCOO or dense array.
      rhs: a BCOO or dense array.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
      precision: no matter.
      preferred_element_type: dtype of the result; the operands' common one where none is given.
      out_sharding: not supported.

    Returns:
      A dense array; a BCOO array when both operands are.

    Raises:
      NotImplementedError: the contraction is over dense axes, or the batch axes are no batch axes of the layout.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> print(sparse.bcoo_dot_general(mat, jnp.array([1.0, 10.0]), dimension_numbers=(([1], [0]), ([], []))))
    [20.  3.]
    """
    no_sharding("bcoo_dot_general", out_sharding)
    numbers = canonical(dimension_numbers)
    if not (is_sparse(lhs) or is_sparse(rhs)):
        lhs, rhs = asarray(lhs), asarray(rhs)
        return lax.dot_general(lhs, rhs, numbers, preferred_element_type=preferred_element_type)
    for x in (lhs, rhs):
        if is_sparse(x):
            require_sparse("bcoo_dot_general", x, BCOO)
    lhs, rhs = (x if is_sparse(x) else asarray(x) for x in (lhs, rhs))
    preferred = None if preferred_element_type is None else jnp.dtype(preferred_element_type)
    dot_shape(lhs, rhs, numbers)
    if is_sparse(lhs) and is_sparse(rhs):
        return _of_sparse(lhs, rhs, numbers, preferred)
    if is_sparse(lhs):
        return _with_dense(lhs, rhs, numbers, preferred)
    (lc, rc), (lb, rb) = numbers
    out = _with_dense(rhs, lhs, ((rc, lc), (rb, lb)), preferred)
    # the free axes of rhs come first here, and last in the result
    n, free = len(lb), rhs.ndim - len(rc) - len(rb)
    return lax.transpose(out, (*range(n), *range(n + free, out.ndim), *range(n, n + free)))


def _with_dense(mat: BCOO, dense: Any, numbers: Any, preferred: Any) -> Any:
    if not is_traced(mat, dense):
        return sparse_dense(mat, dense, numbers, preferred)
    params = {"dimension_numbers": numbers, "preferred_element_type": preferred, "lhs_spinfo": mat._info}
    return bound("bcoo_dot_general_p", mat.data, mat.indices, dense, **params)


def _of_sparse(lhs: BCOO, rhs: BCOO, numbers: Any, preferred: Any) -> BCOO:
    if not is_traced(lhs, rhs):
        return sparse_sparse(lhs, rhs, numbers, preferred)
    arrays = bound(
        "bcoo_spdot_general_p",
        *(lhs.data, lhs.indices, rhs.data, rhs.indices),
        lhs_spinfo=lhs._info,
        rhs_spinfo=rhs._info,
        dimension_numbers=numbers,
        preferred_element_type=preferred,
    )
    return BCOO(arrays, shape=dot_shape(lhs, rhs, numbers))


def sparse_dense(lhs: BCOO, rhs: Any, dimension_numbers: DotDimensionNumbers, preferred: Any) -> Any:
    """The contraction of a sparse and a dense array; `preferred` is the dtype of the result, or None."""
    dtype = _common_dtype(lhs, rhs, preferred)
    out = _sparse_dense(_with_dtype(lhs, dtype), _with_dtype(rhs, dtype), canonical(dimension_numbers))
    return out if preferred is None else _with_dtype(out, preferred)


def sparse_sparse(lhs: BCOO, rhs: BCOO, dimension_numbers: DotDimensionNumbers, preferred: Any) -> BCOO:
    """The contraction of two sparse arrays; `preferred` is the dtype of the result, or None."""
    dtype = _common_dtype(lhs, rhs, preferred)
    out = _sparse_sparse(_with_dtype(lhs, dtype), _with_dtype(rhs, dtype), canonical(dimension_numbers))
    return out if preferred is None else _with_dtype(out, preferred)


def _common_dtype(lhs: Any, rhs: Any, preferred: Any) -> Any:
    dtype = jnp.promote_types(lhs.dtype, rhs.dtype)
    return dtype if preferred is None else jnp.promote_types(dtype, preferred)


def _with_dtype(x: Any, dtype: Any) -> Any:
    if is_sparse(x):
        return with_shape((lax.convert_element_type(x.data, dtype), x.indices), x.shape, like=x)
    return lax.convert_element_type(x, dtype)


@compiled("numbers")
def _sparse_dense(lhs: BCOO, rhs: Any, numbers: Any) -> Any:
    """The contraction with a dense array: axes of both, then free ones of `lhs`, then free ones of `rhs`."""
    (lc, rc), (lb, rb) = numbers
    batch, inner, _ = parts(lhs)
    n, end = len(batch), len(batch) + len(inner)
    if any(d >= end for d in lc):
        raise NotImplementedError("bcoo_dot_general: contracting over dense dimensions.")
    if any(d >= n for d in lb):
        raise NotImplementedError(
            "bcoo_dot_general batch dimensions must be among the batch dimensions in the sparse representation.\n"
            f"got lhs_batch={lb}, n_batch={n}"
        )
    partner = dict(zip((*lc, *lb), (*rc, *rb)))
    coupled = [d for d in range(n) if d in partner]
    contracted = sorted(d for d in lc if d >= n)
    rest = [d for d in range(rhs.ndim) if d not in (*rc, *rb)]
    rhs = lax.transpose(rhs, (*(partner[d] for d in coupled), *(partner[d] for d in contracted), *rest))
    function = _one_batch(inner, [d - n for d in contracted], lhs.n_dense, len(rest))
    for d in reversed(range(n)):
        function = vmap(function, in_axes=(0, 0, 0 if d in partner else None))
    data, indices = spread(lhs.data, batch), spread(lhs.indices, batch)
    if 0 in batch:
        free = [s for d, s in enumerate(lhs.shape) if d >= n and d not in lc]
        out = jnp.zeros((*batch, *free, *rhs.shape[len(coupled) + len(contracted) :]), lhs.dtype)
    else:
        out = function(data, indices, rhs)
    summed = [d for d in range(n) if d in lc]
    out = _summed(out, summed)
    kept = [d for d in range(n) if d not in summed]
    order = [*(kept.index(d) for d in lb), *(i for i, d in enumerate(kept) if d not in lb), *range(len(kept), out.ndim)]
    return lax.transpose(out, order)


def _summed(x: Any, axes: Sequence[int]) -> Any:
    if not axes:
        return x
    if x.dtype == np.bool_:
        return jnp.any(x, axis=tuple(axes))
    return lax.reduce_sum(x, tuple(axes))


def _one_batch(inner: Sequence[int], contracted: Sequence[int], n_dense: int, n_rest: int) -> Callable[..., Any]:
    """The contraction of data (nse, dense axes), indices (nse, n_sparse) and a dense array.

    The dense array's axes are those of the contracted indices, then the rest; the result's are the free sparse axes,
    the dense ones, and that rest.
    """
    free = [i for i in range(len(inner)) if i not in contracted]

    def product(data: Any, indices: Any, rhs: Any) -> Any:
        nse = data.shape[0]
        data = masked(data, in_range(indices, inner))
        taken = columns(wide(indices))
        if contracted:
            rows = rhs.at[tuple(taken[i] for i in contracted)].get(mode="fill", fill_value=0)
        else:
            rows = lax.broadcast_in_dim(rhs, (nse, *rhs.shape), tuple(range(1, rhs.ndim + 1)))
        if not free:
            return lax.dot_general(data, rows, (((0,), (0,)), ((), ())))
        # the axes of `data` come first, each once
        shape = (*data.shape, *rows.shape[1:])
        left = lax.broadcast_in_dim(data, shape, tuple(range(1 + n_dense)))
        right = lax.broadcast_in_dim(rows, shape, (0, *range(1 + n_dense, 1 + n_dense + n_rest)))
        terms = lax.bitwise_and(left, right) if data.dtype == np.bool_ else lax.mul(left, right)
        where = jnp.stack([taken[i] for i in free], axis=1)
        return scattered(terms, where, (*(inner[i] for i in free), *shape[1:]))

    return product


def bcoo_dot_general_sampled(A: Array, B: Array, indices: Array, *, dimension_numbers: DotDimensionNumbers) -> Array:
    """The elements of a contraction of dense arrays at sparse indices.

    Args:
      A: a dense array.
      B: a dense array.
      indices: indices of BCOO (batch axes, nse, number of sparse axes) in the contraction's result.
      dimension_numbers: ``((a_contracting, b_contracting), (a_batch, b_batch))``.

    Returns:
      The data of BCOO: an array (batch axes, nse, dense axes), zero for padding.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> a = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> at = jnp.array([[0, 1], [1, 1]])
    >>> print(sparse.bcoo_dot_general_sampled(a, a, at, dimension_numbers=(([1], [0]), ([], []))))
    [10. 22.]
    """
    A, B, indices = asarray(A), asarray(B), asarray(indices)
    made = functools.partial(bound, "bcoo_dot_general_sampled_p") if is_traced(A, B, indices) else sampled
    return made(A, B, indices, dimension_numbers=canonical(dimension_numbers))


def sampled(A: Any, B: Any, indices: Any, dimension_numbers: DotDimensionNumbers) -> Any:
    """The elements of a contraction of dense arrays at sparse indices."""
    numbers = canonical(dimension_numbers)
    shape = dot_shape(A, B, numbers)
    dtype = jnp.promote_types(A.dtype, B.dtype)
    A, B = lax.convert_element_type(A, dtype), lax.convert_element_type(B, dtype)
    return _sampled(A, B, indices, numbers, shape)


@compiled("numbers", "shape")
def _sampled(A: Any, B: Any, indices: Any, numbers: Any, shape: tuple[int, ...]) -> Any:
    n, n_sparse = indices.ndim - 2, indices.shape[-1]
    (ac, bc), (ab, bb) = numbers
    a_free = [d for d in range(A.ndim) if d not in (*ac, *ab)]
    b_free = [d for d in range(B.ndim) if d not in (*bc, *bb)]
    if n == len(ab) and n_sparse == len(a_free) + len(b_free):
        # rows of both are gathered, so that the whole result is never there
        A = lax.transpose(A, (*ab, *a_free, *ac))
        B = lax.transpose(B, (*bb, *b_free, *bc))

        def one(a: Any, b: Any, index: Any) -> Any:
            taken = columns(wide(index))
            first, second = taken[: len(a_free)], taken[len(a_free) :]
            rows = [
                x.at[at].get(mode="fill", fill_value=0)
                if at
                else lax.broadcast_in_dim(x, (index.shape[0], *x.shape), tuple(range(1, x.ndim + 1)))
                for x, at in ((a, first), (b, second))
            ]
            axes = tuple(range(1, rows[0].ndim))
            out = lax.dot_general(rows[0], rows[1], ((axes, axes), ((0,), (0,))))
            return masked(out, in_range(index, shape[n:]))

        return over_batch(one, shape[:n], A, B, indices)
    return extracted(indices, lax.dot_general(A, B, numbers), assume_unique=True)


# --- two sparse arrays


@compiled("numbers")
def _sparse_sparse(lhs: BCOO, rhs: BCOO, numbers: Any) -> BCOO:
    (lc, rc), (lb, rb) = numbers
    if lhs.n_dense or rhs.n_dense:
        # JAX refuses dense axes here
        raise NotImplementedError("bcoo_spdot_general: dense dimensions are not supported.")
    if any(d >= lhs.n_batch for d in lb) or any(d >= rhs.n_batch for d in rb):
        raise NotImplementedError(
            "bcoo_spdot_general: batch_dims must correspond to batch dimensions of the sparse representation."
        )
    if any(d < lhs.n_batch for d in lc) or any(d < rhs.n_batch for d in rc):
        raise NotImplementedError("bcoo_spdot_general only supports contraction of sparse indices.")
    left_batch = [d for d in range(lhs.n_batch) if d not in lb]
    right_batch = [d for d in range(rhs.n_batch) if d not in rb]
    if right_batch and lhs.n_sparse > len(lc):
        raise ValueError("bcoo_spdot_general: cannot have unused batch dims on rhs with unused sparse dims on lhs.")
    left = _batch_first(lhs, [*lb, *left_batch])
    right = _batch_first(rhs, [*rb, *right_batch])
    both = [lhs.shape[d] for d in lb]
    lead = (*both, *(lhs.shape[d] for d in left_batch), *(rhs.shape[d] for d in right_batch))
    # a batch axis of one array is one of size 1 of the other
    n, extra = len(lb), len(right_batch)
    left = [lax.expand_dims(x, tuple(range(lhs.n_batch, lhs.n_batch + extra))) for x in left]
    right = [lax.expand_dims(x, tuple(range(n, n + len(left_batch)))) for x in right]
    left_inner, right_inner = parts(lhs)[1], parts(rhs)[1]
    lc, rc = [d - lhs.n_batch for d in lc], [d - rhs.n_batch for d in rc]
    one, inner = _pairs(left_inner, right_inner, lc, rc)
    data, indices = over_batch(one, lead, *left, *right)
    out = BCOO((data, indices), shape=(*lead, *inner))
    count = math.prod(inner)
    return _plain(summed(out, count, False)) if out.nse > count else out


def _plain(mat: BCOO) -> BCOO:
    return BCOO((mat.data, mat.indices), shape=mat.shape)


def _batch_first(mat: BCOO, order: Sequence[int]) -> list[Any]:
    """Data and indices with the batch axes in another order."""
    n = mat.n_batch
    return [
        lax.transpose(mat.data, (*order, *range(n, mat.data.ndim))),
        lax.transpose(mat.indices, (*order, n, n + 1)),
    ]


def _pairs(
    left_inner: Sequence[int], right_inner: Sequence[int], lc: Sequence[int], rc: Sequence[int]
) -> tuple[Callable[..., Any], tuple[int, ...]]:
    """What gives data and indices of a contraction of two sparse arrays, and the sizes of its sparse axes."""
    left_free = [i for i in range(len(left_inner)) if i not in lc]
    right_free = [i for i in range(len(right_inner)) if i not in rc]
    inner = (*(left_inner[i] for i in left_free), *(right_inner[i] for i in right_free))

    def one(a: Any, a_indices: Any, b: Any, b_indices: Any) -> tuple[Any, Any]:
        size = (a.shape[0], b.shape[0])
        dtype = np.promote_types(a_indices.dtype, b_indices.dtype)
        index_a = columns(lax.convert_element_type(wrapped(a_indices, left_inner), dtype))
        index_b = columns(lax.convert_element_type(wrapped(b_indices, right_inner), dtype))
        first = [lax.broadcast_in_dim(c, size, (0,)) for c in index_a]
        second = [lax.broadcast_in_dim(c, size, (1,)) for c in index_b]
        keep = lax.bitwise_and(
            lax.broadcast_in_dim(in_range(a_indices, left_inner), size, (0,)),
            lax.broadcast_in_dim(in_range(b_indices, right_inner), size, (1,)),
        )
        for i, j in zip(lc, rc):
            keep = lax.bitwise_and(keep, lax.eq(first[i], second[j]))
        left, right = lax.broadcast_in_dim(a, size, (0,)), lax.broadcast_in_dim(b, size, (1,))
        data = lax.bitwise_and(left, right) if a.dtype == np.bool_ else lax.mul(left, right)
        data = lax.reshape(masked(data, keep), (math.prod(size),))
        where = [first[i] for i in left_free] + [second[j] for j in right_free]
        if not where:
            return data, jnp.zeros((math.prod(size), 0), dtype)
        index = masked_indices(jnp.stack(where, axis=-1), keep, inner)
        return data, lax.reshape(index, (math.prod(size), len(inner)))

    return one, inner


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of elements of two sparse arrays.

    Args:
      lhs: a BCOO array.
      rhs: a BCOO array with as many axes, whose sizes are equal or 1.

    Returns:
      A BCOO array with an element for each pair of elements, most of them padding.

    Raises:
      TypeError: the numbers of axes differ.
      ValueError: the shapes do not broadcast.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_multiply_sparse(sparse.eye(2), sparse.eye(2)).todense())
    [[1. 0.]
     [0. 1.]]
    """
    require_sparse("bcoo_multiply_sparse", lhs, BCOO)
    require_sparse("bcoo_multiply_sparse", rhs, BCOO)
    shape = common_shape(lhs.shape, rhs.shape)
    if lhs.ndim != rhs.ndim:
        raise TypeError(
            f"bcoo_multiply_sparse: arrays must have same number of dimensions, got {lhs.shape}, {rhs.shape}"
        )
    n_batch, n_dense = min(lhs.n_batch, rhs.n_batch), min(lhs.n_dense, rhs.n_dense)
    lhs, rhs = (bcoo_update_layout(x, n_batch=n_batch, n_dense=n_dense) for x in (lhs, rhs))
    left, right = promote_dtypes(lhs.data, rhs.data)
    lhs, rhs = (with_shape((data, x.indices), x.shape) for data, x in ((left, lhs), (right, rhs)))
    return _multiplied(lhs, rhs, shape)


@compiled("shape")
def _multiplied(lhs: BCOO, rhs: BCOO, shape: tuple[int, ...]) -> BCOO:
    n_batch, n_dense = lhs.n_batch, lhs.n_dense
    end = len(shape) - n_dense
    inner, dense = shape[n_batch:end], shape[end:]
    left_inner, right_inner = parts(lhs)[1], parts(rhs)[1]

    def one(a: Any, a_indices: Any, b: Any, b_indices: Any) -> tuple[Any, Any]:
        size = (a.shape[0], b.shape[0])
        dtype = np.promote_types(a_indices.dtype, b_indices.dtype)
        first = columns(lax.convert_element_type(wrapped(a_indices, left_inner), dtype))
        second = columns(lax.convert_element_type(wrapped(b_indices, right_inner), dtype))
        keep = lax.bitwise_and(
            lax.broadcast_in_dim(in_range(a_indices, left_inner), size, (0,)),
            lax.broadcast_in_dim(in_range(b_indices, right_inner), size, (1,)),
        )
        where = []
        for i, (p, q) in enumerate(zip(first, second)):
            p, q = lax.broadcast_in_dim(p, size, (0,)), lax.broadcast_in_dim(q, size, (1,))
            if left_inner[i] == right_inner[i]:
                keep = lax.bitwise_and(keep, lax.eq(p, q))
            where.append(q if left_inner[i] == 1 else p)
        a = lax.expand_dims(broadcast_to_shape(a, (size[0], *dense)), (1,))
        b = lax.expand_dims(broadcast_to_shape(b, (size[1], *dense)), (0,))
        a, b = (broadcast_to_shape(x, (*size, *dense)) for x in (a, b))
        data = lax.bitwise_and(a, b) if a.dtype == np.bool_ else lax.mul(a, b)
        count = math.prod(size)
        data = lax.reshape(masked(data, keep), (count, *dense))
        if not where:
            return data, jnp.zeros((count, 0), dtype)
        return data, lax.reshape(masked_indices(jnp.stack(where, axis=-1), keep, inner), (count, len(inner)))

    arrays = lhs.data, lhs.indices, rhs.data, rhs.indices
    data, indices = over_batch(one, stored_batch(n_batch, *arrays), *arrays)
    return BCOO((data, indices), shape=shape)


def bcoo_multiply_dense(sp_mat: BCOO, v: Array) -> Array:
    """The data of the product of elements of a sparse and a dense array.

    Args:
      sp_mat: a BCOO array.
      v: a dense array that broadcasts to its shape.

    Returns:
      The data of a BCOO array with `sp_mat`'s indices.

    Raises:
      NotImplementedError: the product would have another shape.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> print(sparse.bcoo_multiply_dense(sparse.eye(3), jnp.array([2.0, 3.0, 4.0])))
    [2. 3. 4.]
    """
    require_sparse("bcoo_multiply_dense", sp_mat, BCOO)
    v = asarray(v)
    data, v = promote_dtypes(sp_mat.data, v)
    times = lax.bitwise_and if data.dtype == np.bool_ else lax.mul
    if v.ndim == 0:
        return times(data, broadcast_to_shape(v, data.shape))
    shape = sp_mat.shape
    if v.ndim > len(shape) or common_shape(shape, v.shape) != shape:
        raise NotImplementedError(
            "multiplication between sparse and dense is only implemented for cases where the output shape matches the "
            f"sparse matrix shape. Got {shape=}, v.shape={v.shape}"
        )
    return times(*aligned(sp_mat, data, v))


@compiled()
def aligned(mat: BCOO, data: Any, v: Any) -> tuple[Any, Any]:
    """The data, and the values of a dense array at its indices, both of one shape; padding meets ones."""
    batch, inner, dense = parts(mat)
    n = len(batch)
    v = lax.expand_dims(v, tuple(range(mat.ndim - v.ndim)))
    end = n + len(inner)
    taken = [i for i in range(len(inner)) if v.shape[n + i] != 1 or inner[i] == 1]
    one = np.ones((), v.dtype)

    def values(indices: Any, v: Any) -> Any:
        """The values (nse, dense axes or 1) of `v`, whose sparse axes are whole or of size 1."""
        if not inner:
            return lax.expand_dims(v, (0,))
        gone = tuple(i for i in range(len(inner)) if i not in taken)
        v = lax.squeeze(v, gone)
        if not taken:
            return lax.expand_dims(v, (0,))
        found = columns(wide(indices))
        return v.at[tuple(found[i] for i in taken)].get(mode="fill", fill_value=one)

    if 0 in mat.shape[:end]:
        return data, jnp.ones(data.shape, v.dtype)
    v = over_batch(values, _common(mat.indices.shape[:n], v.shape[:n]), mat.indices, v)
    lead = _common(data.shape[:n], v.shape[:n])
    shape = (*lead, mat.nse, *dense)
    return broadcast_to_shape(data, shape), broadcast_to_shape(v, shape)


def _common(*shapes: Sequence[int]) -> tuple[int, ...]:
    return common_shape(*shapes) if any(shapes) else ()
