"""Student's t distribution, with density proportional to (1 + z^2 / df)^(-(df + 1) / 2) for z = (x - loc) / scale."""

from __future__ import annotations

import math

import numpy as np

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.numpy import _polynomial
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


# log(Gamma(h + 1/2) / (Gamma(h) sqrt(h))) in powers of 1 / h: h^-1, h^-3, ... (from Stirling's series, DLMF 5.11.1)
_SERIES = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432)
# from here on the series has every bit of a double
_FAR = 16.0


def _log_peak(df: Array) -> Array:
    """Logarithm of the density at the median, in float64."""
    h = df / 2
    far = h > _FAR
    inverse = 1 / _common.where(far, h, _FAR)
    series = inverse * _polynomial.polyval(np.array(_SERIES[::-1]), inverse * inverse)
    near = _common.where(far, 1.0, h)
    ratio = lax.lgamma(near + 0.5) - lax.lgamma(near) - lax.log(near) / 2
    return _common.where(far, series, ratio) - _common.HALF_LOG_2PI


@jit
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      df: degrees of freedom, positive; infinity is the normal distribution.
      loc: median.
      scale: scale, positive.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import t
    >>> float(t.logpdf(0.0, 1.0))
    -1.1447298526763916
    """
    x, df, loc, scale = _common.parameters("t.logpdf", x, df, loc, scale)
    z = (x - loc) / scale
    square = z * z
    normal = df == math.inf
    degrees = _common.where(normal, 1.0, df)
    tail = _common.where(normal, square, (degrees + 1) * lax.log1p(square / degrees))
    return _common.in_double(_log_peak, df) - tail / 2 - lax.log(lax.abs(scale))


@jit
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import t
    >>> float(t.pdf(0.0, 1.0))
    0.3183099031448364
    """
    return lax.exp(logpdf(x, df, loc, scale))


_expose(globals())
