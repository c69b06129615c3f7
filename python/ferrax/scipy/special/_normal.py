"""Error functions and the normal distribution.

Sources: DLMF 7; Wichura, "Algorithm AS 241: The percentage points of the normal distribution" (1988). Read next:
`_gamma.py`.
"""

from __future__ import annotations

import functools
from functools import partial

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import asarray, weak_type, with_weak_type
from ferrax.config import enable_x64
from ferrax.lax._tails import exact_product, rarely, where
from ferrax.numpy._args import Array, ArrayLike
from ferrax.scipy.special._args import double_program, in_double, in_single, inexact, real, smooth

__all__ = ["erf", "erfc", "erfinv", "log_ndtr", "ndtr", "ndtri"]


def erf(x: ArrayLike) -> Array:
    """The error function, 2/√π times the integral of exp(-t²) from 0 to x.

    Args:
      x: real array.

    Returns:
      Array of the shape of `x`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.erf(jnp.array([0., 1.]))
    Array([0.        , 0.84270084], dtype=float32)
    """
    return lax.erf(*inexact("erf", x))


def erfc(x: ArrayLike) -> Array:
    """The complement of the error function, 1 - erf(x), accurate for large x.

    Args, Returns: as in `erf`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.erfc(jnp.array([0., 1.]))
    Array([1.        , 0.1572992], dtype=float32)
    """
    return lax.erfc(*inexact("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function: ±inf at ±1, NaN beyond.

    Args, Returns: as in `erf`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.erfinv(jnp.array([0., 0.5, 1.]))
    Array([0.        , 0.47693628,        inf], dtype=float32)
    """
    return _erfinv(*real("erfinv", x))


@smooth(lambda value, x: float(np.sqrt(np.pi) / 2) * lax.exp(value * value))
def _single_erfinv(x: Array) -> Array:
    """In float32 the primitive is JAX's formula, for the sake of random numbers: it loses digits where x² was rounded.

    What that changes is put back to first order: the formula is x times a function of log(1 - x²), whose slope follows
    from that of the inverse, √π/2 exp(y²).
    """
    y = lax.erf_inv(x)
    wide = [lax.convert_element_type(v, np.float64) for v in (x, x * x)]
    lost = lax.convert_element_type(wide[0] * wide[0] - wide[1], np.float32)
    large = (lax.abs(x) > 0.5) & (lax.abs(x) < 1)
    safe_x, safe_y = where(large, x, 1.0), where(large, y, 0.0)
    slope = float(np.sqrt(np.pi) / 2) * lax.exp(safe_y * safe_y) - safe_y / safe_x
    return where(large, safe_y + slope * lost / (2 * safe_x), y)


@jit
def _erfinv(x: Array) -> Array:
    if x.dtype.itemsize == 8:
        return lax.erf_inv(x)
    with enable_x64(True):
        return with_weak_type(in_single(_single_erfinv, x), weak_type(x))


def _checked(name: str, x: ArrayLike) -> Array:
    """A float32 or float64 array of full type; nothing else is taken, as in JAX."""
    array = asarray(x)
    if array.dtype not in _DTYPES:
        raise TypeError(f"{name}: x.dtype={array.dtype} is not supported; convert to float32 or float64.")
    return with_weak_type(array, False)


_DTYPES = (np.dtype("float32"), np.dtype("float64"))

# ---- the normal distribution, in float64 ----------------------------------------------------------------------------


def _density(x: Array) -> Array:
    """exp(-x²/2) / √2π; the square's rounding would be multiplied by it, so its first digits are exact."""
    # beyond 40 it is zero, and of infinities the difference would be NaN
    x = lax.clamp(lax.full_like(x, -40), x, lax.full_like(x, 40))
    high = lax.floor(x * 2.0**20) / 2.0**20
    return lax.exp(-0.5 * (high * high)) * lax.exp(-0.5 * (x - high) * (x + high)) / _ROOT


_ROOT = float(np.sqrt(2 * np.pi))
_SQRT_HALF, _SQRT_HALF_LOW = 0.7071067811865476, -4.833646656726457e-17


@smooth(lambda value, x: _density(x))
def _ndtr(x: Array) -> Array:
    inside = lax.abs(x) < 40
    safe = where(inside, x, 0.0)
    t, lost = exact_product(-safe, lax.full_like(x, _SQRT_HALF))
    # erfc at the rounded argument, and its slope times what the rounding left out
    lost = lost - safe * _SQRT_HALF_LOW
    tail = 0.5 * (lax.erfc(t) - 2 / np.sqrt(np.pi) * lax.exp(-t * t) * lost)
    return where(inside, tail, where(x != x, x, where(x > 0, 1.0, 0.0)))


#: The same to the digits of float32, which the rounding of the argument does not reach.
_short_ndtr = smooth(lambda value, x: _density(x))(lambda x: 0.5 * lax.erfc(x * -_SQRT_HALF))


#: Below this ndtr underflows, and the first terms of its expansion at infinity have all digits.
_FAR = -37.0


def _tail_series(x: Array, order: int) -> Array:
    """1 - 1/x² + 3/x⁴ - …, which ndtr(x) / density(x) is times -1/x (DLMF 7.12.1)."""
    w = 1 / (x * x)
    series = lax.full_like(x, 1)
    for k in range(order, 0, -1):
        series = 1 - (2 * k - 1) * w * series
    return series


def _log_ndtr_slope(x: Array, order: int) -> Array:
    far, high = x < _FAR, x > _FAR
    safe, distant = where(high, x, 0.0), where(far, x, _FAR)
    return where(far, -distant / _tail_series(distant, order), where(high, _density(safe) / _ndtr(safe), x * 0 - _FAR))


@partial(jit, static_argnums=1)
def _log_ndtr(x: Array, order: int) -> Array:
    def far_out(x: Array) -> Array:
        distant = where(x < _FAR, x, _FAR)
        return -0.5 * distant * distant - lax.log(-distant * _ROOT) + lax.log(_tail_series(distant, order))

    @smooth(lambda value, x: _log_ndtr_slope(x, order))
    def short(x: Array) -> Array:
        # the smaller one of the two probabilities
        tail = 0.5 * lax.erfc(lax.abs(x) * _SQRT_HALF)
        far = x < _FAR
        other = 1 - tail
        log = lax.log(where(x > 0, other, where(far, 0.5, tail)))
        # log(1 - tail) by that of the rounded 1 - tail (Kahan)
        left = 1 - other
        near = where(x > 0, where(left == 0, -tail, log * tail / left), log)
        return rarely(far, far_out, near, x)

    @smooth(lambda value, x: _log_ndtr_slope(x, order))
    def log_ndtr(x: Array) -> Array:
        far, upper = x < _FAR, x > -0.5
        below = lax.log(_ndtr(where(far | upper, -1.0, x)))
        above = lax.log1p(-_ndtr(where(upper, -x, -1.0)))
        return where(far, far_out(x), where(upper, above, below))

    return in_double(log_ndtr if x.dtype == _DTYPES[1] else short, x)


# Numerators and denominators of Wichura's quotients, in the middle, in the tails, and far out, the highest power first.
_MIDDLE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_TAIL = (
    (7.7454501427834140764e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
     3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0),
)  # fmt: skip
_FAR_OUT = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip


_Quotient = tuple[tuple[float, ...], tuple[float, ...]]


def _quotient(coefficients: _Quotient, r: Array) -> Array:
    above, below = (functools.reduce(lambda s, c: s * r + c, p[1:], lax.full_like(r, p[0])) for p in coefficients)
    return above / below


#: Those that have the digits of float32, nearly.
_SHORT_MIDDLE = (
    (59.109374720, 159.29113202, 50.434271938, 3.3871327179),
    (67.187563600, 78.757757664, 17.895169469, 1.0),
)
_SHORT_TAIL = (0.17023821103, 1.3067284816, 2.7568153900, 1.4234372777), (0.12021132975, 0.73700164250, 1.0)
_SHORT_FAR_OUT = (
    (1.7337203997e-2, 4.2868294337e-1, 3.0812263860, 6.6579051150), (1.2258202635e-2, 2.4197894225e-1, 1.0)
)  # fmt: skip


@smooth(lambda value, p: 1 / _density(value))
def _ndtri(p: Array) -> Array:
    return _quantile(p, _MIDDLE, _TAIL, _FAR_OUT)


@smooth(lambda value, p: 1 / _density(value))
def _short_ndtri(p: Array) -> Array:
    return _quantile(p, _SHORT_MIDDLE, _SHORT_TAIL, _SHORT_FAR_OUT)


def _quantile(p: Array, near_half: _Quotient, in_tail: _Quotient, far_out: _Quotient) -> Array:
    q = p - 0.5
    middle = lax.abs(q) <= 0.425
    near = where(middle, q, 0.0)
    inner = near * _quotient(near_half, 0.180625 - near * near)
    valid = (p > 0) & (p < 1)
    rest = where(valid & ~middle, where(q < 0, p, 1 - p), 0.05)
    r = lax.sqrt(-lax.log(rest))
    outer = where(r <= 5, _quotient(in_tail, r - 1.6), _quotient(far_out, r - 5))
    outer = where(valid, outer, where((p == 0) | (p == 1), float("inf"), float("nan")))
    return where(middle, inner, where(q < 0, -outer, outer))


_ndtr_programs = {_DTYPES[0]: double_program(_short_ndtr), _DTYPES[1]: double_program(_ndtr)}
_ndtri_program = double_program(_ndtri, _short_ndtri)


def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal distribution.

    Args:
      x: array of float32 or float64.

    Returns:
      Array of its shape and dtype.

    Raises:
      TypeError: for other dtypes.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.ndtr(jnp.array([-1., 0., 1.]))
    Array([0.15865526, 0.5       , 0.8413448 ], dtype=float32)
    """
    array = _checked("ndtr", x)
    return _ndtr_programs[array.dtype](array)


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of the distribution function of the standard normal distribution, for numbers of any size.

    Args:
      x: array of float32 or float64.
      series_order: terms of the expansion that serves `x` below -37, at most 30; fewer than six count as six.

    Returns:
      Array of its shape and dtype.

    Raises:
      TypeError: for other dtypes, or a `series_order` that is no Python integer.
      ValueError: for a `series_order` below 0 or above 30.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.log_ndtr(jnp.array([-100., 0.]))
    Array([-5.0055244e+03, -6.9314718e-01], dtype=float32)
    """
    if not isinstance(series_order, int):
        raise TypeError(f"series_order must be a Python integer, got {type(series_order).__name__}.")
    if series_order < 0:
        raise ValueError(f"series_order must be non-negative, got {series_order}.")
    if series_order > 30:
        raise ValueError(f"series_order must be <= 30, got {series_order}.")
    return _log_ndtr(_checked("log_ndtr", x), max(series_order, 6))


def ndtri(p: ArrayLike) -> Array:
    """The inverse of the distribution function of the standard normal distribution.

    Args:
      p: array of float32 or float64.

    Returns:
      Array of its shape and dtype: ±inf at 1 and 0, NaN outside of [0, 1].

    Raises:
      TypeError: for other dtypes.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.ndtri(jnp.array([0., 0.5, 0.975]))
    Array([     -inf, 0.       , 1.9599646], dtype=float32)
    """
    return _ndtri_program(_checked("ndtri", p))
