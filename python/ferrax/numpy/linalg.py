"""Linear algebra: `ferrax.numpy.linalg`.

Norms and products are compositions of reductions and `lax.dot_general`. What needs a decomposition raises
NotImplementedError with the name of the primitive that is missing. Read `_products.py` first.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._boundary import expose as _expose
from ferrax._core import asarray
from ferrax.numpy import _diagonal, _products, _reductions, _shape
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    DTypeLike,
    cast,
    normalize_axes,
    normalize_axis,
    promote_inexact,
    require,
    to_array,
)  # fmt: skip
from ferrax.numpy._dtype_functions import dtype_kind

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet",
    "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

matrix_transpose = _shape.matrix_transpose


def _squares(x: Array) -> Array:
    if dtype_kind(x.dtype) == "c":
        return lax.real(x) ** 2 + lax.imag(x) ** 2
    return x * x


def _vector_norm(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord is None or (isinstance(ord, (int, float)) and ord == 2):
        return lax.sqrt(_reductions.sum(_squares(x), axes, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    size = lax.abs(x)
    if isinstance(ord, (int, float)) and ord == np.inf:
        return _reductions.max(size, axes, keepdims=keepdims)
    if isinstance(ord, (int, float)) and ord == -np.inf:
        return _reductions.min(size, axes, keepdims=keepdims)
    if isinstance(ord, (int, float)) and ord == 0:
        return cast(_reductions.sum(x != 0, axes, keepdims=keepdims), size.dtype)
    if isinstance(ord, (int, float)) and ord == 1:
        return _reductions.sum(size, axes, keepdims=keepdims)
    order = cast(ord, size.dtype)
    total = _reductions.sum(size**order, axes, keepdims=keepdims)
    return total ** (1 / order)


def _matrix_norm(x: Array, ord: Any, axes: tuple[int, int], keepdims: bool) -> Array:
    row, column = axes
    if ord is None or ord in ("f", "fro"):
        return lax.sqrt(_reductions.sum(_squares(x), axes, keepdims=keepdims))
    if ord in (1, -1, np.inf, -np.inf):
        summed, kept = (row, column) if abs(ord) == 1 else (column, row)
        sums = _reductions.sum(lax.abs(x), summed, keepdims=True)
        result = (_reductions.max if ord > 0 else _reductions.min)(sums, kept, keepdims=True)
        return result if keepdims else lax.squeeze(result, axes)
    if ord in (2, -2, "nuc"):
        raise NotImplementedError(
            f"jnp.linalg.norm with ord={ord!r} needs the primitive svd, which ferrax does not have yet."
        )
    raise ValueError(f"Invalid order '{ord}' for matrix norm.")


def norm(x: ArrayLike, ord: Any = None, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The norm of vectors or matrices.

    Args:
      x: array.
      ord: order. For vectors any number, inf, -inf or 0; for matrices "fro", 1, -1, inf, -inf ("nuc", 2 and -2 need the
        primitive `svd`). None for the 2-norm of all elements.
      axis: one axis for vector norms, two for matrix norms; None for all, which must be one or two unless `ord` is
        None.
      keepdims: keep reduced axes with length 1.

    Returns:
      Floating array.

    Raises:
      ValueError: for an order or a number of axes that no norm has.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3., 4.]))
    Array(5., dtype=float32)
    """
    (x,) = promote_inexact("norm", x)
    if axis is None:
        if ord is None:
            result = lax.sqrt(_reductions.sum(_squares(x)))
            return lax.reshape(result, (1,) * x.ndim) if keepdims else result
        axes = tuple(range(x.ndim))
    elif isinstance(axis, (tuple, list)):
        axes = tuple(normalize_axis(i, x.ndim) for i in axis)
    else:
        axes = (normalize_axis(axis, x.ndim),)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)  # type: ignore[arg-type]
    raise ValueError(
        f"Improper number of axes for norm: axis={axis}. Pass one axis to compute a vector-norm, "
        "or two axes to compute a matrix-norm."
    )


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of matrices over the last two axes.

    Args:
      x: array of shape (..., m, n).
      keepdims: keep reduced axes with length 1.
      ord: order, as for `norm`.

    Returns:
      Floating array.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.matrix_norm(jnp.array([[3., 4.]]))
    Array(5., dtype=float32)
    """
    require("jnp.linalg.matrix_norm", x)
    return norm(x, ord=ord, keepdims=keepdims, axis=(-2, -1))


def vector_norm(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False,
                ord: Any = 2) -> Array:  # fmt: skip
    """The norm of vectors over axes taken together.

    Args:
      x: array.
      axis: the axis or axes; None for all.
      keepdims: keep reduced axes with length 1.
      ord: order, as for `norm`.

    Returns:
      Floating array.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.vector_norm(jnp.array([3., 4.]))
    Array(5., dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.vector_norm", x)
    return _vector_norm(x, ord, normalize_axes(axis, x.ndim), keepdims)


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None, preferred_element_type: DTypeLike = None
) -> Array:
    """The matrix product, as `jnp.matmul`.

    Args:
      x1: array of shape (..., m, k) or (k,).
      x2: array of shape (..., k, n) or (k,).
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype in which to accumulate and return.

    Returns:
      Array of shape (..., m, n).

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.matmul(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    require("jnp.linalg.matmul", x1, x2)
    return _products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None,
           preferred_element_type: DTypeLike = None) -> Array:  # fmt: skip
    """Dot products of vectors along an axis, as `jnp.vecdot`.

    Args:
      x1: array of shape (..., k), conjugated.
      x2: array of shape (..., k).
      axis: the axis of the vectors.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype in which to accumulate and return.

    Returns:
      Array without the axis.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.vecdot(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    require("jnp.linalg.vecdot", x1, x2)
    return _products.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2, precision: Any = None,
              preferred_element_type: DTypeLike = None, out_sharding: None = None) -> Array:  # fmt: skip
    """The sum of products over given axes, as `jnp.tensordot`.

    Args:
      x1: array.
      x2: array.
      axes: number of axes, or a pair of sequences of axes.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype in which to accumulate and return.
      out_sharding: not supported.

    Returns:
      Array with the other axes of both.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)))
    Array(6., dtype=float32)
    """
    require("jnp.linalg.tensordot", x1, x2)
    return _products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of all pairs of elements of two vectors.

    Args:
      x1: vector.
      x2: vector.

    Returns:
      Matrix.

    Raises:
      ValueError: for arrays that are not vectors.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    x, y = to_array("jnp.linalg.outer", x1), to_array("jnp.linalg.outer", x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={x.ndim} x2.ndim={y.ndim}")
    return _products.outer(x, y)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross products of vectors of three components.

    Args:
      x1: array of vectors.
      x2: array of vectors.
      axis: the axis of the vectors.

    Returns:
      Array of vectors.

    Raises:
      ValueError: for other numbers of components.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x, y = to_array("jnp.linalg.cross", x1), to_array("jnp.linalg.cross", x2)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they have x1.shape[axis]={x.shape[axis]} and x2.shape[axis]={y.shape[axis]}"
        )
    return _products.cross(x, y, axis=axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices over the last two axes.

    Args:
      x: array of shape (..., m, n).
      offset: which diagonal.

    Returns:
      Array with the diagonals along its last axis.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    require("jnp.linalg.diagonal", x)
    return _diagonal.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike = None) -> Array:
    """The sums along diagonals of matrices over the last two axes.

    Args:
      x: array of shape (..., m, n).
      offset: which diagonal.
      dtype: dtype of the result.

    Returns:
      Array without the last two axes.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    require("jnp.linalg.trace", x)
    return _diagonal.trace(x, offset, -2, -1, dtype)


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Square matrices raised to an integer power, by repeated squaring.

    Args:
      a: array of shape (..., m, m).
      n: static exponent; negative ones need `inv`.

    Returns:
      Array of the shape of `a`.

    Raises:
      TypeError: for matrices that are not square.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1., 1.], [0., 1.]]), 3)
    Array([[1., 3.],
           [0., 1.]], dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.matrix_power", a)
    if x.ndim < 2:
        raise TypeError(f"{x.ndim}-dimensional array given. Array must be at least two-dimensional")
    if x.shape[-1] != x.shape[-2]:
        raise TypeError("Last 2 dimensions of the array must be square")
    n = operator.index(n)
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        from ferrax.numpy._ranges import eye

        return _shape.broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    result = None
    while True:
        if n & 1:
            result = x if result is None else _products.matmul(result, x)
        n >>= 1
        if not n:
            assert result is not None
            return result
        x = _products.matmul(x, x)


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of a chain of matrices in the order that costs least.

    Args:
      arrays: at least two matrices; the first and the last may be vectors.
      precision: as for `lax.dot_general`.

    Returns:
      Array.

    Raises:
      ValueError: for fewer than two arrays, or shapes that do not fit.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.multi_dot([jnp.ones((2, 9)), jnp.ones((9, 1)), jnp.ones((1, 2))])
    Array([[9., 9.],
           [9., 9.]], dtype=float32)
    """
    require("jnp.linalg.multi_dot", *arrays)
    chain = [asarray(x) for x in arrays]
    if len(chain) < 2:
        raise ValueError(f"multi_dot needs at least two arrays, got {len(chain)}.")
    if chain[0].ndim not in (1, 2) or chain[-1].ndim not in (1, 2) or any(x.ndim != 2 for x in chain[1:-1]):
        raise ValueError("multi_dot: input arrays must all be two-dimensional, except for the first and last array.")
    for i, (x, y) in enumerate(itertools.pairwise(chain)):
        if x.shape[-1] != y.shape[0]:
            raise ValueError(f"multi_dot: last dimension of array {i} must match first dimension of array {i + 1}, "
                             f"got shapes {x.shape} and {y.shape}.")  # fmt: skip
    sizes = [1 if chain[0].ndim == 1 else chain[0].shape[0], *(x.shape[0] for x in chain[1:]),
             1 if chain[-1].ndim == 1 else chain[-1].shape[1]]  # fmt: skip
    best: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(chain))}
    for length in range(1, len(chain)):
        for i in range(len(chain) - length):
            j = i + length
            best[i, j] = min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Array:
        if i == j:
            return chain[i]
        k = best[i, j][1]
        return _products.matmul(product(i, k), product(k + 1, j), precision=precision)

    return product(0, len(chain) - 1)


