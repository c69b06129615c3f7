"""Exponential integrals Ei, E1 and Eₙ, sine and cosine integrals, Fresnel's integrals, the dilogarithm.

Mostly rational approximations (`_coefficients.py`); Eₙ is the power series or the continued fraction of DLMF 8.19, the
dilogarithm Li₂(1 - exp(-u)) the power series in u, whose coefficients are Bernoulli numbers. DLMF chapters 6, 7, 8.19,
25.12. Read next: `_owens_t.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import asarray
from ferrax.config import enable_x64
from ferrax.custom_derivatives import custom_jvp
from ferrax.numpy import _elementwise
from ferrax.numpy._args import Array, ArrayLike
from ferrax.scipy.special import _coefficients as tables
from ferrax.scipy.special._args import real, smooth
from ferrax.scipy.special._rational import constant, double, horner, pick, product, rational

__all__ = ["exp1", "expi", "expn", "fresnel", "sici", "spence"]

_EULER_GAMMA = 0.57721566490153286061
#: The zero of Ei, in two parts.
_EI_ZERO = 0.37250741078136663446, 1.3140183414386027720e-17
_HALF_PI = math.pi / 2


def _e1(x: Array) -> Array:
    """E1 of positive numbers; NaN for negative ones."""
    v = 1 / x
    far = lax.select(x < 4, rational(tables.E1_MIDDLE, v), rational(tables.E1_FAR, v))
    return lax.select(x <= 1, x * rational(tables.EIN, x) - (lax.log(x) + _EULER_GAMMA), lax.exp(-x) * far * v)


@smooth(lambda value, x: -lax.exp(-x) / x)
def _exp1(x: Array) -> Array:
    return _e1(x)


def _ei_positive(x: Array) -> Array:
    v = 1 / x
    from_zero = (x - _EI_ZERO[0]) - _EI_ZERO[1]
    log = lax.select(lax.abs(from_zero) < 0.1, lax.log1p(from_zero / _EI_ZERO[0]), lax.log(x) - math.log(_EI_ZERO[0]))
    far = pick(
        x < 12, rational(tables.EI_12, v), x < 24, rational(tables.EI_24, v), x < 60, rational(tables.EI_60, v),
        rational(tables.EI_FAR, v),
    )  # fmt: skip
    # In two factors, since exp(x) overflows before Ei(x) does.
    half = lax.exp(0.5 * x)
    far = lax.select(x == np.inf, x, half * v * far * half)
    return lax.select(x <= 6, log + from_zero * rational(tables.EI_NEAR, x), far)


@smooth(lambda value, x: lax.exp(x) / x)
def _expi(x: Array) -> Array:
    a = lax.abs(x)
    return lax.select(x < 0, -_e1(a), _ei_positive(a))


def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei(x), the principal value of the integral of exp(t) / t from -∞ to x.

    Args:
      x: real array.

    Returns:
      Array of the shape of `x`; -inf at 0.

    Raises:
      ValueError: `x` is complex.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.expi(jnp.array([-1., 0., 1.]))
    Array([-0.21938394,        -inf,  1.8951178 ], dtype=float32)
    """
    return _expi_double(*real("expi", x, error=ValueError))


def exp1(x: ArrayLike) -> Array:
    """The exponential integral E1(x), the integral of exp(-t) / t from x to ∞.

    Args: as in `expi`.

    Returns:
      Array of the shape of `x`; inf at 0, and NaN below.

    Raises: as in `expi`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.exp1(jnp.array([0., 1., 10.]))
    Array([          inf, 2.1938394e-01, 4.1569688e-06], dtype=float32)
    """
    return _exp1_double(*real("exp1", x, error=ValueError))


_expi_double = double(_expi)
_exp1_double = double(_exp1)

#: Up to here Eₙ is its power series, beyond its continued fraction.
_SERIES_END = 1.5
_SERIES_TERMS = 24
_FRACTION_TERMS = 64


def _expn_series(n: Array, x: Array) -> Array:
    """Eₙ for whole n >= 1 and 0 < x <= 1.5 (DLMF 8.19.8): the term m = n - 1 of the series has a logarithm."""
    log = lax.log(x)
    total, power, harmonic = constant(x, 0), constant(x, 1), 0.0
    for m in range(_SERIES_TERMS):
        singular = n == m + 1
        divisor = lax.select(singular, constant(x, 1), (m + 1) - n)
        total = total + power * lax.select(singular, harmonic - _EULER_GAMMA - log, -1 / divisor)
        power, harmonic = power * x * (-1 / (m + 1)), harmonic + 1 / (m + 1)
    return total


