"""Linear systems with matrices or with their factors, and Sylvester's equation. Read next: `_factors.py`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax.lax import linalg as _lax_linalg
from ferrax.numpy import _linalg_solve, _reductions, _take, _ufuncs
from ferrax.numpy._args import Array, ArrayLike
from ferrax.scipy.linalg._args import (
    adjoint,
    conj,
    dot,
    inexact,
    over_matrices,
    real_dtype_as,
    solve_shaped,
    square,
    to_complex,
)
from ferrax.scipy.linalg._factors import cholesky

__all__ = ["cho_solve", "det", "inv", "lu_solve", "solve", "solve_sylvester", "solve_triangular"]


def _with_cholesky(c: Array, b: Array, lower: bool) -> Array:
    first = _lax_linalg.triangular_solve(
        c, b, left_side=True, lower=lower, transpose_a=not lower, conjugate_a=not lower
    )
    return _lax_linalg.triangular_solve(c, first, left_side=True, lower=lower, transpose_a=lower, conjugate_a=lower)


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The solution of systems with matrices whose Cholesky factors are given.

    Args:
      c_and_lower: what `cho_factor` gives.
      b: array of shape (n,) or (..., n, k).
      overwrite_b: accepted, and means nothing.
      check_finite: accepted, and means nothing.

    Returns:
      Array of shape (..., n) or (..., n, k).

    Raises:
      ValueError: the shapes do not fit.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> factor = ferrax.scipy.linalg.cho_factor(jnp.array([[4., 2.], [2., 5.]]))
    >>> ferrax.scipy.linalg.cho_solve(factor, jnp.array([6., 7.]))
    Array([1., 1.], dtype=float32)
    """
    del overwrite_b, check_finite
    factor, lower = c_and_lower
    c, y = inexact("cho_solve", factor, b)
    return solve_shaped("cho_solve", c, y, partial(_with_cholesky, lower=bool(lower)))


def lu_solve(lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, trans: int = 0, overwrite_b: bool = False,
             check_finite: bool = True) -> Array:  # fmt: skip
    """The solution of systems with matrices whose LU factors are given.

    Args:
      lu_and_piv: what `lu_factor` gives, of square matrices.
      b: array of shape (n,) or (..., n, k).
      trans: 0 for a x = b, 1 for aᵀ x = b, 2 for aᴴ x = b.
      overwrite_b: accepted, and means nothing.
      check_finite: accepted, and means nothing.

    Returns:
      Array of shape (..., n) or (..., n, k).

    Raises:
      ValueError: the shapes do not fit, or there is no such `trans`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> factors = ferrax.scipy.linalg.lu_factor(jnp.array([[2., 0.], [1., 4.]]))
    >>> ferrax.scipy.linalg.lu_solve(factors, jnp.array([2., 9.]))
    Array([1., 2.], dtype=float32)
    """
    del overwrite_b, check_finite
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    factors, pivots = lu_and_piv
    f, y = inexact("lu_solve", factors, b)
    n = square("lu_solve", "the factors", f).shape[-1]
    order = _lax_linalg.lu_pivots_to_permutation(pivots, n)
    if trans:
        order = lax.sort([order, lax.broadcasted_iota(np.int32, order.shape, order.ndim - 1)], num_keys=1)[1]
    triangle = partial(_lax_linalg.triangular_solve, left_side=True, transpose_a=trans > 0, conjugate_a=trans == 2)

    def rows(x: Array) -> Array:
        index = lax.broadcast_in_dim(order, (*x.shape[:-1], 1), tuple(range(x.ndim - 1 - order.ndim, x.ndim - 1)))
        return _take.take_along_axis(x, index, axis=-2)

    def solved(f: Array, y: Array) -> Array:
        if trans:
            return rows(triangle(f, triangle(f, y), lower=True, unit_diagonal=True))
        return triangle(f, triangle(f, rows(y), lower=True, unit_diagonal=True))

    return solve_shaped("lu_solve", f, y, solved)


_TRANS = {0: (False, False), "N": (False, False), 1: (True, False), "T": (True, False), 2: (True, True),
          "C": (True, True)}  # fmt: skip


