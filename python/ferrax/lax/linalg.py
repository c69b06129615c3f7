"""Linear algebra: JAX's `lax.linalg`. The last two axes of an operand are its matrices, axes before them are batches.

A factorization that fails gives NaN. Dtypes are float32, float64, complex64 and complex128; nothing is promoted.
Read next: `ferrax/numpy/linalg.py`, which is made of these.
"""

from __future__ import annotations

import enum
from typing import Any

from ferrax._boundary import expose as _expose
from ferrax._core import asarray as _asarray
from ferrax._ferrax import Array, lax as _lax
from ferrax.lax.shape import broadcasted_iota as _broadcasted_iota
from ferrax.typing import ArrayLike

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_update", "eig", "eigh",
    "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qdwh", "qr", "schur", "svd",
    "symmetric_product", "triangular_solve", "tridiagonal", "tridiagonal_solve",
]  # fmt: skip


class EigImplementation(enum.Enum):
    """Names of implementations of `eig`, of which there is LAPACK's.

    Example:
      >>> from ferrax import lax
      >>> lax.linalg.EigImplementation("lapack")
      <EigImplementation.LAPACK: 'lapack'>
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Names of implementations of `eigh`. Every one is accepted and means the one that there is.

    Example:
      >>> from ferrax import lax
      >>> lax.linalg.EighImplementation("qr")
      <EighImplementation.QR: 'qr'>
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """Names of algorithms of `svd`. All but Jacobi's and the polar one are accepted, and mean the one that there is.

    Example:
      >>> from ferrax import lax
      >>> lax.linalg.SvdAlgorithm("QR")
      <SvdAlgorithm.QR: 'QR'>
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _is_complex(x) -> bool:
    return x.dtype.kind == "c"


def _adjoint(x):
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    t = _lax.transpose(x, order)
    return _lax.conj(t) if _is_complex(x) else t


def _hermitian_part(x):
    """(x + xᴴ) / 2."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise TypeError(f"a matrix that is made symmetric must have shape [..., n, n], got shape {x.shape}")
    return (x + _adjoint(x)) / 2


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower Cholesky factor of Hermitian positive-definite matrices: x = L Lᴴ.

    Args:
      x: array of shape (..., n, n).
      symmetrize_input: factor (x + xᴴ) / 2; else only the lower triangle is read.

    Returns:
      Array of the shape and dtype of `x`, with zeros above the diagonal; NaN where `x` is not positive definite.

    Raises:
      TypeError: the matrices are not square, or of no floating dtype.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
      Array([[2., 0.],
             [1., 2.]], dtype=float32)
    """
    x = _asarray(x)
    return _lax.cholesky(_hermitian_part(x) if symmetrize_input else x)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper Cholesky factor of rᵀ r + w wᵀ, from r in O(n²).

    Args:
      r_matrix: array of shape (n, n), upper triangular; real. What stands below its diagonal turns along.
      w_vector: array of shape (n,) and the dtype of `r_matrix`.

    Returns:
      Array of the shape and dtype of `r_matrix`; its diagonal may be negative where w is zero.

    Raises:
      TypeError: dtypes differ or are not real floating ones, or there are batch axes (`vmap` maps over them).
      ValueError: the matrix is not square, or the vector is not of its size.
      NotImplementedError: a derivative is asked for.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.cholesky_update(3 * jnp.eye(2), jnp.array([4.0, 0.0]))
      Array([[5., 0.],
             [0., 3.]], dtype=float32)
    """
    return _lax.cholesky_update(r_matrix, w_vector)


def triangular_solve(a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Array:  # fmt: skip
    """The solution of linear systems with triangular matrices.

    Args:
      a: array of shape (..., n, n), of which one triangle counts.
      b: array of shape (..., n, m) when `left_side`, else (..., m, n); or (..., n), one vector for each matrix.
      left_side: solve op(a) x = b; else x op(a) = b.
      lower: the lower triangle of `a` counts, else the upper one.
      transpose_a: op transposes.
      conjugate_a: op conjugates.
      unit_diagonal: the diagonal of `a` counts as ones.

    Returns:
      Array of the shape and dtype of `b`.

    Raises:
      TypeError: dtypes or numbers of batch axes differ, or no floating dtype.
      ValueError: `a` is not square, or the shapes do not fit.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> a = jnp.array([[2.0, 0.0], [1.0, 4.0]])
      >>> lax.linalg.triangular_solve(a, jnp.array([2.0, 9.0]), left_side=True, lower=True)
      Array([1., 2.], dtype=float32)
    """
    a, b = _asarray(a), _asarray(b)
    conjugate_a = conjugate_a and _is_complex(a)
    vector = b.ndim == a.ndim - 1 and b.ndim > 0
    if vector:
        b = _lax.expand_dims(b, (-1 if left_side else -2,))
    narrow = b.dtype if a.dtype == b.dtype and b.dtype in ("float16", "bfloat16") else None
    if narrow is not None:  # there is no solver of such dtypes: the result is rounded once
        a, b = a.astype("float32"), b.astype("float32")
    x = _lax.triangular_solve(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal)
    x = x if narrow is None else x.astype(narrow)
    return x.squeeze(-1 if left_side else -2) if vector else x


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """LU factors with partial pivoting: x[..., permutation, :] = L U.

    Args:
      x: array of shape (..., m, n).

    Returns:
      A list of: L below the diagonal (where it has ones) and U on and above it, in one array of the shape of `x`; the
      pivots, int32 of shape (..., min(m, n)): row k was exchanged with row pivots[k]; the permutation of rows, int32 of
      shape (..., m).

    Raises:
      TypeError: no floating dtype, or fewer than two axes.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))
      [Array([[2. , 2. ],
             [0.5, 1. ]], dtype=float32), Array([1, 1], dtype=int32), Array([1, 0], dtype=int32)]
    """
    return _lax.lu(x)


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that successive exchanges of rows make.

    Args:
      pivots: int32 array of shape (..., k): row i is exchanged with row pivots[i], one after the other.
      permutation_size: number of rows, at least k.

    Returns:
      int32 array of shape (..., permutation_size).

    Raises:
      TypeError: `pivots` is not int32.
      ValueError: fewer rows than pivots.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 1, 2]), 3)
      Array([2, 1, 0], dtype=int32)
    """
    return _lax.lu_pivots_to_permutation(pivots, permutation_size)


