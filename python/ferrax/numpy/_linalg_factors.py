"""Factorizations of matrices: cholesky, qr, svd, eigh, eig. Read next: `lax/linalg.py`, and `_linalg_solve.py`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._one_program import one_program
from ferrax.lax import linalg as _lax_linalg
from ferrax.numpy import _sort, _take
from ferrax.numpy._args import Array, ArrayLike, promote_inexact
from ferrax.numpy._shape import matrix_transpose
from ferrax.numpy._ufuncs import where

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors of general matrices."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """The factors of a QR factorization."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """The factors of a singular value decomposition."""

    U: Any
    S: Any
    Vh: Any


def adjoint(x: Array) -> Array:
    """The matrices transposed and conjugated."""
    return matrix_transpose(x).conj()


def check_square(name: str, x: Array) -> None:
    """Raises unless the last two axes are equal."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got {x.shape}.")


@one_program("upper", "symmetrize_input", equation=True)
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky factors of Hermitian positive definite matrices: a = L Lᴴ = Uᴴ U.

    Args:
      a: array of shape (..., m, m).
      upper: return the upper factor.
      symmetrize_input: use the mean of `a` and its conjugate transpose; else only the lower triangle is read.

    Returns:
      Floating array of the shape of `a`; NaN where `a` is not positive definite.

    Raises:
      TypeError: the matrices are not square.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.cholesky", a)
    lower = _lax_linalg.cholesky(x, symmetrize_input=symmetrize_input)
    return adjoint(lower) if upper else lower


