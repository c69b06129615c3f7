"""The Bernoulli distribution: 1 with probability p, else 0."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.special import _elementary
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


@jit
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithm of the probability of `k`.

    Args:
      k: 0 or 1, of any shape; it broadcasts against the other arguments.
      p: probability of 1.
      loc: what 0 is moved to.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import bernoulli
    >>> float(bernoulli.logpmf(1, 0.5))
    -0.6931471824645996
    """
    k, p, loc = _common.parameters("bernoulli.logpmf", k, p, loc)
    k = k - loc
    outside = (k < 0) | (k > 1)
    p = _common.where(outside, 0.5, p)
    return _common.where(outside, -math.inf, _elementary.xlogy(k, p) + _elementary.xlog1py(1 - k, -p))


@jit
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability of `k`.

    Args: as in `logpmf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import bernoulli
    >>> float(bernoulli.pmf(1, 0.25))
    0.25
    """
    return lax.exp(logpmf(k, p, loc))


@jit
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """Probability of values up to `x`.

    Args:
      k: 0 or 1, of any shape; it broadcasts against the other arguments.
      p: probability of 1.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import bernoulli
    >>> float(bernoulli.cdf(0, 0.25))
    0.75
    """
    k, p = _common.parameters("bernoulli.cdf", k, p)
    valid = (p >= 0) & (p <= 1) & (k == k)
    value = _common.where(k < 0, 0.0, _common.where(k < 1, 1 - p, 1.0))
    return _common.where(valid, value, math.nan)


@jit
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """Quantile: where `cdf` is `q`.

    Args:
      q: probability, of any shape.
      p: probability of 1.

    Returns:
      Array of the arguments' common shape and float dtype; NaN unless 0 <= q <= 1.

    >>> from ferrax.scipy.stats import bernoulli
    >>> float(bernoulli.ppf(0.9, 0.25))
    1.0
    """
    q, p = _common.parameters("bernoulli.ppf", q, p)
    valid = (q >= 0) & (q <= 1) & (p >= 0) & (p <= 1)
    return _common.where(valid, _common.where(q <= 1 - p, 0.0, lax.full_like(p, 1)), math.nan)


_expose(globals())
