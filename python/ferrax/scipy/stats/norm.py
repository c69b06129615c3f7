"""The normal distribution, with density exp(-z^2 / 2) / (sqrt(2 pi) scale) for z = (x - loc) / scale."""

from __future__ import annotations

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.special import _normal
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@jit
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density `-z**2 / 2 - log(sqrt(2 pi) scale)`, z = (x - loc) / scale.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      loc: mean.
      scale: standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import norm
    >>> norm.logpdf(jnp.array([-1.0, 0.0, 1.0]))
    Array([-1.4189385, -0.9189385, -1.4189385], dtype=float32)
    """
    x, loc, scale = _common.parameters("norm.logpdf", x, loc, scale)
    z = (x - loc) / scale
    # the density is even in the scale
    return -(z * z) / 2 - (lax.log(lax.abs(scale)) + _common.HALF_LOG_2PI)


@jit
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import norm
    >>> float(norm.pdf(0.0))
    0.3989422917366028
    """
    return lax.exp(logpdf(x, loc, scale))


@jit
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import norm
    >>> float(norm.cdf(0.0))
    0.5
    """
    x, loc, scale = _common.parameters("norm.cdf", x, loc, scale)
    return _normal.ndtr((x - loc) / scale)


@jit
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values up to `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import norm
    >>> float(norm.logcdf(-40.0))
    -804.6084594726562
    """
    x, loc, scale = _common.parameters("norm.logcdf", x, loc, scale)
    return _normal.log_ndtr((x - loc) / scale)


@jit
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values above `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import norm
    >>> float(norm.sf(10.0))
    7.619852819271277e-24
    """
    x, loc, scale = _common.parameters("norm.sf", x, loc, scale)
    return _normal.ndtr((loc - x) / scale)


@jit
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values above `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import norm
    >>> float(norm.logsf(40.0))
    -804.6084594726562
    """
    x, loc, scale = _common.parameters("norm.logsf", x, loc, scale)
    return _normal.log_ndtr((loc - x) / scale)


@jit
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile: where `cdf` is `q`.

    Args:
      q: probability, of any shape.
      loc: mean.
      scale: standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype; NaN unless 0 <= q <= 1.

    >>> from ferrax.scipy.stats import norm
    >>> float(norm.ppf(0.5))
    0.0
    """
    q, loc, scale = _common.parameters("norm.ppf", q, loc, scale)
    return loc + scale * _normal.ndtri(q)


@jit
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Where `sf` is `q`.

    Args, Returns: as in `ppf`.

    >>> from ferrax.scipy.stats import norm
    >>> float(norm.isf(1e-10))
    6.361340522766113
    """
    q, loc, scale = _common.parameters("norm.isf", q, loc, scale)
    return loc - scale * _normal.ndtri(q)


_expose(globals())
