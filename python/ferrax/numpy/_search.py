"""Searching: where elements are, and where they would go.

Functions whose result has as many elements as the data say take a static `size` under `jit`. Read `_sort.py` first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray, concrete_or_error
from ferrax._one_program import one_program
from ferrax._shapes import is_symbolic_dim
from ferrax.numpy import _reductions, _shape
from ferrax.numpy._args import Array, ArrayLike, cast, promote, static_int, to_array
from ferrax.numpy._dtype_functions import default_int, dtype_kind, is_inexact
from ferrax.numpy._take import take
from ferrax.numpy._ufuncs import where as _where

__all__ = ["argwhere", "digitize", "flatnonzero", "nonzero", "searchsorted"]


def count_true(mask: Array, name: str) -> int:
    """How many elements of a bool array hold, as a static number."""
    context = (
        f"The size argument of jnp.{name} must be statically specified to use jnp.{name} within JAX transformations: "
        "the shape of its result depends on the values."
    )
    return int(concrete_or_error(int, _reductions.sum(mask), context))


def compacted(mask: Array, size: int, fill: Any) -> Array:
    """The indices where a bool vector holds, in order, cut or filled up to `size`."""
    rank = lax.cumsum(cast(mask, default_int()), 0) - 1
    rank = _where(mask, rank, asarray(size, default_int()))
    start = lax.broadcast_in_dim(cast(fill, default_int()), (size,), ())
    return start.at[rank].set(lax.iota(default_int(), mask.shape[0]), mode="drop", unique_indices=False)


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the elements that are not zero.

    Args:
      a: array with at least one axis.
      size: static number of indices in the result, for use under `jit`.
      fill_value: fills the result up to `size`: a scalar, or one for each axis; by default 0.

    Returns:
      Tuple of vectors, one for each axis.

    Raises:
      ConcretizationTypeError: for a traced `a` without `size`.

    >>> import ferrax.numpy as jnp
    >>> jnp.nonzero(jnp.array([0, 5, 7]))
    (Array([1, 2], dtype=int32),)
    """
    x = to_array("nonzero", a)
    if x.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() instead.")
    mask = lax.reshape(cast(x, np.bool_), (x.size,))
    size = count_true(mask, "nonzero") if size is None else static_int(size, "The size argument of jnp.nonzero")
    fills = fill_value if isinstance(fill_value, tuple) else (0 if fill_value is None else fill_value,) * x.ndim
    if len(fills) != x.ndim:
        raise ValueError(f"fill_value must be a scalar or a tuple of length {x.ndim}; got {fill_value}")
    if x.size == 0 or size == 0:
        return tuple(lax.broadcast_in_dim(cast(fill, default_int()), (size,), ()) for fill in fills)
    if x.ndim == 1:
        return (compacted(mask, size, fills[0]),)
    flat = compacted(mask, size, -1)
    out = []
    for axis, fill in enumerate(fills):
        index = (flat // math.prod(x.shape[axis + 1 :])) % x.shape[axis]
        out.append(_where(flat < 0, cast(fill, default_int()), index))
    return tuple(out)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The flat indices of the elements that are not zero.

    Args:
      a: array.
      size: static number of indices in the result, for use under `jit`.
      fill_value: fills the result up to `size`; by default 0.

    Returns:
      Vector of indices.

    >>> import ferrax.numpy as jnp
    >>> jnp.flatnonzero(jnp.array([[0, 5], [7, 0]]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(_shape.ravel(to_array("flatnonzero", a)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements that are not zero, one row each.

    Args:
      a: array.
      size: static number of rows in the result, for use under `jit`.
      fill_value: fills the result up to `size`; by default 0.

    Returns:
      Array of shape (number of elements, number of axes).

    >>> import ferrax.numpy as jnp
    >>> jnp.argwhere(jnp.array([[0, 5], [7, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    x = to_array("argwhere", a)
    if x.ndim == 0:
        rows = nonzero(lax.reshape(x, (1,)), size=size, fill_value=fill_value)[0].shape[0]
        return lax.full((rows, 0), 0, default_int())
    columns = nonzero(x, size=size, fill_value=fill_value)
    return lax.concatenate([lax.expand_dims(c, (1,)) for c in columns], 1)


def _before(x: Array, v: Array, side: str) -> Array:
    """Whether elements `x` of a sorted array stand before the place of `v`; NaN are largest."""
    below = x < v if side == "left" else x <= v
    if not is_inexact(x.dtype):
        return below
    v_nan = v != v
    return below | (v_nan & (x == x)) if side == "left" else below | v_nan


def _binary_search(x: Array, v: Array, side: str, unrolled: bool, dtype: np.dtype) -> Array:
    """The places by halves: each lies in `length` elements from a base on, which moves if the first half is before."""
    nan = v != v if is_inexact(x.dtype) else None

    def advance(base: Array, half: Any) -> Array:
        element = take(x, base + (half - 1), mode="clip")
        further = base + half
        if nan is None:
            return _where(_before(element, v, side), further, base)
        if side == "left":
            return _where((element >= v) | (element != element), base, further)
        return _where((element <= v) | nan, further, base)

    def step(_: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        base, length = state
        half = lax.div(length, lax.full((), 2, dtype))
        return advance(base, half), length - half

    n = x.shape[0]
    # a step beyond the last changes nothing
    steps, base = 31 if is_symbolic_dim(n) else (n - 1).bit_length(), lax.full(v.shape, 0, dtype)
    if unrolled and not is_symbolic_dim(n):
        for _ in range(steps):
            base, n = advance(base, n // 2), n - n // 2
    elif steps:
        base, _ = lax.fori_loop(0, steps, step, (base, asarray(n, dtype)))
    return advance(base, 1)


def _sort_search(x: Array, v: Array, side: str, dtype: np.dtype) -> Array:
    """The places of `v` from one sort of both: each lies after the elements before it, less the queries before it."""
    flat = lax.reshape(v, (v.size,))
    joined = lax.concatenate([flat, x] if side == "left" else [x, flat], 0)
    total = joined.shape[0]
    _, order = lax.sort((joined, lax.iota(dtype, total)), num_keys=1)
    position = lax.full((total,), 0, dtype).at[order].set(lax.iota(dtype, total))
    _, own = lax.sort((flat, lax.iota(dtype, v.size)), num_keys=1)
    rank = lax.full((v.size,), 0, dtype).at[own].set(lax.iota(dtype, v.size))
    mine = position[: v.size] if side == "left" else position[x.shape[0] :]
    return lax.reshape(mine - rank, v.shape)


@one_program("side", "method")
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *,
                 method: str = "scan") -> Array:  # fmt: skip
    """The places where values would be inserted into a sorted vector.

    Args:
      a: sorted vector.
      v: values.
      side: "left" to go before equal elements, "right" to go after them.
      sorter: indices that sort `a`, when it is not sorted itself.
      method: "scan" and "scan_unrolled" search by halves, "sort" sorts both, "compare_all" compares all pairs.

    Returns:
      Array of indices, of the shape of `v`; int32 unless `a` is longer than that counts.

    Raises:
      ValueError: for an `a` that is not one-dimensional, or an unknown side or method.

    >>> import ferrax.numpy as jnp
    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([3, 4]))
    Array([1, 2], dtype=int32)
    """
    methods = ["compare_all", "scan", "scan_unrolled", "sort"]
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument side={side!r}, expected 'left' or 'right'")
    if method not in methods:
        raise ValueError(f"invalid argument method={method!r}, expected one of {methods}")
    if sorter is not None:
        a = take(to_array("searchsorted", a), to_array("searchsorted", sorter), mode="clip")
    x, values = promote("searchsorted", a, v)
    if x.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    dtype = np.dtype(np.int32) if is_symbolic_dim(x.shape[0]) or x.shape[0] <= np.iinfo(np.int32).max else default_int()
    if x.shape[0] == 0 or values.size == 0:
        return lax.full(values.shape, 0, dtype)
    if dtype_kind(x.dtype) == "c" and method != "sort":
        method = "sort"
    if method == "compare_all":
        wide = lax.broadcast_in_dim(x, (*values.shape, x.shape[0]), (values.ndim,))
        return _reductions.sum(_before(wide, lax.expand_dims(values, (values.ndim,)), side), axis=-1, dtype=dtype)
    if method == "sort":
        return _sort_search(x, values, side, dtype)
    return _binary_search(x, values, side, method == "scan_unrolled", dtype)


@one_program("right", "method")
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The numbers of the bins that values fall into.

    Args:
      x: values.
      bins: vector of edges, ascending or descending.
      right: whether bins include their right edge instead of their left one.
      method: as for `searchsorted`.

    Returns:
      Array of integers: 0 before the first edge, len(bins) after the last one.

    Raises:
      ValueError: when `bins` is not one-dimensional.

    >>> import ferrax.numpy as jnp
    >>> jnp.digitize(jnp.array([0.5, 1.5, 9.]), jnp.array([1., 2.]))
    Array([0, 1, 2], dtype=int32)
    """
    values, edges = to_array("digitize", x), to_array("digitize", bins)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins of shape {edges.shape}")
    n = edges.shape[0]
    if n == 0:
        return lax.full(values.shape, 0, default_int())
    method = "scan" if method is None else method
    up = searchsorted(edges, values, "left" if right else "right", method=method)
    if n == 1:
        return up
    down = n - searchsorted(lax.rev(edges, (0,)), values, "left" if right else "right", method=method)
    return _where(edges[-1] >= edges[0], up, down)
