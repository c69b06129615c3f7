"""The binomial distribution: the number of successes in n trials."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.special import _elementary
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


def _log_mass(k: Array, n: Array, p: Array) -> Array:
    """Logarithm of the probability of `k`, for 0 <= k <= n, in float64."""
    ways = lax.lgamma(n + 1) - (lax.lgamma(k + 1) + lax.lgamma(n - k + 1))
    return ways + _elementary.xlogy(k, p) + _elementary.xlog1py(n - k, -p)


@jit
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithm of the probability of `k`.

    Args:
      k: a number of events, of any shape; it broadcasts against the other arguments.
      n: number of trials.
      p: probability of success of each.
      loc: what 0 is moved to.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import binom
    >>> float(binom.logpmf(1, 2, 0.5))
    -0.6931471824645996
    """
    k, n, p, loc = _common.parameters("binom.logpmf", k, n, p, loc)
    k = k - loc
    outside = (k < 0) | (k >= n + 1)
    logs = _common.in_double(_log_mass, _common.where(outside, 0.0, k), _common.where(outside, 0.0, n), p)
    return _common.where(outside, -math.inf, logs)


@jit
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability of `k`.

    Args: as in `logpmf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import binom
    >>> float(binom.pmf(1, 2, 0.5))
    0.5
    """
    return lax.exp(logpmf(k, n, p, loc))


_expose(globals())
