"""Convolutions, trends and spectra of signals, with SciPy's interface, as JAX has it.

Convolutions are in `_convolve.py`, spectra in `_spectral.py`, windows in `_windows.py`.
"""

from ferrax._boundary import expose as _expose
from ferrax.scipy.signal._convolve import convolve, convolve2d, correlate, correlate2d, fftconvolve
from ferrax.scipy.signal._spectral import csd, detrend, istft, stft, welch

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch",
]  # fmt: skip

_expose(globals())