def solve_triangular(a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False,
                     unit_diagonal: bool = False, overwrite_b: bool = False, debug: Any = None,
                     check_finite: bool = True) -> Array:  # fmt: skip
    """The solution of systems with triangular matrices.

    Args:
      a: array of shape (..., n, n), of which one triangle counts.
      b: array of shape (n,) or (..., n, k).
      trans: 0 or "N" for a x = b, 1 or "T" for aᵀ x = b, 2 or "C" for aᴴ x = b.
      lower: the lower triangle counts, else the upper one.
      unit_diagonal: the diagonal counts as ones.
      overwrite_b: accepted, and means nothing.
      debug: accepted, and means nothing.
      check_finite: accepted, and means nothing.

    Returns, Raises: as in `lu_solve`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> a = jnp.array([[2., 0.], [1., 4.]])
    >>> ferrax.scipy.linalg.solve_triangular(a, jnp.array([2., 9.]), lower=True)
    Array([1., 2.], dtype=float32)
    """
    del overwrite_b, debug, check_finite
    if trans not in _TRANS:
        raise ValueError(f"Invalid 'trans' value {trans}")
    transpose, conjugate = _TRANS[trans]
    x, y = inexact("solve_triangular", a, b)
    return solve_shaped(
        "solve_triangular", x, y,
        partial(_lax_linalg.triangular_solve, left_side=True, lower=lower, transpose_a=transpose,
                conjugate_a=conjugate, unit_diagonal=unit_diagonal),
    )  # fmt: skip


def _solve_positive(a: Array, b: Array, lower: bool) -> Array:
    """By a Cholesky factor, which derivatives use again."""
    factor = cholesky(lax.stop_gradient(a), lower)

    def transposed(_, y):
        # aᵀ is the conjugate of a
        return conj(_with_cholesky(factor, conj(y), lower))

    return lax.custom_linear_solve(partial(dot, a), b, lambda _, y: _with_cholesky(factor, y, lower), transposed)


