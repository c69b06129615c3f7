"""Factorizations: Cholesky, LU, QR, singular values, eigenvalues, Schur and Hessenberg forms.

Read next: `lax/linalg.py`, which most of this names again; `_solve.py` solves systems with the factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import with_weak_type
from ferrax.lax import linalg as _lax_linalg
from ferrax.numpy import _creation, _join, _take, _ufuncs
from ferrax.numpy._args import Array, ArrayLike, broadcast_to_shape, common_shape
from ferrax.scipy.linalg._args import adjoint, conj, dot, inexact, over_matrices, square, to_complex

__all__ = [
    "cho_factor", "cholesky", "eigh", "hessenberg", "lu", "lu_factor", "qr", "qr_multiply", "rsf2csf", "schur", "svd",
]  # fmt: skip


def _triangle(x: Array, offset: int, lower: bool) -> Array:
    """`x` with zeros above (or below) a diagonal."""
    rows = lax.broadcasted_iota(np.int32, x.shape, x.ndim - 2)
    columns = lax.broadcasted_iota(np.int32, x.shape, x.ndim - 1)
    kept = columns - rows <= offset if lower else columns - rows >= offset
    return lax.select(kept, x, lax.full_like(x, 0))


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The Cholesky factors of Hermitian positive definite matrices: a = Uᴴ U, or L Lᴴ.

    Args:
      a: array of shape (..., n, n), of which the triangle that `lower` names is read.
      lower: give L, else U.
      overwrite_a: accepted, and means nothing.
      check_finite: accepted, and means nothing.

    Returns:
      Floating array of the shape of `a`; NaN where `a` is not positive definite.

    Raises:
      ValueError: the matrices are not square.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    del overwrite_a, check_finite
    (x,) = inexact("cholesky", a)
    square("cholesky", "a", x)
    factor = _lax_linalg.cholesky(x if lower else adjoint(x), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Cholesky factors, for `cho_solve`.

    Args:
      a: array of shape (..., n, n), as for `cholesky`.
      lower: give the lower factor, else the upper one.
      overwrite_a, check_finite: as in `cholesky`.

    Returns:
      The factors, with zeros in the other triangle, and `lower`.

    Raises: as in `cholesky`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.cho_factor(jnp.array([[4.]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower, overwrite_a, check_finite), lower


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """LU factors with partial pivoting, for `lu_solve`.

    Args:
      a: array of shape (..., m, n).
      overwrite_a: accepted, and means nothing.
      check_finite: accepted, and means nothing.

    Returns:
      L below the diagonal (where it has ones) and U on and above it, in one array of the shape of `a`; the pivots,
      int32 of shape (..., min(m, n)): row k was exchanged with row pivots[k].

    Raises:
      TypeError: fewer than two axes.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.lu_factor(jnp.array([[1., 2.], [2., 2.]]))[1]
    Array([1, 1], dtype=int32)
    """
    del overwrite_a, check_finite
    (x,) = inexact("lu_factor", a)
    factors, pivots, _ = _lax_linalg.lu(x)
    return factors, pivots


def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """LU factorization with partial pivoting: a = P L U.

    Args:
      a: array of shape (..., m, n).
      permute_l: give P L in place of P and L.
      overwrite_a, check_finite: as in `lu_factor`.

    Returns:
      P of shape (..., m, m), real; L of shape (..., m, k); U of shape (..., k, n), with k = min(m, n).

    Raises: as in `lu_factor`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> p, l, u = ferrax.scipy.linalg.lu(jnp.array([[1., 2.], [2., 2.]]))
    >>> u
    Array([[2., 2.],
           [0., 1.]], dtype=float32)
    """
    del overwrite_a, check_finite
    (x,) = inexact("lu", a)
    factors, _, permutation = _lax_linalg.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    lower = _triangle(factors[..., :k], -1, True)
    rows, columns = (lax.broadcasted_iota(np.int32, lower.shape, lower.ndim - axis) for axis in (2, 1))
    lower = with_weak_type(lax.select(rows == columns, lax.full_like(lower, 1), lower), False)
    upper = _triangle(factors[..., :k, :], 0, False)
    if permute_l:
        back = lax.sort([permutation, lax.broadcasted_iota(np.int32, permutation.shape, permutation.ndim - 1)])[1]
        return _take.take_along_axis(lower, back[..., None], axis=-2), upper
    index = lax.broadcasted_iota(np.int32, (*permutation.shape[:-1], m, m), permutation.ndim - 1)
    p = index == broadcast_to_shape(permutation[..., None, :], index.shape)
    return lax.convert_element_type(p, np.zeros((), x.dtype).real.dtype), lower, upper


def _full_or_not(mode: str) -> bool:
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    return mode != "economic"


def qr(a: ArrayLike, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", pivoting: bool = False,
       check_finite: bool = True) -> tuple[Array, ...]:  # fmt: skip
    """QR factorization: a = Q R with orthonormal columns of Q and an upper triangular R.

    Args:
      a: array of shape (..., m, n).
      overwrite_a: accepted, and means nothing.
      lwork: accepted, and means nothing.
      mode: "full" for Q of shape (..., m, m); "economic" for (..., m, min(m, n)); "r" for R alone.
      pivoting: take columns in an order in which the diagonal of R falls in size: a[..., order] = Q R.
      check_finite: accepted, and means nothing.

    Returns:
      A tuple of Q unless the mode is "r", R, and with `pivoting` the order, int32 of shape (..., n).

    Raises:
      ValueError: there is no such mode.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.qr(jnp.array([[0., 1.], [2., 3.]]), mode="r")
    (Array([[-2., -3.],
           [ 0., -1.]], dtype=float32),)
    """
    del overwrite_a, lwork, check_finite
    full = _full_or_not(mode)
    (x,) = inexact("qr", a)
    factors = _lax_linalg.qr(x, pivoting=pivoting, full_matrices=full)
    return factors[1:] if mode == "r" else factors


def qr_multiply(a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False, conjugate: bool = False,
                overwrite_a: bool = False, overwrite_c: bool = False) -> tuple[Array, ...]:  # fmt: skip
    """A QR factorization, with a product of its Q in place of Q.

    Args:
      a: array of shape (..., m, n); with k = min(m, n), Q is (..., m, k).
      c: array of shape (..., k, p) for "left", (..., p, m) for "right"; or a vector.
      mode: "left" for Q c, "right" for c Q.
      pivoting: as for `qr`.
      conjugate: multiply with the conjugate of Q (not transposed).
      overwrite_a: accepted, and means nothing.
      overwrite_c: accepted, and means nothing.

    Returns:
      The product, R of shape (..., k, n), and with `pivoting` the order of columns.

    Raises:
      ValueError: there is no such mode, or the shapes do not fit.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.qr_multiply(jnp.array([[0., 1.], [2., 3.]]), jnp.array([1., 1.]))[0]
    Array([-1., -1.], dtype=float32)
    """
    del overwrite_a, overwrite_c
    if mode not in ("right", "left"):
        raise ValueError(f"mode must be 'right' or 'left', got {mode!r}")
    x, y = inexact("qr_multiply", a, c)
    left, vector = mode == "left", y.ndim == 1
    if vector:
        y = y[:, None] if left else y[None, :]
    m, n = x.shape[-2:]
    wanted = min(m, n) if left else m
    if y.shape[-2 if left else -1] != wanted:
        raise ValueError(f"scipy.linalg.qr_multiply: for mode {mode!r} and a of shape {x.shape}, c must have {wanted} "
                         f"{'rows' if left else 'columns'}, got shape {np.shape(c)}.")  # fmt: skip
    q, *rest = _lax_linalg.qr(x, pivoting=pivoting, full_matrices=False)
    batch = common_shape(q.shape[:-2], y.shape[:-2])
    q = broadcast_to_shape(conj(q) if conjugate else q, batch + q.shape[-2:])
    y = broadcast_to_shape(y, batch + y.shape[-2:])
    product = dot(q, y) if left else dot(y, q)
    if vector:
        product = lax.squeeze(product, (product.ndim - (1 if left else 2),))
    return (product, *rest)


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
        check_finite: bool = True, lapack_driver: str = "gesdd") -> Any:  # fmt: skip
    """Singular value decomposition: a = U diag(s) Vᴴ.

    Args:
      a: array of shape (..., m, n).
      full_matrices: U is m × m and Vᴴ is n × n; else m × k and k × n with k = min(m, n).
      compute_uv: give U and Vᴴ too.
      overwrite_a, check_finite: as in `lu_factor`.
      lapack_driver: accepted, and means nothing.

    Returns:
      U, s, Vᴴ; or s alone, real and descending.

    Raises: as in `lu_factor`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.svd(jnp.array([[0., 2.], [3., 0.]]), compute_uv=False)
    Array([3., 2.], dtype=float32)
    """
    del overwrite_a, check_finite, lapack_driver
    (x,) = inexact("svd", a)
    return _lax_linalg.svd(x, full_matrices=full_matrices, compute_uv=compute_uv)


def _generalized(x: Array, b: Array, lower: bool, kind: int) -> tuple[Array, Array]:
    """Eigenvalues and vectors of a v = w b v (1), a b v = w v (2) or b a v = w v (3), by the Cholesky factor of b."""
    factor = cholesky(b, lower=True) if lower else adjoint(cholesky(b))
    x = _hermitian(x, lower)
    if kind == 1:
        half = _lax_linalg.triangular_solve(factor, x, left_side=True, lower=True)
        c = _lax_linalg.triangular_solve(factor, half, lower=True, transpose_a=True, conjugate_a=True)
    else:
        c = dot(dot(adjoint(factor), x), factor)
    v, w = _lax_linalg.eigh(c)
    if kind == 3:
        return w, dot(factor, v)
    v = _lax_linalg.triangular_solve(factor, v, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
    return w, v


def _hermitian(x: Array, lower: bool) -> Array:
    """The Hermitian matrices whose one triangle is that of `x`."""
    strict = _triangle(x, -1, True) if lower else _triangle(x, 1, False)
    diagonal = _triangle(_triangle(x, 0, True), 0, False)
    return strict + (diagonal + adjoint(diagonal)) / 2 + adjoint(strict)


def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False,
         overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True,
         eigvals: tuple[int, int] | None = None, type: int = 1, check_finite: bool = True) -> Any:  # fmt: skip
    """Eigenvalues and eigenvectors of Hermitian matrices: a v = w v, or a v = w b v.

    Args:
      a: array of shape (..., n, n). Without `b`, (a + aᴴ) / 2 is taken; with it, the triangle that `lower` names.
      b: None, or Hermitian positive definite matrices of the shape of `a`.
      lower: which triangles are read.
      eigvals_only: give the eigenvalues alone.
      overwrite_a: accepted, and means nothing.
      overwrite_b: accepted, and means nothing.
      turbo: accepted, and means nothing.
      eigvals: None, or the static indices of the first and the last eigenvalue that are given.
      type: with `b`: 1 for a v = w b v, 2 for a b v = w v, 3 for b a v = w v.
      check_finite: accepted, and means nothing.

    Returns:
      Eigenvalues, real and ascending, of shape (..., n), and eigenvectors in columns.

    Raises:
      ValueError: shapes differ, there is no such type, or indices are out of range.
      TypeError: the matrices are not square.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> a, b = jnp.diag(jnp.array([3., 2.])), 4 * jnp.eye(2)
    >>> ferrax.scipy.linalg.eigh(a, b, eigvals_only=True)
    Array([0.5 , 0.75], dtype=float32)
    """
    del overwrite_a, overwrite_b, turbo, check_finite
    if type not in (1, 2, 3):
        raise ValueError(f"scipy.linalg.eigh: type must be 1, 2 or 3, got {type!r}.")
    if b is None:
        (x,) = inexact("eigh", a)
        v, w = _lax_linalg.eigh(x, lower=lower)
    else:
        x, y = inexact("eigh", a, b)
        if square("eigh", "a", x).shape != square("eigh", "b", y).shape:
            raise ValueError(f"scipy.linalg.eigh: a and b must have one shape, got {x.shape} and {y.shape}.")
        w, v = _generalized(x, y, lower, type)
    if eigvals is not None:
        first, last = eigvals
        if not 0 <= first <= last < x.shape[-1]:
            raise ValueError(f"scipy.linalg.eigh: eigvals={eigvals} are no indices of {x.shape[-1]} eigenvalues.")
        w, v = w[..., first : last + 1], v[..., first : last + 1]
    return w if eigvals_only else (w, v)


def schur(a: ArrayLike, output: str = "real") -> list[Array]:
    """Schur form: a = Z T Zᴴ with a unitary Z.

    Args:
      a: array of shape (..., n, n).
      output: "real", where pairs of conjugate eigenvalues of real matrices are blocks of two rows; or "complex", where
        T is triangular.

    Returns:
      T and Z, of the shape of `a`.

    Raises:
      ValueError: the matrices are not square, or there is no such output.
      NotImplementedError: a derivative is asked for.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> t, z = ferrax.scipy.linalg.schur(jnp.array([[0., 0.], [2., 3.]]))
    >>> t
    Array([[ 3., -2.],
           [ 0.,  0.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got {output=}.")
    (x,) = inexact("schur", a)
    square("schur", "a", x)
    t, z = _lax_linalg.schur(to_complex(x) if output == "complex" else x)
    return [t, z]


def _rotation(t: Array, m: Any) -> Array:
    """The unitary 2 × 2 matrix that makes rows m - 1 and m of a Schur form triangular."""
    block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
    (a, b), (c, d) = (block[0, 0], block[0, 1]), (block[1, 0], block[1, 1])
    mu = (a - d) / 2 + lax.sqrt(((a - d) / 2) ** 2 + b * c)
    r = lax.convert_element_type(_ufuncs.hypot(lax.abs(mu), lax.abs(c)), t.dtype)
    cosine, sine = mu / r, c / r
    return _join.stack([_join.stack([lax.conj(cosine), sine]), _join.stack([-sine, cosine])])


def triangularized(t: Array, z: Array) -> tuple[Array, Array]:
    """A real Schur form, of complex dtype, made triangular."""
    n = t.shape[-1]
    index = lax.iota(np.int32, n)
    eps = np.finfo(t.dtype).eps

    def rotated(m, t, z):
        g = _rotation(t, m)
        rows = lax.dynamic_slice_in_dim(t, m - 1, 2, axis=0)
        t = lax.dynamic_update_slice_in_dim(t, dot(g, rows), m - 1, axis=0)
        columns = lax.dynamic_slice_in_dim(t, m - 1, 2, axis=1)
        t = lax.dynamic_update_slice_in_dim(t, dot(columns, adjoint(g)), m - 1, axis=1)
        columns = lax.dynamic_slice_in_dim(z, m - 1, 2, axis=1)
        return t, lax.dynamic_update_slice_in_dim(z, dot(columns, adjoint(g)), m - 1, axis=1)

    def step(i, state):
        t, z = state
        m = n - i
        below = lax.abs(t[m, m - 1])
        large = below > (lax.abs(t[m - 1, m - 1]) + lax.abs(t[m, m])) * eps
        t, z = lax.cond(large, rotated, lambda m, t, z: (t, z), m, t, z)
        done = (index[:, None] == m) & (index[None, :] == m - 1)
        return lax.select(done, lax.full_like(t, 0), t), z

    return lax.fori_loop(1, n, step, (t, z)) if n > 1 else (t, z)


_rsf2csf = jit(over_matrices(triangularized, "(n,n),(n,n)->(n,n),(n,n)"))


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """A real Schur form made a complex one, whose T is triangular.

    Args:
      T: array of shape (..., n, n), with blocks of one or two rows on its diagonal.
      Z: array of the shape of `T`.
      check_finite: accepted, and means nothing.

    Returns:
      T and Z, complex.

    Raises:
      ValueError: the matrices are not square, or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> t, z = ferrax.scipy.linalg.rsf2csf(jnp.array([[0., 1.], [-1., 0.]]), jnp.eye(2))
    >>> jnp.round(jnp.diag(t), 3)
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    del check_finite
    t, z = inexact("rsf2csf", T, Z)
    square("rsf2csf", "T", t)
    square("rsf2csf", "Z", z)
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {z.shape} vs. T: {t.shape}")
    return _rsf2csf(to_complex(t), to_complex(z))


def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Hessenberg form: a = Q H Qᴴ with zeros in H below the first subdiagonal.

    Args:
      a: array of shape (..., n, n).
      calc_q: give Q too.
      overwrite_a: accepted, and means nothing.
      check_finite: accepted, and means nothing.

    Returns:
      H, or H and Q, of the shape of `a`.

    Raises:
      ValueError: the matrices are not square.
      NotImplementedError: a derivative is asked for.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.hessenberg(jnp.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    del overwrite_a, check_finite
    (x,) = inexact("hessenberg", a)
    n = square("hessenberg", "a", x).shape[-1]
    if n == 0:
        return (x, x) if calc_q else x
    packed, taus = _lax_linalg.hessenberg(x)
    h = _triangle(packed, -1, False)
    if not calc_q:
        return h
    q = with_weak_type(_lax_linalg.householder_product(packed[..., 1:, :-1], taus), False)
    q = lax.pad(q, lax.full_like(q, 0, shape=()), [(0, 0, 0)] * (x.ndim - 2) + [(1, 0, 0)] * 2)
    corner = _creation.zeros((n, n), bool).at[0, 0].set(True)
    return h, lax.select(broadcast_to_shape(corner, q.shape), lax.full_like(q, 1), q)
