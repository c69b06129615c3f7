"""Polynomials as vectors of coefficients, the highest power first.

Read `_statistics.py` first: a product of polynomials is a convolution.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray, with_weak_type
from ferrax._narrow import limits
from ferrax._one_program import one_program
from ferrax._shapes import broadcast_shapes, is_symbolic_dim
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    broadcast_to_shape,
    promote,
    promote_inexact,
    require,
    static_int,
)  # fmt: skip
from ferrax.numpy._diagonal import vander
from ferrax.numpy._dtype_functions import complex_dtype
from ferrax.numpy._linalg_factors import eigvals
from ferrax.numpy._linalg_rank import lstsq
from ferrax.numpy._linalg_solve import inv
from ferrax.numpy._ranges import eye
from ferrax.numpy._rearrange import roll, trim_zeros
from ferrax.numpy._reductions import argmax
from ferrax.numpy._shape import atleast_1d
from ferrax.numpy._sort import argsort
from ferrax.numpy._statistics import convolve
from ferrax.numpy._ufuncs import where

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots",
]  # fmt: skip


@one_program("unroll")
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial, by Horner's scheme.

    Args:
      p: vector of coefficients, the highest power first.
      x: places.
      unroll: how many steps of a long scheme to put into one iteration.

    Returns:
      Array of the shape of `x`.

    >>> import ferrax.numpy as jnp
    >>> jnp.polyval(jnp.array([1, 2, 3]), 10)
    Array(123, dtype=int32)
    """
    coefficients, places = promote("polyval", p, x)
    value = lax.full(broadcast_shapes(coefficients.shape[1:], places.shape), 0, places.dtype)

    def step(value: Array, coefficient: Array) -> tuple[Array, None]:
        return value * places + coefficient, None

    n = coefficients.shape[0]
    if not is_symbolic_dim(n) and n <= max(unroll, 16):
        for i in range(n):
            value, _ = step(value, coefficients[i])
        return value
    value, _ = lax.scan(step, value, coefficients, unroll=unroll)
    return value


def _aligned(name: str, a1: ArrayLike, a2: ArrayLike) -> list[Array]:
    """Both with leading zeros up to the longer one's length, whose other axes the shorter one is repeated along."""
    pair = promote(name, a1, a2)
    short = int(pair[1].shape[0] <= pair[0].shape[0])
    x, y = pair[1 - short], pair[short]
    n = y.shape[0]
    y = broadcast_to_shape(y, (n, *x.shape[1:]))
    y = lax.pad(y, lax.full((), 0, x.dtype), [(x.shape[0] - n, 0, 0), *[(0, 0, 0)] * (x.ndim - 1)])
    return [x, y] if short else [y, x]


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Args:
      a1: vector of coefficients, or an array of such vectors along its first axis.
      a2: likewise; the shorter one broadcasts against as many of the last coefficients of the longer one.

    Returns:
      Array of coefficients, of the longer one's shape.

    Raises:
      ValueError: the shorter one does not broadcast against the longer one's other axes.

    >>> import ferrax.numpy as jnp
    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([5, 0, 0]))
    Array([5, 1, 2], dtype=int32)
    """
    x, y = _aligned("polyadd", a1, a2)
    return x + y


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Args, Returns: as in `polyadd`.

    >>> import ferrax.numpy as jnp
    >>> jnp.polysub(jnp.array([1, 2]), jnp.array([5, 0, 0]))
    Array([-5,  1,  2], dtype=int32)
    """
    x, y = _aligned("polysub", a1, a2)
    return x - y


