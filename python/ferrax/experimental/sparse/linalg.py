"""Linear algebra of sparse matrices: solutions of systems, and the largest eigenvalues.

Sources: Knyazev, "Toward the optimal preconditioned eigensolver" (2001) for LOBPCG; Duersch, Shao, Yang, Gu, "A robust
and efficient implementation of LOBPCG" (2018) for the basis of search directions. Read next: `ferrax/scipy/linalg/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import lax, numpy as jnp
from ferrax._boundary import expose as _expose
from ferrax._composites import Composite
from ferrax._core import Array, asarray
from ferrax.experimental.sparse._base import is_sparse, is_traced
from ferrax.experimental.sparse._csr import CSR, csr_todense

__all__ = ["lobpcg_standard", "spsolve", "spsolve_p"]

#: The most rows that `spsolve` takes: the matrix is dense while it is factored (2 GiB in float64).
MAX_ROWS = 16384


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1) -> Array:
    """The solution of a system with a sparse matrix of compressed rows.

    The matrix is made dense and factored with partial pivoting: n^2 memory and n^3 work for n rows. The solution has
    derivatives with respect to `data` and `b`, and maps under `vmap`. A singular matrix gives infinities or NaN.

    Args:
      data: the elements (nse,).
      indices: their columns (nse,).
      indptr: where each row's elements start (n + 1,).
      b: the right hand side, (n,) or (n, k).
      tol: accepted for compatibility: pivots are not compared with a tolerance.
      reorder: accepted for compatibility: 0 to 3.

    Returns:
      An array of `b`'s shape.

    Raises:
      ValueError: the shapes do not go together.
      NotImplementedError: the matrix has more than 16,384 rows.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> mat = sparse.CSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> print(sparse.linalg.spsolve(mat.data, mat.indices, mat.indptr, jnp.array([2.0, 5.0])))
    [1. 1.]
    """
    data, indices, indptr, b = (asarray(x) for x in (data, indices, indptr, b))
    n = b.shape[0] if b.ndim else 0
    if b.ndim not in (1, 2) or indptr.shape != (n + 1,):
        raise ValueError(f"spsolve: b of shape {b.shape} does not go with indptr of shape {indptr.shape}")
    if data.shape != indices.shape or data.ndim != 1:
        raise ValueError(f"spsolve: data and indices must be of one length, got {data.shape} and {indices.shape}")
    if reorder not in (0, 1, 2, 3):
        raise ValueError(f"spsolve: reorder={reorder} must be one of 0, 1, 2, 3")
    if n > MAX_ROWS:
        raise NotImplementedError(
            f"spsolve factors a dense matrix, of at most {MAX_ROWS} rows; got {n}. See scipy.sparse.linalg.cg and its "
            "kin in ferrax.scipy.sparse.linalg for iterative methods."
        )
    dtype = jnp.promote_types(data.dtype, b.dtype)
    if not jnp.issubdtype(dtype, np.inexact):
        dtype = jnp.promote_types(dtype, np.float32)
    data, b = (lax.convert_element_type(x, dtype) for x in (data, b))
    operands = (data, indices, indptr, b)
    return (spsolve_p.bind if is_traced(*operands) else _solved)(*operands, tol=tol, reorder=reorder)


def _solved(data: Any, indices: Any, indptr: Any, b: Any, *, tol: float, reorder: int) -> Any:
    n = b.shape[0]
    return jnp.linalg.solve(csr_todense(CSR((data, indices, indptr), shape=(n, n))), b)


spsolve_p = Composite("spsolve", _solved, linear=(3,))


def lobpcg_standard(
    A: Array | Callable[[Array], Array], X: Array, m: int = 100, tol: Array | float | None = None
) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a Hermitian matrix, and their eigenvectors, by LOBPCG.

    Each step takes the best vectors of a space of three blocks: the vectors so far, their residuals, and the last
    step's directions. There is no preconditioner.

    Args:
      A: a Hermitian matrix (n, n), dense or sparse, or a function that multiplies by it.
      X: where the search starts (n, k), linearly independent columns, with ``0 < 5 * k < n``.
      m: the most steps.
      tol: an eigenpair (t, v) has converged when ``norm(A v - t v)`` is below ``10 * n * tol * (t + norm(A v))``; the
        dtype's epsilon where none is given. The search ends when all have.

    Returns:
      The eigenvalues (k,), largest first, the eigenvectors (n, k), and the number of steps.

    Raises:
      ValueError: shapes or dtypes do not go together, or `k` is too large.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> start = jnp.sin(jnp.arange(24.0)).reshape(12, 2)
    >>> values, vectors, steps = sparse.linalg.lobpcg_standard(jnp.diag(jnp.arange(12.0)), start)
    >>> print(jnp.round(values, 3))
    [11. 10.]
    """
    theta, X, step, _ = _searched(A, X, m, tol, False)
    return theta, X, step


