"""The gamma function, its logarithm, and the logarithm's derivatives; the zeta function.

Γ is Stirling's formula from 10 on, by powers of exact numbers; below, its argument is raised by 10 and what the sum's
rounding left out is put back (DLMF 5.11.3, 5.5.1, 5.5.3). log Γ of complex numbers is the formula's logarithm (DLMF
5.11.1), raised or reflected in the same way, on the branch that is real on the positive axis. Read next: `_beta.py`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import asarray, with_weak_type
from ferrax.custom_derivatives import custom_jvp
from ferrax.lax._gamma import gamma_factors, gamma_function, nearest
from ferrax.lax._tails import rarely, stirling, where
from ferrax.lax.special import zeta_sum
from ferrax.numpy._args import Array, ArrayLike, concrete_or_error, require
from ferrax.numpy._dtype_functions import dtype_kind
from ferrax.scipy.special._args import double_program, in_double, inexact, real, smooth

__all__ = ["digamma", "factorial", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "loggamma", "multigammaln",
           "polygamma", "zeta"]  # fmt: skip

_INF, _NAN = float("inf"), float("nan")


def _raised_log_gamma(z: Array) -> Array:
    """log Γ of complex numbers with real part 0 or more."""
    shift = lax.full_like(z, 0)
    y = z
    for _ in range(8):
        low = lax.real(y) < 8
        shift = shift + where(low, lax.log(where(low, y, 1.0)), 0.0)
        y = where(low, y + 1, y)
    return (y - 0.5) * lax.log(y) - y + 0.5 * float(np.log(2 * np.pi)) + stirling(y) - shift


def _complex_log_gamma(z: Array) -> Array:
    x, y = lax.real(z), lax.imag(z)
    left = x < 0
    upper = lax.complex(x, lax.abs(y))
    value = _raised_log_gamma(where(left, 1 - upper, upper))
    # log sin πz on the upper half plane, where exp(2πiz) is small: whole turns of it are taken off first
    safe = where(left, upper, lax.full_like(z, -0.5))
    turn = 2 * np.pi * (lax.real(safe) - nearest(lax.real(safe)))
    size = lax.exp(-2 * np.pi * lax.imag(safe))
    rest = lax.log(lax.complex(1 - size * lax.cos(turn), -size * lax.sin(turn)))
    log_sine = rest + lax.complex(np.pi * lax.imag(safe) - np.log(2), np.pi / 2 - np.pi * lax.real(safe))
    value = where(left, float(np.log(np.pi)) - log_sine - value, value)
    below = (y < 0) | ((y == 0) & (1 / y < 0))
    value = lax.complex(lax.real(value), where(below, -lax.imag(value), lax.imag(value)))
    pole = (y == 0) & (x <= 0) & (x == lax.floor(x))
    return where(pole, lax.full_like(value, complex(_NAN, _NAN)), value)


@custom_jvp
@jit
def _gamma_sign(x: Array) -> Array:
    below = lax.floor(x)
    odd = lax.abs(lax.rem(below, lax.full_like(x, 2)))
    pole = (x < 0) & (below == x)
    one = lax.full_like(x, 1)
    negative = where(pole | (x != x), lax.full_like(x, _NAN), where(x < 0, one - 2 * odd, one))
    return where(x == 0, lax.sign(where(x == 0, 1 / x, one)), negative)


_gamma_sign.defjvps(lambda t, ans, x: lax.full_like(x, 0))


@smooth(lambda value, x: value * lax.digamma(x))
def _short_gamma(x: Array) -> Array:
    """Γ with the digits of float32: the exponential of its logarithm, where that is small."""
    plain = (x > 0) & (x < 40)
    return rarely(~plain, gamma_function, lax.exp(lax.lgamma(where(plain, x, 1.0))), x)


_gamma_program = double_program(gamma_function, _short_gamma)
_complex_program = double_program(_complex_log_gamma)
_complex_gamma = double_program(lambda z: lax.exp(_complex_log_gamma(z)))


def gammaln(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function.

    Args:
      x: real array.

    Returns:
      Array of its shape; infinite at zero and the negative whole numbers.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.gammaln(jnp.array([0., 1., 4.]))
    Array([      inf, 0.       , 1.7917595], dtype=float32)
    """
    return lax.lgamma(*inexact("gammaln", x))