def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, ...]:
    """QR factorization: x = Q R with orthonormal columns of Q and an upper triangular R.

    Args:
      x: array of shape (..., m, n).
      pivoting: take columns in an order in which the diagonal of R falls in size: x[..., order] = Q R.
      full_matrices: Q is m × m and R is m × n; else m × k and k × n with k = min(m, n).
      use_magma: accepted, and means nothing on a CPU.

    Returns:
      Q and R, and with `pivoting` the order of columns, int32 of shape (..., n).

    Raises:
      TypeError: no floating dtype, or fewer than two axes.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> q, r = lax.linalg.qr(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
      >>> r
      Array([[-2., -3.],
             [ 0., -1.]], dtype=float32)
    """
    return tuple(_lax.qr(x, full_matrices, pivoting))


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of a product of Householder reflections.

    Reflection k is I - taus[k] v vᴴ, where v is 0 above k, 1 at k, and below it what stands below the diagonal of `a`.

    Args:
      a: array of shape (..., m, n) with m ≥ n.
      taus: array of shape (..., k) with k ≤ n.

    Returns:
      Array of shape (..., m, n).

    Raises:
      TypeError: dtypes or batch axes differ.
      ValueError: more columns than rows, or more factors than columns.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.householder_product(jnp.array([[0.0], [1.0]]), jnp.array([1.0]))
      Array([[ 0.],
             [-1.]], dtype=float32)
    """
    return _lax.householder_product(a, taus)


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """A product Q of Householder reflections times matrices, without forming it.

    Args:
      a: array of shape (..., m, n) with the reflections below its diagonal, as for `householder_product`.
      taus: array of shape (..., k) with k ≤ min(m, n).
      c: array of matrices, with m rows when `left`, else with m columns.
      left: Q c, else c Q.
      transpose: take Qᴴ in place of Q.

    Returns:
      Array of the shape of `c`.

    Raises:
      TypeError: dtypes or batch axes differ.
      ValueError: the shapes do not fit.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.ormqr(jnp.array([[0.0], [1.0]]), jnp.array([1.0]), jnp.eye(2))
      Array([[ 0., -1.],
             [-1.,  0.]], dtype=float32)
    """
    return _lax.ormqr(a, taus, c, left, transpose)


def _no_subset(name: str, subset_by_index) -> None:
    if subset_by_index is not None:
        raise NotImplementedError(f"lax.linalg.{name} with subset_by_index is not implemented on CPUs")


def eigh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
         subset_by_index: tuple[int, int] | None = None,
         implementation: Any = None) -> tuple[Array, Array]:  # fmt: skip
    """Eigenvectors and eigenvalues of Hermitian matrices: x v[..., i] = w[i] v[..., i].

    Args:
      x: array of shape (..., n, n).
      lower: the lower triangle is read, else the upper one.
      symmetrize_input: take (x + xᴴ) / 2 first.
      sort_eigenvalues: accepted; they always come in ascending order.
      subset_by_index: None.
      implementation: accepted, and means nothing on a CPU.

    Returns:
      Eigenvectors, of the shape and dtype of `x`, in columns of norm one; real eigenvalues of shape (..., n). NaN where
      `x` is not finite.

    Raises:
      TypeError: the matrices are not square, or of no floating dtype.
      NotImplementedError: for a subset.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.eigh(jnp.diag(jnp.array([3.0, 2.0])))[1]
      Array([2., 3.], dtype=float32)
    """
    _no_subset("eigh", subset_by_index)
    x = _asarray(x)
    v, w = _lax.eigh(_hermitian_part(x) if symmetrize_input else x, lower, sort_eigenvalues)
    return v, w


def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None) -> Any:  # fmt: skip
    """Singular value decomposition: x = U diag(s) Vᴴ.

    Args:
      x: array of shape (..., m, n).
      full_matrices: U is m × m and Vᴴ is n × n; else m × k and k × n with k = min(m, n).
      compute_uv: give U and Vᴴ too.
      subset_by_index: None.
      algorithm: which algorithm; all that are accepted mean the one that there is.

    Returns:
      U, s, Vᴴ; or s alone. Singular values are real, of shape (..., k), in descending order. NaN where `x` is not
      finite.

    Raises:
      TypeError: no floating dtype, or fewer than two axes.
      NotImplementedError: for a subset, or Jacobi's or the polar algorithm.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False)
      Array([3., 2.], dtype=float32)
    """
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError("full_matrices and subset_by_index cannot both be set")
    _no_subset("svd", subset_by_index)
    if not isinstance(algorithm, SvdAlgorithm | None) or algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        raise NotImplementedError("The SVD Jacobi and Polar algorithms are not implemented on CPU.")
    s, *vectors = _lax.svd(x, full_matrices, compute_uv)
    return (vectors[0], s, vectors[1]) if compute_uv else s


def eig(x: ArrayLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
        enable_eigvec_derivs: bool = False, implementation: EigImplementation | None = None,
        use_magma: bool | None = None) -> list[Array]:  # fmt: skip
    """Eigenvalues and eigenvectors of general matrices: x v = v diag(w), and uᴴ x = diag(w) uᴴ.

    Args:
      x: array of shape (..., n, n).
      compute_left_eigenvectors: give u.
      compute_right_eigenvectors: give v.
      enable_eigvec_derivs: must be False: only eigenvalues have derivatives here.
      implementation: None or LAPACK's.
      use_magma: accepted, and means nothing on a CPU.

    Returns:
      A list of w, of shape (..., n) in no particular order, then u and v where asked for, all complex. Vectors have
      norm one and a real largest component. NaN where `x` is not finite.

    Raises:
      TypeError: no floating dtype, or fewer than two axes.
      ValueError: the matrices are not square, or another implementation is asked for.
      NotImplementedError: derivatives of eigenvectors are asked for.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> w = lax.linalg.eig(jnp.array([[0.0, -1.0], [1.0, 0.0]]))[0]
      >>> jnp.abs(w)
      Array([1., 1.], dtype=float32)
    """
    if enable_eigvec_derivs:
        raise NotImplementedError("lax.linalg.eig with enable_eigvec_derivs=True is not implemented")
    if implementation not in (None, EigImplementation.LAPACK):
        raise ValueError("Only the lapack implementation is supported on CPU.")
    return _lax.eig(x, compute_left_eigenvectors, compute_right_eigenvectors)


def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Any = None
) -> tuple[Array, Array]:
    """Schur form of general matrices: x = Z T Zᴴ with a unitary Z.

    Args:
      x: array of shape (..., n, n).
      compute_schur_vectors: give Z too.
      sort_eig_vals: must be False.
      select_callable: accepted, and means nothing without sorting.

    Returns:
      A list of T, and Z where asked for, of the shape and dtype of `x`. T is upper triangular with the eigenvalues on
      its diagonal; if `x` is real, pairs of conjugate eigenvalues are blocks of two rows with equal diagonal entries
      and off-diagonal ones of opposite signs. NaN where `x` is not finite.

    Raises:
      TypeError: no floating dtype, or fewer than two axes.
      ValueError: the matrices are not square.
      NotImplementedError: sorting is asked for, or a derivative.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> t, z = lax.linalg.schur(jnp.array([[0.0, 0.0], [2.0, 3.0]]))
      >>> t
      Array([[ 3., -2.],
             [ 0.,  0.]], dtype=float32)
    """
    if sort_eig_vals:
        raise NotImplementedError("lax.linalg.schur with sort_eig_vals=True is not implemented")
    return _lax.schur(x, compute_schur_vectors)


def hessenberg(a: ArrayLike) -> list[Array]:
    """Hessenberg form: a = Q H Qᴴ with zeros in H below the first subdiagonal.

    Args:
      a: array of shape (..., n, n).

    Returns:
      An array of the shape of `a` with H on and above the first subdiagonal and the reflections that make up Q below
      it, and their factors, of shape (..., n - 1).

    Raises:
      TypeError: no floating dtype, or fewer than two axes.
      ValueError: the matrices are not square, or empty.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.hessenberg(jnp.eye(2))[1]
      Array([0.], dtype=float32)
    """
    h, taus = _lax.hessenberg(a)
    return [h, taus]


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Tridiagonal form of Hermitian matrices: a = Q T Qᴴ.

    Args:
      a: array of shape (..., n, n).
      lower: the lower triangle is read and written, else the upper one.

    Returns:
      An array of the shape of `a` with T, and the reflections that make up Q outside it; the diagonal of T, real, of
      shape (..., n); its off-diagonal, real, of shape (..., n - 1); the factors of the reflections, of shape
      (..., n - 1).

    Raises: as in `hessenberg`.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.tridiagonal(jnp.array([[1.0, 2.0], [2.0, 3.0]]))[1]
      Array([1., 3.], dtype=float32)
    """
    packed, d, e, taus = _lax.tridiagonal(a, lower)
    return [packed, d, e, taus]


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """The solution of systems with tridiagonal matrices.

    Args:
      dl: array of shape (..., n): below the diagonal; its first entry does not count.
      d: array of shape (..., n): the diagonal.
      du: array of shape (..., n): above the diagonal; its last entry does not count.
      b: array of shape (..., n, m).
      perturb_singular: whether rows are exchanged for the larger pivot, and pivots that are nearly zero are taken for
        eps times the largest element of the upper factor, so that systems with singular matrices have finite solutions,
        as inverse iteration needs them.

    Returns:
      Array of the shape of `b`.

    Raises:
      TypeError: dtypes or batch axes differ.
      ValueError: the shapes do not fit.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> one = jnp.ones(2)
      >>> lax.linalg.tridiagonal_solve(one, 2 * one, one, jnp.array([[3.0], [3.0]]))
      Array([[1.],
             [1.]], dtype=float32)
    """
    if perturb_singular:
        from ferrax._api import eval_shape
        from ferrax.lax._tridiagonal import solve_perturbed

        eval_shape(_lax.tridiagonal_solve, dl, d, du, b)  # checks the operands
        return solve_perturbed(*map(_asarray, (dl, d, du, b)))
    return _lax.tridiagonal_solve(dl, d, du, b)


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """alpha a aᵀ + beta c, for symmetric c.

    Args:
      a_matrix: array of shape (..., n, m).
      c_matrix: array of shape (..., n, n).
      alpha: factor of the product.
      beta: factor of `c_matrix`.
      symmetrize_output: mirror the lower triangle.

    Returns:
      Array of the shape of `c_matrix`.

    Raises:
      TypeError: dtypes or batch axes differ.
      ValueError: the shapes do not fit.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.linalg.symmetric_product(jnp.array([[1.0], [2.0]]), jnp.zeros((2, 2)))
      Array([[1., 2.],
             [2., 4.]], dtype=float32)
    """
    a, c = _asarray(a_matrix), _asarray(c_matrix)
    if a.ndim < 2 or c.shape[-2:] != (a.shape[-2],) * 2:
        raise ValueError(
            "symmetric_update expects a rectangular matrix of shape (m, n) and a square matrix of shape (n, n). "
            f"Got shapes {a.shape} and {c.shape}."
        )
    order = (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2)
    out = alpha * _lax.batch_matmul(a, _lax.transpose(a, order), None) + beta * c
    if not symmetrize_output:
        return out
    rows, columns = (_broadcasted_iota("int32", out.shape, out.ndim - k) for k in (2, 1))
    order = (*range(out.ndim - 2), out.ndim - 1, out.ndim - 2)
    return _lax.select(rows >= columns, out, _lax.transpose(out, order))


# the file needs the functions above
from ferrax.lax._qdwh import qdwh  # noqa: E402

_PRIMITIVES = frozenset(
    [
        "cholesky_p", "cholesky_update_p", "eig_p", "eigh_p", "hessenberg_p", "householder_product_p", "lu_p",
        "lu_pivots_to_permutation_p", "ormqr_p", "qr_p", "schur_p", "svd_p", "symmetric_product_p",
        "triangular_solve_p", "tridiagonal_p", "tridiagonal_solve_p",
    ]
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _PRIMITIVES:
        from ferrax.extend.core import primitives

        return getattr(primitives, name)
    import sys

    from ferrax._boundary import missing

    raise missing(sys.modules[__name__], name)


_expose(globals())
