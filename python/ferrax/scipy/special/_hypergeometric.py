"""Hypergeometric functions 1F1 and 2F1 of real parameters and a real argument.

1F1 is its power series after Kummer's transformation of negative arguments, or the asymptotic series of large ones.
2F1 is its power series up to 1/2; from there Taylor series of its differential equation lead to the argument, each
halving the distance to the singularity at 1, so that no case depends on which parameters differ by whole numbers.
Pfaff's transformation brings negative arguments into the unit interval; of the equal forms (Euler's) the one whose
parameters are the least negative is summed. DLMF 13.2, 13.7, 15.2, 15.8, 15.10. Read next: `__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._derivatives import jvp
from ferrax.config import enable_x64
from ferrax.numpy._args import Array, ArrayLike
from ferrax.scipy.special._args import real, smooth
from ferrax.scipy.special._rational import constant, double, pick

__all__ = ["hyp1f1", "hyp2f1"]

_PRECISION = 2.0**-54
_MOST_TERMS = 10_000
#: Terms of the asymptotic series, and the least argument for which it is tried.
_ASYMPTOTIC_TERMS = 60
_ASYMPTOTIC_FROM = 50.0
#: exp(-_DEEPEST) is a normal number.
_DEEPEST = 700.0


def _any(condition: Array) -> Array:
    return lax.reduce_or(condition, tuple(range(condition.ndim)))


def _terms_of_slopes(*sizes: Array) -> Array:
    """How many terms a derivative by a parameter has at least: its terms go on where those of the value end."""
    total = constant(sizes[0], 60)
    for x in sizes:
        total = total + 2 * lax.abs(x)
    return total


def _loop(going: Callable[..., Array], step: Callable[..., tuple[Array, ...]], start: tuple[Array, ...]) -> Any:
    """Steps all elements together until none is going; an element that is done keeps its state."""

    def advance(state: tuple[Array, ...]) -> tuple[Array, ...]:
        keep = going(*state)
        return tuple(lax.select(keep, new, old) for new, old in zip(step(*state), state, strict=True))

    with enable_x64(True):
        return lax.while_loop(lambda state: _any(going(*state)), advance, start)


def _terminates(a: Array) -> Array:
    """Whether the series ends: `a` is 0 or a negative whole number."""
    return (a <= 0) & (a == lax.floor(a))


def _unsummable(c: Array, *numerators: Array) -> Array:
    """Whether a term is divided by zero: c is 0 or a negative whole number, and no numerator ends the series first."""
    ends = constant(c, 0) > 1
    for a in numerators:
        ends = ends | (_terminates(a) & (a >= c))
    return _terminates(c) & ~ends


def _divisor(c: Array) -> Array:
    """`c`, or 1 for 0: there the term is 0 already (`_unsummable`)."""
    return lax.select(c == 0, constant(c, 1), c)


def _sign_of_gamma(x: Array) -> Array:
    below = lax.floor(x)
    odd = below - 2 * lax.floor(0.5 * below) == 1
    return lax.select((x < 0) & odd, constant(x, -1), constant(x, 1))


def _gamma_quotient(above: tuple[Array, ...], below: tuple[Array, ...]) -> Array:
    """The product of Γ of the first numbers over that of the others; 0 at a pole of those."""
    log, sign = constant(above[0], 0), constant(above[0], 1)
    pole = constant(above[0], 0) > 1
    for x in above:
        log, sign = log + lax.lgamma(x), sign * _sign_of_gamma(x)
    for x in below:
        at_pole = _terminates(x)
        safe = lax.select(at_pole, constant(x, 1), x)
        log, sign, pole = log - lax.lgamma(safe), sign * _sign_of_gamma(safe), pole | at_pole
    return lax.select(pole, constant(log, 0), sign * lax.exp(log))


def _series_1f1(a: Array, b: Array, x: Array, first: Array, least: Array) -> Array:
    """`first` times the power series, of `least` terms or more."""

    def factor(k: Array) -> Array:
        return (a + k) * x / (_divisor(b + k) * (k + 1))

    def going(k: Array, term: Array, total: Array) -> Array:
        small = (lax.abs(term) <= _PRECISION * lax.abs(total)) & (lax.abs(factor(k)) < 0.5)
        return ((k < least) | ((term != 0) & ~small)) & (k < _MOST_TERMS) & (lax.abs(total) < np.inf)

    def step(k: Array, term: Array, total: Array) -> tuple[Array, ...]:
        term = term * factor(k)
        return k + 1, term, total + term

    return _loop(going, step, (constant(x, 0), first, first))[2]


def _asymptotic_1f1(a: Array, b: Array, x: Array, far: Array) -> tuple[Array, Array]:
    """Γ(a)/Γ(b) exp(-x) x^(b-a) 1F1(a; b; x) for large x, and whether its terms become small enough."""

    def going(k: Array, term: Array, total: Array, open_: Array) -> Array:
        del term, total
        return (open_ > 0) & (k < _ASYMPTOTIC_TERMS)

    def step(k: Array, term: Array, total: Array, open_: Array) -> tuple[Array, ...]:
        following = term * (1 - a + k) * (b - a + k) / ((k + 1) * x)
        falling = lax.abs(following) <= lax.abs(term)
        term = lax.select(falling, following, term)
        total = lax.select(falling, total + following, total)
        return k + 1, term, total, lax.select(falling, open_, constant(x, 0))

    zero, one = constant(x, 0), constant(x, 1)
    _, term, total, _ = _loop(going, step, (zero, one, one, lax.select(far, one, zero)))
    return total, lax.abs(term) <= _PRECISION * lax.abs(total)


def _raw_1f1(a: Array, b: Array, x: Array, by: int | None = None) -> Array:
    """1F1, or where `by` names a parameter a form of it that is to be differentiated by that."""
    finite = lax.abs(x) < np.inf
    impossible = _unsummable(b, a)
    b = lax.select(impossible, constant(b, 1), b)
    # Kummer's transformation makes the terms of negative arguments positive, unless the series ends anyway.
    turned = (x < 0) & ~(_terminates(b) if by == 0 else _terminates(a))
    alpha = lax.select(turned, b - a, a)
    size = lax.select(finite, lax.abs(x), constant(x, 1))
    far = size > _ASYMPTOTIC_FROM
    safe = lax.select(far, size, constant(x, _ASYMPTOTIC_FROM))
    expansion, converged = _asymptotic_1f1(alpha, b, safe, far)
    far = far & converged & ~_terminates(alpha) & ~_terminates(b)
    scale = _gamma_quotient((lax.select(far, b, constant(b, 1)),), (lax.select(far, alpha, constant(b, 1)),))
    # exp(x) in two factors, for results that are finite where it is not.
    half = lax.exp(lax.select(x > 0, 0.5 * safe, constant(x, 0)))
    asymptotic = half * (scale * lax.pow(safe, alpha - b) * expansion) * half
    near = lax.select(far, constant(x, 1), size)
    near = lax.select((x < 0) & ~turned, -near, near)
    deep = lax.min(lax.select(turned, near, constant(x, 0)), constant(x, _DEEPEST))
    rest = lax.select(turned, near - deep, constant(x, 0))
    least = constant(x, 0) if by is None else _terms_of_slopes(near, a, b)
    series = _series_1f1(alpha, b, near, lax.exp(-deep), least) * lax.exp(-rest)
    result = lax.select(far, asymptotic, series)
    constant_one = x == 0 if by == 0 else (a == 0) | (x == 0)
    # Any other `a` gives infinity where b ends the series.
    isolated = _terminates(a) & _terminates(b) if by == 0 else x != x
    return pick(
        (a != a) | (b != b) | (x != x), constant(x, np.nan),
        isolated, np.nan * a,
        constant_one, constant(x, 1),
        impossible, constant(x, np.inf),
        ~finite, _infinite_1f1(a, b, x),
        result,
    )  # fmt: skip


def _infinite_1f1(a: Array, b: Array, x: Array) -> Array:
    """The limits at infinity."""
    infinite, zero = constant(x, np.inf), constant(x, 0)
    right = _sign_of_gamma(a) * _sign_of_gamma(b) * infinite
    ending = lax.rem(-a, constant(a, 2)) == 1
    right = lax.select(_terminates(a), lax.select(ending, -1 * _sign_of_gamma(b), _sign_of_gamma(b)) * infinite, right)
    left = lax.select(a > 0, zero, _sign_of_gamma(b) * _sign_of_gamma(b - a) * infinite)
    return lax.select(x > 0, right, left)


def _along(function: Callable[..., Array], position: int) -> Callable[..., Array]:
    """The derivative of a function by one operand, by forward differentiation of its loops; NaN at infinite values."""

    def slope(value: Array, *operands: Array) -> Array:
        def of_one(x: Array) -> Array:
            return function(*operands[:position], x, *operands[position + 1 :], by=position)

        x = operands[position]
        tangent = jvp(of_one, (x,), (constant(x, 1),))[1]
        return lax.select(lax.abs(value) < np.inf, tangent, constant(x, np.nan))

    return slope


def _first_term(above: Array, c: Array) -> Array:
    """The derivative's factor: `above` / c, and 0 for 0 / 0, where the function is 1."""
    return above / lax.select((above == 0) & (c == 0), constant(c, 1), c)


