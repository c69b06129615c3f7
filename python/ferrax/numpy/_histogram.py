"""Counting: histograms and bincount.

Read `_search.py` first.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray, concrete_or_error
from ferrax.numpy import _reductions
from ferrax.numpy._args import Array, ArrayLike, cast, promote_inexact, require, static_int, to_array, with_out_sharding
from ferrax.numpy._calculus import diff
from ferrax.numpy._dtype_functions import default_int, dtype_kind, inexact_dtype
from ferrax.numpy._ranges import linspace
from ferrax.numpy._search import searchsorted
from ferrax.numpy._ufuncs import where as _where

__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None,
             out_sharding: None = None) -> Array:  # fmt: skip
    """How often each integer from 0 up occurs.

    Args:
      x: vector of integers; negative ones count as 0.
      weights: vector of what each element counts.
      minlength: least length of the result.
      length: static length of the result, for use under `jit`; larger integers are left out.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Vector of counts.

    Raises:
      ConcretizationTypeError: for a traced `x` without `length`.

    >>> import ferrax.numpy as jnp
    >>> jnp.bincount(jnp.array([1, 1, 3]))
    Array([0, 2, 0, 1], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(lambda: bincount(x, weights, minlength, length=length), out_sharding, "jnp.bincount")
    values = to_array("bincount", x)
    if dtype_kind(values.dtype) not in "biu":
        raise TypeError(f"x argument to bincount must have an integer type; got {values.dtype}")
    if values.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    minlength = static_int(minlength, "The error occurred because of argument 'minlength' of jnp.bincount.")
    values = cast(values, default_int()) if dtype_kind(values.dtype) == "b" else values
    if length is None:
        host = np.asarray(concrete_or_error(
            np.asarray, values, "The error occurred because of argument 'x' of jnp.bincount. "
            "To avoid this error, pass a static `length` argument.",
        ))  # fmt: skip
        length = max(minlength, max(int(host.max()), 0) + 1 if host.size else 0)
    else:
        length = static_int(length, "The error occurred because of argument 'length' of jnp.bincount.")
    if weights is None:
        count = asarray(1, default_int())
        total = lax.full((length,), 0, default_int())
    else:
        count = to_array("bincount", weights)
        if count.shape != values.shape:
            raise ValueError("shape of weights must match shape of x.")
        total = lax.full((length,), 0, count.dtype)
    index = _where(values < 0, asarray(0, values.dtype), values) if dtype_kind(values.dtype) == "i" else values
    return total.at[index].add(count, mode="drop")


def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = 10, range: Any = None, weights: ArrayLike | None = None
) -> Array:
    """The edges of the bins that `histogram` uses.

    Args:
      a: array of values.
      bins: the number of bins, or the vector of edges.
      range: pair (low, high); by default the extent of the values.
      weights: has no effect.

    Returns:
      Vector of edges.

    >>> import ferrax.numpy as jnp
    >>> jnp.histogram_bin_edges(jnp.array([0., 4.]), bins=2)
    Array([0., 2., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` are not implemented.")
    require("histogram_bin_edges", a, bins)
    x = to_array("histogram_bin_edges", a)
    dtype = inexact_dtype(x.dtype)
    if np.ndim(bins) == 1:
        return cast(bins, dtype)
    count = static_int(bins, "bins argument of histogram_bin_edges")
    if range is None:
        low, high = _reductions.min(x), _reductions.max(x)
    else:
        low, high = range
        if np.ndim(low) != 0 or np.ndim(high) != 0:
            raise ValueError(f"`range` must be either None or a sequence of scalars, got {range}")
    low, high = cast(low, dtype), cast(high, dtype)
    flat = low == high
    low, high = _where(flat, low - 0.5, low), _where(flat, high + 0.5, high)
    return linspace(low, high, count + 1, dtype=dtype)


def _bin_numbers(values: Array, edges: Array) -> Array:
    """For each value its bin; the last bin includes its right edge; -1 and beyond the last for values outside."""
    number = searchsorted(edges, values, "right") - 1
    last = edges.shape[0] - 1
    return _where(values == edges[-1], last - 1, number)


def histogram(a: ArrayLike, bins: ArrayLike = 10, range: Sequence[ArrayLike] | None = None,
              weights: ArrayLike | None = None, density: bool | None = None) -> tuple[Array, Array]:  # fmt: skip
    """How many values fall into each bin.

    Args:
      a, bins, range: as in `histogram_bin_edges`.
      weights: array of what each value counts.
      density: divide by the total and the widths, so that the integral is one.

    Returns:
      Pair (counts, edges); both floating.

    >>> import ferrax.numpy as jnp
    >>> counts, edges = jnp.histogram(jnp.array([1., 2., 2., 4.]), bins=3)
    >>> counts
    Array([1., 2., 1.], dtype=float32)
    """
    if weights is None:
        (x,) = promote_inexact("histogram", a)
        count = lax.full_like(x, 1)
    else:
        x, count = promote_inexact("histogram", a, weights)
        if x.shape != count.shape:
            raise ValueError("weights should have the same shape as a.")
    edges = histogram_bin_edges(x, bins, range, weights)
    number = lax.reshape(_bin_numbers(x, edges), (x.size,))
    size = edges.shape[0] - 1
    number = _where(number < 0, size, number)
    counts = lax.full((size,), 0, count.dtype).at[number].add(lax.reshape(count, (count.size,)), mode="drop")
    if density:
        counts = counts / diff(edges) / _reductions.sum(counts)
    return counts, edges


def histogram2d(x: ArrayLike, y: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None,
                density: bool | None = None) -> tuple[Array, Array, Array]:  # fmt: skip
    """How many points of a plane fall into each rectangle.

    Args:
      x: vector of first coordinates.
      y: vector of second coordinates.
      bins: the number of bins or the edges, for both axes or a pair.
      range: pairs (low, high) for both axes.
      weights: vector of what each point counts.
      density: divide by the total and the areas.

    Returns:
      Tuple (counts, edges of the first axis, edges of the second axis).

    >>> import ferrax.numpy as jnp
    >>> jnp.histogram2d(jnp.array([0., 1.]), jnp.array([0., 1.]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    require("histogram2d", x, y)
    columns = [lax.expand_dims(to_array("histogram2d", v), (1,)) for v in (x, y)]
    (first, second) = promote_inexact("histogram2d", *columns)
    try:
        n = len(bins)
    except TypeError:
        n = 1
    if n not in (1, 2):
        edges = asarray(bins)
        bins = [edges, edges]
    sample = lax.concatenate([first, second], 1)
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(sample: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None,
                density: bool | None = None) -> tuple[Array, list[Array]]:  # fmt: skip
    """How many points of a space fall into each box.

    Args:
      sample: array of shape (points, axes).
      bins: the number of bins for all axes, or a sequence of numbers of bins or vectors of edges.
      range: one pair (low, high) or None for each axis.
      weights: vector of what each point counts.
      density: divide by the total and the volumes.

    Returns:
      Pair (counts, list of vectors of edges).

    >>> import ferrax.numpy as jnp
    >>> jnp.histogramdd(jnp.array([[0., 0.], [1., 1.]]), bins=2)[0].shape
    (2, 2)
    """
    (points,) = promote_inexact("histogramdd", sample)
    if points.ndim != 2:
        raise ValueError(f"histogramdd takes points of shape (points, axes), got shape {points.shape}")
    n, axes = points.shape
    if weights is not None:
        weights = to_array("histogramdd", weights)
        if weights.shape != (n,):
            raise ValueError("should have one weight for each sample.")
    if range is not None and len(range) != axes:
        raise ValueError(f"For sample.shape={points.shape}, expected the sequence `range` to have length {axes}")
    if isinstance(bins, (list, tuple)) or np.ndim(bins) > 0:
        if len(bins) != axes:
            raise ValueError("should be a bin for each dimension.")
        per_axis = list(bins)
    else:
        per_axis = [bins] * axes
    edges, flat, size = [], lax.full((n,), 0, default_int()), 1
    outside = lax.full((n,), False, np.bool_)
    for i in builtins.range(axes):
        column = points[:, i]
        edge = histogram_bin_edges(column, per_axis[i], None if range is None else range[i])
        number = _bin_numbers(column, edge)
        count = edge.shape[0] - 1
        outside = (number < 0) | (number >= count) | outside
        flat, size = flat * count + number, size * count
        edges.append(edge)
    total = bincount(_where(outside, size, flat), weights, length=size)
    total = lax.reshape(total, tuple(e.shape[0] - 1 for e in edges))
    if density:
        total = cast(total, points.dtype)
        total = total / _reductions.sum(total)
        for i, edge in enumerate(edges):
            total = total / lax.expand_dims(diff(edge), [j for j in builtins.range(axes) if j != i])
    return total, edges
