"""Functions of matrices: exponential, square root, any function by its values on eigenvalues, polar decomposition.

Sources: Higham, "Functions of Matrices" (2008): scaling and squaring with Padé approximants (chapter 10), the square
root by Schur's form (chapter 6), Parlett's recurrence (chapter 4). Read next: `_solve.py`, whose Sylvester equations
the derivatives are; `lax/_qdwh.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import asarray
from ferrax._derivatives import jvp
from ferrax.custom_derivatives import custom_jvp
from ferrax.lax import linalg as _lax_linalg
from ferrax.lax._qdwh import qdwh
from ferrax.numpy import _floats, _linalg_norms, _linalg_solve, _reductions, _ufuncs
from ferrax.numpy._args import Array, ArrayLike, broadcast_to_shape
from ferrax.numpy._dtype_functions import dtype_kind, real_dtype
from ferrax.scipy.linalg._args import adjoint, dot, inexact, over_matrices, square, to_complex
from ferrax.scipy.linalg._factors import triangularized
from ferrax.scipy.linalg._solve import solve_sylvester, solve_triangular

__all__ = ["expm", "expm_frechet", "funm", "polar", "sqrtm"]

# Coefficients of Padé's approximants of exp, of degrees 7 and 13, and the largest 1-norms they serve.
_PADE = {
    np.dtype("float32"): ((17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0), 3.925724783138660),
    np.dtype("float64"): (
        (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
         10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
        5.371920351148152,
    ),
}  # fmt: skip


def _identity(n: int, dtype: Any) -> Array:
    rows, columns = (lax.broadcasted_iota(np.int32, (n, n), axis) for axis in (0, 1))
    return lax.convert_element_type(rows == columns, dtype)


def _pade(a: Array, c: tuple[float, ...]) -> tuple[Array, Array]:
    """Odd and even part of the numerator; the denominator has the same up to signs."""
    one = broadcast_to_shape(_identity(a.shape[-1], a.dtype), a.shape)
    a2 = dot(a, a)
    a4 = dot(a2, a2)
    a6 = dot(a4, a2)
    if len(c) == 8:
        return dot(a, a6 * c[7] + a4 * c[5] + a2 * c[3] + one * c[1]), a6 * c[6] + a4 * c[4] + a2 * c[2] + one * c[0]
    odd = dot(a6, a6 * c[13] + a4 * c[11] + a2 * c[9]) + a6 * c[7] + a4 * c[5] + a2 * c[3] + one * c[1]
    even = dot(a6, a6 * c[12] + a4 * c[10] + a2 * c[8]) + a6 * c[6] + a4 * c[4] + a2 * c[2] + one * c[0]
    return dot(a, odd), even


def _squared(x: Array, squarings: Array, most: int) -> Array:
    """Each matrix squared as often as `squarings` says; nothing is done once all are."""

    def step(x, i):
        wanted = broadcast_to_shape(squarings > i, x.shape)

        def square_some(x):
            # what is not wanted is never squared: its overflow would make derivatives NaN
            y = lax.select(wanted, x, lax.full_like(x, 0))
            return lax.select(wanted, dot(y, y), x)

        return lax.cond(_reductions.any(wanted), square_some, lambda x: x, x), None

    return lax.scan(step, x, lax.iota(np.int32, most))[0]


@partial(jit, static_argnames=("upper_triangular", "max_squarings"))
def _expm(a: Array, upper_triangular: bool, max_squarings: int) -> Array:
    real = real_dtype(a.dtype)
    if real not in _PADE:
        raise TypeError(f"scipy.linalg.expm: dtype {a.dtype} is not supported; convert to float32.")
    coefficients, largest = _PADE[real]
    size = _reductions.sum(lax.abs(lax.stop_gradient(a)), -2, keepdims=True)
    size = _reductions.max(size, -1, keepdims=True)
    halvings = _ufuncs.maximum(lax.log(size / largest) / float(np.log(2)), asarray(0, dtype=real))
    too_many = lax.floor(halvings) > max_squarings
    halvings = _ufuncs.minimum(lax.ceil(halvings), asarray(max_squarings, dtype=real))
    count = lax.convert_element_type(_ufuncs.where(lax.is_finite(halvings), halvings, lax.full_like(halvings, 0)),
                                     np.int32)  # fmt: skip
    scale = _floats.ldexp(lax.full_like(size, 1), -count)
    odd, even = _pade(a * lax.convert_element_type(scale, a.dtype), coefficients)
    solve = solve_triangular if upper_triangular else _linalg_solve.solve
    x = _squared(solve(even - odd, even + odd), count, max_squarings)
    return _ufuncs.where(too_many, lax.full_like(x, np.nan), x)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of matrices.

    Args:
      A: array of shape (..., n, n).
      upper_triangular: the matrices are upper triangular, which makes a system in it cheaper.
      max_squarings: static; the largest number of times that a matrix is halved, and its exponential squared.

    Returns:
      Floating array of the shape of `A`; NaN where the norm of a matrix asks for more squarings.

    Raises:
      ValueError: the matrices are not square.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.expm(jnp.array([[0., 1.], [0., 0.]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    (x,) = inexact("expm", A)
    square("expm", "A", x)
    return x if x.size == 0 else _expm(x, upper_triangular, max_squarings)


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The exponential of matrices, and its derivative in a direction.

    Args:
      A: array of shape (..., n, n).
      E: the direction, of the shape of `A`.
      method: accepted, and means nothing.
      compute_expm: give the exponential too.

    Returns:
      The exponential and the derivative; or the derivative alone.

    Raises:
      ValueError: the matrices are not square, or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.expm_frechet(jnp.zeros((2, 2)), jnp.eye(2), compute_expm=False)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    del method
    x, direction = inexact("expm_frechet", A, E)
    square("expm_frechet", "A", x)
    square("expm_frechet", "E", direction)
    if x.shape != direction.shape:
        raise ValueError(f"expected A and E to be the same shape, got A.shape={x.shape} E.shape={direction.shape}")
    value, derivative = jvp(expm, (x,), (direction,))
    return (value, derivative) if compute_expm else derivative


def _by_columns(t: Array, diagonal: Array, column: Callable[[Any, Array], tuple[Array, Array]],
                finished: Callable[[Any, Array], Array] = lambda j, x: x) -> Array:  # fmt: skip
    """An upper triangular matrix whose column j solves a triangular system in the columns before it.

    Args:
      t: array of shape (n, n), upper triangular.
      diagonal: the diagonal of the result.
      column: for j and the columns so far, the matrix of a system and its right-hand side; rows from j on are ignored.
      finished: takes j and the solution, and gives what stands above the diagonal.
    """
    n = t.shape[-1]
    index = lax.iota(np.int32, n)
    one = _identity(n, t.dtype)

    def step(j, f):
        matrix, rhs = column(j, f)
        above = index < j
        inside = above[:, None] & above[None, :]
        x = _lax_linalg.triangular_solve(
            _ufuncs.where(inside, matrix, one), _ufuncs.where(above, rhs, lax.full_like(rhs, 0)), left_side=True
        )
        x = _ufuncs.where(above, finished(j, x), lax.full_like(x, 0))
        return lax.dynamic_update_index_in_dim(f, _ufuncs.where(index == j, diagonal, x), j, 1)

    return lax.fori_loop(0, n, step, lax.full_like(t, 0))


def _diagonal(x: Array) -> Array:
    return _reductions.sum(_identity(x.shape[-1], x.dtype) * x, 0)


def _root(a: Array) -> Array:
    t, z = _lax_linalg.schur(a)
    # by way of the real form, real eigenvalues of real matrices stay real, and have the principal root
    t, z = (t, z) if dtype_kind(a.dtype) == "c" else triangularized(to_complex(t), to_complex(z))
    roots = lax.sqrt(_diagonal(t))
    info = np.finfo(t.dtype)
    small = lax.full_like(roots, np.sqrt(info.tiny))
    noise = _reductions.max(lax.abs(t)) * (10 * t.shape[-1] * float(info.eps))

    def column(j, f):
        sums = roots + roots[j]
        return f + _identity(f.shape[-1], f.dtype) * (_ufuncs.where(sums == 0, small, sums) - roots)[None, :], t[:, j]

    def finished(j, x):
        # between two roots that are zero only a zero can stand; other matrices have no root
        value = _ufuncs.where(lax.abs(x) * lax.real(small) <= noise, lax.full_like(x, 0), lax.full_like(x, np.nan))
        return _ufuncs.where(roots + roots[j] == 0, value, x)

    return dot(dot(z, _by_columns(t, roots, column, finished)), adjoint(z))


_root_of_batches = jit(over_matrices(_root, "(n,n)->(n,n)"))


@custom_jvp
def _sqrtm(a: Array) -> Array:
    return _root_of_batches(a)


@_sqrtm.defjvp
def _sqrtm_jvp(primals, tangents):
    x = _sqrtm(primals[0])
    return x, solve_sylvester(x, x, to_complex(tangents[0]), tol=0.0)


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of matrices.

    Args:
      A: array of shape (..., n, n).
      blocksize: 1.

    Returns:
      Complex array of the shape of `A`. It has derivatives where no eigenvalue is zero or negative.

    Raises:
      ValueError: the matrices are not square.
      NotImplementedError: another `blocksize`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.sqrtm(jnp.diag(jnp.array([4., -9.])))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 0.+3.j]], dtype=complex64)
    """
    if blocksize > 1:
        raise NotImplementedError("scipy.linalg.sqrtm with blocksize > 1 is not implemented")
    (x,) = inexact("sqrtm", A)
    # matrices of 16-bit floats have no Schur form of their own
    return _sqrtm(square("sqrtm", "A", to_complex(x) if x.dtype.itemsize == 2 else x))