def loggamma(x: ArrayLike) -> Array:
    """The logarithm of the gamma function, on the branch that is real for positive numbers.

    Args:
      x: real or complex array.

    Returns:
      Array of its shape; NaN for real numbers below 0, whose logarithm is complex.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.loggamma(jnp.array([4., -0.5]))
    Array([1.7917595,       nan], dtype=float32)
    >>> ferrax.scipy.special.loggamma(jnp.array([1j]))
    Array([-0.6509232-1.8724366j], dtype=complex64)
    """
    (x,) = inexact("loggamma", x)
    if dtype_kind(x.dtype) == "c":
        return _complex_program(x)
    return where(x < 0, lax.full_like(x, _NAN), lax.lgamma(x))


def gammasgn(x: ArrayLike) -> Array:
    """The sign of the gamma function.

    Args:
      x: real array.

    Returns:
      Array of 1 and -1 of its shape; NaN at the negative whole numbers, and the sign of a zero.

    Raises:
      ValueError: for complex numbers.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.gammasgn(jnp.array([-1.5, -1., -0.5, 2.]))
    Array([ 1., nan, -1.,  1.], dtype=float32)
    """
    (x,) = real("gammasgn", x, error=ValueError)
    return with_weak_type(_gamma_sign(x), False)


def gamma(x: ArrayLike) -> Array:
    """The gamma function, Γ(x) = (x - 1)! for whole numbers.

    Args:
      x: real or complex array.

    Returns:
      Array of its shape; NaN at the negative whole numbers, infinite at zero.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.gamma(jnp.array([0.5, 4., -1.]))
    Array([1.7724539, 6.       ,       nan], dtype=float32)
    """
    (x,) = inexact("gamma", x)
    return with_weak_type(_complex_gamma(x) if dtype_kind(x.dtype) == "c" else _gamma_program(x), False)


_next_slope = smooth(lambda value, n: where(n < 0, 0.0, value * lax.digamma(where(n < 0, 0.0, n) + 1)))


@_next_slope
def _short_gamma_of_next(n: Array) -> Array:
    plain = (n >= 0) & (n < 40)
    return rarely(~plain, _gamma_of_next, lax.exp(lax.lgamma(where(plain, n, 1.0) + 1)), n)


@_next_slope
def _gamma_of_next(n: Array) -> Array:
    """Γ(n + 1), without the rounding of n + 1; 0 for negative numbers."""
    large = n >= 1
    value = gamma_function(where(large, n, where(n < 0, 0.0, n) + 1))
    return where(n < 0, 0.0, where(large, n * value, value))


