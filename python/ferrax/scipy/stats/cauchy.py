"""The Cauchy distribution, with density 1 / (pi scale (1 + z^2)) for z = (x - loc) / scale.

Angles from the near axis keep tails exact: the probability above z is atan2(1, z) / pi.
"""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _above(z: Array) -> Array:
    """Probability of values above `z`."""
    return lax.atan2(lax.full_like(z, 1), z) / math.pi


def _quantile(q: Array) -> Array:
    """-cot(pi q), with both of its factors exact where they are small."""
    sine = lax.sin(math.pi * _common.where(q < 0.5, q, 1 - q))
    return _common.where((q >= 0) & (q <= 1), lax.sin(math.pi * (q - 0.5)) / sine, math.nan)


@jit
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      loc: median.
      scale: half width at half maximum.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import cauchy
    >>> float(cauchy.logpdf(0.0))
    -1.1447298526763916
    """
    x, loc, scale = _common.parameters("cauchy.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -lax.log(math.pi * scale) - lax.log1p(z * z)


@jit
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import cauchy
    >>> float(cauchy.pdf(0.0))
    0.3183099031448364
    """
    return lax.exp(logpdf(x, loc, scale))


@jit
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import cauchy
    >>> float(cauchy.cdf(1.0))
    0.75
    """
    x, loc, scale = _common.parameters("cauchy.cdf", x, loc, scale)
    return _above((loc - x) / scale)


@jit
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values up to `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import cauchy
    >>> float(cauchy.logcdf(-1e6))
    -14.960240364074707
    """
    x, loc, scale = _common.parameters("cauchy.logcdf", x, loc, scale)
    z = (x - loc) / scale
    return _common.log_probability(_above(-z), _above(z))


@jit
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values above `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import cauchy
    >>> float(cauchy.sf(1.0))
    0.25
    """
    x, loc, scale = _common.parameters("cauchy.sf", x, loc, scale)
    return _above((x - loc) / scale)


@jit
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values above `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import cauchy
    >>> float(cauchy.logsf(1e6))
    -14.960240364074707
    """
    x, loc, scale = _common.parameters("cauchy.logsf", x, loc, scale)
    z = (x - loc) / scale
    return _common.log_probability(_above(z), _above(-z))


@jit
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile: where `cdf` is `q`.

    Args:
      q: probability, of any shape.
      loc: median.
      scale: half width at half maximum.

    Returns:
      Array of the arguments' common shape and float dtype; NaN unless 0 <= q <= 1.

    >>> from ferrax.scipy.stats import cauchy
    >>> float(cauchy.ppf(0.5))
    0.0
    """
    q, loc, scale = _common.parameters("cauchy.ppf", q, loc, scale)
    return loc + scale * _quantile(q)


@jit
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Where `sf` is `q`.

    Args, Returns: as in `ppf`.

    >>> from ferrax.scipy.stats import cauchy
    >>> float(cauchy.isf(0.5))
    0.0
    """
    q, loc, scale = _common.parameters("cauchy.isf", q, loc, scale)
    return loc - scale * _quantile(q)


_expose(globals())
