"""The normal distribution cut off to a <= z <= b, for z = (x - loc) / scale.

The mass between two points is a difference in the tail in which both are, of logarithms: it is exact far out, too.
"""

from __future__ import annotations

import math
from typing import Any

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.special import _normal
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_mass(a: Array, b: Array) -> Array:
    """Logarithm of the probability that a standard normal variable is in [a, b], for a < b."""
    # in the lower tail, or in the upper one seen from the other side
    upper = a > 0
    low, high = _common.where(upper, -b, a), _common.where(upper, -a, b)
    all_below = low == -math.inf
    below_low = _normal.log_ndtr(_common.where(all_below, high - 1, low))
    below_high = _normal.log_ndtr(high)
    return below_high + _common.where(all_below, 0.0, _common.log1mexp(below_high - below_low))


def _cut(a: Array, b: Array, *pieces: Any) -> Array:
    """Masks and values in turn, the last without a mask; NaN where the bounds are in the wrong order."""
    below, low, above, high, inside = pieces
    return _common.where(a < b, _common.where(below, low, _common.where(above, high, inside)), math.nan)


def _log_below(z: Array, a: Array, b: Array) -> Array:
    """Logarithm of the probability of values below `z`."""
    below, above = z <= a, z >= b
    outside = below | above
    low, middle, high = (_common.where(outside, v, x) for v, x in ((-1.0, a), (0.0, z), (1.0, b)))
    total = _log_mass(low, high)
    logs = _log_mass(low, middle) - total
    # near 0 by the other side
    near = logs > -0.1
    rest = _common.where(near, _log_mass(middle, high) - total, -1.0)
    return _cut(a, b, below, -math.inf, above, 0.0, _common.where(near, lax.log1p(-lax.exp(rest)), logs))


@jit
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      a: lower bound of z = (x - loc) / scale.
      b: upper bound of z.
      loc: mean of the normal distribution that is cut.
      scale: its standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import truncnorm
    >>> float(truncnorm.logpdf(0.0, -1.0, 1.0))
    -0.5372233390808105
    """
    x, a, b, loc, scale = _common.parameters("truncnorm.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    logs = -(z * z) / 2 - (lax.log(scale) + _common.HALF_LOG_2PI) - _common.in_double(_log_mass, a, b)
    return _common.strong(_cut(a, b, z < a, -math.inf, z > b, -math.inf, logs))


@jit
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      a: lower bound of z = (x - loc) / scale.
      b: upper bound of z.
      loc: mean of the normal distribution that is cut.
      scale: its standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import truncnorm
    >>> float(truncnorm.pdf(0.0, -1.0, 1.0))
    0.5843685865402222
    """
    return lax.exp(logpdf(x, a, b, loc, scale))


@jit
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values up to `x`.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      a: lower bound of z = (x - loc) / scale.
      b: upper bound of z.
      loc: mean of the normal distribution that is cut.
      scale: its standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import truncnorm
    >>> float(truncnorm.logcdf(0.0, -1.0, 1.0))
    -0.6931471824645996
    """
    x, a, b, loc, scale = _common.parameters("truncnorm.logcdf", x, a, b, loc, scale)
    return _common.strong(_common.in_double(_log_below, (x - loc) / scale, a, b))


@jit
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      a: lower bound of z = (x - loc) / scale.
      b: upper bound of z.
      loc: mean of the normal distribution that is cut.
      scale: its standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import truncnorm
    >>> float(truncnorm.cdf(0.0, -1.0, 1.0))
    0.5
    """
    return lax.exp(logcdf(x, a, b, loc, scale))


@jit
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values above `x`.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      a: lower bound of z = (x - loc) / scale.
      b: upper bound of z.
      loc: mean of the normal distribution that is cut.
      scale: its standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import truncnorm
    >>> float(truncnorm.logsf(0.0, -1.0, 1.0))
    -0.6931471824645996
    """
    x, a, b, loc, scale = _common.parameters("truncnorm.logsf", x, a, b, loc, scale)
    return _common.strong(_common.in_double(_log_below, (loc - x) / scale, -b, -a))


@jit
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values above `x`.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      a: lower bound of z = (x - loc) / scale.
      b: upper bound of z.
      loc: mean of the normal distribution that is cut.
      scale: its standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import truncnorm
    >>> float(truncnorm.sf(0.0, -1.0, 1.0))
    0.5
    """
    return lax.exp(logsf(x, a, b, loc, scale))


_expose(globals())
