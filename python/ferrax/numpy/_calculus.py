"""Differences, sums under curves, interpolation, phase unwrapping.

Read `_search.py` first.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray, weak_type, with_weak_type
from ferrax._one_program import one_program
from ferrax._shapes import max_dim
from ferrax._texts import short
from ferrax.numpy import _reductions, _shape
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    broadcast_to_shape,
    cast,
    normalize_axes,
    normalize_axis,
    promote,
    promote_inexact,
    require,
    shape_of,
    to_array,
)  # fmt: skip
from ferrax.numpy._dtype_functions import dtype_kind, inexact_dtype
from ferrax.numpy._search import searchsorted
from ferrax.numpy._take import take
from ferrax.numpy._ufuncs import where as _where

__all__ = ["diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]


def _beside(x: Array, axis: int, start: int, stop: int | None) -> Array:
    return lax.slice_in_dim(x, start, x.shape[axis] + stop if stop is not None else None, axis=axis)


@one_program("n", "axis")
def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
         append: ArrayLike | None = None) -> Array:  # fmt: skip
    """Differences of neighbours along an axis.

    Args:
      a: array with at least one axis.
      n: how many times to take differences.
      axis: axis to work along.
      prepend: values to put before `a`.
      append: values to put after `a`.

    Returns:
      Array, shorter by `n` along `axis`; for bools, whether neighbours differ.

    Raises:
      ValueError: for a scalar or a negative `n`.

    >>> import ferrax.numpy as jnp
    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    x = to_array("diff", a)
    n = operator.index(n)
    if n == 0:
        return x
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if x.ndim == 0:
        raise ValueError(f"diff requires input that is at least one dimensional; got {x}")
    axis = normalize_axis(axis, x.ndim)
    parts = []
    for end in (prepend, x, append):
        if end is None:
            continue
        end = to_array("diff", end)
        parts.append(broadcast_to_shape(end, x.shape[:axis] + (1,) + x.shape[axis + 1 :]) if end.ndim == 0 else end)
    if len(parts) > 1:
        x = lax.concatenate(promote("diff", *parts), axis)
    for _ in range(n):
        if x.shape[axis] == 0:
            break
        high, low = _beside(x, axis, 1, None), _beside(x, axis, 0, -1)
        x = lax.ne(high, low) if x.dtype == np.bool_ else lax.sub(high, low)
    return x