@smooth(_along(_raw_1f1, 0), _along(_raw_1f1, 1), lambda value, a, b, x: _first_term(a, b) * _hyp1f1(a + 1, b + 1, x))
def _hyp1f1(a: Array, b: Array, x: Array) -> Array:
    return _raw_1f1(a, b, x)


_hyp1f1_double = double(_hyp1f1)


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function 1F1(a; b; x), the sum of (a)ₖ / (b)ₖ xᵏ / k!.

    Args:
      a: real array.
      b: real array; the result is infinite where it is 0 or a negative whole number and the series does not end before.
      x: real array.

    Returns:
      Array of the broadcast shape. Where terms of both signs cancel (a < 0 < x, or b < 0), digits are lost.

    Raises:
      ValueError: an operand is complex.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.hyp1f1(1., 2., jnp.array([-1., 0., 1.]))
    Array([0.63212055, 1.        , 1.7182819 ], dtype=float32)
    """
    return _hyp1f1_double(*real("hyp1f1", a, b, x, error=ValueError))


def _series_2f1(a: Array, b: Array, c: Array, z: Array, least: Array) -> tuple[Array, Array]:
    """The power series and its derivative, of `least` terms or more."""

    def going(k: Array, term: Array, total: Array, slope: Array) -> Array:
        ratio = (a + k) * (b + k) / (_divisor(c + k) * (k + 1)) * z
        # The derivative's terms are the larger ones.
        growth = lax.abs((a + k) * (b + k) / _divisor(c + k))
        small = lax.abs(term) <= _PRECISION * lax.abs(total)
        small = small & (growth * lax.abs(term) <= _PRECISION * lax.abs(slope)) & (lax.abs(ratio) < 0.95)
        return ((k < least) | ((term != 0) & ~small)) & (k < _MOST_TERMS) & (lax.abs(total) < np.inf)

    def step(k: Array, term: Array, total: Array, slope: Array) -> tuple[Array, ...]:
        rising = term * ((a + k) * (b + k) / _divisor(c + k))
        term = rising * z / (k + 1)
        return k + 1, term, total + term, slope + rising

    one, zero = constant(z, 1), constant(z, 0)
    _, _, total, slope = _loop(going, step, (zero, one, one, zero))
    return total, slope


def _continued_2f1(a: Array, b: Array, c: Array, z: Array, distance: Array, least: Array) -> Array:
    """2F1 for z < 1, where 1 - z is given: Taylor series, of `least` terms or more, lead from 1 - at to 1 - next.

    One loop sums all of them (DLMF 15.10.1), so that no element waits for another one: a step adds a term, and begins
    the next series where that ends one.
    """
    zero = constant(z, 0)
    y, slope = _series_2f1(a, b, c, lax.min(z, constant(z, 0.5)), least)

    def next_of(at: Array) -> Array:
        return lax.max(0.5 * at, distance)

    def moved(at: Array) -> Array:
        h = at - next_of(at)
        return lax.select(h > 0, h, constant(h, 1))

    def going(at: Array, *state: Array) -> Array:
        del state
        return at > distance

    def step(at: Array, k: Array, here: Array, above: Array, total: Array, rise: Array) -> tuple[Array, ...]:
        z, h = 1 - at, moved(at)
        first = (k + 1) * ((1 - 2 * z) * k + (c - (a + b + 1) * z)) * h * above
        second = (k + a) * (k + b) * (h * h) * here
        term = (second - first) / (z * at * (k + 1) * (k + 2))
        k, total, rise = k + 1, total + term, rise + (k + 2) * term
        size = lax.abs(above) + lax.abs(term)
        small = (size <= _PRECISION * lax.abs(total)) & (size * (k + 1) <= _PRECISION * lax.abs(rise))
        more = ((k < least) | ((size != 0) & ~small)) & (k < _MOST_TERMS) & (lax.abs(total) < np.inf)
        following = next_of(at)
        start = rise / h * moved(following)
        going_on, anew = (at, k, above, term, total, rise), (following, zero, total, start, total + start, start)
        return tuple(lax.select(more, old, new) for old, new in zip(going_on, anew, strict=True))

    at = lax.max(distance, constant(z, 0.5))
    above = slope * moved(at)
    return _loop(going, step, (at, zero, y, above, y + above, above))[2]


def _smallest(options: list[tuple[Array, tuple[Array, Array]]]) -> tuple[Array, tuple[Array, Array]]:
    """Of (exponent, parameters), each element's option whose parameters are the least negative."""
    exponent, (p, q) = options[0]
    zero = constant(p, 0)

    def negative(p: Array, q: Array) -> Array:
        return lax.max(-p, zero) + lax.max(-q, zero)

    for other, (r, s) in options[1:]:
        better = negative(r, s) < negative(p, q)
        exponent, p, q = (lax.select(better, new, old) for new, old in ((other, exponent), (r, p), (s, q)))
    return exponent, (p, q)


