"""The law of log(e) for an exponential variable e, which `gumbel_l` has, and `gumbel_r` with its sign turned.

P(log e > y) = exp(-exp(y)). Beyond y = 8 that is zero in every dtype, so that exponents stop there, before they
overflow. Read next: `gumbel_l.py`.
"""

from __future__ import annotations

from ferrax import lax
from ferrax._narrow import limits
from ferrax.numpy import _ufuncs
from ferrax.scipy.stats._common import Array, log1mexp, one_minus_exp, where

__all__ = ["above", "below", "density", "log_above", "log_below", "log_density"]

_ALL = 8.0
# w = exp(y) below which log(1 - exp(-w)) is y - w / 2 to the last bit of a double
_NONE = -20.0


def log_density(y: Array) -> Array:
    """Logarithm of the density at `y`."""
    # of infinities the difference is NaN
    return _ufuncs.minimum(y, float(limits(y.dtype).max)) - lax.exp(y)


def density(y: Array) -> Array:
    """Density at `y`."""
    y = _ufuncs.minimum(y, _ALL)
    return lax.exp(y - lax.exp(y))


def above(y: Array) -> Array:
    """Probability of values above `y`."""
    return lax.exp(-lax.exp(_ufuncs.minimum(y, _ALL)))


def log_above(y: Array) -> Array:
    """Logarithm of the probability of values above `y`."""
    return -lax.exp(y)


def below(y: Array) -> Array:
    """Probability of values below `y`."""
    return one_minus_exp(lax.exp(_ufuncs.minimum(y, _ALL)))


def log_below(y: Array) -> Array:
    """Logarithm of the probability of values below `y`."""
    far = y < _NONE
    w = lax.exp(_ufuncs.minimum(y, _ALL))
    return where(far, y - w / 2, log1mexp(where(far, 1.0, w)))
