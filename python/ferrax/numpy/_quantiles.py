"""Order statistics: medians, quantiles, percentiles, with and without NaN.

The reduced axes are brought together, sorted, and two neighbouring ranks are read and mixed by `method`. NaN sort
last, so counting the others gives each row its own length. Read `_sort.py` next.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray
from ferrax._one_program import one_program
from ferrax.numpy import _reductions
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    Axis,
    cast,
    normalize_axes,
    promote_inexact,
    require,
    with_out_sharding,
)
from ferrax.numpy._dtype_functions import default_int, dtype_kind
from ferrax.numpy._ufuncs import isnan, where as _where

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _reduced_last(x: Array, axes: tuple[int, ...]) -> Array:
    """`x` with `axes` moved to the end and made one."""
    kept = [i for i in range(x.ndim) if i not in axes]
    x = lax.transpose(x, kept + list(axes)) if axes else lax.expand_dims(x, (x.ndim,))
    rows = x.shape[: len(kept)]
    return lax.reshape(x, rows + (math.prod(x.shape[len(kept) :]),))


def _take_rank(x: Array, rank: Array) -> Array:
    """Elements of `x` (rows, n) at `rank` (rows, q)."""
    from ferrax.numpy._take import take_along_axis

    return take_along_axis(x, rank, axis=-1, mode="clip")


def _rank_mix(x: Array, q: Array, count: Array, method: str) -> Array:
    """Quantiles `q` (m,) of the first `count` (rows, 1) elements of sorted `x` (rows, n), as (rows, m)."""
    position = q * (count - 1)
    low, high = lax.floor(position), lax.ceil(position)
    high_weight = position - low
    top = _where(count > 0, count - 1, asarray(0, count.dtype))
    clip = lambda r: cast(lax.max(lax.min(r, r * 0 + top), r * 0), default_int())
    low_value, high_value = _take_rank(x, clip(low)), _take_rank(x, clip(high))
    if method == "lower":
        return low_value
    if method == "higher":
        return high_value
    if method == "nearest":
        return _where(high_weight <= 0.5, low_value, high_value)
    if method == "midpoint":
        return (low_value + high_value) * asarray(0.5, x.dtype)
    weight = cast(high_weight, x.dtype)
    mixed = low_value * (1 - weight) + high_value * weight
    return _where(low_value == high_value, low_value, _where(weight == 0, low_value, mixed))


def _weighted_rank(x: Array, q: Array, weights: Array) -> Array:
    """The inverted weighted distribution function of rows of `x` at `q`, as (rows, m)."""
    axis = x.ndim - 1
    x, weights = lax.sort((x, weights), dimension=axis, num_keys=1)
    cumulative = lax.cumsum(weights, axis)
    total = lax.slice_in_dim(cumulative, cumulative.shape[axis] - 1, None, axis=axis)
    share = lax.expand_dims(cumulative / total, (axis,))
    below = share < lax.expand_dims(q, (1,))
    zero = lax.expand_dims(cumulative, (axis,)) <= 0
    rank = _reductions.sum(below | zero, axis=-1)
    return _take_rank(x, rank)


def _quantile(name, a, q, axis, method, keepdims, squash_nans, weights):
    if method not in _METHODS:
        raise ValueError("method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights.")
    require(name, a, q)
    (x,) = promote_inexact(name, a)
    if dtype_kind(x.dtype) == "c":
        raise ValueError(f"{name} does not support complex input, as the operation is poorly defined.")
    dtype = x.dtype
    compute = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
    x, q = cast(x, compute), cast(q, compute)
    if q.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")
    axes = normalize_axes(axis, x.ndim, f"axis argument to jnp.{name}().")
    # A number keeps an axis of size one, as in JAX.
    kept = tuple(1 if i in axes else d for i, d in enumerate(x.shape)) if x.ndim else (1,)
    rows = _reduced_last(x, axes)
    batch, n = rows.shape[:-1], rows.shape[-1]
    if n == 0:
        raise ValueError(f"cannot compute {name} of an empty axis")
    flat_q = lax.reshape(q, (q.size,))
    if weights is not None:
        result = _weighted(rows, flat_q, weights, x, axes, squash_nans)
    elif squash_nans:
        ordered = lax.sort(rows, dimension=rows.ndim - 1)
        count = cast(_reductions.sum(~isnan(rows), axis=-1, keepdims=True), compute)
        result = _select_ranks(ordered, flat_q, count, method)
        result = _where(count > 0, result, asarray(np.nan, compute))
    else:
        ordered = lax.sort(rows, dimension=rows.ndim - 1)
        result = _select_ranks(ordered, flat_q, asarray(n, compute), method)
        result = _where(_reductions.any(isnan(rows), axis=-1, keepdims=True), asarray(np.nan, compute), result)
    result = lax.transpose(result, (len(batch), *range(len(batch))))
    shape = kept if keepdims else batch
    return cast(lax.reshape(result, (q.shape if q.ndim else ()) + shape), dtype)


def _select_ranks(ordered: Array, q: Array, count: Array, method: str) -> Array:
    q = lax.broadcast_to_rank(q, max(count.ndim, 1))
    if method == "inverted_cdf":
        rank = lax.ceil(q * count) - 1
        return _take_rank(ordered, _expand(cast(lax.max(rank, rank * 0), default_int()), ordered))
    if count.ndim == 0:
        q = _expand(q, ordered)
    return _rank_mix(ordered, q, count, method)


def _expand(rank: Array, rows: Array) -> Array:
    """`rank` (m,) or (rows, m) with as many axes and rows as `rows`."""
    shape = rows.shape[:-1] + rank.shape[-1:]
    return lax.broadcast_in_dim(rank, shape, tuple(range(len(shape) - rank.ndim, len(shape))))


def _weighted(rows, q, weights, x, axes, squash_nans):
    require("quantile", weights)
    weights = cast(weights, rows.dtype)
    if weights.shape != x.shape:
        if weights.shape != tuple(x.shape[i] for i in axes):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        weights = lax.broadcast_in_dim(weights, x.shape, axes)
    weights = _reduced_last(weights, axes)
    missing = isnan(rows)
    if squash_nans:
        weights = _where(missing, asarray(0, rows.dtype), weights)
    result = _weighted_rank(rows, q, weights)
    if squash_nans:
        return result
    return _where(_reductions.any(missing, axis=-1, keepdims=True), asarray(np.nan, rows.dtype), result)


@one_program("axis", "overwrite_input", "method", "keepdims")
def quantile(a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
             method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:  # fmt: skip
    """Quantiles over axes.

    Args:
      a: real array.
      q: scalar or one-dimensional array of shares in [0, 1].
      axis: the axis or axes to reduce; None for all.
      out: not supported.
      overwrite_input: not supported.
      method: "linear", "lower", "higher", "midpoint", "nearest" or "inverted_cdf".
      keepdims: keep reduced axes with length 1.
      weights: array of the shape of `a` or of its reduced axes; only with "inverted_cdf".

    Returns:
      Floating array; the axis of `q` comes first. NaN where any element is NaN.

    Raises:
      ValueError: for an unknown method or complex input.

    >>> import ferrax.numpy as jnp
    >>> jnp.quantile(jnp.array([1., 2., 3., 4.]), jnp.array([0.5, 1.]))
    Array([2.5, 4. ], dtype=float32)
    """
    _no_overwrite("quantile", out, overwrite_input)
    return _quantile("quantile", a, q, axis, method, keepdims, False, weights)


@one_program("axis", "overwrite_input", "method", "keepdims")
def nanquantile(a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
                method: str = "linear", keepdims: bool = False, *,
                weights: ArrayLike | None = None) -> Array:  # fmt: skip
    """Quantiles over axes of the elements that are not NaN.

    Args:
      a, q, axis, out, overwrite_input: as in `quantile`.
      method: as for `quantile`.
      keepdims: keep reduced axes with length 1.
      weights: as for `quantile`.

    Returns:
      Floating array; NaN where every element is NaN.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanquantile(jnp.array([1., jnp.nan, 3.]), 0.5)
    Array(2., dtype=float32)
    """
    _no_overwrite("nanquantile", out, overwrite_input)
    return _quantile("nanquantile", a, q, axis, method, keepdims, True, weights)


@one_program("axis", "overwrite_input", "method", "keepdims")
def percentile(a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
               method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
               out_sharding: Any = None) -> Array:  # fmt: skip
    """Percentiles over axes: `quantile` with `q` in [0, 100].

    Args:
      a: real array.
      q: scalar or one-dimensional array of percentages.
      axis: the axis or axes to reduce; None for all.
      out: not supported.
      overwrite_input: not supported.
      method: as for `quantile`.
      keepdims: keep reduced axes with length 1.
      weights: as for `quantile`.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Floating array; the axis of `q` comes first.

    >>> import ferrax.numpy as jnp
    >>> jnp.percentile(jnp.array([1., 2., 3.]), 50)
    Array(2., dtype=float32)
    """
    if out_sharding is not None:
        made = lambda: percentile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)
        return with_out_sharding(made, out_sharding, "jnp.percentile")
    _no_overwrite("percentile", out, overwrite_input)
    return _quantile("percentile", a, _share(q), axis, method, keepdims, False, weights)


@one_program("axis", "overwrite_input", "method", "keepdims")
def nanpercentile(a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
                  method: str = "linear", keepdims: bool = False, *,
                  weights: ArrayLike | None = None) -> Array:  # fmt: skip
    """Percentiles over axes of the elements that are not NaN.

    Args:
      a, q, axis, out, overwrite_input, method, keepdims, weights: as in `percentile`.

    Returns:
      Floating array; NaN where every element is NaN.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanpercentile(jnp.array([1., jnp.nan, 3.]), 50)
    Array(2., dtype=float32)
    """
    _no_overwrite("nanpercentile", out, overwrite_input)
    return _quantile("nanpercentile", a, _share(q), axis, method, keepdims, True, weights)


@one_program("axis", "overwrite_input", "keepdims")
def median(a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
           keepdims: bool = False) -> Array:  # fmt: skip
    """Median over axes.

    Args:
      a, axis, out, overwrite_input, keepdims: as in `quantile`.

    Returns:
      Floating array; NaN where any element is NaN.

    >>> import ferrax.numpy as jnp
    >>> jnp.median(jnp.array([1., 9., 2., 4.]))
    Array(3., dtype=float32)
    """
    _no_overwrite("median", out, overwrite_input)
    return _quantile("median", a, 0.5, axis, "midpoint", keepdims, False, None)


@one_program("axis", "overwrite_input", "keepdims")
def nanmedian(a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
              keepdims: bool = False) -> Array:  # fmt: skip
    """Median over axes of the elements that are not NaN.

    Args:
      a, axis, out, overwrite_input, keepdims: as in `quantile`.

    Returns:
      Floating array; NaN where every element is NaN.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanmedian(jnp.array([1., jnp.nan, 2., 4.]))
    Array(2., dtype=float32)
    """
    _no_overwrite("nanmedian", out, overwrite_input)
    return _quantile("nanmedian", a, 0.5, axis, "midpoint", keepdims, True, None)


def _share(q: ArrayLike) -> Array:
    require("percentile", q)
    (q,) = promote_inexact("percentile", q)
    return q / 100


def _no_overwrite(name: str, out: None, overwrite_input: bool) -> None:
    if overwrite_input or out is not None:
        raise ValueError(f"jnp.{name} does not support overwrite_input=True or out != None")
