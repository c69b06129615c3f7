"""The logistic distribution, with density exp(-z) / (scale (1 + exp(-z))^2) for z = (x - loc) / scale."""

from __future__ import annotations

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.numpy import _elementwise
from ferrax.scipy.special import _elementary
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@jit
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      loc: mean.
      scale: sqrt(3) / pi times the standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import logistic
    >>> float(logistic.logpdf(0.0))
    -1.3862943649291992
    """
    x, loc, scale = _common.parameters("logistic.logpdf", x, loc, scale)
    z = (x - loc) / scale
    # both of log(cdf) and log(sf): smooth, and exact in both tails
    return -_elementwise.logaddexp(z, 0) - _elementwise.logaddexp(-z, 0) - lax.log(scale)


@jit
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import logistic
    >>> float(logistic.pdf(0.0))
    0.25
    """
    return lax.exp(logpdf(x, loc, scale))


@jit
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import logistic
    >>> float(logistic.cdf(0.0))
    0.5
    """
    x, loc, scale = _common.parameters("logistic.cdf", x, loc, scale)
    return lax.logistic((x - loc) / scale)


@jit
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values above `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import logistic
    >>> float(logistic.sf(0.0))
    0.5
    """
    x, loc, scale = _common.parameters("logistic.sf", x, loc, scale)
    return lax.logistic((loc - x) / scale)


@jit
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile: where `cdf` is `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype; NaN unless 0 <= x <= 1.

    >>> from ferrax.scipy.stats import logistic
    >>> float(logistic.ppf(0.5))
    0.0
    """
    x, loc, scale = _common.parameters("logistic.ppf", x, loc, scale)
    return loc + scale * _elementary.logit(x)


@jit
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Where `sf` is `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype; NaN unless 0 <= x <= 1.

    >>> from ferrax.scipy.stats import logistic
    >>> float(logistic.isf(0.5))
    0.0
    """
    x, loc, scale = _common.parameters("logistic.isf", x, loc, scale)
    return loc - scale * _elementary.logit(x)


_expose(globals())