@jit
def _factorial(n: Array) -> Array:
    negative = n < 0
    function = _gamma_of_next if n.dtype.itemsize == 8 else _short_gamma_of_next
    return in_double(function, where(negative, lax.full_like(n, -1), n))


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """The factorial n!, Γ(n + 1) between whole numbers; 0 for negative numbers.

    Args:
      n: real array.
      exact: not supported.

    Returns:
      Floating array of its shape.

    Raises:
      NotImplementedError: for `exact`; whole results up to 18! are exact in float64 without it.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.factorial(jnp.array([0, 3, 5]))
    Array([  1.,   6., 120.], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    return _factorial(*real("factorial", n))


@partial(jit, static_argnums=1)
def _multigammaln(a: Array, d: int) -> Array:
    constant = float(0.25 * d * (d - 1) * np.log(np.pi))

    def total(a: Array) -> Array:
        halves = np.arange(d, dtype=np.float64).reshape((1,) * a.ndim + (-1,)) / 2
        terms = lax.lgamma(lax.expand_dims(a, (a.ndim,)) - halves)
        return lax.reduce_sum(terms, (a.ndim,)) + constant

    return in_double(total, a)


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """The logarithm of the multivariate gamma function, π^(d (d - 1) / 4) Γ(a) Γ(a - 1/2) … Γ(a - (d - 1) / 2).

    Args:
      a: real array, above (d - 1) / 2.
      d: static; the dimension.

    Returns:
      Array of the shape of `a`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.multigammaln(jnp.array([3., 4.]), 2)
    Array([1.550195, 3.565098], dtype=float32)
    """
    d = concrete_or_error(int, d, "d argument of multigammaln")
    (a,) = real("multigammaln", a)
    return with_weak_type(_multigammaln(a, d), False)


def digamma(x: ArrayLike) -> Array:
    """The digamma function, the derivative of log Γ.

    Args:
      x: real array.

    Returns:
      Array of its shape; NaN at zero and the negative whole numbers.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.digamma(jnp.array([1., 2.]))
    Array([-0.5772157 ,  0.42278433], dtype=float32)
    """
    return lax.digamma(*inexact("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of the digamma function.

    Args:
      n: integer array, not negative.
      x: real array.

    Returns:
      Array of the shape that the operands broadcast to.

    Raises:
      ValueError: where `n` is not of an integer dtype.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.polygamma(1, jnp.array([1., 2.]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    require("polygamma", n, x)
    dtype = asarray(n).dtype
    if dtype_kind(dtype) not in "iu":
        raise ValueError(f"Argument `n` to polygamma must be of integer type. Got dtype {dtype}.")
    return lax.polygamma(*real("polygamma", n, x, error=ValueError))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function: the integral of t^(a-1) exp(-t) from 0 to x, over Γ(a).

    Args:
      a: real array, positive.
      x: real array, not negative.

    Returns:
      Array of the shape that the operands broadcast to.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.gammainc(1., jnp.array([0., 2.]))
    Array([0.        , 0.86466473], dtype=float32)
    """
    return lax.igamma(*inexact("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function: the integral of t^(a-1) exp(-t) from x on, over Γ(a).

    Args, Returns: as in `gammainc`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.gammaincc(1., jnp.array([0., 2.]))
    Array([1.        , 0.13533528], dtype=float32)
    """
    return lax.igammac(*inexact("gammaincc", a, x))


# ---- the zeta function ----------------------------------------------------------------------------------------------


def _riemann(x: Array) -> Array:
    """ζ(x); below 0 by its functional equation (DLMF 25.4.1)."""
    left = x < 0
    right = zeta_sum(where(x == 1, 2.0, where(left, 1 - x, where(x > 80, 80.0, x))), lax.full_like(x, 1))
    # Γ(1 - x) is -x Γ(-x), whose argument is not rounded
    large = x < -1
    one, other = gamma_factors(where(large, -x, where(left, 1 - x, 1.0)))
    other = where(large, -x * other, other)
    half = lax.pow(lax.full_like(x, 2 * np.pi), 0.5 * where(left, x, 0.0))
    # sin πx/2, of which whole half turns are taken off first
    turns = where(left, nearest(x / 2), 0.0)
    sine = lax.sin(np.pi / 2 * where(left, x - 2 * turns, 1.0)) * (1 - 2 * lax.abs(lax.rem(turns, lax.full_like(x, 2))))
    reflected = sine / np.pi * (one * half) * (other * half) * right
    return where(x == 1, _INF, where(x == -_INF, _NAN, where(left, reflected, right)))


_riemann_program = double_program(_riemann)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function, the sum of 1/(k + q)^x over k from 0 on; without `q`, Riemann's zeta function.

    Args:
      x: real array; above 1 where `q` is given.
      q: real array; 1 and all of its analytic continuation when None.

    Returns:
      Array of the shape that the operands broadcast to.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.zeta(jnp.array([2., 3.]), 1.)
    Array([1.644934 , 1.2020569], dtype=float32)
    >>> ferrax.scipy.special.zeta(jnp.array([-1., 0.]))
    Array([-0.08333334, -0.5       ], dtype=float32)
    """
    if q is None:
        return _riemann_program(*real("zeta", x))
    return lax.zeta(*real("zeta", x, q))
