"""Incomplete gamma and beta functions and the zeta function, with derivatives by all of their operands.

Values of the incomplete gamma functions and of zeta are primitives; the rest is computed in float64 and rounded once.
Sources: DLMF 8.17 (incomplete beta function), 25.11 (zeta function); Figurnov, Mohamed, Mnih, "Implicit
reparameterization gradients" (2018). Read next: `_tails.py`, which has the integrals.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ferrax._core import Array, asarray, promote_dtypes
from ferrax._ferrax import lax as _rust
from ferrax.config import enable_x64
from ferrax.custom_derivatives import custom_jvp
from ferrax.dtypes import issubdtype
from ferrax.lax._double import double_program, weighted_sum
from ferrax.lax._gamma import gamma_function
from ferrax.lax._tails import (
    FULL,
    SHORT,
    Rule,
    beta_tail,
    exact_product,
    exact_sum,
    gamma_tail,
    log_excess,
    rarely,
    stirling,
    where,
)
from ferrax.lax.conversion import stop_gradient
from ferrax.lax.elementwise import abs, digamma, exp, expm1, is_finite, lgamma, log, log1p, max, neg, pow, sqrt
from ferrax.lax.reductions import cumprod, reduce_sum
from ferrax.lax.shape import expand_dims, full_like
from ferrax.numpy._args import broadcast_together
from ferrax.typing import ArrayLike

__all__ = ["betainc", "igamma", "igamma_grad_a", "igammac", "random_gamma_grad", "zeta"]

_INF, _NAN = float("inf"), float("nan")


def _operands(name: str, *args: ArrayLike) -> list[Array]:
    """The operands as floats of one dtype and shape, by the rules of elementwise primitives."""
    arrays = [asarray(x) for x in args]
    for position, x in enumerate(arrays):
        if not issubdtype(x.dtype, np.floating):
            raise TypeError(
                f"{name} does not accept dtype {x.dtype} at position {position}. Accepted dtypes at position "
                f"{position} are subtypes of floating."
            )
    arrays = list(promote_dtypes(*arrays))
    if len({x.ndim for x in arrays if x.ndim}) < 2:
        with contextlib.suppress(ValueError):
            return broadcast_together(*arrays)
    raise TypeError(f"{name} got incompatible shapes for broadcasting: {', '.join(str(x.shape) for x in arrays)}.")


def _with_slopes(function: Callable[..., Array], *slopes: Callable[..., Array]) -> Callable[..., Array]:
    """A primitive with derivatives by its operands, which compute in the dtype of these."""
    differentiable = custom_jvp(function)

    def rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
        value = differentiable(*primals)
        return value, weighted_sum(slopes, tangents, value, *_operands(function.__name__, *primals))

    differentiable.defjvp(rule, symbolic_zeros=True)
    return differentiable


# ---- the incomplete gamma function ----------------------------------------------------------------------------------


def _excess(d: Array, ratio: Array) -> Array:
    """d - log(1 + d), of which 1 + d is given too."""
    close = (d > -0.5) & (d < 1)
    return where(close, log_excess(where(close, d, 0.0), 18), d - log(where(close, 1.0, ratio)))


def _gamma_density(a: Array, x: Array) -> Array:
    """x^(a-1) e^-x / Γ(a)."""
    inside = (a > 0) & (x > 0) & is_finite(a) & is_finite(x)
    large = inside & (a >= 10)
    # Stirling's formula about x = a, where large logarithms would cancel
    big, near_x = where(large, a, 20.0), where(large, x, 20.0)
    excess = _excess((near_x - big) / big, near_x / big)
    from_mode = sqrt(big / (2 * np.pi)) / near_x * exp(-(big * excess + stirling(big)))
    small = inside & (a < 10)
    low, small_x = where(small, a, 1.0), where(small, x, 1.0)
    direct = exp((low - 1) * log(small_x) - small_x - lgamma(low))
    edge = where(a < 1, _INF, where(a == 1, 1.0, 0.0))
    outside = where((x == 0) & (a > 0), edge, where((x == _INF) & (a > 0) & (a < _INF), 0.0, _NAN))
    return where(large, from_mode, where(small, direct, outside))


def _gamma_slope(a: Array, x: Array) -> Array:
    """The derivative of P(a, x) by a."""
    inside = (a > 0) & (x > 0) & is_finite(a) & is_finite(x)
    safe_a, safe_x = where(inside, a, 1.0), where(inside, x, 1.0)
    # a density that underflows is no reason for 0 · ∞
    slope = safe_x * _gamma_density(safe_a, safe_x) * gamma_tail(safe_a, safe_x, log(safe_x))
    return where(inside, slope, where((a > 0) & (a < _INF) & ((x == 0) | (x == _INF)), 0.0, _NAN))


def _sample_slope(a: Array, x: Array) -> Array:
    inside = (a > 0) & (x > 0) & is_finite(a) & is_finite(x)
    safe_a, safe_x = where(inside, a, 1.0), where(inside, x, 1.0)
    return where(inside, -safe_x * gamma_tail(safe_a, safe_x, log(safe_x)), where((a > 0) & (x == 0), 0.0, _NAN))


def _log_slope(a: Array, log_x: Array) -> Array:
    inside = (a > 0) & is_finite(a) & is_finite(log_x)
    safe_a, safe_log = where(inside, a, 1.0), where(inside, log_x, 0.0)
    return where(inside, -gamma_tail(safe_a, exp(safe_log), safe_log), _NAN)


_gamma_slope_program, _sample_slope_program = double_program(_gamma_slope), double_program(_sample_slope)
_log_slope_program, _density = double_program(_log_slope), double_program(_gamma_density)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Elementwise derivative of the regularized lower incomplete gamma function by its first argument.

    Args:
      a: the function's parameter, positive.
      x: where it ends, not negative, of the same floating dtype.

    Returns:
      Array of their shape.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.igamma_grad_a(1., jnp.array([2.])).round(3))
    [-0.221]
    """
    return _gamma_slope_program(*_operands("igamma_grad_a", a, x))


