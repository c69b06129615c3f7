"""The negative binomial distribution: the number of failures before the n-th success."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.special import _elementary
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


def _log_mass(k: Array, n: Array, p: Array) -> Array:
    """Logarithm of the probability of `k`, for k >= 0, in float64."""
    ways = lax.lgamma(k + n) - lax.lgamma(n) - lax.lgamma(k + 1)
    return ways + n * lax.log(p) + _elementary.xlog1py(k, -p)


@jit
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithm of the probability of `k`.

    Args:
      k: a number of events, of any shape; it broadcasts against the other arguments.
      n: number of successes, positive.
      p: probability of success of each trial.
      loc: what 0 is moved to.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import nbinom
    >>> float(nbinom.logpmf(1, 2, 0.5))
    -1.3862943649291992
    """
    k, n, p, loc = _common.parameters("nbinom.logpmf", k, n, p, loc)
    k = k - loc
    outside = (k < 0) | (k == math.inf)
    k, p = _common.where(outside, 0.0, k), _common.where(outside, 0.5, p)
    return _common.where(outside, -math.inf, _common.in_double(_log_mass, k, n, p))


@jit
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability of `k`.

    Args: as in `logpmf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import nbinom
    >>> float(nbinom.pmf(1, 2, 0.5))
    0.25
    """
    return lax.exp(logpmf(k, n, p, loc))


_expose(globals())
