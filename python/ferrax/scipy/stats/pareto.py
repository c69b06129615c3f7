"""The Pareto distribution, with density b / (scale z^(b + 1)) for z = (x - loc) / scale >= 1."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _log_ratio(x: Array, loc: Array, scale: Array) -> tuple[Array, Array]:
    """Where `x` is below the support, and log z, 0 there."""
    z = (x - loc) / scale
    below = z < 1
    return below, lax.log(_common.where(below, 1.0, z))


@jit
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      b: exponent of the tail, positive.
      loc: origin.
      scale: distance from the origin to the lower end of the support.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import pareto
    >>> float(pareto.logpdf(1.0, 2.0))
    0.6931471824645996
    """
    x, b, loc, scale = _common.parameters("pareto.logpdf", x, b, loc, scale)
    below, log_z = _log_ratio(x, loc, scale)
    return _common.where(below, -math.inf, lax.log(b / scale) - (b + 1) * log_z)


@jit
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import pareto
    >>> float(pareto.pdf(1.0, 2.0))
    2.0
    """
    return lax.exp(logpdf(x, b, loc, scale))


@jit
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import pareto
    >>> float(pareto.cdf(2.0, 2.0))
    0.75
    """
    x, b, loc, scale = _common.parameters("pareto.cdf", x, b, loc, scale)
    return _common.one_minus_exp(b * _log_ratio(x, loc, scale)[1])


@jit
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import pareto
    >>> float(pareto.logcdf(2.0, 2.0))
    -0.28768205642700195
    """
    x, b, loc, scale = _common.parameters("pareto.logcdf", x, b, loc, scale)
    log_z = _log_ratio(x, loc, scale)[1]
    # at the end of the support, too, where the slope is infinite
    none = log_z <= 0
    return _common.where(none, -math.inf, _common.log1mexp(_common.where(none, 1.0, b * log_z)))


@jit
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values above `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import pareto
    >>> float(pareto.sf(2.0, 2.0))
    0.25
    """
    return lax.exp(logsf(x, b, loc, scale))


@jit
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values above `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import pareto
    >>> float(pareto.logsf(1e6, 2.0))
    -27.63102149963379
    """
    x, b, loc, scale = _common.parameters("pareto.logsf", x, b, loc, scale)
    return -b * _log_ratio(x, loc, scale)[1]


@jit
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile: where `cdf` is `q`.

    Args:
      q: probability, of any shape.
      b: exponent of the tail, positive.
      loc: origin.
      scale: distance from the origin to the lower end of the support.

    Returns:
      Array of the arguments' common shape and float dtype; NaN unless 0 <= q <= 1.

    >>> from ferrax.scipy.stats import pareto
    >>> float(pareto.ppf(0.75, 2.0))
    2.0
    """
    q, b, loc, scale = _common.parameters("pareto.ppf", q, b, loc, scale)
    return loc + scale * lax.exp(-lax.log1p(-_common.probability(q)) / b)


_expose(globals())