def random_gamma_grad(*args: ArrayLike) -> Array:
    """Elementwise derivative of samples of the gamma distribution by its parameter.

    A sample moves so that its probability P(a, x) stays.

    Args:
      *args: two arrays, the distribution's parameter, positive, and the samples, of the same floating dtype.

    Returns:
      Array of their shape.

    Raises:
      TypeError: there are not two.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.random_gamma_grad(jnp.array(1.), jnp.array([2.])).round(3))
    [1.632]
    """
    if len(args) != 2:
        raise TypeError(f"random_gamma_grad takes the parameter and the samples, got {len(args)} arguments")
    return _sample_slope_program(*_operands("random_gamma_grad", *args))


def log_gamma_grad(a: Array, log_x: Array) -> Array:
    """The derivative of logarithms of gamma samples by the parameter; the samples themselves may underflow."""
    return _log_slope_program(a, log_x)


def _igamma(a: ArrayLike, x: ArrayLike) -> Array:
    return _rust.igamma(a, x)


def _igammac(a: ArrayLike, x: ArrayLike) -> Array:
    return _rust.igammac(a, x)


_igamma = _with_slopes(_igamma, igamma_grad_a, _density)
_igammac = _with_slopes(_igammac, lambda a, x: neg(igamma_grad_a(a, x)), lambda a, x: neg(_density(a, x)))


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Elementwise regularized lower incomplete gamma function, P(a, x).

    Args:
      a: the parameter, positive.
      x: where the integral ends, not negative, of the same floating dtype.

    Returns:
      Array of their shape; it has derivatives by both.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.igamma(1., jnp.array([2.])).round(3))
    [0.865]
    """
    return _igamma(a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Elementwise regularized upper incomplete gamma function, Q(a, x).

    Args:
      a: the parameter, positive.
      x: where the integral begins, not negative, of the same floating dtype.

    Returns:
      Array of their shape; it has derivatives by both.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.igammac(1., jnp.array([2.])).round(3))
    [0.135]
    """
    return _igammac(a, x)


# ---- the incomplete beta function -----------------------------------------------------------------------------------


def log_beta(a: Array, b: Array) -> Array:
    """log B(a, b) of positive numbers in float64, without the difference of large log Γ."""
    a, b = where(a < b, a, b), where(a < b, b, a)
    moderate, both = b < 10, a >= 10
    low_a, low_b = where(moderate, a, 1.0), where(moderate, b, 1.0)
    high_b, total = where(moderate, 20.0, b), where(moderate, 40.0, a + b)
    high_a = where(both, a, 20.0)
    # log Γ(b) - log Γ(a + b) by Stirling's formula, less a log(a + b)
    rest = stirling(high_b) - stirling(total) - (high_b - 0.5) * log1p(a / high_b)
    little = where(both | moderate, 1.0, a)
    one = lgamma(little) + little - little * log(total) + rest
    two = (high_a - 0.5) * -log1p(high_b / high_a) - 0.5 * log(total / (2 * np.pi)) + stirling(high_a) + rest
    return where(moderate, lgamma(low_a) + lgamma(low_b) - lgamma(low_a + low_b), where(both, two, one))


