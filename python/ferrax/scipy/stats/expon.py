"""The exponential distribution, with density exp(-z) / scale for z = (x - loc) / scale >= 0."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@jit
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      loc: lower end of the support.
      scale: mean less `loc`.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import expon
    >>> float(expon.logpdf(3.0))
    -3.0
    """
    x, loc, scale = _common.parameters("expon.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return _common.where(z < 0, -math.inf, -z - lax.log(scale))


@jit
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import expon
    >>> float(expon.pdf(0.0))
    1.0
    """
    return lax.exp(logpdf(x, loc, scale))


@jit
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import expon
    >>> float(expon.cdf(1.0))
    0.6321205496788025
    """
    x, loc, scale = _common.parameters("expon.cdf", x, loc, scale)
    return _common.one_minus_exp(_common.clipped((x - loc) / scale))


@jit
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import expon
    >>> float(expon.logcdf(1.0))
    -0.4586751461029053
    """
    x, loc, scale = _common.parameters("expon.logcdf", x, loc, scale)
    z = (x - loc) / scale
    return _common.where(z < 0, -math.inf, _common.log1mexp(_common.clipped(z)))


@jit
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values above `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import expon
    >>> float(expon.sf(1.0))
    0.3678794503211975
    """
    return lax.exp(logsf(x, loc, scale))


@jit
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values above `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import expon
    >>> float(expon.logsf(3.0))
    -3.0
    """
    x, loc, scale = _common.parameters("expon.logsf", x, loc, scale)
    return -_common.clipped((x - loc) / scale)


@jit
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile: where `cdf` is `q`.

    Args:
      q: probability, of any shape.
      loc: lower end of the support.
      scale: mean less `loc`.

    Returns:
      Array of the arguments' common shape and float dtype; NaN unless 0 <= q <= 1.

    >>> from ferrax.scipy.stats import expon
    >>> float(expon.ppf(0.5))
    0.6931471824645996
    """
    q, loc, scale = _common.parameters("expon.ppf", q, loc, scale)
    return loc - scale * lax.log1p(-_common.probability(q))


_expose(globals())
