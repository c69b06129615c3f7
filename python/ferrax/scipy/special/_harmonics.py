"""Associated Legendre functions and spherical harmonics.

Degrees follow by the recurrence upwards from the function whose degree is its order (DLMF 14.10.3), in the
normalization that makes spherical harmonics orthonormal, which does not overflow. Signs are those of Condon and
Shortley.
Read next: `_hypergeometric.py`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import asarray, concrete_or_error, promote_dtypes, with_weak_type
from ferrax.config import enable_x64
from ferrax.numpy._args import Array, ArrayLike, broadcast_to_shape, common_shape, static_int
from ferrax.numpy._dtype_functions import dtype_kind, inexact_dtype
from ferrax.scipy.special._args import in_double
from ferrax.scipy.special._rational import constant

__all__ = ["lpmn", "lpmn_values", "sph_harm_y"]


_FIRST = math.sqrt(1 / (4 * math.pi))


def _advance(degree: Array, order: Array, z: Array, sine: Array, before: Array, last: Array) -> tuple[Array, Array]:
    """The normalized functions of one more degree, from those of the two degrees before.

    Up to its order, an element has the function whose order is the degree, too.
    """
    rising = degree > order
    diagonal = -lax.sqrt(1 + 0.5 / degree) * sine * last
    square = lax.select(rising, degree * degree - order * order, constant(order, 1))
    a = lax.sqrt((4 * degree * degree - 1) / square)
    below = (degree - 1) * (degree - 1) - order * order
    divisor = square * lax.max(2 * degree - 3, constant(order, 1))
    b = lax.sqrt((2 * degree + 1) * lax.max(below, constant(order, 0)) / divisor)
    return lax.select(rising, last, constant(order, 0)), lax.select(rising, a * z * last - b * before, diagonal)


def _of_each(order: Array, degree: Array, z: Array, sine: Array, top: int) -> Array:
    """The normalized function of each element's order and degree, up to `top`; 0 where the order is higher."""

    def step(i: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        before, last, found = state
        here = lax.convert_element_type(i, np.float64) * constant(order, 1)
        before, last = _advance(here, order, z, sine, before, last)
        return before, last, lax.select(here == degree, last, found)

    zero = constant(order, 0)
    first = constant(z, _FIRST)
    start = zero, first, lax.select(degree == 0, first, zero)
    with enable_x64(True):
        found = lax.fori_loop(1, top + 1, step, start)[2]
    return lax.select(order <= degree, found, zero)


def _table(z: Array, top: int) -> tuple[Array, Array]:
    """The normalized functions, (degrees, orders, len(z)), those of order > 0 divided by √(1 - z²); and that root."""
    shape = (top + 1, z.shape[0])
    order = lax.broadcasted_iota(np.float64, shape, 0)
    z = broadcast_to_shape(z, shape)
    sine = lax.sqrt((1 - z) * (1 + z))

    def step(state: tuple[Array, Array], degree: Array) -> tuple[tuple[Array, Array], Array]:
        degree = degree * constant(order, 1)
        # The first factor √(1 - z²) of every order is left out.
        factor = lax.select(degree == 1, constant(sine, 1), sine)
        state = _advance(degree, order, z, factor, *state)
        return state, lax.select(order <= degree, state[1], constant(z, 0))

    first = constant(z, _FIRST)
    _, rest = lax.scan(step, (constant(z, 0), first), np.arange(1, top + 1, dtype=np.float64))
    rows = lax.select(order == 0, first, constant(z, 0))
    return lax.concatenate([lax.expand_dims(rows, (0,)), rest], 0), sine


def _scales(top: int) -> np.ndarray:
    """The function without normalization over the normalized one, of shape (degrees, orders, 1)."""
    out = np.zeros((top + 1, top + 1, 1))
    for l in range(top + 1):
        product = 1
        for m in range(l + 1):
            if m:
                product *= (l + m) * (l - m + 1)
            root = math.sqrt(product) if product < 1e300 else math.exp(min(0.5 * math.log(product), 709.0))
            out[l, m] = root * math.sqrt(4 * math.pi / (2 * l + 1))
    return out


def _values(z: Array, top: int, normalized: bool) -> Array:
    """Of shape (orders, degrees, len(z))."""
    with enable_x64(True):
        table, sine = _table(z, top)
        root = lax.select(lax.broadcasted_iota(np.int32, sine.shape, 0) == 0, constant(sine, 1), sine)
        table = table * lax.expand_dims(root, (0,))
        if not normalized:
            table = table * asarray(_scales(top))
    return lax.transpose(table, (1, 0, 2))


def _slopes(z: Array, top: int) -> Array:
    """d/dz of the functions without normalization: ((l + m)(l - m + 1) P(m - 1) - P(m + 1)) / (2 √(1 - z²))."""
    with enable_x64(True):
        table, sine = _table(z, top)
        table = table * asarray(_scales(top))
        zonal = table[:, :1] / lax.expand_dims(sine[:1], (0,))
        l, m = np.arange(top + 1.0)[:, None, None], np.arange(1.0, top + 1)[None, :, None]
        upper = lax.concatenate([table[:, 2:], lax.full_like(zonal, 0)], 1)[:, :top]
        lower = lax.concatenate([zonal, table[:, 1:-1]], 1)[:, :top]
        factor = asarray(np.where(m <= l, (l + m) * (l - m + 1), 0.0))
        # An infinite P(0) / √(1 - z²) counts where it has a factor.
        lower = lax.select(broadcast_to_shape(factor > 0, lower.shape), lower, lax.full_like(lower, 0))
        first = 0 - table[:, 1:2] if top else lax.full_like(zonal, 0)
        out = lax.concatenate([first, 0.5 * (factor * lower - upper)], 1)
    return lax.transpose(out, (1, 0, 2))


def _orders_of(name: str, m: Any, n: Any, z: ArrayLike) -> tuple[int, Array]:
    """The highest degree and the points of `lpmn` and `lpmn_values`, checked."""
    m, n = static_int(m, f"the order m of {name}"), static_int(n, f"the degree n of {name}")
    points: Array = asarray(z)
    if dtype_kind(points.dtype) != "f":
        raise TypeError(f"{name} needs an array z of floats, got {points.dtype}.")
    if points.ndim != 1:
        raise ValueError(f"{name}: z must be a 1D array, got shape {points.shape}.")
    if m != n:
        raise NotImplementedError(f"{name} with m != n is not supported, got m = {m} and n = {n}.")
    return m, points


@partial(jit, static_argnums=(1, 2))
def _lpmn_values(z: Array, top: int, normalized: bool) -> Array:
    return with_weak_type(in_double(lambda x: _values(x, top, normalized), z), False)


@partial(jit, static_argnums=(1,))
def _lpmn_slopes(z: Array, top: int) -> Array:
    return with_weak_type(in_double(lambda x: _slopes(x, top), z), False)


def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """The associated Legendre functions of the first kind Pₙᵐ(z) of all orders and degrees, and their derivatives.

    Args:
      m: the highest order, a static integer.
      n: the highest degree, which must be `m`.
      z: float array of shape (k,), in [-1, 1].

    Returns:
      Two arrays of shape (m + 1, n + 1, k): values and derivatives, 0 where the order is above the degree.

    Raises:
      TypeError: `z` is not floating.
      ValueError: `z` is not one-dimensional.
      NotImplementedError: `m` and `n` differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.special import lpmn
    >>> values, slopes = lpmn(1, 1, jnp.array([0.5]))
    >>> values[:, :, 0]
    Array([[ 1.       ,  0.5      ],
           [ 0.       , -0.8660254]], dtype=float32)
    >>> slopes[:, :, 0]
    Array([[0.        , 1.        ],
           [0.        , 0.57735026]], dtype=float32)
    """
    top, points = _orders_of("lpmn", m, n, z)
    return _lpmn_values(points, top, False), _lpmn_slopes(points, top)


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """The associated Legendre functions of the first kind Pₙᵐ(z) of all orders and degrees.

    Args:
      m, n, z: as in `lpmn`.
      is_normalized: scale them so that the spherical harmonics made of them are orthonormal.

    Returns:
      Array of shape (m + 1, n + 1, k), 0 where the order is above the degree.

    Raises: as in `lpmn`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.special import lpmn_values
    >>> lpmn_values(1, 1, jnp.array([0.5]), False)[:, :, 0]
    Array([[ 1.       ,  0.5      ],
           [ 0.       , -0.8660254]], dtype=float32)
    """
    top, points = _orders_of("lpmn_values", m, n, z)
    return _lpmn_values(points, top, bool(is_normalized))


def _harmonic(n: Array, m: Array, theta: Array, phi: Array, top: int) -> tuple[Array, Array]:
    """The real and imaginary part of the spherical harmonics of float64 degrees and orders."""
    cosine, sine = lax.cos(theta), lax.sin(theta)
    sine = lax.select(sine < 0, -sine, sine)
    order = lax.abs(m)
    legendre = _of_each(order, n, cosine, sine, top)
    re, im = legendre * lax.cos(order * phi), legendre * lax.sin(order * phi)
    odd = lax.rem(order, constant(order, 2)) == 1
    negative = m < 0
    return lax.select(negative & odd, -re, re), lax.select(negative & ~odd, -im, im)


@partial(jit, static_argnums=(4,))
def _sph_harm(n: Array, m: Array, theta: Array, phi: Array, top: int) -> Array:
    dtype = theta.dtype
    with enable_x64(True):
        n, m, theta, phi = (lax.convert_element_type(x, np.float64) for x in (n, m, theta, phi))
        parts = _harmonic(lax.min(n, constant(n, top)), m, theta, phi, top)
        part = np.dtype("float64" if dtype.itemsize == 8 else "float32")
        return lax.complex(*(lax.convert_element_type(x, part) for x in parts))


def sph_harm_y(
    n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, diff_n: int | None = None, n_max: int | None = None
) -> Array:
    """Spherical harmonics of degree n and order m, orthonormal on the sphere, with the sign of Condon and Shortley.

    Args:
      n: integer array, the degrees, 0 or more.
      m: integer array, the orders, from -n to n; 0 is the result beyond.
      theta: real array, the polar angle, in [0, π].
      phi: real array, the azimuth, in [0, 2π].
      diff_n: must be None.
      n_max: the highest degree, a static integer; higher ones count as this one. None for the largest in `n`, which
        must not be traced then.

    Returns:
      Complex array of the broadcast shape.

    Raises:
      TypeError: degrees or orders are not integers, or angles are not real.
      NotImplementedError: `diff_n` is given.
      ConcretizationTypeError: `n` is traced and there is no `n_max`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.special import sph_harm_y
    >>> sph_harm_y(jnp.array([1]), jnp.array([0, 1]), jnp.array([0.5]), jnp.array([0.25]))
    Array([ 0.42878905+0.j        , -0.16048941-0.04097968j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError("The 'diff_n' argument to sph_harm_y is not supported.")
    n, m = asarray(n), asarray(m)
    for name, x in (("n", n), ("m", m)):
        if dtype_kind(x.dtype) not in "iu":
            raise TypeError(f"sph_harm_y needs integers, got {name} of dtype {x.dtype}.")
    theta, phi = promote_dtypes(asarray(theta), asarray(phi))
    if dtype_kind(theta.dtype) == "c":
        raise TypeError(f"sph_harm_y needs real angles, got {theta.dtype}.")
    angle = inexact_dtype(theta.dtype)
    shape = common_shape(n.shape, m.shape, theta.shape, phi.shape)
    if n_max is None:
        degrees = concrete_or_error(np.asarray, n, "The degrees n of sph_harm_y, without n_max")
        n_max = int(degrees.max()) if degrees.size else 0
    n_max = max(static_int(n_max, "the argument n_max of sph_harm_y"), 0)
    n, m, theta, phi = (broadcast_to_shape(x, shape) for x in (n, m, theta, phi))
    return _sph_harm(n, m, *(lax.convert_element_type(x, angle) for x in (theta, phi)), n_max)
