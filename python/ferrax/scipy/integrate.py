"""Integrals of samples: `ferrax.scipy.integrate`. Read next: `ferrax/numpy/_calculus.py`."""

from __future__ import annotations

from ferrax._boundary import expose as _expose
from ferrax.numpy import _calculus
from ferrax.numpy._args import Array, ArrayLike

__all__ = ["trapezoid"]


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """Integral along an axis by the trapezoidal rule.

    Args:
      y: samples of the function.
      x: their places: of the shape of `y`, or a vector along the axis; evenly spaced when None.
      dx: spacing, where `x` is None.
      axis: axis to integrate along.

    Returns:
      Floating array without the axis.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.integrate import trapezoid
    >>> float(trapezoid(jnp.array([1.0, 2.0, 3.0])))
    4.0
    """
    return _calculus.trapezoid(y, x, dx, axis)


_expose(globals())
