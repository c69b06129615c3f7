"""The gamma function in float64.

Γ is Stirling's formula from 10 on, by powers of exact numbers; below, its argument is raised by 10 and what the sum's
rounding left out is put back (DLMF 5.11.3, 5.5.1, 5.5.3). Read next: `_tails.py`.
"""

from __future__ import annotations

import numpy as np

from ferrax._core import Array
from ferrax.lax._double import smooth
from ferrax.lax._tails import stirling, where
from ferrax.lax.conversion import RoundingMethod, round
from ferrax.lax.elementwise import abs, digamma, exp, is_finite, log, min, pow, rem, sin
from ferrax.lax.shape import full_like

__all__ = ["gamma_factors", "gamma_function", "nearest"]

_INF, _NAN = float("inf"), float("nan")


def nearest(x: Array) -> Array:
    """The nearest whole number."""
    return round(x, RoundingMethod.TO_NEAREST_EVEN)


def gamma_factors(x: Array) -> tuple[Array, Array]:
    """Two numbers whose product is Γ(x), for x > 0: it may be beyond the range where its inverse is not yet 0."""
    low = x < 10
    raised = x + 10
    lost = where(low, x - (raised - 10), 0.0)
    y = min(where(low, raised, x), full_like(x, 200))  # Γ(200) is infinite
    half = pow(y, 0.5 * y - 0.25)
    scale = np.sqrt(2 * np.pi) * exp(-y) * exp(stirling(y))
    below = x
    for k in range(1, 10):
        below = below * (x + k)
    # the slope of log Γ times what the rounding of x + 10 left out
    return half, half * scale * where(low, (1 + lost * (log(y) - 0.5 / y)) / where(low, below, 1.0), 1.0)


@smooth(lambda value, x: value * digamma(x))
def gamma_function(x: Array) -> Array:
    whole = nearest(x)
    negative, pole = x < 0, (x <= 0) & (whole == x)
    size = where((x == 0) | ~is_finite(x), 1.0, abs(x))
    one, other = gamma_factors(size)
    value = one * other
    # factorials are whole; up to here the error is below 1/2
    value = where((whole == x) & (value < 2.0**50), nearest(value), value)
    turn = where(negative & ~pole, x - whole, 0.5)
    parity = 1 - 2 * abs(rem(where(is_finite(whole), whole, 0.0), full_like(x, 2)))
    reflected = np.pi / (size * sin(np.pi * turn) * parity) / one / other
    edge = where(x == 0, 1 / x, where(x == _INF, x, _NAN))
    return where((x == 0) | ~is_finite(x) | pole, edge, where(negative, reflected, value))