def _trimmed(p: Array, trim_leading_zeros: bool) -> Array:
    if not trim_leading_zeros or p.shape[0] <= 1:
        return p
    p = trim_zeros(p, trim="f")
    return p if p.shape[0] else lax.full((1,), 0, p.dtype)


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
      a1: vector of coefficients.
      a2: vector of coefficients.
      trim_leading_zeros: drop leading zeros first, which needs concrete coefficients.

    Returns:
      Floating vector of coefficients.

    >>> import ferrax.numpy as jnp
    >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))
    Array([ 1.,  0., -1.], dtype=float32)
    """
    x, y = (atleast_1d(p) for p in promote_inexact("polymul", a1, a2))
    x, y = _trimmed(x, trim_leading_zeros), _trimmed(y, trim_leading_zeros)
    if not x.shape[0]:
        x = lax.full((1,), 0, y.dtype)
    if not y.shape[0]:
        y = lax.full((1,), 0, x.dtype)
    return convolve(x, y)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and remainder of two polynomials.

    Args:
      u: coefficients of the dividend.
      v: coefficients of the divisor.
      trim_leading_zeros: drop the remainder's leading zeros, which needs concrete coefficients.

    Returns:
      Pair (quotient, remainder) of floating vectors.

    >>> import ferrax.numpy as jnp
    >>> jnp.polydiv(jnp.array([1., 0., -1.]), jnp.array([1., 1.]))
    (Array([ 1., -1.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    rest, divisor = promote_inexact("polydiv", u, v)
    n = max(rest.shape[0] - divisor.shape[0] + 1, 1)
    quotient = []
    for k in range(n):
        if k + divisor.shape[0] > rest.shape[0]:
            quotient.append(lax.full((), 0, rest.dtype))
            continue
        d = rest[k] / divisor[0]
        quotient.append(d)
        rest = rest.at[k : k + divisor.shape[0]].add(-d * divisor)
    result = with_weak_type(lax.concatenate([lax.reshape(d, (1,)) for d in quotient], 0), False)
    return result, trim_zeros(rest, trim="f") if trim_leading_zeros else rest


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The derivative of a polynomial.

    Args:
      p: vector of coefficients.
      m: how many times to differentiate; static.

    Returns:
      Floating vector of coefficients.

    Raises:
      ValueError: when `m` is negative.

    >>> import ferrax.numpy as jnp
    >>> jnp.polyder(jnp.array([1., 2., 3.]))
    Array([2., 2.], dtype=float32)
    """
    (coefficients,) = promote_inexact("polyder", p)
    m = static_int(m, "'m' argument of jnp.polyder")
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    if m == 0:
        return coefficients
    n = coefficients.shape[0]
    if m >= n:
        return lax.full((0,), 0, coefficients.dtype)
    powers = np.arange(n - 1, m - 1, -1, dtype=np.float64)
    factors = np.prod([powers - i for i in range(m)], axis=0)
    return coefficients[: n - m] * asarray(factors.astype(coefficients.dtype))


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The antiderivative of a polynomial.

    Args:
      p: vector of coefficients.
      m: how many times to integrate; static.
      k: constants of integration, one or `m` of them; by default 0.

    Returns:
      Floating vector of coefficients.

    Raises:
      ValueError: when `m` is negative or the number of constants is wrong.

    >>> import ferrax.numpy as jnp
    >>> jnp.polyint(jnp.array([2., 2.]))
    Array([1., 2., 0.], dtype=float32)
    """
    m = static_int(m, "'m' argument of jnp.polyint")
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = 0 if k is None else k
    coefficients, constants = promote_inexact("polyint", p, k)
    constants = lax.reshape(constants, (constants.size,))
    if constants.shape[0] == 1:
        constants = broadcast_to_shape(constants, (m,))
    if constants.shape != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    for i in range(m):
        n = coefficients.shape[0]
        powers = asarray(np.arange(n, 0, -1).astype(coefficients.dtype))
        coefficients = lax.concatenate([coefficients / powers, constants[i : i + 1]], 0)
    return coefficients


@one_program()
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with given zeros.

    Args:
      seq_of_zeros: vector of zeros, or a square matrix, whose eigenvalues are the zeros.

    Returns:
      Floating vector of coefficients, the first of which is one.

    Raises:
      ValueError: for other shapes.

    >>> import ferrax.numpy as jnp
    >>> jnp.poly(jnp.array([1., -1.]))
    Array([ 1.,  0., -1.], dtype=float32)
    """
    (zeros,) = promote_inexact("poly", seq_of_zeros)
    zeros = atleast_1d(zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.shape[0] > 0:
        zeros = eigvals(zeros)
    if zeros.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if zeros.shape[0] == 0:
        return lax.full((), 1, zeros.dtype)
    one = lax.full((1,), 1, zeros.dtype)
    result = one
    for i in range(zeros.shape[0]):
        result = convolve(result, lax.concatenate([one, -zeros[i : i + 1]], 0))
    return result


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, as the eigenvalues of its companion matrix.

    Args:
      p: vector of coefficients.
      strip_zeros: drop leading zeros first, which needs concrete coefficients; else each leaves a NaN at the end.

    Returns:
      Complex vector.

    Raises:
      ValueError: the coefficients are no vector.

    >>> import ferrax.numpy as jnp
    >>> jnp.roots(jnp.array([2., -4.]))
    Array([2.+0.j], dtype=complex64)
    """
    require("roots", p)
    (coefficients,) = promote_inexact("roots", p)
    coefficients = atleast_1d(coefficients)
    if coefficients.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    trailing = 0
    if strip_zeros:
        coefficients = trim_zeros(coefficients, trim="f")
        stripped = trim_zeros(coefficients, trim="b")
        trailing = coefficients.shape[0] - stripped.shape[0]
        coefficients = stripped
    degree = coefficients.shape[0] - 1
    zeros = lax.full((trailing,), 0, complex_dtype(coefficients.dtype))
    if degree < 1:
        return zeros
    if strip_zeros:
        return lax.concatenate([_companion_roots(coefficients), zeros], 0)
    # Leading zeros go to the end, where they are zeros of the polynomial: the smallest, which are dropped.
    leading = argmax(coefficients != 0)
    found = _companion_roots(roll(coefficients, -leading))
    found = found[argsort(lax.abs(found), descending=True)]
    missing = asarray(complex(np.nan, np.nan), dtype=found.dtype)
    return where(lax.iota(np.int32, degree) < degree - leading, found, missing)


def _companion_roots(coefficients: Array) -> Array:
    """The zeros of a polynomial of degree one or more with a leading coefficient that is not zero."""
    degree = coefficients.shape[0] - 1
    companion = eye(degree, k=-1, dtype=coefficients.dtype).at[0, :].set(-coefficients[1:] / coefficients[0])
    return eigvals(companion)


def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: ArrayLike | None = None, cov: bool = False) -> Any:  # fmt: skip
    """The polynomial of least squares.

    Args:
      x: vector of places.
      y: vector of values, or a matrix of columns of values.
      deg: degree of the polynomial.
      rcond: relative size of singular values to leave out; None for the number of places times the machine's epsilon.
      full: also return what the solver found: residuals, rank, singular values, `rcond`.
      w: vector of weights.
      cov: also return the covariance of the coefficients; "unscaled" leaves out the residuals.

    Returns:
      Vector (or matrix of columns) of coefficients, the highest power first; a tuple with `full` or `cov`.

    Raises:
      ValueError: a negative degree.
      TypeError: shapes that do not fit.

    >>> import ferrax.numpy as jnp
    >>> jnp.polyfit(jnp.arange(3.), 2 * jnp.arange(3.), 1).round(3)
    Array([2., 0.], dtype=float32)
    """
    require("polyfit", x, y)
    order = operator.index(deg) + 1
    places, values = promote_inexact("polyfit", x, y)
    if order < 1:
        raise ValueError("expected deg >= 0")
    if places.ndim != 1 or places.shape[0] == 0 or values.ndim not in (1, 2) or values.shape[0] != places.shape[0]:
        raise TypeError(f"polyfit takes a vector x and y with as many rows; got shapes {places.shape}, {values.shape}")
    if rcond is None:
        rcond = places.shape[0] * float(limits(places.dtype).eps)
    matrix = vander(places, order)
    if w is not None:
        (weights,) = promote_inexact("polyfit", w)
        if weights.ndim != 1 or weights.shape != places.shape:
            raise TypeError(f"polyfit takes a vector of weights as long as x; got shape {weights.shape}")
        matrix = matrix * weights[:, None]
        values = values * (weights[:, None] if values.ndim == 2 else weights)
    scale = lax.sqrt((matrix * matrix).sum(axis=0))
    matrix = matrix / scale[None]
    found, residuals, rank, singular = lstsq(matrix, values, rcond)
    coefficients = (found.T / lax.broadcast_to_rank(scale, found.ndim)).T
    if full:
        return coefficients, residuals, rank, singular, asarray(rcond)
    if not cov:
        return coefficients
    base = inv(matrix.T @ matrix) / (scale[:, None] * scale[None])
    if cov != "unscaled":
        if places.shape[0] <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (places.shape[0] - order)
        factor = factor[0] if values.ndim == 1 else factor
        return coefficients, base * factor if values.ndim == 1 else base[..., None] * lax.broadcast_to_rank(factor, 3)
    return coefficients, base if values.ndim == 1 else base[..., None]