class _Side(NamedTuple):
    """The operands of the incomplete beta function, seen from the side whose tail is computed."""

    swapped: Array  # whether that is the side of 1 - x
    flat: Array  # whether `_plateau` serves it
    a: Array
    b: Array
    x: Array
    y: Array  # 1 - x
    log_x: Array
    log_y: Array
    scaled_x: tuple[Array, Array]  # (a + b) x, as a sum
    scaled_y: tuple[Array, Array]
    offset: Array  # a - (a + b) x


def _beta_sides(a: Array, b: Array, x: Array, on_plateau: bool = True) -> _Side:
    """The operands, or those of the complement I_y(b, a) = 1 - I_x(a, b) where y = 1 - x is the tail rather than x.

    Args:
      on_plateau: what `_plateau` serves is on its side, rather than on the other one.
    """
    y = 1 - x
    total, lost = exact_sum(a, b)
    first = (b < 1) & (x > 0.5) & (y * total < 1)
    above = x * total > a
    second = above & (a < 1) & (y > 0.5) & (x * total < 1)
    swap = above & ~first if on_plateau else first | (above & ~second)
    log_x, log_y = where(x < 0.5, log(x), log1p(-y)), where(x < 0.5, log1p(-x), log(y))
    pick = lambda one, other: (where(swap, other, one), where(swap, one, other))
    (a, b), (x, y), (log_x, log_y) = pick(a, b), pick(x, y), pick(log_x, log_y)
    # x (a + b) and y (a + b), as sums of two numbers: of x and y the smaller one is exact
    low = x <= 0.5
    smaller = where(low, x, y)
    product, rest = exact_product(total, smaller)
    rest = rest + lost * smaller
    other, gap = exact_sum(total, -product)
    gap = gap + lost - rest
    scaled = (where(low, product, other), where(low, rest, gap)), (where(low, other, product), where(low, gap, rest))
    offset = where(low, (a - product) - rest, (product - b) + rest)
    return _Side(swap, first | second, a, b, x, y, log_x, log_y, *scaled, offset)


def _quotient(number: tuple[Array, Array], divisor: Array) -> tuple[Array, Array]:
    """A sum of two numbers over a third one, and what that leaves out, relative to it."""
    quotient = number[0] / divisor
    product, rest = exact_product(quotient, divisor)
    return quotient, stop_gradient(((number[0] - product) - rest + number[1]) / number[0])


def _beta_head(side: _Side) -> Array:
    """x^a (1 - x)^b / (a B(a, b)).

    The factors n^n e^-n of gamma functions join the powers of x and 1 - x, so that these are near 1. Where even fourth
    roots of the powers leave the range, both parameters are large and x is near a / (a + b), and the logarithm is taken
    about that.
    """
    a, b, x, y = side.a, side.b, side.x, side.y
    total = a + b
    large_a, large_b = a >= 10, b >= 10
    one = large_a | large_b
    raised = where(large_a, a, 20.0), where(large_b, b, 20.0), where(one, total, 40.0)
    lost_x, lost_y = where(x <= 0.5, 0.0, (1 - x) - y), where(x <= 0.5, (1 - y) - x, 0.0)
    base_x = where(one, side.scaled_x[0], x), where(one, side.scaled_x[1], lost_x)
    base_y = where(one, side.scaled_y[0], y), where(one, side.scaled_y[1], lost_y)
    quotient_x, rest_x = _quotient(base_x, where(large_a, a, 1.0))
    quotient_y, rest_y = _quotient(base_y, where(large_b, b, 1.0))
    root = pow(quotient_x, 0.25 * a) * pow(quotient_y, 0.25 * b)
    root = root * root
    powers = root * root * exp(a * rest_x + b * rest_y)
    near = large_a & large_b & ((abs(a * log(quotient_x)) > 2800) | (abs(b * log(quotient_y)) > 2800))
    offset = where(near, side.offset, 0.0)
    exponent = raised[0] * _excess(-offset / raised[0], where(near, quotient_x, 1.0))
    exponent = exponent + raised[1] * _excess(offset / raised[1], where(near, quotient_y, 1.0))
    powers = where(near, exp(-exponent), powers)
    series = where(one, stirling(raised[2]), 0.0)
    series = series - where(large_a, stirling(raised[0]), 0.0) - where(large_b, stirling(raised[1]), 0.0)
    scale = exp(series - where(one, where(large_a, 0.0, a) + where(large_b, 0.0, b), 0.0))
    scale = scale * where(large_a, 1 / sqrt(2 * np.pi * raised[0]), 1 / gamma_function(where(large_a, 1.0, a) + 1))
    scale = scale * where(large_b, sqrt(raised[1] / (2 * np.pi)), 1 / gamma_function(where(large_b, 1.0, b)))
    scale = scale * where(one, sqrt(2 * np.pi / raised[2]), gamma_function(where(one, 1.0, total)))
    return where(powers == 0, 0.0, powers * scale)


