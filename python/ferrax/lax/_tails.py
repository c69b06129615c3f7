"""Integrals of the incomplete gamma and beta functions, with their parameters' derivatives, in float64.

With t = x e^-u the lower incomplete gamma function is x^a e^-x times the integral over u > 0 of exp(-E),
E = a u - x (1 - e^-u), and with t = x e^u the upper one has E = x (e^u - 1) - a u; with logit t = logit x - u the
incomplete beta function is x^a (1 - x)^b times that of E = a u + (a + b) log(1 - x + x e^-u). On the side of the mode
where the tail lies E grows from 0 without turning, for parameters of any size, and derivatives by parameters multiply
the integrand by log t, which has one sign. So one rule serves all of them: Gauss and Legendre's on the part where
E < 38, in the variable √u, which gathers nodes where the integrand begins. What E has left when its linear part is
taken out is computed from series where u is small. Sources: DLMF 8.2, 8.17; 3.5(v). Read next: `special.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ferrax._core import Array
from ferrax._ferrax import numpy as _numpy
from ferrax.lax.control_flow import cond, fori_loop
from ferrax.lax.conversion import stop_gradient
from ferrax.lax.elementwise import abs, digamma, exp, expm1, log1p, max, sqrt
from ferrax.lax.reductions import reduce_or, reduce_sum
from ferrax.lax.shape import expand_dims, full_like

__all__ = ["FULL", "SHORT", "Rule", "beta_tail", "exact_product", "exact_sum", "gamma_tail", "log_excess", "rarely",
           "stirling", "where"]  # fmt: skip

#: Broadcasts, and takes numbers.
where = _numpy.where


class Rule(NamedTuple):
    """A rule for integrals of exp(-E): where E is so large that what follows is below their rounding, and the nodes."""

    end: float
    steps: int  # to find where that is
    nodes: np.ndarray
    weights: np.ndarray

    @staticmethod
    def of(end: float, steps: int, count: int) -> Rule:
        roots, weights = np.polynomial.legendre.leggauss(count)
        return Rule(end, steps, ((roots + 1) / 2) ** 2, weights * (roots + 1) / 2)


#: For results with the digits of float64, and of float32.
FULL, SHORT = Rule.of(38.0, 4, 40), Rule.of(22.0, 3, 18)


def rarely(rare: Array, function: Callable[..., Array], value: Array, *operands: Array) -> Array:
    """`value`, and where `rare` holds `function` of the operands, which is computed if it does for any element."""
    any_of = reduce_or(rare, tuple(range(rare.ndim)))
    other = cond(any_of, function, lambda *_: full_like(value, 0), *operands)
    return where(rare, other, value)


def exact_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b as a float64 and what its rounding left out (Knuth)."""
    total = a + b
    a, b, rounded = map(stop_gradient, (a, b, total))  # the derivative is that of the sum
    part = rounded - a
    return total, (a - (rounded - part)) + (b - part)


def exact_product(a: Array, b: Array) -> tuple[Array, Array]:
    """a b as a float64 and what its rounding left out (Dekker and Veltkamp)."""
    product = a * b
    (a1, a2), (b1, b2) = _halves(stop_gradient(a)), _halves(stop_gradient(b))
    return product, ((a1 * b1 - stop_gradient(product)) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Array) -> tuple[Array, Array]:
    shifted = a * 134217729.0
    high = shifted - (shifted - a)
    return high, a - high


def exp_excess(z: Array) -> Array:
    """e^z - 1 - z, with all digits."""
    small = abs(z) < 0.35
    near = where(small, z, 0.0)
    series = full_like(z, 1 / math.factorial(14))
    for k in range(13, 1, -1):
        series = series * near + 1 / math.factorial(k)
    return where(small, series * near * near, expm1(z) - z)


def log_excess(d: Array, terms: int = 9) -> Array:
    """d - log(1 + d), with all digits: nine terms do for |d| below 1/4, eighteen for d from -1/2 to 1."""
    r = d / (2 + d)
    q = r * r
    series = full_like(d, 1 / (2 * terms + 1))
    for k in range(2 * terms - 1, 1, -2):
        series = series * q + 1 / k
    return r * (d - 2 * q * series)


def stirling(x: Array) -> Array:
    """log Γ(x) less (x - 1/2) log x - x + log √2π, for x from 10 on (DLMF 5.11.1)."""
    w = 1 / (x * x)
    series = full_like(x, 1 / 156)
    for c in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = series * w + c
    return series / x


