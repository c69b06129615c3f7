"""Polar decomposition by dynamically weighted Halley steps, `lax.linalg.qdwh`.

Source: Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition" (2010).
The weights follow from a lower bound of the singular values alone, so they are computed before the program runs. Read
next: `scipy/linalg/_functions.py`, whose `polar` has derivatives.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import asarray, concrete_or_error
from ferrax._ferrax import lax as _lax
from ferrax.numpy import _join, _products, _reductions, _ufuncs
from ferrax.numpy._args import Array, ArrayLike
from ferrax.numpy._dtype_functions import dtype_kind

__all__ = ["qdwh"]

_dot = partial(_products.matmul, precision="highest")
# Steps with larger weights go by a QR factorization, which stays accurate; the others by a Cholesky one.
_LARGEST_CHOLESKY_WEIGHT = 100.0


def _weights(eps: float, most: int) -> list[tuple[float, float, float]]:
    """(a, b, c) of each step, until a singular value of at least `eps` is one."""
    out: list[tuple[float, float, float]] = []
    low = eps
    while low + 5 * eps < 1 and len(out) < most:
        square = low * low
        d = (4 * (1 / square - 1) / square) ** (1 / 3)
        root = (1 + d) ** 0.5
        a = root + (2 - d + 2 * (2 - square) / (square * root)) ** 0.5
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        out.append((a, b, c))
        low = low * (a + b * square) / (1 + c * square)
    return out


def _adjoint(x: Array) -> Array:
    return x.T.conj()


def _by_qr(u: Array, a: Any, b: Any, c: Any) -> Array:
    m, n = u.shape
    one = lax.convert_element_type(np.eye(n), u.dtype)
    root = lax.sqrt(c)
    q, _ = _lax.qr(_join.concatenate([root * u, one]), False, False)
    return b / c * u + (a - b / c) / root * _dot(q[:m], _adjoint(q[m:]))


def _by_cholesky(u: Array, a: Any, b: Any, c: Any) -> Array:
    one = lax.convert_element_type(np.eye(u.shape[1]), u.dtype)
    factor = _lax.cholesky(c * _dot(_adjoint(u), u) + one)
    # on the right of u, first the adjoint of the factor and then the factor
    half = _lax.triangular_solve(factor, u, False, True, True, dtype_kind(u.dtype) == "c", False)
    return b / c * u + (a - b / c) * _lax.triangular_solve(factor, half, False, True, False, False, False)


def _iterated(x: Array, eps: float, most: int) -> tuple[Array, Array, Array]:
    """(unitary factor, number of steps, whether they converged)."""
    columns, rows = (_reductions.max(_reductions.sum(lax.abs(x), axis)) for axis in (0, 1))
    size = lax.sqrt(columns) * lax.sqrt(rows)
    u = x / lax.convert_element_type(_ufuncs.where(size == 0, lax.full_like(size, 1), size), x.dtype)
    weights = _weights(eps, most)
    first = [w for w in weights if w[2] > _LARGEST_CHOLESKY_WEIGHT]
    others = weights[len(first) :]
    if first:
        u = lax.scan(lambda u, w: (_by_qr(u, w[0], w[1], w[2]), None), u, asarray(np.array(first), dtype=x.dtype))[0]
    # then Halley's own weights, to which the others tend
    table = asarray(np.array([*others, (3.0, 1.0, 3.0)]), dtype=x.dtype)
    near = asarray((5 * eps) ** (1 / 3), dtype=size.dtype)

    def unfinished(state):
        k, _, converged = state
        return (k < most) & ~converged

    def step(state):
        k, u, _ = state
        a, b, c = table[_ufuncs.minimum(k - len(first), np.int32(len(others)))]
        new = _by_cholesky(u, a, b, c)
        done = (_reductions.sum(lax.abs(new - u) ** 2) <= near * near) & (k + 1 >= len(weights))
        return k + 1, new, done

    k, u, converged = lax.while_loop(unfinished, step, (asarray(len(first), dtype=np.int32), u, asarray(False)))
    # one step of Newton and Schulz makes the columns orthonormal to rounding
    return 1.5 * u - 0.5 * _dot(u, _dot(_adjoint(u), u)), k, converged


@partial(jit, static_argnames=("is_hermitian", "max_iterations", "eps"))
def _qdwh(x: Array, is_hermitian: bool, max_iterations: int, eps: float) -> tuple[Array, Array, Array, Array]:
    u, count, converged = _iterated(x, eps, max_iterations)
    if is_hermitian:
        u = (u + _adjoint(u)) / 2
    h = _dot(_adjoint(u), x)
    return u, (h + _adjoint(h)) / 2, count, converged


def qdwh(x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None,
         dynamic_shape: tuple[int, int] | None = None) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Polar decomposition by dynamically weighted Halley steps: x = u h.

    Args:
      x: array of shape (m, n) with m ≥ n and a floating dtype.
      is_hermitian: static; a promise that `x` is Hermitian. Then `u` is Hermitian too, to the last bit.
      max_iterations: static; the largest number of steps, None for 10.
      eps: static; the smallest singular value, relative to the largest, that is told from zero; None for the precision
        of the dtype.
      dynamic_shape: None.

    Returns:
      u, of the shape and dtype of `x`, with orthonormal columns; h, Hermitian positive semidefinite, of shape (n, n);
      the number of steps; whether they converged.

    Raises:
      ValueError: more columns than rows, no matrix, `is_hermitian` and not square, or an `eps` that is no share.
      NotImplementedError: a dtype of 16 bits, or `dynamic_shape` is given.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> u, h, steps, converged = lax.linalg.qdwh(jnp.array([[0.0, 2.0], [-1.0, 0.0]]))
      >>> jnp.abs(jnp.round(u, 3)), converged
      (Array([[0., 1.],
             [1., 0.]], dtype=float32), Array(True, dtype=bool))
    """
    if dynamic_shape is not None:
        raise NotImplementedError("lax.linalg.qdwh with dynamic_shape is not implemented")
    x = asarray(x)
    if x.ndim != 2 or x.shape[0] < x.shape[1]:
        raise ValueError(f"lax.linalg.qdwh: expected a matrix with at least as many rows as columns, got {x.shape}.")
    if is_hermitian and x.shape[0] != x.shape[1]:
        raise ValueError(f"lax.linalg.qdwh: a Hermitian matrix is square, got {x.shape}.")
    if x.dtype.itemsize < 4:
        raise NotImplementedError(f"lax.linalg.qdwh: matrices of {x.dtype} are not implemented, those of float32 are")
    most = 10 if max_iterations is None else concrete_or_error(int, max_iterations, "max_iterations of lax.linalg.qdwh")
    least = np.finfo(x.dtype).eps if eps is None else concrete_or_error(float, eps, "eps of lax.linalg.qdwh")
    if not least >= np.finfo(x.dtype).smallest_normal ** 0.25:  # the weights of the steps divide by powers of it
        raise ValueError(f"lax.linalg.qdwh: eps is a share of the largest singular value, which {eps} is not.")
    return _qdwh(x, bool(is_hermitian), most, float(least))
