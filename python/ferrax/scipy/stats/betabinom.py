"""The beta-binomial distribution: the number of successes in n trials, whose probability has a beta distribution."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


def _log_mass(k: Array, n: Array, a: Array, b: Array) -> Array:
    """Logarithm of the probability of `k`, for 0 <= k <= n, in float64."""
    ways = -lax.log1p(n) - _common.log_beta(n - k + 1, k + 1)
    return ways + _common.log_beta(k + a, n - k + b) - _common.log_beta(a, b)


@jit
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithm of the probability of `k`.

    Args:
      k: a number of successes, of any shape; it broadcasts against the other arguments.
      n: number of trials.
      a: first shape of the beta distribution, positive.
      b: its second shape, positive.
      loc: what 0 is moved to.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import betabinom
    >>> float(betabinom.logpmf(1, 2, 1.0, 1.0))
    -1.0986123085021973
    """
    k, n, a, b, loc = _common.parameters("betabinom.logpmf", k, n, a, b, loc)
    k = lax.floor(k) - loc
    outside = (k < 0) | (k > n)
    logs = _common.in_double(_log_mass, _common.where(outside, 0.0, k), _common.where(outside, 0.0, n), a, b)
    return _common.where((a > 0) & (b > 0) & (n >= 0), _common.where(outside, -math.inf, logs), math.nan)


@jit
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability of `k`.

    Args: as in `logpmf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import betabinom
    >>> float(betabinom.pmf(1, 2, 1.0, 1.0))
    0.3333333134651184
    """
    return lax.exp(logpmf(k, n, a, b, loc))


_expose(globals())