def _digamma_excess(x: Array) -> Array:
    """log x - ψ(x) for x from 25 on (DLMF 5.11.2)."""
    w = 1 / (x * x)
    series = full_like(x, 1 / 132)
    for c in (-1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = series * w + c
    return 1 / (2 * x) + series * w


def _outer(x: Array) -> Array:
    """`x` with an axis for the nodes."""
    return expand_dims(x, (x.ndim,))


def _nodes(rule: Rule, ends: Array) -> tuple[Array, Array]:
    """Nodes from 0 to `ends` along a new last axis, and their weights."""
    shape = (1,) * ends.ndim + (-1,)
    return _outer(ends) * rule.nodes.reshape(shape), _outer(ends) * rule.weights.reshape(shape)


def _ends(
    rule: Rule, exponent: Callable[[Array], Array], slope: Callable[[Array], Array], linear: Array, bend: Array
) -> Array:
    """Where the exponent, convex and at first linear u + bend u²/2, is the rule's end; by Newton's iteration."""
    u = 2 * rule.end / (linear + sqrt(linear * linear + 2 * rule.end * bend))
    return fori_loop(0, rule.steps, lambda _, u: max(u - (exponent(u) - rule.end) / slope(u), u / 5), u)


def _sum(x: Array) -> Array:
    return reduce_sum(x, (x.ndim - 1,))


def gamma_tail(a: Array, x: Array, log_x: Array) -> Array:
    """The derivative of P(a, x) by a, over x^a e^-x / Γ(a).

    Args:
      a: positive, finite.
      x: positive, finite.
      log_x: its logarithm, which may be given where `x` underflows.

    Returns:
      Array of their shape.
    """
    lower = (x <= a) | (x < 1)
    # below 1 the integrand of a would end slowly; P(a, x) is P(a + 1, x) and x^a e^-x / Γ(a + 1)
    c = where(lower, a + 1, a)
    sign = where(lower, full_like(a, -1), 1.0)
    linear = sign * (x - c)

    def exponent(u: Array, linear: Array, x: Array, sign: Array) -> Array:
        return linear * u + x * exp_excess(sign * u)

    fixed = tuple(map(stop_gradient, (linear, x, sign)))
    slope = lambda u: fixed[0] + fixed[1] * fixed[2] * expm1(fixed[2] * u)
    u, weights = _nodes(FULL, _ends(FULL, lambda u: exponent(u, *fixed), slope, *fixed[:2]))
    # where x is near a large c, log x - ψ(c) is a difference of nearly equal numbers
    near = (c > 25) & (x > c / 2)
    gap = log1p(where(near, (x - c) / c, 0.0)) + _digamma_excess(where(near, c, 30.0))
    level = where(near, gap, log_x - digamma(c))
    terms = (_outer(level) + _outer(sign) * u) * exp(-exponent(u, _outer(linear), _outer(x), _outer(sign)))
    total = _sum(weights * terms)
    return where(lower, (level + x * total) / a, -total)


def beta_tail(a: Array, b: Array, x: Array, y: Array, offset: Array, rule: Rule = FULL) -> tuple[Array, Array, Array]:
    """The integral of f = (t/x)^(a+1) ((1-t)/y)^b / (t (1-t)) from 0 to x, and those of log(t/x) f and log((1-t)/y) f.

    Args:
      a: positive.
      b: positive.
      x: positive, at most a / (a + b).
      y: 1 - x.
      offset: a - (a + b) x, exactly.
      rule: how it is integrated.

    Returns:
      Three arrays of their shape.
    """
    total = a + b + 1
    linear = offset + y

    def parts(u: Array, a: Array, b: Array, x: Array, y: Array, total: Array, linear: Array) -> tuple[Array, Array]:
        first = x < 0.5  # of two forms of E, the one whose terms are small
        z = where(first, -u, u)
        near = abs(z) < 0.35
        share = where(first, x, y)
        d = share * expm1(z)
        logarithm = log1p(d)
        bent = share * exp_excess(z) - log_excess(where(near, d, 0.0))
        far = where(first, (a + 1) * u, -b * u) + total * logarithm
        return where(near, linear * u + total * bent, far), logarithm

    operands = (a, b, x, y, total, linear)
    fixed = tuple(map(stop_gradient, operands))

    def slope(u: Array) -> Array:
        falling = fixed[2] * exp(-u)
        return fixed[0] + 1 - fixed[4] * (falling / (fixed[3] + falling))

    ends = _ends(rule, lambda u: parts(u, *fixed)[0], slope, fixed[5], fixed[4] * fixed[2] * fixed[3])
    u, weights = _nodes(rule, ends)
    exponent, logarithm = parts(u, *map(_outer, operands))
    weighted = weights * exp(-exponent)
    first = _outer(x) < 0.5
    log_t = where(first, -u, 0.0) - logarithm
    log_rest = where(first, 0.0, u) - logarithm
    return _sum(weighted), _sum(weighted * log_t), _sum(weighted * log_rest)
