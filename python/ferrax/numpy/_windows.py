"""Window functions for spectra.

Read `_elementwise.py` for `i0`.
"""

from __future__ import annotations

import numpy as np

from ferrax import lax
from ferrax._core import concrete_or_error
from ferrax.numpy._args import Array, ArrayLike, cast, require
from ferrax.numpy._dtype_functions import default_float
from ferrax.numpy._elementwise import i0

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _places(name: str, M: int) -> tuple[int, Array]:
    """The number of points and the points 0, 1, … as floats. As in NumPy the number may be a float, which is cut."""
    M = int(concrete_or_error(None, M, f"M argument of jnp.{name}"))
    return M, lax.iota(default_float(), max(M, 0))


def bartlett(M: int) -> Array:
    """The triangular window.

    Args:
      M: number of points.

    Returns:
      Vector.

    >>> import ferrax.numpy as jnp
    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    n, places = _places("bartlett", M)
    return 1 - lax.abs(2 * places + 1 - n) / (n - 1) if n > 1 else lax.full_like(places, 1)


def _cosines(name: str, M: int, *weights: float) -> Array:
    n, places = _places(name, M)
    if n <= 1:
        return lax.full_like(places, 1)
    angle = 2 * np.pi * places / (n - 1)
    total = weights[0] - weights[1] * lax.cos(angle)
    return total + weights[2] * lax.cos(2 * angle) if len(weights) > 2 else total


def hamming(M: int) -> Array:
    """The Hamming window.

    Args, Returns: as in `bartlett`.

    >>> import ferrax.numpy as jnp
    >>> jnp.hamming(3)
    Array([0.08000001, 1.        , 0.08000001], dtype=float32)
    """
    return _cosines("hamming", M, 0.54, 0.46)


def hanning(M: int) -> Array:
    """The Hann window.

    Args, Returns: as in `bartlett`.

    >>> import ferrax.numpy as jnp
    >>> jnp.hanning(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _cosines("hanning", M, 0.5, 0.5)


def blackman(M: int) -> Array:
    """The Blackman window.

    Args, Returns: as in `bartlett`.

    >>> import ferrax.numpy as jnp
    >>> jnp.blackman(3).shape
    (3,)
    """
    return _cosines("blackman", M, 0.42, 0.5, 0.08)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window.

    Args:
      M: number of points.
      beta: shape parameter, a scalar.

    Returns:
      Vector.

    >>> import ferrax.numpy as jnp
    >>> jnp.kaiser(3, 0.)
    Array([1., 1., 1.], dtype=float32)
    """
    require("kaiser", beta)
    n, places = _places("kaiser", M)
    if n <= 1:
        return lax.full_like(places, 1)
    beta = cast(beta, places.dtype)
    middle = 0.5 * (n - 1)
    inside = lax.max(1 - ((places - middle) / middle) ** 2, lax.full_like(places, 0))
    return i0(beta * lax.sqrt(inside)) / i0(beta)