def _searched(A: Any, X: Any, m: int, tol: Any, told: bool) -> tuple[Any, Any, Any, dict[str, Any]]:
    """What `lobpcg_standard` gives; where it is told, after all `m` steps, with measures of each by JAX's names."""
    X = asarray(X)
    n, k = X.shape
    if k == 0:
        raise ValueError(f"must have search dim > 0, got {k}")
    if k * 5 >= n:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {k * 5}, {n})")
    if not jnp.issubdtype(X.dtype, np.inexact):
        raise ValueError(f"X must be of a floating dtype, got {X.dtype}")
    apply = _operator(A, X)
    eps = jnp.finfo(X.dtype).eps if tol is None else tol
    real = jnp.finfo(X.dtype).dtype
    limit = lax.mul(lax.convert_element_type(asarray(eps), real), np.array(10 * n, real))

    X = _orthonormal(X, None)
    X, theta, AX = _best(X, apply(X), k)

    def errors(theta: Any, AX: Any, R: Any) -> Any:
        return _norms(R), lax.add(lax.abs(theta), _norms(AX))

    def unfinished(state: Any) -> Any:
        step, _, theta, AX, R, _ = state
        sizes, lengths = errors(theta, AX, R)
        left = jnp.any(lax.gt(sizes, lax.mul(lengths, jnp.broadcast_to(limit, (k,)))))
        return lax.bitwise_and(lax.lt(step, np.int32(m)), left)

    def improve(state: Any) -> Any:
        step, X, _, AX, R, P = state
        directions = _orthonormal(_times(R, P), X)
        AS = lax.concatenate([AX, apply(directions)], 1)
        S = lax.concatenate([X, directions], 1)
        C = _ritz(S, AS, k)[0]
        # the part of the new vectors that is new
        P = _dot(directions, lax.slice_in_dim(C, k, C.shape[0], axis=0))
        X, theta, AX = _best(_orthonormal(_dot(S, C), None), None, k, apply)
        return lax.add(step, np.int32(1)), X, theta, AX, _residuals(X, theta, AX), P

    start = (np.int32(0), X, theta, AX, _residuals(X, theta, AX), jnp.zeros_like(X))
    if not told:
        step, X, theta, *_ = lax.while_loop(unfinished, improve, start)
        return theta, X, step, {}

    def measured(state: Any, _: Any) -> Any:
        new = improve(state)
        _, X, theta, AX, R, P = new
        sizes, lengths = errors(theta, AX, R)
        return new, {**_measures(state, X, P), "lambda history": theta, **_of_residuals(sizes, 10 * n * lengths, eps)}

    (step, X, theta, *_), measures = lax.scan(measured, start, None, length=m)
    return theta, X, step, measures


def _measures(before: Any, X: Any, P: Any) -> dict[str, Any]:
    """How far the blocks of a step are from bases."""
    k = X.shape[1]
    zeros = lambda x: jnp.sum(jnp.all(x == 0, axis=0))
    apart = lambda x: jnp.sum(jnp.abs(x - jnp.diag(jnp.diag(x)))) / k**2
    _, X0, _, _, R0, P0 = before
    basis = lax.concatenate([X0, P0, R0], 1)
    return {
        "basis rank": basis.shape[1] - zeros(basis),
        "X zeros": zeros(X),
        "P zeros": zeros(P),
        "X orth": apart(_gram(X, X)),
        "P orth": apart(_gram(P, P)),
        "P.X": jnp.sum(jnp.abs(_gram(X, P))) / k**2,
    }


def _of_residuals(sizes: Any, lengths: Any, tol: Any) -> dict[str, Any]:
    """Sizes of a step's residuals, also as parts of lengths."""
    # of vectors of no length nothing is left
    parts = sizes / jnp.where(lengths > 0, lengths, jnp.ones_like(lengths))
    return {
        "residual history": sizes,
        "converged": jnp.sum(parts <= tol),
        "adjusted residual max": jnp.max(parts),
        "adjusted residual p50": jnp.median(parts),
        "adjusted residual min": jnp.min(parts),
    }


def _lobpcg_standard_callable(A: Any, X: Any, m: int, tol: Any, debug: bool = False) -> Any:
    """`lobpcg_standard`; for debugging with measures of each step, after all steps."""
    *found, measures = _searched(A, X, m, tol, debug)
    return (*found, measures) if debug else tuple(found)


_lobpcg_standard_matrix = _lobpcg_standard_callable