def _parlett(t: Array, values: Array) -> Array:
    """The function of a triangular matrix that has `values` on its eigenvalues, from F T = T F."""
    one = _identity(t.shape[-1], t.dtype)
    w = _diagonal(t)

    def column(j, f):
        gaps = w - w[j]
        gaps = _ufuncs.where(gaps == 0, lax.full_like(gaps, 1), gaps)
        t_j = t[:, j]
        # columns of f from j on are zero still
        return t + one * (gaps - w)[None, :], dot(f, t_j) - values[j] * t_j

    return _by_columns(t, values, column)


def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """A function of a matrix, by Parlett's recurrence from its values on eigenvalues.

    Args:
      A: array of shape (n, n) whose eigenvalues are distinct.
      func: the function, elementwise on complex arrays.
      disp: give the function alone; else an estimate of its error too.

    Returns:
      Complex array of shape (n, n); and with ``disp=False`` an estimate of the error in the 1-norm.

    Raises:
      ValueError: the matrix is not square, or has batch axes (`vmap` maps over them).
      NotImplementedError: a derivative is asked for.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.funm(jnp.diag(jnp.array([1., 2.])), lambda x: x * x)
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 4.+0.j]], dtype=complex64)
    """
    (x,) = inexact("funm", A)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError(f"scipy.linalg.funm: expected A to be one square matrix, got shape {x.shape}.")
    t, z = _lax_linalg.schur(to_complex(x))
    values = lax.convert_element_type(func(_diagonal(t)), t.dtype)
    out = dot(dot(z, _parlett_jitted(t, values)), adjoint(z))
    return out if disp else (out, _error_of_funm(t, out))


