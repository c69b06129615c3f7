"""Spectra of overlapping segments, the signal from them again, and trends taken off.

A signal is cut into segments, each loses its trend, is multiplied by a window and transformed. Spectral densities are
means of products of two signals' transforms: Welch, "The use of fast Fourier transform for the estimation of power
spectra" (1967). The inverse adds overlapping segments and divides by the sum of the windows' squares: Griffin and Lim,
"Signal estimation from modified short-time Fourier transform" (1984). Read next: `_windows.py`.
"""

from __future__ import annotations

import itertools
import operator
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import asarray, concrete_or_error
from ferrax.numpy import _quantiles, _reductions, _take, _ufuncs
from ferrax.numpy._args import (  # fmt: skip
    Array,
    ArrayLike,
    broadcast_to_shape,
    common_shape,
    normalize_axis,
    promote_inexact,
)
from ferrax.numpy._dtype_functions import dtype_kind, real_dtype
from ferrax.numpy.fft import _fitted, _single_or_double
from ferrax.scipy.signal._windows import periodic

__all__ = ["csd", "detrend", "istft", "stft", "welch"]


def _to_end(x: Array, axis: int) -> Array:
    return lax.transpose(x, [i for i in range(x.ndim) if i != axis] + [axis])


def _from_end(x: Array, axis: int) -> Array:
    order = list(range(x.ndim - 1))
    order.insert(axis, x.ndim - 1)
    return lax.transpose(x, order)


# ---- trends ----------------------------------------------------------------------------------------------------------


def _without_mean(x: Array) -> Array:
    return lax.sub(x, broadcast_to_shape(_reductions.mean(x, -1, keepdims=True), x.shape))


def _without_line(x: Array) -> Array:
    """Vectors along the last axis without their least-squares lines."""
    n = x.shape[-1]
    x = _without_mean(x)
    if n < 2:
        return x
    # times from the middle are orthogonal to the constants
    times = np.arange(n) - (n - 1) / 2
    row = broadcast_to_shape(asarray(times / np.sqrt((times * times).sum()), real_dtype(x.dtype)), x.shape)
    row = lax.convert_element_type(row, x.dtype)
    slope = broadcast_to_shape(_reductions.sum(lax.mul(x, row), -1, keepdims=True), x.shape)
    return lax.sub(x, lax.mul(slope, row))


@partial(jit, static_argnames=("axis", "breaks"))
def _without_lines(x: Array, axis: int, breaks: tuple[int, ...]) -> Array:
    dtype = x.dtype
    wide = dtype if dtype_kind(dtype) == "c" else _single_or_double(dtype)
    x = _to_end(lax.convert_element_type(x, wide), axis)
    pieces = [_without_line(lax.slice_in_dim(x, a, b, axis=x.ndim - 1)) for a, b in itertools.pairwise(breaks)]
    out = lax.concatenate(pieces, x.ndim - 1) if len(pieces) > 1 else pieces[0]
    return lax.convert_element_type(_from_end(out, axis), dtype)


