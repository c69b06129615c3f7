"""The beta function, its logarithm and incomplete integral, binomial coefficients.

Quotients of gamma functions of large numbers are Stirling's formulas divided term by term, so that nothing large
cancels (Didonato and Morris, "Algorithm 708", 1992). Read next: `lax/special.py`.
"""

from __future__ import annotations

import numpy as np

from ferrax import lax
from ferrax._core import with_weak_type
from ferrax.lax._gamma import gamma_function
from ferrax.lax._tails import exact_product, exact_sum, rarely, stirling, where
from ferrax.lax.special import log_beta
from ferrax.numpy._args import Array, ArrayLike
from ferrax.scipy.special._args import double_program, real, smooth

__all__ = ["beta", "betainc", "betaln", "comb", "poch"]


def _log_slope(a: Array, b: Array) -> Array:
    """The derivative of log B(a, b) by a."""
    return lax.digamma(a) - lax.digamma(a + b)


@smooth(lambda value, a, b: _log_slope(a, b), lambda value, a, b: _log_slope(b, a))
def _betaln(a: Array, b: Array) -> Array:
    positive = (a > 0) & (b > 0) & lax.is_finite(a + b)
    value = log_beta(where(positive, a, 1.0), where(positive, b, 1.0))
    return where(positive, value, lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b))


def _root_power(number: Array, total: Array, lost: Array, exponent: Array) -> Array:
    """(number / (total + lost))^exponent, with what the quotient's rounding left out."""
    quotient = number / total
    product, rest = exact_product(quotient, total)
    left = ((number - product) - rest - quotient * lost) / number
    return lax.pow(quotient, exponent) * lax.exp(exponent * left)


@smooth(lambda value, a, b: value * _log_slope(a, b), lambda value, a, b: value * _log_slope(b, a))
def _beta(a: Array, b: Array) -> Array:
    low, high = where(a < b, a, b), where(a < b, b, a)
    both, one = low >= 10, (high >= 100) & (low + high >= 20)
    # two large parameters: B = √(2π total / (a b)) (a/total)^a (b/total)^b, and Stirling's corrections
    big_low = where(both, low, 20.0)
    big_high = where(one | both, high, 200.0)
    total, lost = exact_sum(big_low, big_high)
    correction = lax.exp(stirling(big_low) + stirling(big_high) - stirling(total))
    powers = _root_power(big_low, total, lost, big_low) * _root_power(big_high, total, lost, big_high)
    large = float(np.sqrt(2 * np.pi)) * lax.sqrt(total / big_low / big_high) * correction * powers
    # one of them: Γ(low) total^-low (high/total)^(high - 1/2) e^low
    little = where(one & ~both, low, 1.0)
    total, lost = exact_sum(little, big_high)
    step = little - (big_high - 0.5) * lax.log1p(little / big_high)
    scale = lax.pow(total, -little) * (1 - little * lost / total)
    uneven = gamma_function(little) * scale * lax.exp(step + stirling(big_high) - stirling(total))
    # none of them, or a negative one
    near_low, near_high = where(both | one, 1.0, low), where(both | one, 1.0, high)
    total, lost = exact_sum(near_low, near_high)
    finite = (lost != 0) & (lax.abs(total) < 1e3)
    plain = gamma_function(near_low) * (gamma_function(near_high) / gamma_function(total))
    plain = plain * (1 - where(finite, lost * lax.digamma(where(finite, total, 1.0)), 0.0))
    return where(both, large, where(one, uneven, plain))


#: Up to here sums of log Γ in float64 have the digits of float32, as exponents too.
_SHORT = 1e5


@smooth(lambda value, a, b: _log_slope(a, b), lambda value, a, b: _log_slope(b, a))
def _short_betaln(a: Array, b: Array) -> Array:
    plain = (lax.min(a, b) > 0) & (lax.max(a, b) < _SHORT)
    p, q = where(plain, a, 1.0), where(plain, b, 1.0)
    return rarely(~plain, _betaln, lax.lgamma(p) + lax.lgamma(q) - lax.lgamma(p + q), a, b)


@smooth(lambda value, a, b: value * _log_slope(a, b), lambda value, a, b: value * _log_slope(b, a))
def _short_beta(a: Array, b: Array) -> Array:
    plain = (lax.min(a, b) > 0) & (lax.max(a, b) < _SHORT)
    p, q = where(plain, a, 1.0), where(plain, b, 1.0)
    return rarely(~plain, _beta, lax.exp(lax.lgamma(p) + lax.lgamma(q) - lax.lgamma(p + q)), a, b)


def _comb_slopes(n: Array, k: Array) -> tuple[Array, Array]:
    rest = lax.digamma(where(n - k > -1, n - k + 1, 1.0))
    return lax.digamma(where(n > -1, n + 1, 1.0)) - rest, rest - lax.digamma(where(k > -1, k + 1, 1.0))


@smooth(lambda value, n, k: value * _comb_slopes(n, k)[0], lambda value, n, k: value * _comb_slopes(n, k)[1])
def _comb(n: Array, k: Array) -> Array:
    inside = (k >= 0) & (n >= k)
    safe_n, safe_k = where(inside, n, 1.0), where(inside, k, 0.0)
    value = 1 / ((safe_n + 1) * _beta(safe_n - safe_k + 1, safe_k + 1))
    whole = (safe_n == lax.floor(safe_n)) & (safe_k == lax.floor(safe_k)) & (value < 2.0**50)
    value = where(whole, lax.round(value, lax.RoundingMethod.TO_NEAREST_EVEN), value)
    return where(inside, value, 0.0)


