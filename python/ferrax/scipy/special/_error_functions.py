"""Relatives of the error function: the scaled complement erfcx, Dawson's integral, Faddeeva's function w.

erfcx and Dawson's integral are rational approximations. Faddeeva's function is the trapezoidal rule of 12 points for
the integral that defines it, at shifted or unshifted points, whichever are further from z, with the residue added: Al
Azah and Chandler-Wilde, "Computation of the complex error function using modified trapezoidal rules" (2021). DLMF
chapter 7. Read next: `_exponential_integrals.py`.
"""

from __future__ import annotations

import math

from ferrax import lax
from ferrax.numpy._args import Array, ArrayLike
from ferrax.numpy._dtype_functions import complex_dtype, dtype_kind
from ferrax.scipy.special import _coefficients as tables
from ferrax.scipy.special._args import inexact, real, smooth
from ferrax.scipy.special._rational import constant, double, exp_difference, product, rational

__all__ = ["dawsn", "erfcx", "wofz"]

_SQRT_PI = math.sqrt(math.pi)
_TWO_OVER_SQRT_PI = 2 / _SQRT_PI

#: The trapezoidal rule: twelve points, h apart.
_POINTS = 12
_STEP = math.sqrt(math.pi / _POINTS)
#: From this |z| on the asymptotic series is used.
_FAR = 50.0


def _erfcx_slope(value: Array, x: Array) -> Array:
    v = 1 / (x * x)
    far = _TWO_OVER_SQRT_PI * v * rational(tables.ERFCX_FAR, v)
    return lax.select(x >= 3, far, 2 * x * value - _TWO_OVER_SQRT_PI)


@smooth(lambda value, x: _erfcx_derivative(x))
def _erfcx(x: Array) -> Array:
    a = lax.abs(x)
    v = 1 / (a * a)
    right = lax.select(a < 3, rational(tables.ERFCX_NEAR, a), (1 + v * rational(tables.ERFCX_FAR, v)) / (a * _SQRT_PI))
    return lax.select(x < 0, 2 * exp_difference(x, constant(x, 0)) - right, right)


@smooth(lambda value, x: 2 * _erfcx(x) + 2 * x * value)
def _erfcx_derivative(x: Array) -> Array:
    return _erfcx_slope(_erfcx(x), x)


def erfcx(x: ArrayLike) -> Array:
    """The scaled complementary error function, exp(x²) erfc(x): no underflow for large x.

    Args:
      x: real or complex array.

    Returns:
      Array of the shape of `x`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.erfcx(jnp.array([0., 1., 100.]))
    Array([1.        , 0.42758358, 0.00564161], dtype=float32)
    """
    (x,) = inexact("erfcx", x)
    if dtype_kind(x.dtype) == "c":
        return _erfcx_complex_double(x)
    return _erfcx_double(x)


_erfcx_double = double(_erfcx)


@smooth(lambda value, x: _dawsn_derivative(x))
def _dawsn(x: Array) -> Array:
    s, v = x * x, 1 / (x * x)
    beyond = rational(tables.DAWSON_MIDDLE, v), rational(tables.DAWSON_FAR, v)
    return lax.select(s < 9, x * rational(tables.DAWSON_NEAR, s), (1 + v * lax.select(s < 36, *beyond)) * 0.5 / x)


