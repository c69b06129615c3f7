"""The gamma distribution, with density z^(a - 1) exp(-z) / (Gamma(a) scale) for z = (x - loc) / scale >= 0."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.special import _elementary
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_density(z: Array, a: Array) -> Array:
    """Logarithm of the standard density inside the support, in float64."""
    return _elementary.xlogy(a - 1, z) - z - lax.lgamma(a)


def _distance(x: Array, loc: Array, scale: Array) -> Array:
    """Distance from the end of the support, where the density may be infinite: there, too, a constant."""
    z = (x - loc) / scale
    return _common.where(z <= 0, 0.0, z)


@jit
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      a: shape, positive.
      loc: lower end of the support.
      scale: scale, positive.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import gamma
    >>> float(gamma.logpdf(1.0, 2.0))
    -1.0
    """
    x, a, loc, scale = _common.parameters("gamma.logpdf", x, a, loc, scale)
    z = (x - loc) / scale
    outside = (z < 0) | (z == math.inf)
    logs = _common.in_double(_log_density, _common.where(outside, 1.0, z), a) - lax.log(scale)
    return _common.where(outside, -math.inf, logs)


@jit
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import gamma
    >>> float(gamma.pdf(1.0, 2.0))
    0.3678794503211975
    """
    return lax.exp(logpdf(x, a, loc, scale))


@jit
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import gamma
    >>> float(gamma.cdf(1.0, 1.0))
    0.6321205496788025
    """
    x, a, loc, scale = _common.parameters("gamma.cdf", x, a, loc, scale)
    return _common.igamma(a, _distance(x, loc, scale))


@jit
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import gamma
    >>> float(gamma.logcdf(1.0, 1.0))
    -0.4586751461029053
    """
    x, a, loc, scale = _common.parameters("gamma.logcdf", x, a, loc, scale)
    return _common.log_of_share(_common.igamma, _common.igammac, a, _distance(x, loc, scale))


@jit
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values above `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import gamma
    >>> float(gamma.sf(1.0, 1.0))
    0.3678794503211975
    """
    x, a, loc, scale = _common.parameters("gamma.sf", x, a, loc, scale)
    return _common.igammac(a, _distance(x, loc, scale))


@jit
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values above `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import gamma
    >>> float(gamma.logsf(1.0, 1.0))
    -1.0
    """
    x, a, loc, scale = _common.parameters("gamma.logsf", x, a, loc, scale)
    return _common.log_of_share(_common.igammac, _common.igamma, a, _distance(x, loc, scale))


_expose(globals())
