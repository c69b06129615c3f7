"""The beta distribution, with density z^(a - 1) (1 - z)^(b - 1) / (B(a, b) scale) for z = (x - loc) / scale."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.special import _elementary
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_density(z: Array, a: Array, b: Array) -> Array:
    """Logarithm of the standard density inside the support, in float64."""
    return _elementary.xlogy(a - 1, z) + _elementary.xlog1py(b - 1, -z) - _common.log_beta(a, b)


def _fraction(x: Array, loc: Array, scale: Array) -> Array:
    """`x` as a fraction of the support; at its ends, where the density may be infinite, and beyond a constant."""
    z = (x - loc) / scale
    return _common.where(z <= 0, 0.0, _common.where(z >= 1, 1.0, z))


def _below(z: Array, a: Array, b: Array) -> Array:
    """Probability of values up to `z`."""
    return _common.betainc(a, b, z)


def _log_below(z: Array, a: Array, b: Array) -> Array:
    """Logarithm of the probability of values up to `z`."""
    return _common.log_probability(_below(z, a, b), _below(1 - z, b, a))


def _log_above(z: Array, a: Array, b: Array) -> Array:
    """Logarithm of the probability of values above `z`."""
    return _common.log_probability(_below(1 - z, b, a), _below(z, a, b))


@jit
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      a: exponent of z plus 1, positive.
      b: exponent of 1 - z plus 1, positive.
      loc: lower end of the support.
      scale: length of the support, positive.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import beta
    >>> float(beta.logpdf(0.5, 2.0, 2.0))
    0.40546509623527527
    """
    x, a, b, loc, scale = _common.parameters("beta.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    outside = (z < 0) | (z > 1)
    logs = _common.in_double(_log_density, _common.where(outside, 0.5, z), a, b) - lax.log(scale)
    return _common.where((a > 0) & (b > 0) & (scale > 0), _common.where(outside, -math.inf, logs), math.nan)


@jit
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import beta
    >>> float(beta.pdf(0.5, 2.0, 2.0))
    1.5
    """
    return lax.exp(logpdf(x, a, b, loc, scale))


@jit
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import beta
    >>> float(beta.cdf(0.5, 2.0, 2.0))
    0.5
    """
    x, a, b, loc, scale = _common.parameters("beta.cdf", x, a, b, loc, scale)
    return _below(_fraction(x, loc, scale), a, b)


@jit
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import beta
    >>> float(beta.logcdf(0.5, 2.0, 2.0))
    -0.6931471824645996
    """
    x, a, b, loc, scale = _common.parameters("beta.logcdf", x, a, b, loc, scale)
    return _common.in_double(_log_below, _fraction(x, loc, scale), a, b)


@jit
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values above `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import beta
    >>> float(beta.sf(0.5, 2.0, 2.0))
    0.5
    """
    x, a, b, loc, scale = _common.parameters("beta.sf", x, a, b, loc, scale)
    return _below(1 - _fraction(x, loc, scale), b, a)


@jit
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values above `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import beta
    >>> float(beta.logsf(0.5, 2.0, 2.0))
    -0.6931471824645996
    """
    x, a, b, loc, scale = _common.parameters("beta.logsf", x, a, b, loc, scale)
    return _common.in_double(_log_above, _fraction(x, loc, scale), a, b)


_expose(globals())