def solve(a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
          debug: bool = False, check_finite: bool = True, assume_a: str = "gen") -> Array:  # fmt: skip
    """The solution x of a x = b.

    Args:
      a: array of shape (..., n, n).
      b: array of shape (n,) or (..., n, k).
      lower: for positive definite matrices: the lower triangle is read, else the upper one.
      overwrite_a: accepted, and means nothing.
      overwrite_b, debug, check_finite: as in `solve_triangular`.
      assume_a: "gen", or "sym" or "her" (which mean the same here), or "pos" for positive definite matrices.

    Returns:
      Array of shape (..., n) or (..., n, k).

    Raises:
      ValueError: the shapes do not fit, or there is no such `assume_a`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.solve(jnp.array([[4., 2.], [2., 5.]]), jnp.array([6., 7.]), assume_a="pos")
    Array([1., 1.], dtype=float32)
    """
    del overwrite_a, overwrite_b, debug, check_finite
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {assume_a!r}")
    x, y = inexact("solve", a, b)
    if assume_a != "pos":
        return _linalg_solve.solve(x, y)
    return solve_shaped("solve", x, y, partial(_solve_positive, lower=lower), warn=False)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of matrices.

    Args:
      a: array of shape (..., n, n).
      overwrite_a: accepted, and means nothing.
      check_finite: accepted, and means nothing.

    Returns:
      Floating array of shape (...).

    Raises:
      ValueError: the matrices are not square.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.det(jnp.array([[2., 1.], [1., 4.]]))
    Array(7., dtype=float32)
    """
    del overwrite_a, check_finite
    return _linalg_solve.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of matrices.

    Args: as in `det`.

    Returns:
      Floating array of the shape of `a`; infinities and NaN where it is singular.

    Raises: as in `det`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    del overwrite_a, check_finite
    return _linalg_solve.inv(a)


def _transposed(x: Array) -> Array:
    return lax.transpose(x, (1, 0))


def _triangular_sylvester(r: Array, s: Array, f: Array, transposed: bool) -> Array:
    """Y of r Y + Y s = f with triangular r and s, or of rᵀ Y + Y sᵀ = f: one column after the other."""
    m, n = f.shape
    rows, columns = (lax.broadcasted_iota(np.int32, (m, m), axis) for axis in (0, 1))
    identity = lax.convert_element_type(rows == columns, r.dtype)

    def step(y, k):
        k = n - 1 - k if transposed else k
        others = lax.dynamic_index_in_dim(s, k, 0 if transposed else 1, keepdims=False)
        # columns of y that are still to come are zero, and so is what s has on the other side of its diagonal
        rhs = lax.dynamic_index_in_dim(f, k, 1, keepdims=False) - dot(y, others)
        x = _lax_linalg.triangular_solve(r + others[k] * identity, rhs, left_side=True, transpose_a=transposed)
        return lax.dynamic_update_index_in_dim(y, x, k, 1), None

    return lax.scan(step, lax.full_like(f, 0), lax.iota(np.int32, n))[0]


def _by_schur(a: Array, b: Array, tol: float):
    """(solve, transposed solve, whether there is no unique solution) of a X + X b = c."""
    (r, u), (s, v) = _lax_linalg.schur(a), _lax_linalg.schur(b)

    def solved(_, c):
        y = _triangular_sylvester(r, s, dot(dot(adjoint(u), to_complex(c)), v), False)
        return real_dtype_as(dot(dot(u, y), adjoint(v)), c)

    def transposed(_, c):
        y = _triangular_sylvester(r, s, dot(dot(_transposed(u), to_complex(c)), lax.conj(v)), True)
        return real_dtype_as(dot(dot(lax.conj(u), y), _transposed(v)), c)

    return solved, transposed, _meet(_diagonal(r), _diagonal(s), tol)


def _by_eigenvalues(a: Array, b: Array, tol: float):
    """As `_by_schur`, in bases of eigenvectors."""
    (wa, p), (wb, q) = (_lax_linalg.eig(x, compute_left_eigenvectors=False) for x in (a, b))
    pi, qi = _linalg_solve.inv(p), _linalg_solve.inv(q)
    sums = wa[:, None] + wb[None, :]

    def solved(_, c):
        return real_dtype_as(dot(dot(p, dot(dot(pi, to_complex(c)), q) / sums), qi), c)

    def transposed(_, c):
        y = dot(dot(_transposed(p), to_complex(c)), _transposed(qi)) / sums
        return real_dtype_as(dot(dot(_transposed(pi), y), _transposed(q)), c)

    return solved, transposed, _meet(wa, wb, tol)


def _diagonal(x: Array) -> Array:
    rows, columns = (lax.broadcasted_iota(np.int32, x.shape, axis) for axis in (0, 1))
    return _reductions.sum(lax.select(rows == columns, x, lax.full_like(x, 0)), 0)


def _meet(wa: Array, wb: Array, tol: float) -> Array:
    return _reductions.any(lax.abs(wa[:, None] + wb[None, :]) < tol)


_METHODS = {"schur": _by_schur, "eigen": _by_eigenvalues}


def _sylvester(a: Array, b: Array, c: Array, *, method: str, tol: float) -> Array:
    fixed_a, fixed_b = (to_complex(lax.stop_gradient(x)) for x in (a, b))
    solved, transposed, singular = _METHODS[method](fixed_a, fixed_b, tol)
    x = lax.custom_linear_solve(lambda x: dot(a, x) + dot(x, b), c, solved, transposed)
    return _ufuncs.where(singular, lax.full_like(x, np.nan), x)


@partial(jit, static_argnames=("method",))
def _sylvester_of_batches(a: Array, b: Array, c: Array, *, method: str, tol: float) -> Array:
    return over_matrices(partial(_sylvester, method=method, tol=tol), "(m,m),(n,n),(m,n)->(m,n)")(a, b, c)


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """The solution X of A X + X B = C.

    Args:
      A: array of shape (..., m, m).
      B: array of shape (..., n, n).
      C: array of shape (..., m, n).
      method: "schur", or "eigen", which is less accurate unless the matrices are normal.
      tol: where a sum of an eigenvalue of `A` and one of `B` is smaller, there is no unique solution.

    Returns:
      Array of shape (..., m, n); NaN where there is no unique solution. Derivatives of every order are those of the
      solution, by two more systems with the same factors.

    Raises:
      ValueError: the shapes do not fit, or there is no such method.
      NotImplementedError: a dtype of 16 bits.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.solve_sylvester(jnp.eye(2), 3 * jnp.eye(2), 8 * jnp.eye(2))
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    if method not in _METHODS:
        raise ValueError(f"Unrecognized method {method}. The two valid methods are either 'schur' or 'eigen'.")
    a, b, c = inexact("solve_sylvester", A, B, C)
    if c.dtype.itemsize < 4:
        raise NotImplementedError(f"solve_sylvester: matrices of {c.dtype} are not implemented, those of float32 are")
    if c.ndim < 2 or a.shape[-2:] != (c.shape[-2],) * 2 or b.shape[-2:] != (c.shape[-1],) * 2:
        raise ValueError(f"Incompatible shapes for Sylvester equation:\nA: {a.shape}\nB: {b.shape}\nC: {c.shape}")
    return _sylvester_of_batches(a, b, c, method=method, tol=tol)
