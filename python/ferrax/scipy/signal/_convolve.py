"""Convolutions and correlations of arrays of any rank, direct ones and by Fourier transforms.

A direct one is `lax.conv_general_dilated` of one feature with padding that makes the asked part of the full result; the
other multiplies spectra of a length that has small prime factors. Read next: `_spectral.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax.numpy._args import Array, ArrayLike, normalize_axis, promote_inexact
from ferrax.numpy._dtype_functions import dtype_kind
from ferrax.numpy.fft import _fitted, _single_or_double

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

_MODES = ("full", "same", "valid")


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {list(_MODES)}, got {mode!r}")


def _smaller_last(x: Array, y: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """The operands of a valid convolution, the one that fits into the other last."""
    if all(x.shape[i] >= y.shape[i] for i in axes):
        return x, y
    if all(x.shape[i] <= y.shape[i] for i in axes):
        return y, x
    raise ValueError(
        f"For 'valid' mode, one input must be smaller than the other in every dimension, got {x.shape} and {y.shape}."
    )


@partial(jit, static_argnames=("mode", "precision", "late"))
def _direct(x: Array, y: Array, mode: str, precision: Any, late: bool) -> Array:
    """The convolution; of two middles (mode "same", even sizes of y) the later one if asked for."""
    if mode == "valid":
        x, y = _smaller_last(x, y, range(x.ndim))
    if x.ndim == 0:
        return lax.mul(x, y)
    pads = {
        "full": [(m - 1, m - 1) for m in y.shape],
        "same": [((m - late) // 2, m - 1 - (m - late) // 2) for m in y.shape],
        "valid": [(0, 0)] * y.ndim,
    }[mode]
    axes = tuple(range(x.ndim))
    out = lax.conv_general_dilated(
        lax.expand_dims(x, (0, 1)), lax.expand_dims(lax.rev(y, axes), (0, 1)), (1,) * x.ndim, pads, precision=precision
    )
    return lax.squeeze(out, (0, 1))


def _flipped(y: Array) -> Array:
    """What a correlation convolves with."""
    y = lax.conj(y) if dtype_kind(y.dtype) == "c" else y
    return lax.rev(y, tuple(range(y.ndim)))


def _convolved(name: str, in1: Any, in2: Any, mode: str, method: str, precision: Any, correlates: bool) -> Array:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"Got {method=}; expected 'auto', 'fft', or 'direct'.")
    _check_mode(mode)
    x, y = promote_inexact(name, in1, in2)
    if x.ndim != y.ndim:
        raise ValueError(f"{name}: in1 and in2 must have the same number of dimensions, got {x.shape} and {y.shape}")
    if correlates:
        y = _flipped(y)
    if method == "fft":
        return fftconvolve(x, y, mode)
    if 0 in x.shape or 0 in y.shape:
        raise ValueError(f"zero-size arrays not supported in convolutions, got shapes {x.shape} and {y.shape}.")
    planar = name == "correlate2d"  # SciPy's middles of planar correlations begin one later
    out = _direct(x, y, mode, precision, planar)
    swaps = planar and mode == "valid" and any(n < m for n, m in zip(x.shape, y.shape))
    return lax.conj(out) if swaps and dtype_kind(out.dtype) == "c" else out


def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """The convolution of two arrays.

    Args:
      in1: array.
      in2: array of the same rank.
      mode: ``"full"``, ``"same"`` (the middle, of in1's shape) or ``"valid"`` (full overlaps).
      method: ``"direct"`` (``"auto"`` too) or ``"fft"``.
      precision: see `lax.Precision`; for the direct method.

    Returns:
      Floating or complex array.

    Raises:
      ValueError: ranks differ, an operand is empty, no operand fits into the other (valid), or a word is none of
        these.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import signal
    >>> signal.convolve(jnp.array([1, 2, 3]), jnp.array([1, 10]))
    Array([ 1., 12., 23., 30.], dtype=float32)
    """
    return _convolved("convolve", in1, in2, mode, method, precision, False)


def correlate(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """The cross-correlation of two arrays, the second one conjugated.

    Args, Returns, Raises: as in `convolve`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import signal
    >>> signal.correlate(jnp.array([1, 2, 3]), jnp.array([1, 10]))
    Array([10., 21., 32.,  3.], dtype=float32)
    """
    return _convolved("correlate", in1, in2, mode, method, precision, True)


def _planar(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> None:
    if boundary != "fill" or not (isinstance(fillvalue, (int, float)) and fillvalue == 0):
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if np.ndim(in1) != 2 or np.ndim(in2) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")


def convolve2d(in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0,
               precision: Any = None) -> Array:  # fmt: skip
    """The convolution of two matrices.

    Args:
      in1: matrix.
      in2: matrix.
      mode: as for `convolve`.
      boundary: must be ``"fill"``.
      fillvalue: must be 0.
      precision: see `lax.Precision`.

    Returns:
      Floating or complex matrix.

    Raises:
      NotImplementedError: `boundary` or `fillvalue` is another.
      ValueError: an operand is no matrix, or as for `convolve`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import signal
    >>> signal.convolve2d(jnp.eye(2), jnp.array([[1., 2.]]))
    Array([[1., 2., 0.],
           [0., 1., 2.]], dtype=float32)
    """
    _planar("convolve2d", in1, in2, boundary, fillvalue)
    return _convolved("convolve2d", in1, in2, mode, "direct", precision, False)


def correlate2d(in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0,
                precision: Any = None) -> Array:  # fmt: skip
    """The cross-correlation of two matrices, the second one conjugated.

    Where a valid one has the larger matrix second, the first one is conjugated, as in SciPy and JAX.

    Args:
      in1, in2: as in `convolve2d`.
      mode: as for `correlate`.
      boundary, fillvalue, precision: as in `convolve2d`.

    Returns: as in `convolve2d`.

    Raises:
      NotImplementedError: `boundary` or `fillvalue` is another.
      ValueError: an operand is no matrix, or as for `correlate`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import signal
    >>> signal.correlate2d(jnp.eye(2), jnp.array([[1., 2.]]))
    Array([[2., 1., 0.],
           [0., 2., 1.]], dtype=float32)
    """
    _planar("correlate2d", in1, in2, boundary, fillvalue)
    return _convolved("correlate2d", in1, in2, mode, "direct", precision, True)


# ---- by Fourier transforms -------------------------------------------------------------------------------------------


def _smooth_length(n: int) -> int:
    """The least number from n on that has no prime factor above 5."""
    best = 1 << (n - 1).bit_length()
    fives = 1
    while fives < best:
        threes = fives
        while threes < best:
            twos = threes << max(0, (-(-n // threes) - 1).bit_length())
            best = min(best, twos)
            threes *= 3
        fives *= 5
    return best


@partial(jit, static_argnames=("mode", "axes"))
def _by_spectra(x: Array, y: Array, mode: str, axes: tuple[int, ...]) -> Array:
    dtype = x.dtype
    if mode == "valid":
        x, y = _smaller_last(x, y, axes)
    full = [x.shape[i] + y.shape[i] - 1 for i in axes]
    lengths = [_smooth_length(n) for n in full]
    real = dtype_kind(dtype) != "c"
    wide = _single_or_double(dtype) if real else dtype
    order = [i for i in range(x.ndim) if i not in axes] + list(axes)

    def spectrum(v: Array) -> Array:
        v = _fitted(lax.convert_element_type(v, wide), dict(zip(axes, lengths)))
        return lax.fft(lax.transpose(v, order), "RFFT" if real else "FFT", lengths)

    out = lax.fft(lax.mul(spectrum(x), spectrum(y)), "IRFFT" if real else "IFFT", lengths)
    out = lax.transpose(out, [order.index(i) for i in range(x.ndim)])
    starts, sizes = [0] * x.ndim, list(out.shape)
    for i, n in zip(axes, full):
        sizes[i] = {"full": n, "same": x.shape[i], "valid": x.shape[i] - y.shape[i] + 1}[mode]
        starts[i] = (n - sizes[i]) // 2
    out = lax.slice(out, starts, [a + n for a, n in zip(starts, sizes)])
    return lax.convert_element_type(out, dtype)


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | None = None) -> Array:
    """The convolution of two arrays by Fourier transforms.

    Args:
      in1, in2, mode: as in `convolve`.
      axes: the axes to convolve along, None for all; along others the operands are multiplied, and have one shape.

    Returns:
      Floating or complex array; each element's error is relative to the largest ones.

    Raises:
      ValueError: ranks or shapes along other axes differ, or as for `convolve`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import signal
    >>> signal.fftconvolve(jnp.array([1, 2, 3]), jnp.array([1, 10])).round(3)
    Array([ 1., 12., 23., 30.], dtype=float32)
    """
    x, y = promote_inexact("fftconvolve", in1, in2)
    _check_mode(mode)
    if x.ndim != y.ndim:
        raise ValueError(f"in1 and in2 should have the same dimensionality, got {x.shape} and {y.shape}")
    if axes is None:
        places = tuple(range(x.ndim))
    else:
        places = tuple(sorted({normalize_axis(i, x.ndim) for i in (axes if isinstance(axes, Sequence) else [axes])}))
    others = [i for i in range(x.ndim) if i not in places]
    if any(x.shape[i] != y.shape[i] for i in others):
        raise ValueError(f"mapped axes must have same shape; got in1.shape={x.shape} in2.shape={y.shape} axes={axes}")
    if 0 in x.shape or 0 in y.shape:
        raise ValueError(f"zero-size arrays not supported in convolutions, got shapes {x.shape} and {y.shape}.")
    return _by_spectra(x, y, mode, places) if places else lax.mul(x, y)
