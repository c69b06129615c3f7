"""Windows by name, for spectra: `periodic`. NumPy's double precision, at trace time.

A periodic window of n points is the symmetric one of n + 1 points without its last. Sources: Harris, "On the use of
windows for harmonic analysis with the discrete Fourier transform" (1978); Nuttall, "Some windows with very good
sidelobe behavior" (1981); Slepian, "Prolate spheroidal wave functions V" (1978); Taylor, "Design of line-source
antennas" (1955). Read next: `_spectral.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["periodic"]


def _general_cosine(m: int, a: Sequence[float]) -> np.ndarray:
    angle = np.linspace(-math.pi, math.pi, m)
    return np.cos(np.multiply.outer(angle, np.arange(len(a)))) @ np.asarray(a, np.float64)


def _cosines(*a: float) -> Callable[[int], np.ndarray]:
    return lambda m: _general_cosine(m, a)


def _from_middle(m: int) -> np.ndarray:
    return np.arange(m) - (m - 1) / 2


def _barthann(m: int) -> np.ndarray:
    off = np.abs(np.arange(m) / (m - 1) - 0.5)
    return 0.62 - 0.48 * off + 0.38 * np.cos(2 * math.pi * off)


def _bohman(m: int) -> np.ndarray:
    off = np.abs(np.linspace(-1, 1, m))
    out = (1 - off) * np.cos(math.pi * off) + np.sin(math.pi * off) / math.pi
    out[[0, -1]] = 0
    return out


def _parzen(m: int) -> np.ndarray:
    at = np.abs(_from_middle(m))
    off = at / (m / 2)
    return np.where(at <= (m - 1) / 4, 1 - 6 * off**2 + 6 * off**3, 2 * (1 - off) ** 3)


def _triangle(m: int) -> np.ndarray:
    return 1 - 2 * np.abs(_from_middle(m)) / (m + m % 2)


def _exponential(m: int, center: float | None = None, tau: float = 1.0) -> np.ndarray:
    return np.exp(-np.abs(np.arange(m) - ((m - 1) / 2 if center is None else center)) / tau)


def _general_gaussian(m: int, p: float, sig: float) -> np.ndarray:
    return np.exp(-0.5 * np.abs(_from_middle(m) / sig) ** (2 * p))


def _tukey(m: int, alpha: float = 0.5) -> np.ndarray:
    if alpha <= 0:
        return np.ones(m)
    # where in a half of the window a point lies, 1 within the flat top
    part = np.minimum(np.minimum(np.arange(m), np.arange(m)[::-1]) * 2 / (min(alpha, 1) * (m - 1)), 1)
    return 0.5 * (1 - np.cos(math.pi * part))


def _taylor(m: int, nbar: int = 4, sll: float = 30, norm: bool = True) -> np.ndarray:
    a = math.acosh(10 ** (sll / 20)) / math.pi
    ratio = nbar**2 / (a**2 + (nbar - 0.5) ** 2)
    k = np.arange(1, nbar)
    squares = k**2.0
    above = np.prod(1 - squares[:, None] / ratio / (a**2 + (k - 0.5) ** 2), axis=1)
    quotients = 1 - squares[:, None] / squares
    np.fill_diagonal(quotients, 1)
    factors = (-1.0) ** (k + 1) * above / (2 * np.prod(quotients, axis=1))
    at = lambda n: 1 + 2 * np.cos(2 * math.pi / m * np.multiply.outer(n - m / 2 + 0.5, k)) @ factors
    out = at(np.arange(m))
    return out / at((m - 1) / 2) if norm else out


def _chebyshev(m: int, at: float) -> np.ndarray:
    order = m - 1
    x = math.cosh(math.acosh(10 ** (abs(at) / 20)) / order) * np.cos(math.pi * np.arange(m) / m)
    inside = np.cos(order * np.arccos(np.clip(x, -1, 1)))
    outside = np.cosh(order * np.arccosh(np.maximum(np.abs(x), 1)))
    spectrum = np.where(np.abs(x) <= 1, inside, np.where(x > 1, 1, 2 * (m % 2) - 1) * outside)
    if m % 2:
        half = np.fft.fft(spectrum).real[: (m + 1) // 2]
        out = np.concatenate([half[:0:-1], half])
    else:
        half = np.fft.fft(spectrum * np.exp(1j * math.pi / m * np.arange(m))).real[: m // 2 + 1]
        out = np.concatenate([half[:0:-1], half[1:]])
    return out / out.max()


def _slepian(m: int, nw: float) -> np.ndarray:
    """The eigenvector of Slepian's tridiagonal matrix that has the greatest eigenvalue."""
    n = np.arange(m)
    beside = n[1:] * (m - n[1:]) / 2
    matrix = np.diag(((m - 1 - 2 * n) / 2) ** 2 * math.cos(2 * math.pi * nw / m)) + np.diag(beside, -1)
    out = np.abs(np.linalg.eigh(matrix)[1][:, -1])
    out /= out.max()
    # points of an even window lie beside its peak
    return out * m**2 / (m**2 + nw) if m % 2 == 0 else out


_WINDOWS: dict[str, Callable[..., np.ndarray]] = {
    "barthann brthan bth": _barthann,
    "bartlett bart brt": np.bartlett,
    "blackman black blk": _cosines(0.42, 0.5, 0.08),
    "blackmanharris blackharr bkh": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "bohman bman bmn": _bohman,
    "boxcar box ones rect rectangular": np.ones,
    "chebwin cheb": _chebyshev,
    "cosine halfcosine": lambda m: np.sin(math.pi / m * (np.arange(m) + 0.5)),
    "dpss": _slepian,
    "exponential poisson": _exponential,
    "flattop flat flt": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "gaussian gauss gss": lambda m, std: np.exp(-(_from_middle(m) ** 2) / (2 * std * std)),
    "general_cosine": _general_cosine,
    "general_gaussian general_gauss ggs": _general_gaussian,
    "general_hamming": lambda m, alpha: _general_cosine(m, [alpha, 1 - alpha]),
    "hamming hamm ham": _cosines(0.54, 0.46),
    "hann han": _cosines(0.5, 0.5),
    "kaiser ksr": np.kaiser,
    "lanczos sinc": lambda m: np.sinc(2 * np.arange(m) / (m - 1) - 1),
    "nuttall nutl nut": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "parzen parz par": _parzen,
    "taylor taylorwin": _taylor,
    "triang triangle tri": _triangle,
    "tukey tuk": _tukey,
}
_NAMES = {name: function for names, function in _WINDOWS.items() for name in names.split()}


def periodic(window: str | tuple[Any, ...], n: int) -> np.ndarray:
    """A periodic window.

    Args:
      window: a name of SciPy's, or a tuple of one and the window's parameters.
      n: number of points.

    Returns:
      NumPy array of float64.

    Raises:
      ValueError: there is no such window, or it has other parameters.

    >>> periodic("hann", 4).round(3)
    array([0. , 0.5, 1. , 0.5])
    """
    name, *parameters = (window,) if isinstance(window, str) else window
    function = _NAMES.get(str(name).replace(" ", "_"))
    if function is None:
        raise ValueError(f"Invalid window name {name!r} in parameter {window=}!")
    try:
        return np.ones(1) if n == 1 else np.asarray(function(n + 1, *parameters), np.float64)[:-1]
    except TypeError as error:
        raise ValueError(f"the window {name!r} does not have the parameters of {window=}: {error}") from None
