"""The Poisson distribution: numbers of independent events."""

from __future__ import annotations

import math

import numpy as np

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.numpy import _polynomial
from ferrax.scipy.special import _elementary
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


def _log_mass(k: Array, mu: Array) -> Array:
    """Logarithm of the probability of `k`, for k >= 0, in float64."""
    return _elementary.xlogy(k, mu) - mu - lax.lgamma(k + 1)


#: Mean from which on the series below has every bit of a double; for a smaller one all the mass is below the other.
_FAR, _ALL = 100.0, 220
# entropy - log(2 pi e mu) / 2 in powers of 1 / mu (Evans, Boersma, Blachman, Jagers, SIAM Review 30, 1988)
_SERIES = (-1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520, -1375 / 1008, -33953 / 5040, -57281 / 1440)


def _entropy(mu: Array) -> Array:
    """Entropy, for mu >= 0, in float64."""
    far = mu > _FAR
    large, small = _common.where(far, mu, _FAR), _common.where(far, 1.0, mu)
    inverse = 1 / large
    tail = inverse * _polynomial.polyval(np.array(_SERIES[::-1]), inverse)
    # -log of a probability is mu - k log(mu) + log(k!), of which the last has no closed mean
    k = np.arange(1.0, _ALL)
    steps = (1 / k, np.cumsum(np.log(k)))

    def add(carry: tuple[Array, Array], step: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        mass = carry[0] * (small * step[0])
        return (mass, carry[1] + mass * step[1]), None

    (_, mean), _ = lax.scan(add, (lax.exp(-small), lax.full_like(small, 0)), steps)
    exact = small - _elementary.xlogy(small, small) + mean
    return _common.where(far, _common.HALF_LOG_2PI + (1 + lax.log(large)) / 2 + tail, exact)


@jit
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithm of the probability of `k`.

    Args:
      k: a number of events, of any shape; it broadcasts against the other arguments.
      mu: mean, not negative.
      loc: what 0 is moved to.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import poisson
    >>> float(poisson.logpmf(1, 2.0))
    -1.3068528175354004
    """
    k, mu, loc = _common.parameters("poisson.logpmf", k, mu, loc)
    k = k - loc
    outside = (k < 0) | (k == math.inf) | (k != lax.floor(k)) & (k == k)
    logs = _common.in_double(_log_mass, _common.where(outside, 0.0, k), mu)
    return _common.where(outside, -math.inf, logs)


@jit
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability of `k`.

    Args: as in `logpmf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import poisson
    >>> float(poisson.pmf(1, 2.0))
    0.2706705629825592
    """
    return lax.exp(logpmf(k, mu, loc))


@jit
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability of values up to `x`.

    Args: as in `logpmf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import poisson
    >>> float(poisson.cdf(1, 2.0))
    0.406005859375
    """
    k, mu, loc = _common.parameters("poisson.cdf", k, mu, loc)
    k = k - loc
    below, all_ = k < 0, k == math.inf
    value = _common.igammac(lax.floor(_common.where(below | all_, 0.0, k)) + 1, mu)
    return _common.where(below, 0.0, _common.where(all_, 1.0, value))


@jit
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Entropy in nats.

    Args:
      mu: mean, not negative.
      loc: what 0 is moved to.

    Returns:
      Array of the arguments' common shape and float dtype; NaN where `mu` is negative.

    >>> from ferrax.scipy.stats import poisson
    >>> float(poisson.entropy(2.0))
    1.7048826217651367
    """
    mu, loc = _common.parameters("poisson.entropy", mu, loc)
    valid = mu >= 0
    value = _common.in_double(_entropy, _common.where(valid, mu, 1.0))
    return _common.strong(_common.where(valid, value, lax.full_like(loc, math.nan)))


_expose(globals())
