"""Bessel functions of the first kind, of whole order and real argument.

J₀ and J₁ are rational approximations, beyond 8 in Hankel's form. Orders up to |z| follow by the recurrence upwards, and
higher ones by the ratios of the recurrence downwards, each where it is stable. DLMF 10.6, 10.17, 10.74(iv).
Read next: `_harmonics.py`.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import with_weak_type
from ferrax.config import enable_x64
from ferrax.custom_derivatives import custom_jvp
from ferrax.numpy._args import Array, ArrayLike, static_int
from ferrax.scipy.special import _coefficients as tables
from ferrax.scipy.special._args import in_double, real
from ferrax.scipy.special._rational import constant, rational

__all__ = ["bessel_jn"]

_SQRT_1_PI = 1 / math.sqrt(math.pi)


def _j0_j1(z: Array) -> tuple[Array, Array]:
    """J₀ and J₁ of numbers >= 0."""
    s, v = z * z, 1 / (z * z)
    # √2 times the sine and cosine of z - π/4.
    finite = z < np.inf
    angle = lax.select(finite, z, constant(z, 0))
    sine, cosine = lax.sin(angle), lax.cos(angle)
    minus, plus = sine - cosine, sine + cosine
    scale = _SQRT_1_PI * lax.rsqrt(z)
    p0, q0, p1, q1 = (rational(t, v) for t in (tables.J0_P, tables.J0_Q, tables.J1_P, tables.J1_Q))
    far0 = scale * (p0 * plus - q0 / z * minus)
    far1 = scale * (p1 * minus + q1 / z * plus)
    near = z < 8
    return (
        lax.select(near, rational(tables.J0_NEAR, s), far0),
        lax.select(near, z * rational(tables.J1_NEAR, s), far1),
    )


def _ratios(z: Array, top: int) -> Array:
    """J_n / J_(n-1) for n = 1..top, of shape (top, *z.shape), right where n > z > 0."""
    # Downwards from an order whose function is smaller by 16 digits at all z <= top.
    start = top + 30 + int(8 * (top + 1) ** (1 / 3))
    orders = np.arange(start, 0, -1, dtype=np.float64)
    inverse = 2 / z

    def step(ratio: Array, n: Array) -> tuple[Array, Array]:
        ratio = 1 / (n * inverse - ratio)
        return ratio, ratio

    first, _ = lax.scan(lambda ratio, n: (step(ratio, n)[0], None), constant(z, 0), orders[: start - top])
    return lax.rev(lax.scan(step, first, orders[start - top :])[1], (0,))


def _all_orders(z: Array, v: int) -> Array:
    """J₀..J_v of numbers >= 0, along a new first axis."""
    j0, j1 = _j0_j1(z)
    first = lax.concatenate([lax.expand_dims(x, (0,)) for x in (j0, j1)], 0)
    if v < 2:
        return first[: v + 1]
    # All are 0 at 0 and infinity, and NaN at NaN.
    inside = (z > 0) & (z < np.inf)
    safe = lax.select(inside, z, constant(z, 1))
    rest = lax.select(z == z, constant(z, 0), z)
    ratios = _ratios(safe, v)
    inverse = 2 / safe

    def step(last: tuple[Array, Array], x: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        below, here = last
        n, ratio = x
        above = lax.select(n > z, ratio * here, (n - 1) * inverse * here - below)
        above = lax.select(inside, above, rest)
        return (here, above), above

    orders = np.arange(2, v + 1, dtype=np.float64)
    _, higher = lax.scan(step, (j0, j1), (orders, ratios[1:]))
    return lax.concatenate([first, higher], 0)


@partial(custom_jvp, nondiff_argnums=(1,))
def _jn(z: Array, v: int) -> Array:
    values = _all_orders(lax.abs(z), v)
    odd = np.arange(v + 1) % 2 == 1
    odd = lax.broadcast_in_dim(odd, values.shape, (0,))
    negative = lax.broadcast_in_dim(z < 0, values.shape, tuple(range(1, values.ndim)))
    return lax.select(odd & negative, -values, values)


@_jn.defjvp
def _jn_rule(v: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    with enable_x64(True):
        values = _jn(primals[0], v + 1)
        rest = 0.5 * (values[:v] - values[2:])
        slopes = lax.concatenate([-values[1:2], rest], 0)
        tangent = lax.broadcast_in_dim(tangents[0], slopes.shape, tuple(range(1, slopes.ndim)))
        return values[: v + 1], tangent * slopes


@partial(jit, static_argnums=(1,))
def _jn_double(z: Array, v: int) -> Array:
    return with_weak_type(in_double(lambda x: _jn(x, v), z), False)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind J₀(z), J₁(z), ..., J_v(z).

    Args:
      z: real array.
      v: the highest order, a static integer.
      n_iter: accepted, and means nothing: every order is computed to all digits of the result.

    Returns:
      Array of shape `(v + 1, *z.shape)`.

    Raises:
      TypeError: `z` is complex, or `v` is not an integer.
      ValueError: `v` is negative.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.bessel_jn(jnp.array([0., 1.]), v=2)
    Array([[1.        , 0.7651977 ],
           [0.        , 0.44005057],
           [0.        , 0.11490349]], dtype=float32)
    """
    del n_iter
    (z,) = real("bessel_jn", z)
    v = static_int(v, "the order v of bessel_jn")
    if v < 0:
        raise ValueError(f"bessel_jn needs an order v >= 0, got {v}.")
    return _jn_double(z, v)
