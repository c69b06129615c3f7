"""`pad` in all of NumPy's modes.

Modes that copy elements ("edge", "reflect", "symmetric", "wrap") join slices of the array along each axis; where a
border is longer than what there is to copy, or the size is symbolic, they are a gather with indices that NumPy works
out on the host or the program computes. The others join computed borders. Read `_join.py` first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _ferrax, lax
from ferrax._core import asarray, concrete_or_error, with_weak_type
from ferrax._shapes import is_symbolic_dim
from ferrax.numpy import _quantiles, _reductions
from ferrax.numpy._args import Array, ArrayLike, broadcast_to_shape, cast, require
from ferrax.numpy._dtype_functions import default_int, dtype_kind, inexact_dtype

__all__ = ["pad"]

_KEYWORDS = {
    "constant": {"constant_values"}, "edge": set(), "empty": set(), "linear_ramp": {"end_values"},
    "maximum": {"stat_length"}, "mean": {"stat_length"}, "median": {"stat_length"}, "minimum": {"stat_length"},
    "reflect": {"reflect_type"}, "symmetric": {"reflect_type"}, "wrap": set(),
}  # fmt: skip


def _pairs(value: Any, ndim: int, name: str) -> np.ndarray:
    """A static (ndim, 2) array from NumPy's short forms."""
    value = np.asarray(concrete_or_error(None, value, f"{name} argument of jnp.pad"), dtype=object)
    try:
        return np.broadcast_to(value, (ndim, 2))
    except ValueError:
        raise ValueError(
            f"jnp.pad: {name} with nd={ndim} has unsupported shape {value.shape}. "
            f"Valid shapes are ({ndim}, 2), (1, 2), (2,), (1,), or ()."
        ) from None


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    pairs = _pairs(pad_width, ndim, "pad_width")
    for value in pairs.reshape(-1).tolist():
        whole = isinstance(value, (int, np.integer)) or is_symbolic_dim(value)
        if not whole and not (hasattr(value, "dtype") and dtype_kind(value.dtype) in "iu"):
            raise TypeError("`pad_width` must be of integral type.")
    size = lambda w: w if is_symbolic_dim(w) else int(w)
    widths = [(size(low), size(high)) for low, high in pairs]
    if any(w < 0 for pair in widths for w in pair if not is_symbolic_dim(w)):
        raise ValueError("index can't contain negative values")
    return widths


def _value_pairs(value: Any, ndim: int, dtype: np.dtype, name: str) -> list[tuple[Array, Array]]:
    """One pair of scalars of `dtype` for each axis; the values may be traced."""
    if isinstance(value, (list, tuple)):
        from ferrax.numpy._creation import asarray as from_nested

        value = from_nested(value)
    value = cast(value, dtype)
    if value.ndim == 0:
        return [(value, value)] * ndim
    try:
        table = broadcast_to_shape(value, (ndim, 2))
    except ValueError:
        raise ValueError(
            f"jnp.pad: {name} with nd={ndim} has unsupported shape {value.shape}. "
            f"Valid shapes are ({ndim}, 2), (1, 2), (2,), (1,), or ()."
        ) from None
    return [(table[i, 0], table[i, 1]) for i in range(ndim)]


def _pad_constant(x: Array, widths: list[tuple[int, int]], constant_values: Any = 0) -> Array:
    if np.ndim(constant_values) == 0 and not isinstance(constant_values, (list, tuple)):
        value = with_weak_type(cast(constant_values, x.dtype), x.weak_type)
        return lax.pad(x, value, [(low, high, 0) for low, high in widths])
    for axis, (low_value, high_value) in enumerate(_value_pairs(constant_values, x.ndim, x.dtype, "constant_values")):
        low, high = widths[axis]
        none = [(0, 0, 0)] * x.ndim
        x = lax.pad(x, low_value, none[:axis] + [(low, 0, 0)] + none[axis + 1 :])
        x = lax.pad(x, high_value, none[:axis] + [(0, high, 0)] + none[axis + 1 :])
    return x


def _pad_by_index(x: Array, widths: list[tuple[int, int]], mode: str) -> Array:
    from ferrax.numpy._take import take

    for axis, (low, high) in enumerate(widths):
        if low or high:
            n = x.shape[axis]
            if all(isinstance(size, int) for size in (n, low, high)) and 0 < max(low, high) <= _longest(n, mode):
                x = _joined(x, axis, (low, high), mode)
            elif not _ferrax.is_tracer(x) or (isinstance(n, int) and n == 0):
                index = np.pad(np.arange(n), (low, high), mode=mode)  # type: ignore[call-overload]
                x = take(x, asarray(index.astype(default_int())), axis=axis, mode="clip")
            else:
                x = take(x, _padded_index(n, low, high, mode), axis=axis, mode="clip")
    return x


