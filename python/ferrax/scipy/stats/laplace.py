"""The Laplace distribution, with density exp(-|z|) / (2 scale) for z = (x - loc) / scale."""

from __future__ import annotations

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf"]


@jit
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      loc: median.
      scale: mean distance from the median.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import laplace
    >>> float(laplace.logpdf(0.0))
    -0.6931471824645996
    """
    x, loc, scale = _common.parameters("laplace.logpdf", x, loc, scale)
    return -lax.abs((x - loc) / scale) - lax.log(2 * scale)


@jit
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import laplace
    >>> float(laplace.pdf(0.0))
    0.5
    """
    return lax.exp(logpdf(x, loc, scale))


@jit
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import laplace
    >>> float(laplace.cdf(0.0))
    0.5
    """
    x, loc, scale = _common.parameters("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    below = z < 0
    # not by |z|, whose derivative at 0 is 0
    tail = lax.exp(_common.where(below, z, -z)) / 2
    return _common.where(below, tail, 1 - tail)


_expose(globals())
