"""What singular values tell: condition, rank, pseudo-inverses, least squares. Read next: `_linalg_factors.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray
from ferrax._narrow import limits
from ferrax._one_program import one_program
from ferrax.custom_derivatives import custom_jvp
from ferrax.numpy import _creation, _products, _reductions
from ferrax.numpy._args import Array, ArrayLike, promote_inexact
from ferrax.numpy._dtype_functions import default_int
from ferrax.numpy._linalg_factors import adjoint, svd, svdvals
from ferrax.numpy._linalg_norms import norm
from ferrax.numpy._linalg_solve import inv
from ferrax.numpy._ufuncs import where

__all__ = ["cond", "lstsq", "matrix_rank", "pinv"]


@one_program("p")
def cond(x: ArrayLike, p: Any = None) -> Array:
    """The condition numbers of matrices: the norm times that of the inverse.

    Args:
      x: array of shape (..., m, n).
      p: order of the norm, as for `norm`; None, 2 and -2 take the ratio of singular values.

    Returns:
      Real array of shape (...).

    Raises:
      ValueError: the matrices are not square, and the order needs their inverse; or there is no such order.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.cond(jnp.array([[4., 0.], [0., 2.]]))
    Array(2., dtype=float32)
    """
    (a,) = promote_inexact("jnp.linalg.cond", x)
    if a.ndim < 2:
        raise ValueError(f"jnp.linalg.cond: input array must be at least 2D; got arr.shape={a.shape}")
    if 0 in a.shape[-2:]:
        raise ValueError(f"jnp.linalg.cond: input array must not be empty; got arr.shape={a.shape}")
    if p is None or p in (2, -2):
        s = svdvals(a)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"jnp.linalg.cond: for p={p}, array must be square; got arr.shape={a.shape}")
    return norm(a, ord=p, axis=(-2, -1)) * norm(inv(a), ord=p, axis=(-2, -1))


@one_program("hermitian")
def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: Any = None) -> Array:
    """The number of singular values that are not small.

    Args:
      M: array of shape (..., m, n), or of fewer axes.
      rtol: what counts as small, relative to the largest; None for max(m, n) times the machine's epsilon.
      hermitian: the matrices are Hermitian.
      tol: what counts as small, in place of `rtol`.

    Returns:
      int32 array of shape (...).

    Raises:
      ValueError: both `rtol` and `tol` are given.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.matrix_rank(jnp.ones((3, 3)))
    Array(1, dtype=int32)
    """
    (a,) = promote_inexact("jnp.linalg.matrix_rank", M)
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    if a.ndim < 2:
        return lax.convert_element_type(_reductions.any(a != 0), np.int32)
    s = svd(a, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is None:
        rtol = max(a.shape[-2:]) * float(limits(s.dtype).eps) if rtol is None else rtol
        tol = _reductions.max(s, -1, initial=0) * asarray(rtol)
    return _reductions.sum(s > asarray(tol)[..., None], -1, dtype=default_int())


@custom_jvp
def _pinv(a: Array, rtol: Array) -> Array:
    u, s, vh = svd(a, full_matrices=False)
    cutoff = _relative(rtol, s)
    s = where(s > cutoff, s, asarray(np.inf, dtype=s.dtype))
    return _products.matmul(adjoint(vh), adjoint(u) / lax.convert_element_type(s, u.dtype)[..., None])


def _relative(rtol: Array, s: Array) -> Array:
    """Tolerances relative to the largest of singular values, with an axis for these."""
    return (lax.broadcast_to_rank(rtol[..., None], s.ndim) if rtol.ndim else rtol) * s[..., :1]


@_pinv.defjvp
def _pinv_jvp(primals, tangents):
    """Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems" (1973)."""
    (a, rtol), (da, _) = primals, tangents
    p = _pinv(a, rtol)
    mul = _products.matmul
    change = -mul(mul(p, da), p)
    outer = mul(p, adjoint(p))
    inner = mul(adjoint(p), p)
    moved = adjoint(da)
    change = change + mul(outer, moved - mul(mul(moved, a), p))
    change = change + mul(moved - mul(p, mul(a, moved)), inner)
    return p, change