def _longest(n: int, mode: str) -> float:
    """The longest border of an axis of `n` elements that is one slice of it, of one element for "edge"."""
    if n == 0:
        return -1
    return {"edge": np.inf, "reflect": n - 1}.get(mode, n)


def _joined(x: Array, axis: int, widths: tuple[int, int], mode: str) -> Array:
    """`x` between slices of itself."""
    n, (low, high) = x.shape[axis], widths
    part = lambda start, end: lax.slice_in_dim(x, start, end, axis=axis)
    shape = lambda width: (*x.shape[:axis], width, *x.shape[axis + 1 :])
    if mode == "edge":
        before, after = broadcast_to_shape(part(0, 1), shape(low)), broadcast_to_shape(part(n - 1, n), shape(high))
    elif mode == "wrap":
        before, after = part(n - low, n), part(0, high)
    else:
        edge = 1 if mode == "reflect" else 0
        before = lax.rev(part(edge, edge + low), (axis,))
        after = lax.rev(part(n - edge - high, n - edge), (axis,))
    parts = [piece for piece, width in ((before, low), (x, n), (after, high)) if width]
    return lax.concatenate(parts, axis)


def _padded_index(n: Any, low: Any, high: Any, mode: str) -> Array:
    """Which element stands in each place of a padded axis of `n` elements, computed by the program."""
    from ferrax.numpy import arange, clip, maximum, minimum, remainder

    size = asarray(n)
    place = arange(low + n + high) - low
    if mode == "edge":
        return clip(place, 0, size - 1)
    if mode == "wrap":
        return remainder(place, size)
    if mode == "symmetric":
        place = remainder(place, 2 * size)
        return minimum(place, 2 * size - 1 - place)
    period = maximum(2 * size - 2, 1)
    place = remainder(place, period)
    return minimum(place, period - place)


def _pad_odd(x: Array, widths: list[tuple[int, int]], mode: str) -> Array:
    """Reflection about the edge's value, in steps of at most the present length."""
    offset = 1 if mode == "reflect" else 0
    for axis, (low, high) in enumerate(widths):
        if x.shape[axis] == 1 and offset:
            x = _pad_by_index(x, [(0, 0)] * axis + [(low, high)] + [(0, 0)] * (x.ndim - axis - 1), "edge")
            continue
        low_left, high_left, period = low, high, x.shape[axis] - offset
        while low_left or high_left:
            n = x.shape[axis]
            low_now, high_now = min(low_left, period), min(high_left, period)
            parts = [x]
            if low_now:
                edge = lax.slice_in_dim(x, 0, 1, axis=axis)
                chunk = lax.slice_in_dim(x, offset, offset + low_now, axis=axis)
                parts.insert(0, 2 * edge - lax.rev(chunk, (axis,)))
            if high_now:
                edge = lax.slice_in_dim(x, n - 1, n, axis=axis)
                chunk = lax.slice_in_dim(x, n - offset - high_now, n - offset, axis=axis)
                parts.append(2 * edge - lax.rev(chunk, (axis,)))
            x = lax.concatenate(parts, axis)
            low_left, high_left = low_left - low_now, high_left - high_now
    return x


def _pad_reflect(x: Array, widths: list[tuple[int, int]], mode: str, reflect_type: str = "even") -> Array:
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"reflect_type must be 'even' or 'odd', got {reflect_type!r}.")
    return _pad_by_index(x, widths, mode) if reflect_type == "even" else _pad_odd(x, widths, mode)


def _pad_ramp(x: Array, widths: list[tuple[int, int]], end_values: Any = 0) -> Array:
    from ferrax.numpy._ranges import linspace

    ends = _value_pairs(end_values, x.ndim, x.dtype, "end_values")
    for axis, (low, high) in enumerate(widths):
        n = x.shape[axis]
        first = lax.squeeze(lax.slice_in_dim(x, 0, 1, axis=axis), (axis,))
        last = lax.squeeze(lax.slice_in_dim(x, n - 1, n, axis=axis), (axis,))
        before = linspace(ends[axis][0], first, low, endpoint=False, dtype=x.dtype, axis=axis)
        after = lax.rev(linspace(ends[axis][1], last, high, endpoint=False, dtype=x.dtype, axis=axis), (axis,))
        x = lax.concatenate([before, x, after], axis)
    return x


