"""Fourier transforms."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from ferrax._core import asarray as _asarray
from ferrax._ferrax import Array, lax as _lax
from ferrax._shapes import static_shape as _static_shape
from ferrax.lax.conversion import convert_element_type as _convert_element_type
from ferrax.typing import ArrayLike

__all__ = ["FftType", "fft"]


class FftType(enum.IntEnum):
    """The kinds of Fourier transforms.

    Example:
      >>> from ferrax import lax
      >>> lax.FftType(2)
      <FftType.RFFT: 2>
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def _kind(fft_type: Any) -> FftType:
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(f"Unknown FFT type '{fft_type}'")
        return FftType[fft_type.upper()]
    if isinstance(fft_type, enum.Enum) and fft_type.name in FftType.__members__:
        return FftType[fft_type.name]
    raise TypeError(f"Unknown FFT type value '{fft_type}'")


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The Fourier transform, or its inverse, over the last axes of an array.

    Inverse transforms divide by the number of elements transformed. Of the transform of a real array the first half
    (n // 2 + 1 entries) along the last axis is given.

    Args:
      x: array whose last axes have the sizes `fft_lengths`; for "IRFFT" the last has n // 2 + 1.
      fft_type: an `FftType` or its name.
      fft_lengths: sizes of the axes transformed, of the real array where one is.

    Returns:
      Complex array; real for "IRFFT".

    Raises:
      ValueError: there is no such type, the sizes do not fit, or "RFFT" of a complex array.
      TypeError: `fft_type` is neither.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.fft(jnp.array([1.0, 2.0]), "RFFT", (2,))
      Array([ 3.+0.j, -1.+0.j], dtype=complex64)
    """
    kind, x = _kind(fft_type), _asarray(x)
    if kind == FftType.RFFT:
        if x.dtype.kind == "c":
            raise ValueError("only real valued inputs supported for rfft")
        if x.dtype.kind in "biu":
            x = _convert_element_type(x, "float32")
    elif x.dtype.kind != "c":
        x = _convert_element_type(x, "complex128" if x.dtype.itemsize == 8 else "complex64")
    lengths = _static_shape(fft_lengths)
    return _lax.fft(x, kind.value, lengths) if lengths else x
