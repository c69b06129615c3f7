"""Modified Bessel functions of the first kind, of orders 0 and 1 (DLMF 10.25). Read next: `_bessel.py`."""

from __future__ import annotations

from ferrax import lax
from ferrax.lax._tails import where
from ferrax.numpy._args import Array, ArrayLike
from ferrax.scipy.special._args import double_program, inexact, real, smooth

__all__ = ["i0", "i0e", "i1", "i1e"]


def _grown(x: Array, scaled: Array) -> Array:
    """exp(|x|) times a number, by two factors of which none overflows before the product does."""
    half = lax.exp(lax.abs(x) / 2)
    return half * scaled * half


def _quotient(x: Array) -> Array:
    """I1(x) / x, by its series near 0 for the derivatives' sake."""
    small = lax.abs(x) < 0.5
    w = where(small, x, 0.0) * where(small, x, 0.0) / 4
    series = lax.full_like(x, 1)
    for k in range(8, 0, -1):
        series = 1 + series * w / (k * (k + 1))
    return where(small, series / 2, _i1(where(small, 1.0, x)) / where(small, 1.0, x))


@smooth(lambda value, x: _i1(x))
def _i0(x: Array) -> Array:
    return _grown(x, lax.bessel_i0e(x))


@smooth(lambda value, x: _i0(x) - _quotient(x))
def _i1(x: Array) -> Array:
    return _grown(x, lax.bessel_i1e(x))


_i0_program, _i1_program = double_program(_i0), double_program(_i1)


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    Args:
      x: real array.

    Returns:
      Array of its shape.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.i0(jnp.array([0., 1.]))
    Array([1.       , 1.2660658], dtype=float32)
    """
    return _i0_program(*real("i0", x))


def i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0, times exp(-|x|).

    Args, Returns: as in `i0`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.i0e(jnp.array([0., 1.]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return lax.bessel_i0e(*inexact("i0e", x))


def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 1.

    Args, Returns: as in `i0`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.i1(jnp.array([0., 1.]))
    Array([0.       , 0.5651591], dtype=float32)
    """
    return _i1_program(*real("i1", x))


def i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 1, times exp(-|x|).

    Args, Returns: as in `i0`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.i1e(jnp.array([0., 1.]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return lax.bessel_i1e(*inexact("i1e", x))