_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": _reductions.max, "minimum": _reductions.min, "mean": _reductions.mean, "median": _quantiles.median,
}  # fmt: skip


def _statistic(mode: str, x: Array, axis: int) -> Array:
    value = _STATISTICS[mode](x, axis, keepdims=True)
    if value.dtype != x.dtype and dtype_kind(x.dtype) in "iu":
        value = lax.round(cast(value, inexact_dtype(x.dtype)), lax.RoundingMethod.TO_NEAREST_EVEN)
    return cast(value, x.dtype)


def _pad_statistic(x: Array, widths: list[tuple[int, int]], mode: str, stat_length: Any = None) -> Array:
    lengths = None if stat_length is None else _pairs(stat_length, x.ndim, "stat_length")
    if lengths is not None and any(int(n) <= 0 for n in lengths.reshape(-1).tolist()):
        raise ValueError(f"stat_length of {stat_length} yields no value for padding")
    for axis, (low, high) in enumerate(widths):
        n = x.shape[axis]
        head, tail = (n, n) if lengths is None else (min(int(m), n) for m in lengths[axis])
        before = _statistic(mode, lax.slice_in_dim(x, 0, head, axis=axis), axis)
        after = _statistic(mode, lax.slice_in_dim(x, n - tail, n, axis=axis), axis)
        shape = list(x.shape)
        parts = []
        for value, width in ((before, low), (None, 0), (after, high)):
            shape[axis] = width
            parts.append(x if value is None else broadcast_to_shape(value, tuple(shape)))
        x = lax.concatenate(parts, axis)
    return x


def _pad_with_function(x: Array, widths: list[tuple[int, int]], function: Callable[..., Any], **kwargs: Any) -> Array:
    from ferrax.numpy._functional import apply_along_axis

    padded = _pad_constant(x, widths)
    for axis, width in enumerate(widths):
        padded = apply_along_axis(function, axis, padded, width, axis, kwargs)
    return padded


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """An array with borders added.

    Args:
      array: array or scalar.
      pad_width: an integer, a pair (before, after), or one pair for each axis; static.
      mode: "constant", "edge", "empty", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric",
        "wrap", or a function `f(vector, width_pair, axis, kwargs)` that returns the padded vector.
      **kwargs: `constant_values`, `end_values`, `stat_length` or `reflect_type`, as the mode has it; for a function,
        its own.

    Returns:
      Array of the dtype of `array`.

    Raises:
      ValueError: for negative widths, keywords that the mode does not have, or an empty axis that cannot be continued.
      NotImplementedError: for an unknown mode.

    >>> import ferrax.numpy as jnp
    >>> jnp.pad(jnp.arange(3), 2, mode="reflect")
    Array([2, 1, 0, 1, 2, 1, 0], dtype=int32)
    """
    require("pad", array)
    x = asarray(array)
    if isinstance(pad_width, dict):
        widths_by_axis: list[Any] = [(0, 0)] * x.ndim
        for axis, width in pad_width.items():
            widths_by_axis[axis] = (width, width) if isinstance(width, int) else tuple(width)
        pad_width = widths_by_axis
    widths = _widths(pad_width, x.ndim)
    if callable(mode):
        return _pad_with_function(x, widths, mode, **kwargs)
    if mode not in _KEYWORDS:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad.")
    unknown = set(kwargs) - _KEYWORDS[mode]
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if mode == "constant":
        return _pad_constant(x, widths, **kwargs)
    if mode == "empty":
        return _pad_constant(x, widths)
    # The mean of nothing is NaN, as it is elsewhere.
    if mode != "mean" and any(n == 0 and (low or high) for n, (low, high) in zip(x.shape, widths)):
        raise ValueError(f"Cannot apply '{mode}' padding to empty axis")
    if mode == "linear_ramp":
        return with_weak_type(_pad_ramp(x, widths, **kwargs), x.weak_type)
    if mode in ("reflect", "symmetric"):
        return _pad_reflect(x, widths, mode, **kwargs)
    if mode in ("edge", "wrap"):
        return _pad_by_index(x, widths, mode)
    return with_weak_type(_pad_statistic(x, widths, mode, **kwargs), x.weak_type)