_parlett_jitted = jit(_parlett)


def _error_of_funm(t: Array, out: Array) -> Array:
    tol = float(np.finfo(t.dtype).eps)
    n = t.shape[-1]
    w = _diagonal(t)
    rows, columns = (lax.broadcasted_iota(np.int32, (n, n), axis) for axis in (0, 1))
    gaps = lax.abs(w[:, None] - w[None, :])
    start = lax.abs(t[0, 0])
    least = _ufuncs.minimum(
        start, _reductions.min(_ufuncs.where(rows < columns, gaps, broadcast_to_shape(start, (n, n))))
    )
    least = _ufuncs.where(least == 0, lax.full_like(least, tol), least)
    size = _linalg_norms.norm(_ufuncs.where(rows < columns, t, lax.full_like(t, 0)), 1)
    bound = lax.clamp(lax.full_like(size, tol), tol / least * size, lax.full_like(size, 1))
    infinite = _reductions.any(_ufuncs.isinf(out))
    return _ufuncs.where(infinite, lax.full_like(bound, np.inf), bound)


@partial(custom_jvp, nondiff_argnums=(1, 2, 3))
def _unitary_factor(a: Array, method: str, eps: float | None, max_iterations: int | None) -> Array:
    """The factor with orthonormal columns of a matrix with at least as many rows as columns."""
    if method == "qdwh":
        return qdwh(a, eps=eps, max_iterations=max_iterations)[0]
    u, _, vh = _lax_linalg.svd(a, full_matrices=False)
    return dot(u, vh)