@one_program("hermitian")
def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: Any = None) -> Array:
    """The Moore-Penrose inverses of matrices.

    Args:
      a: array of shape (..., m, n).
      rtol: singular values up to this times the largest count as zero; None for 10 max(m, n) times the machine's
        epsilon.
      hermitian: the matrices are Hermitian.
      rcond: as `rtol`.

    Returns:
      Floating array of shape (..., n, m).

    Raises:
      ValueError: fewer than two axes, or both `rtol` and `rcond`.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.pinv(jnp.array([[2., 0.], [0., 0.]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.pinv", a)
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    if x.ndim < 2:
        raise ValueError(f"pinv takes arrays of shape [..., m, n], got {x.shape}")
    m, n = x.shape[-2:]
    real = limits(x.dtype).dtype
    if x.size == 0:
        return _creation.zeros((*x.shape[:-2], n, m), x.dtype)
    cutoff = rcond if rtol is None else rtol
    if cutoff is None:
        cutoff = 10.0 * max(m, n) * float(limits(x.dtype).eps)
    cutoff = lax.convert_element_type(asarray(cutoff), real)
    if not hermitian:
        return _pinv(x, cutoff)
    u, s, vh = svd(x, full_matrices=False, hermitian=True)
    s = where(s > _relative(cutoff, s), s, asarray(np.inf, dtype=s.dtype))
    return _products.matmul(adjoint(vh), adjoint(u) / lax.convert_element_type(s, u.dtype)[..., None])


def _check_least_squares(a: Array, b: Array) -> None:
    if a.ndim != 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim not in (1, 2):
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional")
    if a.shape[0] != b.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")


@one_program("rcond", "numpy_resid")
def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False) -> Any:
    """The solutions x of least squares |a x - b|², of least norm.

    Args:
      a: array of shape (m, n).
      b: array of shape (m,) or (m, k).
      rcond: singular values below this times the largest count as zero; None for max(m, n) times the machine's epsilon,
        negative for the epsilon.
      numpy_resid: give no residuals, as NumPy does, where `a` is rank-deficient or has no more rows than columns. The
        rank must be known then: not under `jit`.

    Returns:
      Tuple (solution of shape (n,) or (n, k), sums of squared residuals, rank, singular values).

    Raises:
      TypeError: for other numbers of axes.
      ValueError: `a` and `b` differ in rows.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.lstsq(jnp.array([[2., 0.], [0., 4.]]), jnp.array([2., 4.]))[0]
    Array([1., 1.], dtype=float32)
    """
    x, y = promote_inexact("jnp.linalg.lstsq", a, b)
    _check_least_squares(x, y)
    vector = y.ndim == 1
    if vector:
        y = y[:, None]
    m, n = x.shape
    eps = float(limits(x.dtype).eps)
    cutoff = max(m, n) * eps if rcond is None else rcond if not isinstance(rcond, (int, float)) or rcond >= 0 else eps
    if x.size == 0:
        s = _creation.zeros((0,), limits(x.dtype).dtype)
        rank: Any = _creation.zeros((), default_int())
        solution = _creation.zeros((n, y.shape[1]), x.dtype)
    else:
        u, s, vh = svd(x, full_matrices=False)
        used = (s > 0) & (s >= asarray(cutoff, dtype=s.dtype) * s[0])
        rank = _reductions.sum(used, dtype=default_int())
        inverse = where(used, 1 / where(used, s, 1), 0)[:, None]
        moved = _products.matmul(adjoint(u), y)
        solution = _products.matmul(adjoint(vh), lax.convert_element_type(inverse, x.dtype) * moved)
    if numpy_resid and (int(rank) < n or m <= n):
        residuals = _creation.zeros((0,), s.dtype)
    else:
        left = y - _products.matmul(x, solution)
        residuals = norm(left, axis=0) ** 2
    return (solution[:, 0] if vector else solution), residuals, rank, s