def detrend(data: ArrayLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] | np.ndarray = 0,
            overwrite_data: None = None) -> Array:  # fmt: skip
    """Data without its mean, or without straight lines, along an axis.

    Args:
      data: array, or what `jnp.asarray` makes one of.
      axis: the axis.
      type: ``"constant"`` takes off the mean, ``"linear"`` least-squares lines.
      bp: where new lines begin.
      overwrite_data: must be None.

    Returns:
      Floating or complex array.

    Raises:
      NotImplementedError: `overwrite_data` is given.
      ValueError: for another type, or lines that begin outside.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import signal
    >>> signal.detrend(jnp.array([1., 4., 8., 8., 9.])).round(3) + 0.
    Array([-1.,  0.,  2.,  0., -1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError(f"Trend type must be 'linear' or 'constant', got {type!r}.")
    (x,) = promote_inexact("detrend", asarray(data))
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis]
    if type == "constant":
        return lax.sub(x, broadcast_to_shape(_reductions.mean(x, axis, keepdims=True), x.shape)) if n else x
    places = [operator.index(b) for b in np.atleast_1d(concrete_or_error(np.asarray, bp, "the bp argument"))]
    if any(not 0 <= b <= n for b in places):
        raise ValueError("Breakpoints must be non-negative and less than length of data along given axis.")
    return _without_lines(x, axis, tuple(sorted({0, n, *places}))) if n else x


# ---- segments --------------------------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """How a signal is cut and what is made of the pieces: all that is static.

    Attributes:
      nperseg: points of a segment.
      step: from a segment to the next one.
      nfft: points of a transform.
      detrend: False, a type of `detrend`, or a function.
      onesided: whether half of the spectrum is enough.
      boundary: how the signal goes on at its ends; None for not at all.
      padded: whether zeros fill the last segment.
    """

    nperseg: int
    step: int
    nfft: int
    detrend: Any
    onesided: bool
    boundary: str | None
    padded: bool


_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


def _extended(x: Array, boundary: str | None, n: int) -> Array:
    """Vectors along the last axis with n more points at each end."""
    if boundary is None or n == 0:
        return x
    last = x.ndim - 1
    size = x.shape[last]
    if boundary == "zeros":
        return lax.pad(x, lax.full_like(x, 0, shape=()), [(0, 0, 0)] * last + [(n, n, 0)])
    ends = [lax.slice_in_dim(x, i, i + 1, axis=last) for i in (0, size - 1)]
    if boundary == "constant":
        before, after = (broadcast_to_shape(e, (*x.shape[:-1], n)) for e in ends)
        return lax.concatenate([before, x, after], last)
    if n > size - 1:
        raise ValueError(f"a signal of {size} points cannot be mirrored over {n} points")
    before = lax.rev(lax.slice_in_dim(x, 1, n + 1, axis=last), (last,))
    after = lax.rev(lax.slice_in_dim(x, size - 1 - n, size - 1, axis=last), (last,))
    if boundary == "odd":
        before, after = (lax.sub(2 * broadcast_to_shape(e, v.shape), v) for e, v in zip(ends, (before, after)))
    return lax.concatenate([before, x, after], last)


def _segments(x: Array, nperseg: int, step: int) -> Array:
    """Overlapping segments of the last axis, as two axes: segments and their points."""
    count = (x.shape[-1] - nperseg) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(nperseg)
    return _take.take(x, places, axis=x.ndim - 1, mode="clip", indices_are_sorted=False)


def _detrended(x: Array, how: Any) -> Array:
    """Segments along the last axis without what `detrend` names."""
    if callable(how):
        return asarray(how(x))
    return {"constant": _without_mean, "linear": _without_line}[how](x) if how else x


def _spectra(x: Array, window: Array, plan: _Plan) -> Array:
    """The transforms of the segments of the last axis; (…, segments, frequencies)."""
    segments = _detrended(_segments(x, plan.nperseg, plan.step), plan.detrend)
    kind = dtype_kind(segments.dtype)
    segments = lax.mul(segments, lax.convert_element_type(broadcast_to_shape(window, segments.shape), segments.dtype))
    segments = _fitted(segments, {segments.ndim - 1: plan.nfft})
    if plan.onesided and kind != "c":
        return lax.fft(segments, "RFFT", (plan.nfft,))
    wide = np.result_type(real_dtype(segments.dtype), np.complex64)
    out = lax.fft(lax.convert_element_type(segments, wide), "FFT", (plan.nfft,))
    return lax.slice_in_dim(out, 0, plan.nfft // 2 + 1, axis=out.ndim - 1) if plan.onesided else out


def _lengthened(x: Array, plan: _Plan) -> Array:
    x = _extended(x, plan.boundary, plan.nperseg // 2)
    if plan.padded:
        n = x.shape[-1]
        x = _fitted(x, {x.ndim - 1: n + (plan.nperseg - n) % plan.step % plan.nperseg})
    return x


def _transforms(x: Array, window: Array, factor: Array, plan: _Plan) -> Array:
    """Scaled transforms of the segments of the last axis; (…, frequencies, segments)."""
    out = _spectra(_lengthened(x, plan), window, plan)
    out = lax.mul(out, lax.convert_element_type(broadcast_to_shape(lax.sqrt(factor), out.shape), out.dtype))
    return lax.transpose(out, [*range(out.ndim - 2), out.ndim - 1, out.ndim - 2])


def _densities(x: Array, y: Array | None, window: Array, factor: Array, plan: _Plan) -> Array:
    """Spectral densities of the segments of the last axis; (…, frequencies, segments), real where y is None."""
    u = _spectra(_lengthened(x, plan), window, plan)
    if y is None:
        out = lax.add(lax.square(lax.real(u)), lax.square(lax.imag(u)))
    else:
        v = _spectra(_lengthened(y, plan), window, plan)
        shape = common_shape(u.shape, v.shape)
        out = lax.mul(lax.conj(broadcast_to_shape(u, shape)), broadcast_to_shape(v, shape))
    doubled = np.ones(out.shape[-1])
    if plan.onesided:  # the other half of the spectrum, which zero and the highest of an even length are alone in
        doubled[1 : None if plan.nfft % 2 else -1] = 2
    scale = lax.mul(broadcast_to_shape(factor, doubled.shape), asarray(doubled, factor.dtype))
    out = lax.mul(out, lax.convert_element_type(broadcast_to_shape(scale, out.shape), out.dtype))
    return lax.transpose(out, [*range(out.ndim - 2), out.ndim - 1, out.ndim - 2])


def _average(x: Array, how: str) -> Array:
    """The mean over the last axis, or the median divided by what it is of the mean for noise."""
    n = x.shape[-1]
    if how == "mean" or n == 1:
        return _reductions.mean(x, -1) if n > 1 else lax.squeeze(x, (x.ndim - 1,))
    even = 2.0 * np.arange(1, (n - 1) // 2 + 1)
    bias = 1 + float((1 / (even + 1) - 1 / even).sum())
    if dtype_kind(x.dtype) == "c":
        return lax.complex(_quantiles.median(lax.real(x), -1) / bias, _quantiles.median(lax.imag(x), -1) / bias)
    return _quantiles.median(x, -1) / bias


# ---- arguments -------------------------------------------------------------------------------------------------------


def _warn(text: str) -> None:
    """Warns at the line of the first caller outside the library."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("ferrax."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, stacklevel=depth)