@_unitary_factor.defjvp
def _unitary_factor_jvp(method, eps, max_iterations, primals, tangents):
    (a,), (da,) = primals, tangents
    u = _unitary_factor(a, method, eps, max_iterations)
    # da = du h + u dh with a skew uᴴ du: one Sylvester equation with h, which its eigenvalues solve
    v, w = _lax_linalg.eigh(dot(adjoint(u), a))
    w = lax.convert_element_type(w, a.dtype)
    turned = dot(adjoint(u), da)
    skew = dot(dot(adjoint(v), turned - adjoint(turned)), v) / (w[:, None] + w[None, :])
    inside = dot(u, dot(dot(v, skew), adjoint(v)))
    outside = da - dot(u, turned)
    return u, inside + dot(dot(outside, v) / w[None, :], adjoint(v))


def _polar(a: Array, *, side: str, method: str, eps: float | None, max_iterations: int | None) -> tuple[Array, Array]:
    m, n = a.shape
    if not a.size:
        return a, lax.full_like(a, 0, shape=(n, n) if side == "right" else (m, m))
    if m >= n:
        u = _unitary_factor(a, method, eps, max_iterations)
    else:
        u = adjoint(_unitary_factor(adjoint(a), method, eps, max_iterations))
    h = dot(adjoint(u), a) if side == "right" else dot(a, adjoint(u))
    return u, (h + adjoint(h)) / 2


@partial(jit, static_argnames=("side", "method", "eps", "max_iterations"))
def _polar_of_batches(a: Array, side: str, method: str, eps: float | None, max_iterations: int | None) -> Any:
    signature = "(m,n)->(m,n),(n,n)" if side == "right" else "(m,n)->(m,n),(m,m)"
    one = partial(_polar, side=side, method=method, eps=eps, max_iterations=max_iterations)
    return over_matrices(one, signature)(a)


def polar(a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
          max_iterations: int | None = None) -> tuple[Array, Array]:  # fmt: skip
    """Polar decomposition: a = U P with Hermitian positive semidefinite P, or a = P U.

    Args:
      a: array of shape (..., m, n).
      side: "right" for U P, "left" for P U.
      method: "qdwh", products and systems in a loop; or "svd", by singular values.
      eps: static; for "qdwh", the precision that counts as converged; None for that of the dtype.
      max_iterations: static; for "qdwh", the largest number of steps, None for 10.

    Returns:
      U, of the shape of `a`, with orthonormal columns (or rows, where there are fewer); P of shape (..., n, n), or
      (..., m, m) on the left. They have derivatives where `a` has full rank.

    Raises:
      ValueError: fewer than two axes, no such side, or no such method.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> u, p = ferrax.scipy.linalg.polar(jnp.array([[0., 2.], [-1., 0.]]), method="svd")
    >>> u
    Array([[ 0.,  1.],
           [-1.,  0.]], dtype=float32)
    """
    (x,) = inexact("polar", a)
    if x.ndim < 2:
        raise ValueError("The input `a` must be at least a 2-D array.")
    if side not in ("right", "left"):
        raise ValueError("The argument `side` must be either 'right' or 'left'.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}.")
    return _polar_of_batches(x, side, method, eps, max_iterations)
