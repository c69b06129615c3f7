"""The uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@jit
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      loc: lower end of the support.
      scale: length of the support.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import uniform
    >>> float(uniform.logpdf(0.5))
    -0.0
    """
    x, loc, scale = _common.parameters("uniform.logpdf", x, loc, scale)
    z = (x - loc) / scale
    inside = _common.where(z != z, z, -lax.log(scale))
    return _common.where((x < loc) | (x > loc + scale), -math.inf, inside)


@jit
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import uniform
    >>> float(uniform.pdf(0.5))
    1.0
    """
    return lax.exp(logpdf(x, loc, scale))


@jit
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import uniform
    >>> float(uniform.cdf(0.25))
    0.25
    """
    x, loc, scale = _common.parameters("uniform.cdf", x, loc, scale)
    return _common.strong(_common.where(x < loc, 0.0, _common.where(x > loc + scale, 1.0, (x - loc) / scale)))


@jit
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile: where `cdf` is `q`.

    Args:
      q: probability, of any shape.
      loc: lower end of the support.
      scale: length of the support.

    Returns:
      Array of the arguments' common shape and float dtype; NaN unless 0 <= q <= 1.

    >>> from ferrax.scipy.stats import uniform
    >>> float(uniform.ppf(0.25))
    0.25
    """
    q, loc, scale = _common.parameters("uniform.ppf", q, loc, scale)
    return loc + scale * _common.probability(q)


_expose(globals())