def _static(value: Any, name: str) -> int:
    return int(concrete_or_error(int, value, f"{name} of windowed-FFT"))


def _window(window: Any, nperseg: int | None, n: int) -> tuple[Any, int]:
    """The window (NumPy's where it is static) and its number of points."""
    if isinstance(window, (str, tuple)):
        points = 256 if nperseg is None else nperseg
        if points > n:
            if nperseg is not None:
                _warn(f"nperseg={points} is greater than input_length={n}, using nperseg={n}")
            points = n
        return periodic(window, points), points
    if isinstance(window, np.ndarray):
        w = window.astype(np.float64) if window.dtype.kind in "biu" else window
    else:
        (w,) = promote_inexact("window", asarray(window))
    if w.ndim != 1:
        raise ValueError("window must be 1-D")
    if w.shape[0] > n:
        raise ValueError("window is longer than input signal")
    if nperseg is not None and nperseg != w.shape[0]:
        raise ValueError("value specified for nperseg is different from length of window")
    return w, w.shape[0]


def _plan(nperseg: int, noverlap: Any, nfft: Any, detrend: Any, onesided: bool, boundary: Any, padded: bool) -> _Plan:
    size = nperseg if nfft is None else _static(nfft, "nfft")
    if size < nperseg:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    overlap = nperseg // 2 if noverlap is None else _static(noverlap, "noverlap")
    if overlap >= nperseg:
        raise ValueError("noverlap must be less than nperseg.")
    if boundary not in _BOUNDARIES:
        raise ValueError(f"Unknown boundary option {boundary!r}, must be one of: {list(_BOUNDARIES)}")
    if isinstance(detrend, str) and detrend not in ("constant", "linear"):
        raise ValueError(f"Trend type must be 'linear' or 'constant', got {detrend!r}.")
    if detrend is True or not (detrend in (None, False) or isinstance(detrend, str) or callable(detrend)):
        raise ValueError(f"Unsupported detrend type: {detrend!r}")
    return _Plan(nperseg, nperseg - overlap, size, detrend or False, onesided, boundary, bool(padded))