def _times(R: Any, P: Any) -> Any:
    return lax.concatenate([R, P], 1)


def _operator(A: Any, X: Any) -> Callable[[Any], Any]:
    """The function that multiplies by the matrix, checked."""
    n = X.shape[0]
    if is_sparse(A):
        matrix = A
        apply: Callable[[Any], Any] = lambda x: matrix @ x
    elif callable(A):
        apply = A
    else:
        A = asarray(A)
        if A.shape != (n, n):
            raise ValueError(f"A must be ({n}, {n}) matrix A, got shape {A.shape}")
        dense = lax.convert_element_type(A, jnp.promote_types(A.dtype, X.dtype))
        apply = lambda x: lax.dot(dense, lax.convert_element_type(x, dense.dtype), precision="highest")
    from ferrax._api import eval_shape

    out = eval_shape(apply, X)
    if out.shape != X.shape:
        raise ValueError(f"A must be ({n}, {n}) matrix A, got output {out.shape} for an operand {X.shape}")
    if out.dtype != X.dtype:
        raise ValueError(f"A, X must have same dtypes (got A @ X of {out.dtype}, X of {X.dtype})")
    return apply


def _dot(x: Any, y: Any) -> Any:
    return lax.dot(x, y, precision="highest")


def _gram(x: Any, y: Any) -> Any:
    """x^H y"""
    return _dot(lax.transpose(jnp.conj(x), (1, 0)), y)


def _norms(x: Any) -> Any:
    """The lengths of columns."""
    return jnp.linalg.norm(x, axis=0)


def _columns_scaled(x: Any, scale: Any) -> Any:
    return lax.mul(x, lax.broadcast_in_dim(lax.convert_element_type(scale, x.dtype), x.shape, (1,)))


def _residuals(X: Any, theta: Any, AX: Any) -> Any:
    return lax.sub(AX, _columns_scaled(X, theta))


def _orthonormal(Y: Any, X: Any) -> Any:
    """An orthonormal basis of the columns of Y, orthogonal to those of X; columns that depend on others become zero."""
    real = jnp.finfo(Y.dtype).dtype
    eps = np.array(jnp.finfo(Y.dtype).eps, real)
    for _ in range(2):
        if X is not None:
            Y = lax.sub(Y, _dot(X, _gram(X, Y)))
        lengths = _norms(Y)
        zero = lax.full_like(lengths, 0)
        Y = _columns_scaled(
            Y,
            jnp.where(
                lax.gt(lengths, zero),
                lax.div(
                    lax.full_like(lengths, 1), jnp.where(lax.gt(lengths, zero), lengths, lax.full_like(lengths, 1))
                ),
                zero,
            ),
        )
        values, vectors = jnp.linalg.eigh(_gram(Y, Y))
        keep = lax.gt(
            values, jnp.broadcast_to(lax.mul(jnp.max(values), eps * np.array(10 * Y.shape[1], real)), values.shape)
        )
        scale = jnp.where(keep, lax.rsqrt(jnp.where(keep, values, lax.full_like(values, 1))), lax.full_like(values, 0))
        Y = _columns_scaled(_dot(Y, vectors), scale)
    return Y


def _ritz(S: Any, AS: Any, k: int) -> tuple[Any, Any]:
    """The coefficients (columns of S, k) of the best vectors of a space, and their values, largest first."""
    H = _gram(S, AS)
    H = lax.div(lax.add(H, lax.transpose(jnp.conj(H), (1, 0))), lax.full_like(H, 2))
    # a column of zeros is no vector: it gets a value below all others
    empty = lax.lt(_norms(S), np.array(0.5, jnp.finfo(S.dtype).dtype))
    bound = lax.neg(lax.add(jnp.sum(lax.abs(H)), np.array(1, jnp.finfo(S.dtype).dtype)))
    low = jnp.where(empty, jnp.broadcast_to(bound, empty.shape), lax.full_like(_norms(S), 0))
    H = lax.add(H, jnp.diag(lax.convert_element_type(low, H.dtype)))
    values, vectors = jnp.linalg.eigh(H)
    count = values.shape[0]
    values = lax.rev(lax.slice_in_dim(values, count - k, count), (0,))
    return lax.rev(lax.slice_in_dim(vectors, count - k, count, axis=1), (1,)), values


def _best(X: Any, AX: Any, k: int, apply: Any = None) -> tuple[Any, Any, Any]:
    """Vectors turned so that they are the best of their space, their values, and the matrix times them."""
    AX = apply(X) if AX is None else AX
    C, values = _ritz(X, AX, k)
    return _dot(X, C), values, _dot(AX, C)


_expose(globals())
