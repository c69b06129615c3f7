"""Owen's T function: Gauss's quadrature of its integral, all of whose terms are positive.

Patefield and Tandy, "Fast and accurate calculation of Owen's T function" (2000), their method T5 with twenty points,
after slopes above 1 are reflected (their equations 2.3 to 2.5). Read next: `_bessel.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ferrax import lax
from ferrax.numpy._args import Array, ArrayLike
from ferrax.scipy.special._args import real, smooth
from ferrax.scipy.special._error_functions import _erfcx
from ferrax.scipy.special._rational import constant, double, product, splits

__all__ = ["owens_t"]

_SQRT_HALF = math.sqrt(0.5)
#: exp(-_REACH² / 2) is below the precision, so that the integral may end there.
_REACH = 8.7
_NODES, _WEIGHTS = (v[20:].tolist() for v in np.polynomial.legendre.leggauss(40))


def _gaussian(h: Array, rest: Array) -> Array:
    """exp(-(h + rest)² / 2) for a rest of h's last digit."""
    m, r = splits(h)
    return lax.exp(-0.5 * m * m) * lax.exp(-0.5 * r - h * rest)


def _integral(h: Array, gaussian: Array, a: Array) -> Array:
    """T for h >= 0 and 0 <= a <= 1, exp(-h² / 2) being given."""
    end = lax.min(a, _REACH / lax.max(h, constant(h, 1)))
    b = h * end
    total = constant(h, 0)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        x, y = end * node, b * node
        total = total + weight * lax.exp(-0.5 * y * y) / (1 + x * x)
    return total * end * gaussian * (1 / (2 * math.pi))


def _outer(value: Array, h: Array, a: Array) -> Array:
    """∂T/∂h."""
    del value
    return -lax.exp(-0.5 * h * h) * lax.erf(a * h * _SQRT_HALF) * (0.5 / math.sqrt(2 * math.pi))


def _inner(value: Array, h: Array, a: Array) -> Array:
    """∂T/∂a."""
    del value
    s = 1 + a * a
    return lax.exp(-0.5 * h * h * s) / (s * (2 * math.pi))


@smooth(_outer, _inner)
def _owens_t(h: Array, a: Array) -> Array:
    infinite = lax.abs(h) == np.inf
    # From 100 on exp(-h²/2) is zero.
    h, b = lax.min(lax.abs(h), constant(h, 100)), lax.abs(a)
    steep = b > 1
    hb, rest = product(h, lax.min(b, constant(h, 1e100)))
    hb, rest = lax.min(hb, constant(h, 100)), lax.select(hb < 100, rest, constant(h, 0))
    flat = _gaussian(h, constant(h, 0))
    slanted = _gaussian(hb, rest)
    direct = _integral(lax.select(steep, hb, h), lax.select(steep, slanted, flat), lax.select(steep, 1 / b, b))
    # 1/2 - Φ and Φ's tail, of which the one that does not cancel is used.
    tail_h, tail_hb = _erfcx(h * _SQRT_HALF) * flat, _erfcx(hb * _SQRT_HALF) * slanted
    near = 0.25 - 0.25 * lax.erf(h * _SQRT_HALF) * lax.erf(hb * _SQRT_HALF)
    far = 0.25 * (tail_h + tail_hb - tail_h * tail_hb)
    t = lax.select(steep, lax.select(h <= 0.67, near, far) - direct, direct)
    t = lax.select(infinite, lax.select(a == a, constant(h, 0), a), t)
    return lax.select(a < 0, -t, t)


_owens_t_double = double(_owens_t)


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function, the integral of exp(-h²(1 + t²) / 2) / (1 + t²) from t = 0 to a, divided by 2π.

    It is the probability that a standard normal X exceeds h while an independent Y lies between 0 and aX.

    Args:
      h: real array.
      a: real array.

    Returns:
      Array of the broadcast shape; float32 for 16-bit operands, as in JAX.

    Raises:
      ValueError: an operand is complex.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.owens_t(jnp.array([0., 1.]), 1.)
    Array([0.125     , 0.06674188], dtype=float32)
    """
    operands = real("owens_t", h, a, error=ValueError)
    if operands[0].dtype.itemsize < 4:
        operands = [lax.convert_element_type(x, np.float32) for x in operands]
    return _owens_t_double(*operands)