def _frequencies(plan: _Plan, fs: Array) -> Array:
    n = plan.nfft
    index = np.arange(n // 2 + 1) if plan.onesided else np.fft.fftfreq(n) * n
    return lax.mul(asarray(index / n, fs.dtype), broadcast_to_shape(fs, index.shape))


def _prepared(name: str, signals: Sequence[Any], fs: Any, window: Any, nperseg: Any, rest: tuple[Any, ...], axis: int,
              scaling: str) -> tuple[list[Array], Any, Any, Any, _Plan]:  # fmt: skip
    """Signals with their axis at the end, the window, the factor of densities, the sampling frequency, the plan."""
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling}")
    arrays = promote_inexact(name, *signals)
    noverlap, nfft, detrend, onesided, boundary, padded = rest
    complex_ = dtype_kind(arrays[0].dtype) == "c"
    wide = arrays[0].dtype if complex_ else _single_or_double(arrays[0].dtype)
    arrays = [lax.convert_element_type(_to_end(x, normalize_axis(axis, x.ndim)), wide) for x in arrays]
    if any(x.ndim != arrays[0].ndim for x in arrays):
        raise ValueError(f"two arguments must have the same rank, got {arrays[0].ndim} and {arrays[1].ndim}.")
    n = max(x.shape[-1] for x in arrays)
    arrays = [_fitted(x, {x.ndim - 1: n}) for x in arrays]
    nperseg = None if nperseg is None else _static(nperseg, "nperseg")
    if nperseg is not None and nperseg < 1:
        raise ValueError("nperseg must be a positive integer")
    w, points = _window(window, nperseg, n)
    if complex_ and onesided:
        _warn("Input data is complex, switching to return_onesided=False")
    plan = _plan(points, noverlap, nfft, detrend, bool(onesided) and not complex_, boundary, padded)
    real = real_dtype(wide)
    fs = lax.convert_element_type(asarray(fs), real)
    # sums of a static window are NumPy's, in double precision
    total = (w * w).sum() if scaling == "density" else w.sum() * w.sum()
    total = lax.convert_element_type(asarray(total), real)
    factor = 1 / (fs * total) if scaling == "density" else 1 / total
    return arrays, lax.convert_element_type(asarray(w), real), factor, fs, plan


_jitted_transforms = jit(_transforms, static_argnames=("plan",))
_jitted_densities = jit(_densities, static_argnames=("plan",))


def _run(function: Callable[..., Array], jitted: Callable[..., Array], *args: Any, plan: _Plan) -> Array:
    # a caller's own function of segments may be another one at each call
    return (function if callable(plan.detrend) else jitted)(*args, plan=plan)


