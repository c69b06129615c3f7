"""The normal distribution cut off to a <= z <= b, for z = (x - loc) / scale.

The mass between two points is a difference in the tail in which both are, of logarithms: it is exact far out, too.
"""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.special import _normal
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_below_normal(x: Array) -> Array:
    """Logarithm of the probability that a standard normal variable is below `x`, with the slope 0 at -inf."""
    none = x == -math.inf
    return _common.where(none, -math.inf, _normal.log_ndtr(_common.where(none, 0.0, x)))


def _tails(x: Array) -> tuple[Array, Array]:
    """Logarithms of the probabilities of being below and above `x`."""
    return _log_below_normal(x), _log_below_normal(-x)


def _log_between(a: Array, tails_a: tuple[Array, Array], tails_b: tuple[Array, Array]) -> Array:
    """Logarithm of the probability of being between `a` and a larger b: below b, less below a, or from above."""
    upper = a > 0
    more, less = _common.where(upper, tails_a[1], tails_b[0]), _common.where(upper, tails_b[1], tails_a[0])
    return more + _common.log1mexp(more - less)


def _log_mass(a: Array, b: Array) -> Array:
    """Logarithm of the probability that a standard normal variable is in [a, b], for a < b."""
    return _log_between(a, _tails(a), _tails(b))


def _between(a: Array, b: Array) -> Array:
    """A number between two, which may be infinite."""
    low, high = a == -math.inf, b == math.inf
    ends = _common.where(low, -1.0, a), _common.where(high, 1.0, b)
    middle = _common.where(low, ends[1] - 1, _common.where(high, ends[0] + 1, (ends[0] + ends[1]) / 2))
    return _common.where(low & high, 0.0, middle)


def _log_below(z: Array, a: Array, b: Array) -> Array:
    """Logarithm of the probability of values below `z`, in float64."""
    below, above = z <= a, z >= b
    middle = _common.where(below | above, _between(a, b), z)
    tails_a, tails, tails_b = _tails(a), _tails(middle), _tails(b)
    total = _log_between(a, tails_a, tails_b)
    logs = _log_between(a, tails_a, tails) - total
    # near 0 from the other side
    near = logs > -0.1
    rest = _common.where(near, _log_between(middle, tails, tails_b) - total, -1.0)
    inside = _common.where(near, lax.log1p(-lax.exp(rest)), logs)
    return _ordered(a, b, _common.where(below, -math.inf, _common.where(above, 0.0, inside)))


def _ordered(a: Array, b: Array, value: Array) -> Array:
    """NaN where the bounds are in the wrong order."""
    return _common.where(a < b, value, math.nan)


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
    return _common.strong(_ordered(a, b, _common.where((z < a) | (z > b), -math.inf, logs)))


@jit
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args: as in `logpdf`.

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

    Args: as in `logpdf`.

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

    Args: as in `logpdf`.

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

    Args: as in `logpdf`.

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

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import truncnorm
    >>> float(truncnorm.sf(0.0, -1.0, 1.0))
    0.5
    """
    return lax.exp(logsf(x, a, b, loc, scale))


_expose(globals())