def _expn_fraction(n: Array, x: Array) -> Array:
    """Eₙ for x > 1.5: exp(-x) / (x + n - 1 n / (x + n + 2 - 2 (n + 1) / (x + n + 4 - ...)))."""

    def step(i: Array, below: Array) -> Array:
        k = (_FRACTION_TERMS - lax.convert_element_type(i, np.float64)) * constant(x, 1)
        return x + n + 2 * (k - 1) - k * (n + k - 1) / below

    with enable_x64(True):
        below = lax.fori_loop(0, _FRACTION_TERMS, step, x + n + 2 * _FRACTION_TERMS)
    return lax.exp(-x) / below


def _whole(n: Array) -> Array:
    return (n == lax.floor(n)) & (n >= 0)


def _expn_rule(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    n, x = primals
    with enable_x64(True):
        zero = n == 0
        lower = _expn(lax.select(zero, constant(n, 0), n - 1), x)
        slope = lax.select(zero, -(1 + 1 / x) * lax.exp(-x) / x, -lower)
        return _expn(n, x), tangents[1] * slope


@custom_jvp
def _expn(n: Array, x: Array) -> Array:
    tail = lax.exp(-x)
    result = pick(
        n == 0, tail / lax.abs(x),
        x == 0, lax.select(n == 1, constant(x, np.inf), 1 / (n - 1)),
        x == np.inf, constant(x, 0),
        n == np.inf, constant(x, 0),
        x <= _SERIES_END, _expn_series(n, x),
        _expn_fraction(n, x),
    )  # fmt: skip
    return lax.select(_whole(n) & (x >= 0), result, constant(x, np.nan))


_expn.defjvp(_expn_rule)
_expn_double = double(_expn)


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integral Eₙ(x), the integral of exp(-xt) / tⁿ from t = 1 to ∞.

    Args:
      n: real array of whole numbers, 0 or more; not differentiated.
      x: real array, 0 or more.

    Returns:
      Array of the broadcast shape; NaN for other `n` and for negative `x`.

    Raises:
      ValueError: an operand is complex.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.expn(jnp.array([1, 2, 3]), 0.5)
    Array([0.5597736 , 0.32664385, 0.22160436], dtype=float32)
    """
    return _expn_double(*real("expn", n, x, error=ValueError))


def _sinc(x: Array) -> Array:
    """sin(x) / x."""
    return _elementwise.sinc(x * (1 / math.pi))


def _auxiliary(x: Array) -> tuple[Array, Array]:
    """f and g of DLMF 6.2.17-18 for x >= 4."""
    v = 1 / (x * x)
    near = x < 8
    f = lax.select(near, rational(tables.SI_F_8, v), rational(tables.SI_F_FAR, v))
    g = lax.select(near, rational(tables.SI_G_8, v), rational(tables.SI_G_FAR, v))
    return f / x, g * v


@smooth(lambda value, x: _sinc(x))
def _si(x: Array) -> Array:
    a = lax.abs(x)
    f, g = _auxiliary(a)
    far = lax.select(a == np.inf, constant(x, _HALF_PI), _HALF_PI - f * lax.cos(a) - g * lax.sin(a))
    return lax.select(a <= 4, x * rational(tables.SI_NEAR, x * x), lax.sign(x) * far)


@smooth(lambda value, x: lax.cos(x) / x)
def _ci(x: Array) -> Array:
    a = lax.abs(x)
    f, g = _auxiliary(a)
    end = lax.select(x > 0, constant(x, 0), constant(x, np.nan))
    far = lax.select(a == np.inf, end, f * lax.sin(a) - g * lax.cos(a))
    return lax.select(a <= 4, _EULER_GAMMA + lax.log(a) + x * x * rational(tables.CI_NEAR, x * x), far)


@jit
def _sici(x: Array) -> tuple[Array, Array]:
    return _si_double(x), _ci_double(x)


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine integral Si(x), of sin(t) / t from 0 to x, and the cosine integral Ci(x), of -cos(t) / t from x to ∞.

    Args: as in `expi`.

    Returns:
      Two arrays of the shape of `x`. Ci is -inf at 0, and the real part of its continuation below: Ci(|x|).

    Raises: as in `expi`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> si, ci = ferrax.scipy.special.sici(jnp.array([1., 10.]))
    >>> si
    Array([0.94608307, 1.6583476 ], dtype=float32)
    >>> ci
    Array([ 0.33740392, -0.04545643], dtype=float32)
    """
    return _sici(*real("sici", x, error=ValueError))


def _quarter_turns(x: Array) -> tuple[Array, Array]:
    """The sine and cosine of πx²/2, the square being reduced by whole turns before it is rounded."""
    p, e = product(x, x)
    inside = lax.abs(x) < 1e150
    p, e = lax.select(inside, p, constant(x, 0)), lax.select(inside, e, constant(x, 0))
    turn = (lax.rem(p, constant(x, 4.0)) + e) * _HALF_PI
    return lax.sin(turn), lax.cos(turn)


@smooth(lambda value, x: math.pi * x * _cos_square(x))
def _sin_square(x: Array) -> Array:
    return _quarter_turns(x)[0]


@smooth(lambda value, x: -math.pi * x * _sin_square(x))
def _cos_square(x: Array) -> Array:
    return _quarter_turns(x)[1]


#: Up to here the integrals are odd power series.
_FRESNEL_NEAR = 8**0.25


def _fresnel_far(a: Array) -> tuple[Array, Array]:
    """S and C for large positive numbers (DLMF 7.5.3-4)."""
    s, c = _quarter_turns(a)
    r = 1 / a
    v = r * r
    f, g = rational(tables.FRESNEL_F, v * v) * r, rational(tables.FRESNEL_G, v * v) * r * v
    return 0.5 - f * c - g * s, 0.5 + f * s - g * c


@smooth(lambda value, x: _sin_square(x))
def _fresnel_s(x: Array) -> Array:
    a, s = lax.abs(x), x * x
    near = x * s * rational(tables.FRESNEL_S, s * s)
    return lax.select(a < _FRESNEL_NEAR, near, lax.sign(x) * _fresnel_far(a)[0])


@smooth(lambda value, x: _cos_square(x))
def _fresnel_c(x: Array) -> Array:
    a, s = lax.abs(x), x * x
    near = x * rational(tables.FRESNEL_C, s * s)
    return lax.select(a < _FRESNEL_NEAR, near, lax.sign(x) * _fresnel_far(a)[1])


@jit
def _fresnel(x: Array) -> tuple[Array, Array]:
    return _fresnel_s_double(x), _fresnel_c_double(x)


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals S(x) and C(x), of sin(πt²/2) and cos(πt²/2) from 0 to x.

    Args:
      x: real array.

    Returns:
      Two arrays of the shape of `x`.

    Raises:
      NotImplementedError: `x` is complex.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> s, c = ferrax.scipy.special.fresnel(jnp.array([0.5, 10.]))
    >>> s
    Array([0.06473243, 0.46817   ], dtype=float32)
    >>> c
    Array([0.49234423, 0.4998987 ], dtype=float32)
    """
    return _fresnel(*real("fresnel", x, error=NotImplementedError))


def _dilogarithm_coefficients() -> tuple[float, ...]:
    """B₂ₖ / (2k + 1)!, highest first: of u**(2k + 1) in Li₂(1 - exp(-u)) + u²/4."""
    from fractions import Fraction

    bernoulli = [Fraction(1)]
    for n in range(1, 21):
        bernoulli.append(-sum(math.comb(n + 1, k) * bernoulli[k] for k in range(n)) / (n + 1))
    return tuple(float(bernoulli[2 * k] / math.factorial(2 * k + 1)) for k in reversed(range(11)))


_DILOGARITHM = _dilogarithm_coefficients()


def _dilogarithm(u: Array) -> Array:
    """Li₂(1 - exp(-u)) for |u| <= log 2."""
    return u * (horner(_DILOGARITHM, u * u) - 0.25 * u)


def _log_quotient(x: Array) -> Array:
    """log(x) / (1 - x), with derivatives that do not cancel near 1: there the series of 2 artanh((x - 1) / (x + 1))."""
    w = (x - 1) / (x + 1)
    near = lax.abs(w) < 0.12
    square = lax.select(near, w * w, constant(x, 0))
    series = horner([1 / (2 * k + 1) for k in reversed(range(10))], square)
    safe = lax.select(near, constant(x, 2), x)
    return lax.select(near, -2 * series / (x + 1), lax.log(safe) / (1 - safe))


@smooth(lambda value, x: _log_quotient(x))
def _spence(x: Array) -> Array:
    inverted = x > 2
    y = lax.select(inverted, 1 / x, x)
    small = y < 0.5
    u = 0 - lax.select(small, lax.log1p(-y), lax.log(y))
    log = lax.log(y)
    reflected = math.pi**2 / 6 - lax.select(y == 0, y, log * -u) - _dilogarithm(u)
    near = lax.select(small, reflected, _dilogarithm(u))
    return lax.select(inverted, -0.5 * log * log - near, near)


def spence(x: ArrayLike) -> Array:
    """Spence's function, the dilogarithm of 1 - x: the integral of log(t) / (1 - t) from 1 to x.

    Args:
      x: real array, 0 or more.

    Returns:
      Array of the shape of `x`; NaN for negative numbers.

    Raises:
      TypeError: `x` is complex.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.spence(jnp.array([0., 1., 2.]))
    Array([ 1.644934,  0.      , -0.822467], dtype=float32)
    """
    return _spence_double(*real("spence", asarray(x)))


_si_double, _ci_double = double(_si), double(_ci)
_fresnel_s_double, _fresnel_c_double = double(_fresnel_s), double(_fresnel_c)
_spence_double = double(_spence)