# ---- functions -------------------------------------------------------------------------------------------------------


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The Fourier transforms of overlapping segments.

    Args:
      x: array, a signal along `axis`.
      fs: sampling frequency.
      window: name of a window, tuple of one and its parameters, or vector.
      nperseg: points of a segment.
      noverlap: points that neighbours share, by default half of a segment.
      nfft: points of a transform, by default those of a segment.
      detrend: False, ``"constant"``, ``"linear"``, or a function of segments (along the last axis).
      return_onesided: whether the negative frequencies of real signals are left out.
      boundary: how the signal goes on for half a segment at its ends: None, ``"zeros"``, ``"constant"``, ``"even"`` or
        ``"odd"``.
      padded: whether zeros fill the last segment.
      axis: the axis.

    Returns:
      Frequencies, times of the segments, and the transforms: frequencies along `axis`, segments along the last one.

    Raises:
      ValueError: arguments do not fit together, or words are none of these.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import signal
    >>> f, t, z = signal.stft(jnp.ones(8), nperseg=4)
    >>> print(f, t, z.shape)
    [0.   0.25 0.5 ] [0. 2. 4. 6. 8.] (3, 5)
    """
    x = _nonempty("stft", x, axis)
    if 0 in x.shape:
        out = lax.full_like(x, 0, dtype=_single_or_double(x.dtype))
        return out, out, lax.convert_element_type(out, np.result_type(out.dtype, np.complex64))
    rest = (noverlap, nfft, detrend, return_onesided, boundary, padded)
    (signal,), w, factor, fs, plan = _prepared("stft", [x], fs, window, nperseg, rest, axis, "spectrum")
    out = _run(_transforms, _jitted_transforms, signal, w, factor, plan=plan)
    count = out.shape[-1]
    first = plan.nperseg / 2 if boundary is None else 0
    times = lax.div(asarray(first + plan.step * np.arange(count), fs.dtype), broadcast_to_shape(fs, (count,)))
    order = list(range(out.ndim - 2))
    order.insert(normalize_axis(axis, out.ndim - 1), out.ndim - 2)
    return _frequencies(plan, fs), times, lax.transpose(out, [*order, out.ndim - 1])


def _nonempty(name: str, x: Any, axis: int) -> Array:
    (x,) = promote_inexact(name, x)
    normalize_axis(axis, x.ndim)
    return x


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectral density of two signals, by Welch's method.

    Args:
      x: array, a signal along `axis`.
      y: array of the same rank, or None for the spectral density of `x`; the shorter one is padded with zeros.
      fs, window: as in `stft`.
      nperseg: points of a segment, by default 256 or all that there are.
      noverlap, nfft, detrend: as in `stft`.
      return_onesided: whether the negative frequencies of real signals are added to the positive ones.
      scaling: ``"density"`` or ``"spectrum"``.
      axis: the axis.
      average: ``"mean"`` or ``"median"`` over the segments.

    Returns:
      Frequencies, and the density along `axis`; real where y is None, else complex.

    Raises: as in `stft`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import signal
    >>> x = jnp.array([0., 1., 0., -1.] * 4)
    >>> f, p = signal.csd(x, 2 * x, nperseg=8)
    >>> print(f, p.real.round(2))
    [0.    0.125 0.25  0.375 0.5  ] [0.   1.33 5.33 1.33 0.  ]
    """
    if average not in ("mean", "median"):
        raise ValueError(f'average must be "median" or "mean", got {average}')
    signals = [_nonempty("csd", x, axis)] if y is None else [_nonempty("csd", v, axis) for v in (x, y)]
    if any(0 in v.shape for v in signals):
        out = lax.full_like(signals[0], 0, dtype=_single_or_double(signals[0].dtype))
        return out, out if y is None else lax.convert_element_type(out, np.result_type(out.dtype, np.complex64))
    rest = (noverlap, nfft, detrend, return_onesided, None, False)
    signals, w, factor, fs, plan = _prepared("csd", signals, fs, window, nperseg, rest, axis, scaling)
    both = [signals[0], signals[1] if len(signals) > 1 else None]
    if both[1] is not None:
        common_shape(*(v.shape[:-1] for v in signals))
    out = _average(_run(_densities, _jitted_densities, *both, w, factor, plan=plan), average)
    return _frequencies(plan, fs), _from_end(out, normalize_axis(axis, out.ndim))


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal, by Welch's method.

    Args:
      x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average: as for `csd`.

    Returns:
      Frequencies, and the density along `axis`, real.

    Raises:
      ValueError: arguments do not fit together, or words are none of these.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import signal
    >>> f, p = signal.welch(jnp.array([0., 1., 0., -1.] * 4), nperseg=8)
    >>> print(f, p.round(2))
    [0.    0.125 0.25  0.375 0.5  ] [0.   0.67 2.67 0.67 0.  ]
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


# ---- the signal again ------------------------------------------------------------------------------------------------


