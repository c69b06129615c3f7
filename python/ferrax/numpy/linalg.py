"""Linear algebra: `ferrax.numpy.linalg`.

Products are here; norms, factorizations, systems and what singular values tell are in the files `_linalg_*.py`.
Read `_products.py` first, then `lax/linalg.py`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

from ferrax._boundary import expose as _expose
from ferrax._core import asarray
from ferrax.errors import TracerIntegerConversionError
from ferrax.numpy import _diagonal, _products, _shape
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    DTypeLike,
    require,
    to_array,
)  # fmt: skip
from ferrax.numpy._linalg_factors import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from ferrax.numpy._linalg_norms import matrix_norm, norm, vector_norm
from ferrax.numpy._linalg_rank import cond, lstsq, matrix_rank, pinv
from ferrax.numpy._linalg_solve import det, inv, slogdet, solve, tensorinv, tensorsolve

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet",
    "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

matrix_transpose = _shape.matrix_transpose


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
      Array of the shape of `a`, and of its dtype unless integers are inverted.

    Raises:
      TypeError: for matrices that are not square, or an exponent that is no integer.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1., 1.], [0., 1.]]), 3)
    Array([[1., 3.],
           [0., 1.]], dtype=float32)
    """
    require("jnp.linalg.matrix_power", a)
    x = asarray(a)
    if x.ndim < 2:
        raise TypeError(f"{x.ndim}-dimensional array given. Array must be at least two-dimensional")
    if x.shape[-1] != x.shape[-2]:
        raise TypeError("Last 2 dimensions of the array must be square")
    try:
        n = operator.index(n)
    except TracerIntegerConversionError:
        raise
    except TypeError as error:
        raise TypeError(f"exponent must be an integer, got {n}") from error
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
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(chain)}")
    if chain[0].ndim not in (1, 2) or chain[-1].ndim not in (1, 2) or any(x.ndim != 2 for x in chain[1:-1]):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first and last array which may be 1 "
            f"or 2 dimensional. Got array shapes {[x.shape for x in chain]}"
        )
    if any(x.shape[-1] != y.shape[0] for x, y in itertools.pairwise(chain)):
        raise ValueError(
            "multi_dot: last dimension of each array must match first dimension of following array. Got array shapes "
            f"{[x.shape for x in chain]}"
        )
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


_expose(globals())