@one_program()
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Differences of neighbours in the flattened array.

    Args:
      ary: array.
      to_end: values to put after the differences.
      to_begin: values to put before them.

    Returns:
      Vector of the dtype of `ary`.

    >>> import ferrax.numpy as jnp
    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_end=0)
    Array([3, 5, 0], dtype=int32)
    """
    x = to_array("ediff1d", ary)
    x = lax.reshape(x, (x.size,))
    parts = [lax.sub(_beside(x, 0, 1, None), _beside(x, 0, 0, -1)) if x.size else x]
    for place, ends in ((0, to_begin), (len(parts) + 1, to_end)):
        if ends is not None:
            ends = cast(to_array("ediff1d", ends), x.dtype)
            parts.insert(place, lax.reshape(ends, (ends.size,)))
    return lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def _uniform_gradient(x: Array, axis: int, step: Any) -> Array:
    n = x.shape[axis]
    middle = (_beside(x, axis, 2, None) - _beside(x, axis, 0, -2)) * 0.5 if n > 2 else None
    first = lax.slice_in_dim(x, 1, 2, axis=axis) - lax.slice_in_dim(x, 0, 1, axis=axis)
    last = lax.slice_in_dim(x, n - 1, n, axis=axis) - lax.slice_in_dim(x, n - 2, n - 1, axis=axis)
    parts = [first, *([middle] if middle is not None else []), last]
    return lax.concatenate(parts, axis) / step


def _uneven_gradient(x: Array, axis: int, places: Array) -> Array:
    """Second-order differences at uneven places inside, one-sided ones at the ends."""
    n = x.shape[axis]
    shape = [1] * x.ndim
    shape[axis] = n - 1
    gaps = lax.reshape(diff(places), tuple(shape))
    slopes = lax.sub(_beside(x, axis, 1, None), _beside(x, axis, 0, -1)) / gaps
    ends = lax.slice_in_dim(slopes, 0, 1, axis=axis), lax.slice_in_dim(slopes, n - 2, n - 1, axis=axis)
    if n == 2:
        return lax.concatenate(list(ends), axis)
    left, right = _beside(gaps, axis, 0, -1), _beside(gaps, axis, 1, None)
    middle = (_beside(slopes, axis, 0, -1) * right + _beside(slopes, axis, 1, None) * left) / (left + right)
    return lax.concatenate([ends[0], middle, ends[1]], axis)


@one_program("axis", "edge_order")
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None,
             edge_order: int | None = None) -> Any:  # fmt: skip
    """The gradient of sampled values: central differences inside, one-sided ones at the ends.

    Args:
      f: array of samples.
      *varargs: spacing: one number for all axes, or for each axis a number or the vector of places.
      axis: the axis or axes to differentiate along; None for all.
      edge_order: not supported.

    Returns:
      Array, or a list of arrays for several axes.

    Raises:
      TypeError: for a wrong number of spacings.
      ValueError: for an axis with fewer than two samples.

    >>> import ferrax.numpy as jnp
    >>> jnp.gradient(jnp.array([0., 1., 4., 9.]))
    Array([1., 2., 4., 5.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    (x, *spacings) = promote_inexact("gradient", f, *varargs)
    axes = normalize_axes(axis, x.ndim)
    if min((x.shape[i] for i in axes), default=2) < 2:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least 2 elements are required."
        )
    if len(spacings) == 0:
        spacings = [1.0] * len(axes)
    elif len(spacings) == 1:
        spacings = spacings * len(axes)
    elif len(spacings) != len(axes):
        raise TypeError(f"Invalid number of spacing arguments {len(spacings)} for axis={axis}")
    results = []
    for i, step in zip(axes, spacings):
        if np.ndim(step) > 1 or (np.ndim(step) == 1 and step.shape[0] != x.shape[i]):
            raise ValueError("When 1d, distances must match the length of the corresponding dimension.")
        results.append(_uneven_gradient(x, i, step) if np.ndim(step) else _uniform_gradient(x, i, step))
    return results[0] if len(results) == 1 else results


@one_program("axis")
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of sampled values by the trapezoidal rule.

    Args:
      y: array of samples.
      x: places of the samples, a vector or an array that broadcasts with `y`.
      dx: spacing, when `x` is not given.
      axis: axis to integrate along.

    Returns:
      Array without the axis.

    >>> import ferrax.numpy as jnp
    >>> jnp.trapezoid(jnp.array([1., 2., 3.]))
    Array(4., dtype=float32)
    """
    if x is None:
        (values,) = promote_inexact("trapezoid", y)
        step = asarray(dx)
        if step.ndim:
            step = _shape.moveaxis(lax.broadcast_to_rank(step, values.ndim), axis, -1)
        values = _shape.moveaxis(values, axis, -1)
    else:
        values, places = promote_inexact("trapezoid", y, x)
        points = values.shape[normalize_axis(axis, values.ndim)] if values.ndim else 1
        if places.ndim == 1 and places.size != points and 2 not in (places.size, points):
            raise ValueError(
                f"trapezoid got {places.size} places x for {points} values of y along axis {axis}: "
                f"y.shape={values.shape}, x.shape={places.shape}"
            )
        if places.ndim == 1:
            values, step = _shape.moveaxis(values, axis, -1), diff(places)
        else:
            values, places = (_shape.moveaxis(v, axis, -1) for v in (values, places))
            step = diff(places)
    last = values.ndim - 1
    return 0.5 * _reductions.sum(step * (_beside(values, last, 1, None) + _beside(values, last, 0, -1)), axis=-1)


def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | str | None = None,
           right: ArrayLike | str | None = None, period: ArrayLike | None = None) -> Array:  # fmt: skip
    """Linear interpolation between samples of a function.

    Args:
      x: places at which to interpolate.
      xp: ascending vector of the samples' places.
      fp: vector of the samples.
      left: value before the first place; "extrapolate" to continue the first segment; by default the first sample.
      right: value beyond the last place, likewise.
      period: the function's period; `left` and `right` have no effect then.

    Returns:
      Floating array of the shape of `x`.

    Raises:
      ValueError: when `xp` and `fp` are not vectors of one length.

    >>> import ferrax.numpy as jnp
    >>> jnp.interp(jnp.array([0.5, 9.]), jnp.array([0., 1.]), jnp.array([10., 20.]))
    Array([15., 20.], dtype=float32)
    """
    for name, side in (("left", left), ("right", right)):
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(f"the only valid string value of `{name}` is 'extrapolate', but got: {short(side)}")
    require("interp", x, xp, fp)
    if shape_of(xp) != shape_of(fp) or len(shape_of(xp)) != 1:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    places, samples_x = promote_inexact("interp", x, xp)
    (samples,) = promote_inexact("interp", fp)
    if dtype_kind(places.dtype) == "c":
        raise ValueError("jnp.interp: complex x values not supported.")
    if period is not None:
        places, samples_x, samples = _periodic(places, samples_x, samples, period)
    i = lax.clamp(asarray(1, np.int32), cast(searchsorted(samples_x, places, "right"), np.int32),
                  asarray(max_dim(1, samples_x.shape[0] - 1), np.int32))  # fmt: skip
    low_x, high_x = take(samples_x, i - 1, mode="clip"), take(samples_x, i, mode="clip")
    low, high = take(samples, i - 1, mode="clip"), take(samples, i, mode="clip")
    width = high_x - low_x
    flat = lax.abs(width) <= asarray(np.spacing(np.finfo(np.float32).eps), width.dtype)
    share = (places - low_x) / _where(flat, asarray(1, width.dtype), width)
    value = _where(flat, low, low + share * (high - low))
    if period is None:
        if not isinstance(left, str):
            value = _where(places < samples_x[0], samples[0] if left is None else left, value)
        if not isinstance(right, str):
            value = _where(places > samples_x[-1], samples[-1] if right is None else right, value)
    return with_weak_type(value, weak_type(x) and weak_type(xp) and weak_type(fp))


def _periodic(places: Array, xp: Array, fp: Array, period: ArrayLike) -> tuple[Array, Array, Array]:
    """Places and samples in one period, with one sample more on each side."""
    require("interp", period)
    if shape_of(period) != ():
        raise ValueError(f"period must be a scalar; got {period}")
    period = lax.abs(cast(period, inexact_dtype(places.dtype)))
    places, xp = places % period, xp % period
    xp, order = lax.sort((xp, lax.iota(np.int32, xp.shape[0])), num_keys=1)
    fp = take(fp, order, mode="clip")
    xp = lax.concatenate([xp[-1:] - period, xp, xp[:1] + period], 0)
    return places, xp, lax.concatenate([fp[-1:], fp, fp[:1]], 0)


@one_program("axis")
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi) -> Array:
    """Phases without jumps: multiples of the period are added where neighbours differ by more than half of it.

    Args:
      p: array of phases.
      discont: largest difference to leave as it is; by default half the period.
      axis: axis to work along.
      period: the period.

    Returns:
      Array of the shape of `p`.

    >>> import ferrax.numpy as jnp
    >>> jnp.unwrap(jnp.array([0, 1, 2, -1, 0]), period=4)
    Array([0, 1, 2, 3, 4], dtype=int32)
    """
    require("unwrap", p)
    x = to_array("unwrap", p)
    if dtype_kind(x.dtype) == "c":
        raise ValueError("jnp.unwrap does not support complex inputs.")
    x, period_array = promote("unwrap", x, period)
    axis = normalize_axis(axis, x.ndim)
    if x.shape[axis] == 0:
        return x
    step = diff(x, axis=axis)
    if dtype_kind(x.dtype) in "iu":
        half = period_array // 2
        ambiguous_high = period_array % 2 == 0
    else:
        half = period_array / 2
        ambiguous_high = asarray(True)
    wrapped = (step + half) % period_array - half
    wrapped = _where((wrapped == -half) & (step > 0) & ambiguous_high, half, wrapped)
    change = _where(lax.abs(step) < (half if discont is None else discont), asarray(0, x.dtype), wrapped - step)
    change = cast(change, x.dtype)
    first = lax.slice_in_dim(x, 0, 1, axis=axis)
    rest = _beside(x, axis, 1, None) + lax.cumsum(change, axis)
    return lax.concatenate([first, rest], axis)