def _overlap_add(segments: Array, step: int) -> Array:
    """The sum of segments (…, segments, points) that begin `step` apart."""
    count, points = segments.shape[-2:]
    parts = -(-points // step)
    segments = _fitted(segments, {segments.ndim - 1: parts * step})
    if parts > 8:
        places = np.arange(count)[:, None] * step + np.arange(parts * step)
        total = lax.full_like(segments, 0, shape=(*segments.shape[:-2], (count - 1 + parts) * step))
        return total.at[..., places].add(segments)
    blocks = lax.reshape(segments, (*segments.shape[:-1], parts, step))
    zero = lax.full_like(segments, 0, shape=())
    total = None
    for i in range(parts):
        block = lax.squeeze(lax.slice_in_dim(blocks, i, i + 1, axis=blocks.ndim - 2), (blocks.ndim - 2,))
        block = lax.pad(block, zero, [(0, 0, 0)] * (block.ndim - 2) + [(i, parts - 1 - i, 0), (0, 0, 0)])
        total = block if total is None else lax.add(total, block)
    return lax.reshape(total, (*total.shape[:-2], total.shape[-2] * step))


@partial(jit, static_argnames=("nperseg", "step", "nfft", "onesided", "trimmed"))
def _inverse(z: Array, window: Array, nperseg: int, step: int, nfft: int, onesided: bool, trimmed: int) -> Array:
    """The signal of transforms (…, segments, frequencies)."""
    if onesided:
        z = _fitted(z, {z.ndim - 1: nfft // 2 + 1})
    segments = lax.fft(z if onesided else _fitted(z, {z.ndim - 1: nfft}), "IRFFT" if onesided else "IFFT", (nfft,))
    segments = lax.slice_in_dim(segments, 0, nperseg, axis=segments.ndim - 1)
    count = segments.shape[-2]
    as_segments = lambda v: lax.convert_element_type(broadcast_to_shape(v, segments.shape), segments.dtype)
    scaled = lax.mul(window, broadcast_to_shape(_reductions.sum(window), window.shape))
    x = _overlap_add(lax.mul(segments, as_segments(scaled)), step)
    weight = _overlap_add(broadcast_to_shape(lax.square(window), (count, nperseg)), step)
    n = nperseg + (count - 1) * step
    x, weight = (lax.slice_in_dim(v, trimmed, max(n - trimmed, trimmed), axis=v.ndim - 1) for v in (x, weight))
    weight = _ufuncs.where(weight > 1e-10, weight, 1)
    return lax.div(x, lax.convert_element_type(broadcast_to_shape(weight, x.shape), x.dtype))


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal of which `stft` gave the transforms.

    Args:
      Zxx: complex array of transforms.
      fs: sampling frequency.
      window: name of a window, tuple of one and its parameters, or vector.
      nperseg: points of a segment, by default what the number of frequencies says.
      noverlap: points that neighbours share, by default half of a segment.
      nfft: points of a transform, by default what the number of frequencies says.
      input_onesided: whether negative frequencies were left out.
      boundary: whether the signal was extended for half a segment at its ends.
      time_axis: axis of the segments.
      freq_axis: axis of the frequencies.

    Returns:
      Times, and the signal along an axis in place of the two; real where the input is one-sided. There are as many
      times as the signal's first axis is long, as in SciPy and JAX, whichever axis the signal is along.

    Raises:
      ValueError: arguments do not fit together.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import signal
    >>> _, _, z = signal.stft(jnp.arange(8.), nperseg=4)
    >>> signal.istft(z)[1].round(3) + 0.
    Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    (z,) = promote_inexact("istft", Zxx)
    if z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    segments, frequencies = normalize_axis(time_axis, z.ndim), normalize_axis(freq_axis, z.ndim)
    if segments == frequencies:
        raise ValueError("Must specify differing time and frequency axes!")
    real = _single_or_double(z.dtype)
    z = lax.convert_element_type(z, np.result_type(real, np.complex64))
    others = [i for i in range(z.ndim) if i not in (segments, frequencies)]
    z = lax.transpose(z, [*others, segments, frequencies])
    default = 2 * (z.shape[-1] - 1) if input_onesided else z.shape[-1]
    points = default if nperseg is None else _static(nperseg, "nperseg")
    if points < 1:
        raise ValueError("nperseg must be a positive integer")
    size = _inverse_length(nfft, points, default, bool(input_onesided))
    overlap = points // 2 if noverlap is None else _static(noverlap, "noverlap")
    if overlap >= points:
        raise ValueError("noverlap must be less than nperseg.")
    w = asarray(periodic(window, points) if isinstance(window, (str, tuple)) else window)
    if w.ndim != 1:
        raise ValueError("window must be 1-D")
    if w.shape[0] != points:
        raise ValueError(f"window must have length of {points}")
    x = _inverse(z, lax.convert_element_type(w, real), points, points - overlap, size, bool(input_onesided),
                 points // 2 if boundary else 0)  # fmt: skip
    x = _from_end(x, segments - (frequencies < segments))
    fs = lax.convert_element_type(asarray(fs), real)
    return lax.div(asarray(np.arange(x.shape[0]), real), broadcast_to_shape(fs, (x.shape[0],))), x


def _inverse_length(nfft: Any, points: int, default: int, onesided: bool) -> int:
    """The points of the transforms; an odd number where one more than the default goes into a segment."""
    if nfft is None:
        size = points if onesided and points == default + 1 else default
    else:
        size = _static(nfft, "nfft")
    if size < points:
        raise ValueError(f"FFT length ({size}) must be longer than nperseg ({points}).")
    return size
