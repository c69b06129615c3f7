"""The generalized normal distribution, with density beta exp(-|x|^beta) / (2 Gamma(1 / beta))."""

from __future__ import annotations

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf"]


#: |x|^beta up to which the density is that at 0 to the last bit of a double.
_FLAT = 1e-17


@jit
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      beta: exponent, positive: 1 for the Laplace, 2 for a normal distribution.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import gennorm
    >>> float(gennorm.logpdf(0.0, 2.0))
    -0.5723649263381958
    """
    x, beta = _common.parameters("gennorm.logpdf", x, beta)
    return lax.log(beta / 2) - lax.lgamma(1 / beta) - lax.abs(x) ** beta


@jit
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import gennorm
    >>> float(gennorm.pdf(0.0, 2.0))
    0.564189612865448
    """
    return lax.exp(logpdf(x, beta))


@jit
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """Probability of values up to `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import gennorm
    >>> float(gennorm.cdf(0.0, 2.0))
    0.5
    """
    x, beta = _common.parameters("gennorm.cdf", x, beta)
    power = lax.abs(x) ** beta
    flat = power < _FLAT
    middle = 0.5 + x * lax.exp(lax.log(beta / 2) - lax.lgamma(1 / beta))
    # from the tail on the side of x: half of a survival function, whose slope at 0 is infinite, and that of power 0
    tail = _common.igammac(1 / beta, _common.where(flat, 1.0, power)) / 2
    return _common.where(flat, middle, _common.where(x < 0, tail, 1 - tail))


_expose(globals())