def _multisets(n: Array, k: Array) -> Array:
    one = (k == 0) & (n >= 0)
    return where(one, 1.0, _comb(where(one, 1.0, n) + where(one, 1.0, k) - 1, k))


def _gamma_quotient(z: Array, m: Array) -> Array:
    """Γ(z + m) / Γ(z)."""
    total, lost = exact_sum(z, m)
    large = (z >= 10) & (total >= 10)
    big, over, rest = where(large, z, 20.0), where(large, total, 40.0), where(large, lost, 0.0)
    step = where(large, m, 20.0)
    # (total/z)^(z - 1/2) total^m e^-m, and Stirling's corrections
    quotient = over / big
    product, low = exact_product(quotient, big)
    left = ((over - product) - low + rest) / over
    power = lax.pow(quotient, big - 0.5) * lax.exp((big - 0.5) * left + step * rest / over)
    from_far = power * lax.pow(over, step) * lax.exp(-step) * lax.exp(stirling(over) - stirling(big))
    near = ~large & (lost != 0) & (lax.abs(total) < 1e3)
    plain = gamma_function(where(large, 1.0, total)) / gamma_function(where(large, 1.0, z))
    plain = plain * (1 + where(near, lost * lax.digamma(where(near, total, 1.0)), 0.0))
    return where(large, from_far, plain)


_poch_slopes = smooth(
    lambda value, z, m: value * (lax.digamma(z + m) - lax.digamma(z)), lambda value, z, m: value * lax.digamma(z + m)
)


@_poch_slopes
def _poch(z: Array, m: Array) -> Array:
    # at a pole of Γ(z) a whole m has a limit, that of the reflected quotient
    pole = (z <= 0) & (z == lax.floor(z))
    whole = m == lax.floor(m)
    mirrored = pole & whole
    start = where(mirrored, 1 - z - m, z)
    missing = mirrored & (start <= 0)  # the product has the factor 0
    beyond = ~mirrored & (z + m <= 0) & (z + m == lax.floor(z + m))
    value = _gamma_quotient(where(missing | beyond | (pole & ~whole), 1.0, start), m)
    sign = where(mirrored & (lax.rem(m, lax.full_like(m, 2)) != 0), -1.0, 1.0)
    value = where(missing | (pole & ~whole), 0.0, where(beyond, float("inf"), sign * value))
    return where(m == 0, 1.0, where((z != z) | (m != m), float("nan"), value))


@_poch_slopes
def _short_poch(z: Array, m: Array) -> Array:
    plain = (z > 0) & (z + m > 0) & (lax.max(z, z + m) < _SHORT)
    start, end = where(plain, z, 1.0), where(plain, z + m, 1.0)
    return rarely(~plain, _poch, lax.exp(lax.lgamma(end) - lax.lgamma(start)), z, m)


_poch_program = double_program(_poch, _short_poch)
_beta_program, _betaln_program = double_program(_beta, _short_beta), double_program(_betaln, _short_betaln)
_comb_program, _multiset_program = double_program(_comb), double_program(_multisets)


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of the absolute value of the beta function.

    Args:
      a: real array.
      b: real array.

    Returns:
      Array of the shape that the operands broadcast to.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.betaln(1., jnp.array([1., 2.]))
    Array([ 0.       , -0.6931472], dtype=float32)
    """
    return _betaln_program(*real("betaln", a, b))


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function, Γ(a) Γ(b) / Γ(a + b).

    Args: as in `betaln`.

    Returns:
      Array of the shape that the operands broadcast to; NaN where one of them is a negative whole number.

    Raises:
      ValueError: for complex numbers.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.beta(1., jnp.array([1., 2.]))
    Array([1. , 0.5], dtype=float32)
    """
    return with_weak_type(_beta_program(*real("beta", a, b, error=ValueError)), False)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function: the integral of t^(a-1) (1-t)^(b-1) from 0 to x, over B(a, b).

    Args:
      a: real array, positive.
      b: real array, positive.
      x: real array, in [0, 1].

    Returns:
      Array of the shape that the operands broadcast to; it has derivatives by all of them.

    Raises:
      ValueError: for complex numbers.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.betainc(1., 2., jnp.array([0., 0.5, 1.]))
    Array([0.  , 0.75, 1.  ], dtype=float32)
    """
    return lax.betainc(*real("betainc", a, b, x, error=ValueError))


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The binomial coefficient: in how many ways k of N things can be chosen.

    Args:
      N: real array, the number of things.
      k: real array, how many are chosen.
      repetition: a thing may be chosen more than once.

    Returns:
      Floating array of the shape that the operands broadcast to; 0 where N or k is negative, or k more than N.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.comb(5, jnp.array([0, 2, 6]))
    Array([ 1., 10.,  0.], dtype=float32)
    """
    return (_multiset_program if repetition else _comb_program)(*real("comb", N, k))


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol, Γ(z + m) / Γ(z): the product z (z + 1) … (z + m - 1) for whole m.

    Args:
      z: real array.
      m: real array.

    Returns:
      Array of the shape that the operands broadcast to.

    Raises:
      ValueError: for complex numbers.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.poch(2., jnp.array([0., 1., 3.]))
    Array([ 1.,  2., 24.], dtype=float32)
    """
    return with_weak_type(_poch_program(*real("poch", z, m, error=ValueError)), False)
