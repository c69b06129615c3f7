"""The von Mises distribution of angles, with density exp(kappa cos(x)) / (2 pi I0(kappa))."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


@jit
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """Logarithm of the density.

    Args:
      x: angle, of any shape; it broadcasts against `kappa`.
      kappa: concentration, not negative.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import vonmises
    >>> float(vonmises.logpdf(0.0, 1.0))
    -1.07379150390625
    """
    x, kappa = _common.parameters("vonmises.logpdf", x, kappa)
    half = lax.sin(x / 2)
    logs = -2 * kappa * half * half - lax.log(2 * math.pi * lax.bessel_i0e(kappa))
    return _common.where(kappa < 0, math.nan, logs)


@jit
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import vonmises
    >>> float(vonmises.pdf(0.0, 1.0))
    0.3417104482650757
    """
    return lax.exp(logpdf(x, kappa))


_expose(globals())