def _short_beta_head(side: _Side) -> Array:
    """The same with the digits of float32, by the logarithm where that is not large."""
    plain = max(side.a, side.b) < 1e5
    p, q = where(plain, side.a, 1.0), where(plain, side.b, 1.0)
    log_head = p * side.log_x + q * side.log_y + (lgamma(p + q) - lgamma(p) - lgamma(q))
    head = exp(where(plain, log_head, 0.0)) / p
    full = lambda *x: _beta_head(_Side._make((*x[:8], (x[8], x[9]), (x[10], x[11]), x[12])))
    return rarely(~plain, full, head, *side[:8], *side.scaled_x, *side.scaled_y, side.offset)


def _plateau(a: Array, b: Array, y: Array, log_y: Array, nodes: int, terms: int) -> Array:
    """I_x(a, b) for b below 1 and x near 1, where it is 1 less a number near 1: by the series of the complement."""
    shape = (1,) * a.ndim + (-1,)
    outer = lambda v: expand_dims(v, (a.ndim,))
    roots, weights = np.polynomial.legendre.leggauss(nodes)
    steps = outer(b) * ((roots + 1) / 2).reshape(shape)
    rise = digamma(outer(a + 1) + steps) - digamma(1 + steps)
    ratio = b * reduce_sum(rise * (weights / 2).reshape(shape), (a.ndim,)) - log1p(b / a)
    n = np.arange(1.0, terms + 1).reshape(shape)
    terms = cumprod((n - outer(a)) / n * outer(y), a.ndim) / (outer(b) + n)
    return -expm1(b * log_y + ratio + log1p(b * reduce_sum(terms, (a.ndim,))))


def _beta_inside(a: Array, b: Array, x: Array) -> tuple[Array, ...]:
    """Where the function is neither 0 nor 1 nor NaN, and operands that are safe elsewhere."""
    inside = (a > 0) & (b > 0) & is_finite(a + b) & (x > 0) & (x < 1)
    return inside, where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.25)


def _betainc_slopes(a: Array, b: Array, x: Array) -> tuple[Array, Array]:
    """The derivatives by both parameters."""
    inside, a, b, x = _beta_inside(a, b, x)
    side = _beta_sides(a, b, x, on_plateau=False)
    p, q = side.a, side.b
    integral, by_p, by_q = beta_tail(p, q, side.x, side.y, side.offset)
    head = _beta_head(side)
    total = p + q
    weight = side.x * total
    level_p, level_q = side.log_x - digamma(p + 1), side.log_y - digamma(q)
    slope_p = head * (level_p + digamma(total) + weight * (by_p + (level_p + digamma(total + 1)) * integral))
    slope_q = head * (level_q + digamma(total) + weight * (by_q + (level_q + digamma(total + 1)) * integral))
    by_a, by_b = where(side.swapped, -slope_q, slope_p), where(side.swapped, -slope_p, slope_q)
    return where(inside, by_a, 0.0), where(inside, by_b, 0.0)


def _beta_density(a: Array, b: Array, x: Array) -> Array:
    inside, safe_a, safe_b, safe_x = _beta_inside(a, b, x)
    side = _beta_sides(safe_a, safe_b, safe_x)
    value = _beta_head(side) * side.a / side.x / side.y
    valid = (a > 0) & (b > 0)
    first = where(a < 1, _INF, where(a == 1, b, 0.0))
    last = where(b < 1, _INF, where(b == 1, a, 0.0))
    edge = where(valid & (x == 0), first, where(valid & (x == 1), last, _NAN))
    return where(inside, value, edge)


