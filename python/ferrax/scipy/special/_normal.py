"""Error functions and the normal distribution. Read next: `_gamma.py`."""

from __future__ import annotations

from ferrax import lax
from ferrax.numpy._args import Array, ArrayLike
from ferrax.scipy.special._args import inexact

__all__ = ["erf", "erfc", "erfinv"]


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

    Args:
      x: real array.

    Returns:
      Array of the shape of `x`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.erfc(jnp.array([0., 1.]))
    Array([1.        , 0.1572992], dtype=float32)
    """
    return lax.erfc(*inexact("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function: ±inf at ±1, NaN beyond.

    Args:
      x: real array.

    Returns:
      Array of the shape of `x`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.erfinv(jnp.array([0., 0.5, 1.]))
    Array([0.        , 0.47693628,        inf], dtype=float32)
    """
    return lax.erf_inv(*inexact("erfinv", x))
