"""The softmax family over all axes by default, as SciPy has it. Read `ferrax/nn/_normalize.py` for the functions."""

from __future__ import annotations

from ferrax.nn import _normalize
from ferrax.nn._normalize import logsumexp
from ferrax.numpy._args import Array, ArrayLike

__all__ = ["log_softmax", "logsumexp", "softmax"]


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """exp(x) scaled so that it sums to 1.

    Args:
      x: array of any shape.
      axis: axis, or tuple of axes, along which it does; all when None.

    Returns:
      Array of the shape of `x`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.softmax(jnp.array([0., 0., 1000., 1000.]))
    Array([0. , 0. , 0.5, 0.5], dtype=float32)
    """
    return _normalize.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """The logarithm of `softmax`.

    Args:
      x: array of any shape.
      axis: axis, or tuple of axes, to normalize over; all when None.

    Returns:
      Array of the shape of `x`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.log_softmax(jnp.array([0., 0.]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return _normalize.log_softmax(x, axis=axis)