def _missing(name: str, primitive: str) -> NotImplementedError:
    return NotImplementedError(f"jnp.linalg.{name} needs the primitive {primitive}, which ferrax does not have yet.")


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The Cholesky factors of positive definite matrices.

    Args:
      a: array of shape (..., m, m).
      upper: return the upper factor.
      symmetrize_input: use the mean of `a` and its conjugate transpose.

    Returns:
      Array of the shape of `a`.

    Raises:
      NotImplementedError: always, until the primitive `cholesky` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.cholesky needs the primitive cholesky, which ferrax does not have yet.
    """
    raise _missing("cholesky", "cholesky")


def cond(x: ArrayLike, p: Any = None) -> Any:
    """The condition numbers of matrices.

    Args:
      x: array of shape (..., m, n).
      p: order of the norm, as for `norm`.

    Returns:
      Floating array.

    Raises:
      NotImplementedError: always, until the primitive `svd` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.cond(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.cond needs the primitive svd, which ferrax does not have yet.
    """
    raise _missing("cond", "svd")


def det(a: ArrayLike) -> Any:
    """The determinants of matrices.

    Args:
      a: array of shape (..., m, m).

    Returns:
      Array without the last two axes.

    Raises:
      NotImplementedError: always, until the primitive `lu` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.det(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.det needs the primitive lu, which ferrax does not have yet.
    """
    raise _missing("det", "lu")


def eig(a: ArrayLike) -> Any:
    """The eigenvalues and right eigenvectors of matrices.

    Args:
      a: array of shape (..., m, m).

    Returns:
      Pair of complex arrays.

    Raises:
      NotImplementedError: always, until the primitive `eig` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.eig(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.eig needs the primitive eig, which ferrax does not have yet.
    """
    raise _missing("eig", "eig")


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> Any:
    """The eigenvalues and eigenvectors of Hermitian matrices.

    Args:
      a: array of shape (..., m, m).
      UPLO: which triangle to use.
      symmetrize_input: use the mean of `a` and its conjugate transpose.

    Returns:
      Pair of arrays.

    Raises:
      NotImplementedError: always, until the primitive `eigh` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.eigh(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.eigh needs the primitive eigh, which ferrax does not have yet.
    """
    raise _missing("eigh", "eigh")


def eigvals(a: ArrayLike) -> Any:
    """The eigenvalues of matrices.

    Args:
      a: array of shape (..., m, m).

    Returns:
      Complex array.

    Raises:
      NotImplementedError: always, until the primitive `eig` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.eigvals(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.eigvals needs the primitive eig, which ferrax does not have yet.
    """
    raise _missing("eigvals", "eig")


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """The eigenvalues of Hermitian matrices.

    Args:
      a: array of shape (..., m, m).
      UPLO: which triangle to use.
      symmetrize_input: use the mean of `a` and its conjugate transpose.

    Returns:
      Floating array.

    Raises:
      NotImplementedError: always, until the primitive `eigh` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.eigvalsh(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.eigvalsh needs the primitive eigh, which ferrax does not have yet.
    """
    raise _missing("eigvalsh", "eigh")


def inv(a: ArrayLike) -> Any:
    """The inverses of matrices.

    Args:
      a: array of shape (..., m, m).

    Returns:
      Array of the shape of `a`.

    Raises:
      NotImplementedError: always, until the primitive `lu` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.inv(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.inv needs the primitive lu, which ferrax does not have yet.
    """
    raise _missing("inv", "lu")


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False) -> Any:
    """The solutions of least squares of linear systems.

    Args:
      a: matrix.
      b: vector or matrix.
      rcond: relative size of singular values to leave out.
      numpy_resid: residuals as NumPy gives them.

    Returns:
      Tuple (solution, residuals, rank, singular values).

    Raises:
      NotImplementedError: always, until the primitive `svd` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.lstsq(jnp.ones((2, 2)), jnp.ones(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.lstsq needs the primitive svd, which ferrax does not have yet.
    """
    raise _missing("lstsq", "svd")


def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: Any = None) -> Any:
    """The ranks of matrices.

    Args:
      M: array of shape (..., m, n).
      rtol: relative size below which singular values count as zero.
      hermitian: whether the matrices are Hermitian.
      tol: another name of `rtol`.

    Returns:
      Array of integers.

    Raises:
      NotImplementedError: always, until the primitive `svd` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.matrix_rank(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.matrix_rank needs the primitive svd, which ferrax does not have yet.
    """
    raise _missing("matrix_rank", "svd")


def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: Any = None) -> Any:
    """The pseudo-inverses of matrices.

    Args:
      a: array of shape (..., m, n).
      rtol: relative size below which singular values count as zero.
      hermitian: whether the matrices are Hermitian.
      rcond: another name of `rtol`.

    Returns:
      Array of shape (..., n, m).

    Raises:
      NotImplementedError: always, until the primitive `svd` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.pinv(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.pinv needs the primitive svd, which ferrax does not have yet.
    """
    raise _missing("pinv", "svd")


def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """The QR decompositions of matrices.

    Args:
      a: array of shape (..., m, n).
      mode: "reduced", "complete", "raw" or "r".

    Returns:
      Pair of arrays, one array for "r".

    Raises:
      NotImplementedError: always, until the primitive `qr` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.qr(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.qr needs the primitive qr, which ferrax does not have yet.
    """
    raise _missing("qr", "qr")


def slogdet(a: ArrayLike, *, method: str | None = None) -> Any:
    """The signs and logarithms of determinants.

    Args:
      a: array of shape (..., m, m).
      method: "lu" or "qr".

    Returns:
      Pair of arrays.

    Raises:
      NotImplementedError: always, until the primitive `lu` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.slogdet(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.slogdet needs the primitive lu, which ferrax does not have yet.
    """
    raise _missing("slogdet", "lu")


def solve(a: ArrayLike, b: ArrayLike) -> Any:
    """The solutions of linear systems.

    Args:
      a: array of shape (..., m, m).
      b: array of shape (m,) or (..., m, n).

    Returns:
      Array of the shape of `b`.

    Raises:
      NotImplementedError: always, until the primitive `lu` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.solve(jnp.ones((2, 2)), jnp.ones(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.solve needs the primitive lu, which ferrax does not have yet.
    """
    raise _missing("solve", "lu")


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
        subset_by_index: Any = None) -> Any:  # fmt: skip
    """The singular value decompositions of matrices.

    Args:
      a: array of shape (..., m, n).
      full_matrices: return square factors.
      compute_uv: return the factors, not only the singular values.
      hermitian: whether the matrices are Hermitian.
      subset_by_index: range of singular values to return.

    Returns:
      Tuple of arrays.

    Raises:
      NotImplementedError: always, until the primitive `svd` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.svd(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.svd needs the primitive svd, which ferrax does not have yet.
    """
    raise _missing("svd", "svd")


def svdvals(x: ArrayLike, /) -> Any:
    """The singular values of matrices.

    Args:
      x: array of shape (..., m, n).

    Returns:
      Floating array.

    Raises:
      NotImplementedError: always, until the primitive `svd` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.svdvals(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.svdvals needs the primitive svd, which ferrax does not have yet.
    """
    raise _missing("svdvals", "svd")


def tensorinv(a: ArrayLike, ind: int = 2) -> Any:
    """The inverse of a tensor with respect to `tensordot`.

    Args:
      a: array.
      ind: number of axes of the first side.

    Returns:
      Array.

    Raises:
      NotImplementedError: always, until the primitive `lu` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.tensorinv(jnp.eye(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.tensorinv needs the primitive lu, which ferrax does not have yet.
    """
    raise _missing("tensorinv", "lu")


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Any = None) -> Any:
    """The solution x of tensordot(a, x) = b.

    Args:
      a: array.
      b: array.
      axes: axes of `a` to move to the end first.

    Returns:
      Array.

    Raises:
      NotImplementedError: always, until the primitive `lu` exists.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.tensorsolve(jnp.ones((2, 2)), jnp.ones(2))
    Traceback (most recent call last):
    NotImplementedError: jnp.linalg.tensorsolve needs the primitive lu, which ferrax does not have yet.
    """
    raise _missing("tensorsolve", "lu")


_expose(globals())