def _inside_2f1(a: Array, b: Array, c: Array, x: Array, least: Array) -> Array:
    """2F1 for finite x < 1, of parameters that divide no term by zero."""
    below = _smallest([(-a, (a, c - b)), (-b, (c - a, b))])
    above = _smallest([(0 * x, (a, b)), (c - a - b, (c - a, c - b))])
    left = x < 0
    exponent = lax.select(left, below[0], above[0])
    p, q = (lax.select(left, u, v) for u, v in zip(below[1], above[1], strict=True))
    distance = lax.select(left, 1 / (1 - x), 1 - x)
    z = lax.select(left, -x / (1 - x), x)
    return lax.pow(1 - x, exponent) * _continued_2f1(p, q, c, z, distance, least)


def _at_one_2f1(a: Array, b: Array, c: Array) -> Array:
    """2F1 at 1: Gauss's theorem (DLMF 15.4.20), or infinity."""
    excess = c - a - b
    finite = (excess > 0) & ~_terminates(c)
    top, over, left, right = (lax.select(finite, u, constant(u, 1)) for u in (c, excess, c - a, c - b))
    return lax.select(finite, _gamma_quotient((top, over), (left, right)), constant(c, np.inf))


def _raw_2f1(a: Array, b: Array, c: Array, x: Array, by: int | None = None) -> Array:
    """2F1, or where `by` names a parameter a form of it that is to be differentiated by that."""
    zero, one, nan, infinity = (constant(x, v) for v in (0, 1, np.nan, np.inf))
    impossible = _unsummable(c, a, b)
    ends = _terminates(a) | _terminates(b)
    # Polynomials, whose derivatives by the parameter that ends them are not.
    direct = ends & ((x >= 1) | _terminates(c) | ((x < 0) if by is None else (x < -np.inf)))
    inside = (x < 1) & (x > -np.inf) & ~impossible & ~direct
    least = zero if by is None else _terms_of_slopes(a, b, c)
    free = ~_terminates(c)
    general = _inside_2f1(a, b, lax.select(free, c, one), lax.select(inside, x, zero), least)
    summed = direct & ~impossible
    p, q, r, z = (lax.select(summed, u, v) for u, v in ((a, zero), (b, one), (c, one), (x, zero)))
    polynomial = _series_2f1(p, q, r, z, zero)[0]
    # Where any other value of the parameter gives infinity.
    isolated = x != x
    if by in (0, 1):
        ended, other = (a, b) if by == 0 else (b, a)
        isolated = _terminates(ended) & ~_terminates(other) & ((x >= 1) | _terminates(c))
    constant_one = (x == 0) if by in (0, 1) else (a == 0) | (b == 0) | (x == 0)
    return pick(
        (a != a) | (b != b) | (c != c) | (x != x), nan,
        constant_one, one,
        impossible, infinity,
        isolated, nan * (a + b),
        direct, polynomial,
        x == -np.inf, lax.select(lax.min(a, b) > 0, zero, nan),
        x == 1, _at_one_2f1(a, b, c),
        x > 1, infinity,
        general,
    )  # fmt: skip


@smooth(
    _along(_raw_2f1, 0), _along(_raw_2f1, 1), _along(_raw_2f1, 2),
    lambda value, a, b, c, x: _first_term(a * b, c) * _hyp2f1(a + 1, b + 1, c + 1, x),
)  # fmt: skip
def _hyp2f1(a: Array, b: Array, c: Array, x: Array) -> Array:
    return _raw_2f1(a, b, c, x)


_hyp2f1_double = double(_hyp2f1)


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function 2F1(a, b; c; x), the sum of (a)ₖ (b)ₖ / (c)ₖ xᵏ / k!, continued to x < -1.

    Args:
      a: real array.
      b: real array.
      c: real array; the result is infinite where it is 0 or a negative whole number and the series does not end before.
      x: real array, up to 1. Beyond, the result is infinite unless `a` or `b` is 0 or a negative whole number.

    Returns:
      Array of the broadcast shape. Where terms of both signs cancel (large negative parameters), digits are lost.

    Raises:
      TypeError: an operand is complex.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.hyp2f1(1., 1., 2., jnp.array([-1., 0.5]))
    Array([0.6931472, 1.3862944], dtype=float32)
    """
    return _hyp2f1_double(*real("hyp2f1", a, b, c, x))