def _betainc_by(a: Array, b: Array, x: Array, rule: Rule) -> Array:
    head, (nodes, terms) = (_beta_head, (10, 56)) if rule is FULL else (_short_beta_head, (6, 30))
    inside, safe_a, safe_b, safe_x = _beta_inside(a, b, x)
    side = _beta_sides(safe_a, safe_b, safe_x)
    flat, p, q = side.flat, side.a, side.b
    integral, _, _ = beta_tail(p, where(flat, 1.0, q), side.x, side.y, where(flat, 1.0, side.offset), rule)
    tail = head(side) * (1 + side.x * (p + q) * integral)
    operands = where(flat, p, 1.0), where(flat, q, 0.5), where(flat, side.y, 0.25), side.log_y
    tail = rarely(flat, functools.partial(_plateau, nodes=nodes, terms=terms), tail, *operands)
    value = where(side.swapped, 1 - tail, tail)
    # at the ends of the interval, and in the limits of the parameters, all of the mass is on one side
    valid = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & ~((a == 0) & (b == 0)) & ~((a == _INF) & (b == _INF))
    full = (x == 1) | (((a == 0) | (b == _INF)) & (x > 0))
    return where(inside, value, where(valid, where(full, 1.0, 0.0), _NAN))


def _with_beta_slopes(function: Callable[..., Array]) -> Callable[..., Array]:
    differentiable = custom_jvp(function)

    def rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
        with enable_x64(True):
            value = differentiable(*primals)
            both = functools.cache(lambda: _betainc_slopes(*primals))
            slopes = (lambda: both()[0], lambda: both()[1], lambda: _beta_density(*primals))
            return value, weighted_sum(slopes, tangents, value)

    differentiable.defjvp(rule, symbolic_zeros=True)
    return differentiable


_betainc = _with_beta_slopes(lambda a, b, x: _betainc_by(a, b, x, FULL))
_betainc_program = double_program(_betainc, _with_beta_slopes(lambda a, b, x: _betainc_by(a, b, x, SHORT)))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Elementwise regularized incomplete beta function, I_x(a, b).

    Args:
      a: the first parameter, positive.
      b: the second parameter, positive.
      x: where the integral ends, in [0, 1]; all are of one floating dtype.

    Returns:
      Array of their shape; it has derivatives by all of them.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.betainc(1., 2., jnp.array([0.3])).round(3))
    [0.51]
    """
    return _betainc_program(*_operands("betainc", a, b, x))


# ---- the zeta function ----------------------------------------------------------------------------------------------

#: Bernoulli's numbers B(2k) over (2k)!, k from 1.
_BERNOULLI = tuple(
    float(x)
    for x in (
        1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
        -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
    )
)  # fmt: skip


def zeta_sum(x: Array, q: Array) -> Array:
    """ζ(x, q) for q > 0 and x > -15 by Euler and Maclaurin's formula (DLMF 25.11.5), in float64; differentiable."""
    outer = lambda v: expand_dims(v, (x.ndim,))
    k = np.arange(16.0).reshape((1,) * x.ndim + (-1,))
    direct = reduce_sum(pow(outer(q) + k, -outer(x) + 0 * k), (x.ndim,))
    w = q + 16
    first = pow(w, -x)
    series = full_like(x, 0)
    for j in range(len(_BERNOULLI) - 1, -1, -1):
        # the coefficient of B(2j + 2) is that of the one before times (x + 2j - 1) (x + 2j) / w²
        series = (_BERNOULLI[j] + series) * (x if j == 0 else (x + (2 * j - 1)) * (x + 2 * j) / (w * w))
    return direct + first * (w / (x - 1) + 0.5 + series / w)


def _zeta_slope(x: Array, q: Array) -> Array:
    from ferrax._derivatives import jvp

    inside = (x > 1) & (q > 0) & is_finite(x) & is_finite(q)
    safe_x, safe_q = where(inside, x, 2.0), where(inside, q, 1.0)
    slope = jvp(lambda x: zeta_sum(x, safe_q), (safe_x,), (full_like(safe_x, 1),))[1]
    return where(inside, slope, _NAN)


def _zeta(x: ArrayLike, q: ArrayLike) -> Array:
    return _rust.zeta(x, q)


_zeta = _with_slopes(_zeta, double_program(_zeta_slope), lambda x, q: -x * zeta(x + 1, q))


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Elementwise Hurwitz zeta function, the sum of 1/(k + q)**x over k.

    Args:
      x: the exponent, above 1.
      q: the first base, of the same floating dtype; below 0 only whole `x` have a value.

    Returns:
      Array of their shape; it has derivatives by both.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.zeta(2., jnp.array([1.])).round(3))
    [1.645]
    """
    return _zeta(x, q)