@one_program("mode", equation=True)
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """QR factorization of matrices: a = Q R.

    Args:
      a: array of shape (..., m, n).
      mode: "reduced" (or "full", its old name) for Q of shape (..., m, k) and R of shape (..., k, n) with
        k = min(m, n); "complete" for Q of shape (..., m, m) and R of shape (..., m, n); "r" for R alone; "raw" for
        the reflections that Q is the product of, of shape (..., n, m), and their factors tau, of shape (..., k).

    Returns:
      `Q` and `R`, or R, or the reflections and their factors.

    Raises:
      TypeError: fewer than two axes.
      ValueError: there is no such mode.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.qr(jnp.array([[0., 1.], [2., 3.]])).R
    Array([[-2., -3.],
           [ 0., -1.]], dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.qr", a)
    if mode == "raw":
        return _raw_qr(x)
    if mode not in ("reduced", "r", "complete", "full"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r = _lax_linalg.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@jit
def _raw_qr(x: Array) -> QRResult:
    """Householder reflections I - tau v vᴴ, packed as LAPACK's geqrf does and transposed, and the taus.

    Golub and Van Loan, Matrix Computations, section 5.2.
    """
    m, n = x.shape[-2:]
    k = min(m, n)
    rows, columns = lax.iota(np.int32, m), lax.iota(np.int32, n)

    def step(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        packed, taus = carry
        column = lax.dynamic_index_in_dim(packed, i, axis=-1, keepdims=False)
        alpha = lax.dynamic_index_in_dim(column, i, axis=-1, keepdims=False)
        beta, tau, v = _reflection(alpha, where(rows > i, column, 0))
        v = where(rows == i, 1, v)
        moved = packed - tau.conj()[..., None, None] * v[..., :, None] * (v.conj()[..., None, :] @ packed)
        done = where(rows > i, v, where(rows == i, beta[..., None], column))
        packed = where(columns > i, moved, where(columns == i, done[..., :, None], packed))
        return packed, where(lax.iota(np.int32, k) == i, tau[..., None], taus)

    start = x, lax.full((*x.shape[:-2], k), 0, x.dtype)
    packed, taus = lax.fori_loop(0, k, step, start) if k > 0 else start
    return QRResult(matrix_transpose(packed), taus)


def _reflection(alpha: Array, below: Array) -> tuple[Array, Array, Array]:
    """The reflection that takes (alpha, below) to (beta, 0), beta real: beta, tau, and v after its first element 1."""
    largest = lax.max(lax.abs(alpha), lax.abs(below).max(-1))
    scale = where(largest == 0, 1, largest)
    factor = lax.convert_element_type(scale, alpha.dtype)
    squares = (lax.abs(below / factor[..., None]) ** 2).sum(-1) + lax.abs(alpha / factor) ** 2
    size = scale * lax.sqrt(squares)
    beta = where(alpha.real < 0, size, -size)
    same = (lax.abs(below).max(-1) == 0) & (alpha.imag == 0)
    beta = where(same, alpha.real, beta).astype(alpha.dtype)
    nonzero = where(same, 1, beta)
    tau = where(same, 0, (beta - alpha) / nonzero)
    return beta, tau, below / where(same, 1, alpha - beta)[..., None]


def _svd_of_hermitian(x: Array) -> SVDResult:
    """From eigenvalues, by size; their signs go to V."""
    v, w = _lax_linalg.eigh(x)
    order = _sort.argsort(lax.abs(w), axis=-1, descending=True)
    w = _take.take_along_axis(w, order, axis=-1)
    v = _take.take_along_axis(v, order[..., None, :], axis=-1)
    sign = lax.convert_element_type(where(w < 0, -1, 1), v.dtype)
    return SVDResult(v, lax.abs(w), adjoint(v * sign[..., None, :]))


@one_program("full_matrices", "compute_uv", "hermitian", "subset_by_index", equation=True)
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
        subset_by_index: tuple[int, int] | None = None) -> Any:  # fmt: skip
    """Singular value decomposition of matrices: a = U diag(S) Vh.

    Args:
      a: array of shape (..., m, n).
      full_matrices: U of shape (..., m, m) and Vh of shape (..., n, n); else (..., m, k) and (..., k, n) with
        k = min(m, n).
      compute_uv: give U and Vh too.
      hermitian: the matrices are Hermitian.
      subset_by_index: None.

    Returns:
      `U`, `S`, `Vh`; or S alone: real singular values of shape (..., k), in descending order.

    Raises:
      TypeError: fewer than two axes.
      NotImplementedError: for a subset.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.svd(jnp.array([[0., 2.], [3., 0.]]), compute_uv=False)
    Array([3., 2.], dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.svd", a)
    if hermitian and subset_by_index is None:
        result = _svd_of_hermitian(x)
        return result if compute_uv else result.S
    out = _lax_linalg.svd(x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
    return SVDResult(*out) if compute_uv else out


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices, in descending order.

    Args:
      x: array of shape (..., m, n).

    Returns:
      Real array of shape (..., min(m, n)).

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.svdvals(jnp.array([[0., 2.], [3., 0.]]))
    Array([3., 2.], dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.svdvals", x)
    return _lax_linalg.svd(x, compute_uv=False)


def _is_lower(uplo: str | None) -> bool:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {uplo}")
    return uplo != "U"


@one_program("UPLO", "symmetrize_input", equation=True)
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Args:
      a: array of shape (..., n, n).
      UPLO: "L" (which None stands for) or "U": the triangle that is read when the input is not symmetrized.
      symmetrize_input: use the mean of `a` and its conjugate transpose.

    Returns:
      `eigenvalues`, real, in ascending order, of shape (..., n); `eigenvectors` in columns, of the shape of `a`.

    Raises:
      ValueError: for another `UPLO`.
      TypeError: the matrices are not square.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.eigh(jnp.array([[3., 0.], [0., 2.]])).eigenvalues
    Array([2., 3.], dtype=float32)
    """
    lower = _is_lower(UPLO)
    (x,) = promote_inexact("jnp.linalg.eigh", a)
    v, w = _lax_linalg.eigh(x, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@one_program("UPLO", "symmetrize_input", equation=True)
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, in ascending order.

    Args:
      a: array of shape (..., n, n).
      UPLO: as for `eigh`.
      symmetrize_input: as for `eigh`.

    Returns:
      Real array of shape (..., n).

    Raises: as in `eigh`.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.eigvalsh(jnp.array([[3., 0.], [0., 2.]]))
    Array([2., 3.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and right eigenvectors of general matrices.

    Args:
      a: array of shape (..., n, n).

    Returns:
      `eigenvalues`, complex, in no particular order, of shape (..., n); `eigenvectors` in columns, of the shape of `a`.

    Raises:
      TypeError: fewer than two axes.
      ValueError: the matrices are not square.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.eig(jnp.array([[3., 1.], [0., 3.]])).eigenvalues
    Array([3.+0.j, 3.+0.j], dtype=complex64)
    """
    (x,) = promote_inexact("jnp.linalg.eig", a)
    w, v = _lax_linalg.eig(x, compute_left_eigenvectors=False)
    return EigResult(w, v)


@one_program(equation=True)
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of general matrices, in no particular order.

    Args: as in `eig`.

    Returns:
      Complex array of shape (..., n).

    Raises: as in `eig`.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.eigvals(jnp.array([[3., 1.], [0., 3.]]))
    Array([3.+0.j, 3.+0.j], dtype=complex64)
    """
    (x,) = promote_inexact("jnp.linalg.eigvals", a)
    return _lax_linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