@smooth(lambda value, x: -2 * (_dawsn(x) + x * value))
def _dawsn_derivative(x: Array) -> Array:
    s, v = x * x, 1 / (x * x)
    beyond = rational(tables.DAWSON_MIDDLE, v), rational(tables.DAWSON_FAR, v)
    return lax.select(s < 9, 1 - 2 * s * rational(tables.DAWSON_NEAR, s), -v * lax.select(s < 36, *beyond))


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral, exp(-x²) times the integral of exp(t²) from 0 to x.

    Args:
      x: real array.

    Returns:
      Array of the shape of `x`.

    Raises:
      ValueError: `x` is complex.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.dawsn(jnp.array([0., 1., 10.]))
    Array([0.        , 0.5380795 , 0.05025385], dtype=float32)
    """
    return _dawsn_double(*real("dawsn", x, error=ValueError))


_dawsn_double = double(_dawsn)


def _asymptotic(z: Array) -> tuple[Array, Array]:
    """w and its derivative for large |z| in the upper half plane: i / (√π z) (1 + 1/(2z²) + 3/(2z²)² + ...)."""
    r = 1 / z
    s = r * r
    half = 0.5 * s
    w = 1 + half * (1 + 3 * half * (1 + 5 * half * (1 + 7 * half)))
    slope = 1 + 3 * half * (1 + 5 * half * (1 + 7 * half * (1 + 9 * half)))
    scale = lax.complex(constant(lax.real(z), 0), constant(lax.real(z), 1 / _SQRT_PI))
    return scale * r * w, -scale * s * slope


def _trapezoidal(x: Array, y: Array) -> tuple[Array, Array]:
    """The real and imaginary part of w(x + iy) for 0 <= x, y < 50."""
    turn = x / _STEP
    turn = turn - lax.floor(turn)
    shifted = ~((y < x) & (turn >= 0.25) & (turn <= 0.75))
    re, im = constant(x, 0), constant(x, 0)
    y2 = y * y
    for k in range(_POINTS):
        near, far = k * _STEP, (k + 0.5) * _STEP
        t = lax.select(shifted, constant(x, far), constant(x, near))
        weight = lax.select(
            shifted, constant(x, math.exp(-far * far)), constant(x, math.exp(-near * near) if k else 0.5)
        )
        below, above = x - t, x + t
        c = weight / ((below * below + y2) * (above * above + y2))
        re = re + c * (x * x + y2 + t * t)
        im = im + c * (below * above + y2)
    scale = 2 * _STEP / math.pi
    residue_re, residue_im = _residue(x, y, turn, shifted)
    plain = y >= lax.max(x, constant(x, math.pi / _STEP))
    re, im = re * y * scale, im * x * scale
    return lax.select(plain, re, re + residue_re), lax.select(plain, im, im + residue_im)


def _residue(x: Array, y: Array, turn: Array, shifted: Array) -> tuple[Array, Array]:
    """2 exp(-z²) / (1 ± exp(-2πiz / h)), + for the shifted points."""
    growth = lax.exp(y * (2 * math.pi / _STEP))
    growth = lax.select(shifted, growth, -growth)
    angle = turn * (2 * math.pi)
    a, b = 1 + growth * lax.cos(angle), growth * lax.sin(angle)
    size = 2 * exp_difference(y, x) / (a * a + b * b)
    c, d = lax.cos(2 * x * y), lax.sin(2 * x * y)
    return size * (a * c + b * d), size * (b * c - a * d)


def _twice_gaussian(x: Array, y: Array) -> tuple[Array, Array]:
    """2 exp(-(x - iy)²): its phase 2xy is summed in two parts, and its size may be infinite."""
    size = 2 * exp_difference(y, x)
    on_axis = (x == 0) | (y == 0)
    p, e = product(2 * x, y)
    p = lax.select(on_axis, constant(x, 0), p)
    e = lax.select(lax.abs(p) < 1e300, e, constant(e, 0))
    e = lax.select(on_axis, constant(x, 0), e)
    gone = size == 0
    c, s = (lax.select(gone, constant(x, 0), f(p)) for f in (lax.cos, lax.sin))
    size = lax.select(gone, constant(x, 0), size)
    return size * (c - s * e), lax.select(on_axis, constant(x, 0), size * (s + c * e))


def _by_quadrant(z: Array) -> tuple[Array, Array, Array]:
    """w(z), and w(|x| + i|y|), and whether the asymptotic series gave it."""
    x, y = lax.real(z), lax.imag(z)
    a, b = lax.abs(x), lax.abs(y)
    far = lax.max(a, b) >= _FAR
    inside = (lax.min(v, constant(v, _FAR)) for v in (a, b))
    near_re, near_im = _trapezoidal(*inside)
    first = lax.select(far, _asymptotic(lax.complex(a, b))[0], lax.complex(near_re, near_im))
    re, im = lax.real(first), lax.imag(first)
    # On the real axis and beyond 50 the real part is exp(-x²), which the series does not have.
    twice = _twice_gaussian(a, b)
    re = lax.select(b == 0, 0.5 * twice[0], re)
    below = y < 0
    re, im = lax.select(below, twice[0] - re, re), lax.select(below, twice[1] + im, im)
    return lax.complex(re, lax.select(x < 0, -im, im)), first, far


@smooth(lambda value, z: _wofz_derivative(z))
def _wofz(z: Array) -> Array:
    return _by_quadrant(z)[0]


@smooth(lambda value, z: -2 * (_wofz(z) + z * value))
def _wofz_derivative(z: Array) -> Array:
    """2i/√π - 2z w(z), which cancels for large z in the upper half plane."""
    two_i = lax.complex(constant(lax.real(z), 0), constant(lax.real(z), _TWO_OVER_SQRT_PI))
    far = (lax.max(lax.abs(lax.real(z)), lax.abs(lax.imag(z))) >= _FAR) & (lax.imag(z) >= 0)
    return lax.select(far, _asymptotic(z)[1], two_i - 2 * z * _wofz(z))


def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function, w(z) = exp(-z²) erfc(-iz).

    Args:
      z: real or complex array.

    Returns:
      Complex array of the shape of `z`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.wofz(jnp.array([0., 1 + 1j]))
    Array([1.       +0.j        , 0.3047442+0.20821893j], dtype=complex64)
    """
    (z,) = inexact("wofz", z)
    return _wofz_double(lax.convert_element_type(z, complex_dtype(z.dtype)))


_wofz_double = double(_wofz)


def _erfcx_of_complex(z: Array) -> Array:
    return _wofz(lax.complex(-lax.imag(z), lax.real(z)))


_erfcx_complex_double = double(_erfcx_of_complex)
