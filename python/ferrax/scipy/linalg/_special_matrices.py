"""Matrices of a given form: made from their parts, from vectors, or from their size.

What follows from a static size is exact to rounding: counts are computed as Python integers or by host floats.
Read next: `_args.py`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray, with_weak_type
from ferrax._shapes import static_shape
from ferrax.numpy import _join, _ufuncs
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    common_shape,
    promote,
    to_array,
    to_arrays,
    user_dtype,
)
from ferrax.numpy._dtype_functions import default_float, default_int, dtype_kind
from ferrax.numpy._ranks import check_batch_ranks
from ferrax.scipy.linalg._args import conj, inexact

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion", "hadamard",
    "hankel", "helmert", "hilbert", "invhilbert", "invpascal", "leslie", "pascal", "toeplitz",
]  # fmt: skip

_NAME = "ferrax.scipy.linalg."


def block_diag(*arrs: ArrayLike) -> Array:
    """A matrix with given blocks on its diagonal.

    Args:
      *arrs: matrices; vectors count as rows, scalars as matrices of one element.

    Returns:
      Matrix of the common dtype; of shape (1, 0) where there are no blocks.

    Raises:
      ValueError: for more than two axes.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.block_diag(jnp.array([1, 2]), 3)
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    blocks = (
        promote(_NAME + "block_diag", *(asarray(x) for x in arrs)) if arrs else [lax.full((1, 0), 0.0, default_float())]
    )
    for i, x in enumerate(blocks):
        if x.ndim > 2:
            raise ValueError(f"Arguments to jax.scipy.linalg.block_diag must have at most 2 dimensions, got shape "
                             f"{x.shape} at argument {i}.")  # fmt: skip
    blocks = [lax.expand_dims(x, tuple(range(2 - x.ndim))) for x in blocks]
    width, before, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        after = width - before - x.shape[1]
        rows.append(lax.pad(x, lax.full_like(x, 0, shape=()), [(0, 0, 0), (before, after, 0)]))
        before += x.shape[1]
    matrix = _join.concatenate(rows)
    return lax.convert_element_type(matrix, matrix.dtype)  # its type is not weak, whatever it is made of


def _at_least_1d(x: Array) -> Array:
    return lax.expand_dims(x, (0,)) if x.ndim == 0 else x


def _with_common_batch(x: Array, y: Array) -> tuple[Array, Array]:
    batch = common_shape(x.shape[:-1], y.shape[:-1])
    return tuple(broadcast_to_shape(z, batch + z.shape[-1:]) for z in (x, y))  # type: ignore[return-value]


def _grid(m: int, n: int) -> tuple[Array, Array]:
    """Numbers of rows, of shape (m, 1), and of columns, of shape (1, n)."""
    return lax.broadcasted_iota(np.int32, (m, 1), 0), lax.broadcasted_iota(np.int32, (1, n), 1)


def _taken(x: Array, index: Array) -> Array:
    """Elements of the last axis of `x`, by numbers that are in range."""
    return x.at[..., index].get(mode="promise_in_bounds")


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices with constant diagonals.

    Args:
      c: array of shape (..., m): first columns.
      r: array of shape (..., n): first rows, whose first element does not count; None for the conjugate of `c`.

    Returns:
      Array of shape (..., m, n).

    Raises:
      TypeError: for a list.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.toeplitz(jnp.array([1, 2]), jnp.array([1, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], dtype=int32)
    """
    column = to_array(_NAME + "toeplitz", c)
    column, row = promote(_NAME + "toeplitz", column, conj(column) if r is None else to_array(_NAME + "toeplitz", r))
    column = lax.convert_element_type(column, column.dtype)  # the matrix's type is not weak, whatever it is made of
    column, row = _at_least_1d(column), _at_least_1d(row)
    check_batch_ranks((column, row), ("m", "n"), "(m),(n)->(m,n)")
    column, row = _with_common_batch(column, row)
    m, n = column.shape[-1], row.shape[-1]
    if m == 0 or n == 0:
        return lax.full_like(column, 0, shape=(*column.shape[:-1], m, n))
    values = _join.concatenate([lax.rev(column, (column.ndim - 1,)), row[..., 1:]], axis=-1)
    i, j = _grid(m, n)
    return _taken(values, j - i + (m - 1))


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices with constant antidiagonals.

    Args:
      c: array of shape (..., m): first columns.
      r: array of shape (..., n): last rows, whose first element does not count; None for zeros.

    Returns:
      Array of shape (..., m, n).

    Raises:
      ValueError: for a scalar.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.hankel(jnp.array([1, 2]), jnp.array([2, 5, 6]))
    Array([[1, 2, 5],
           [2, 5, 6]], dtype=int32)
    """
    column = to_array(_NAME + "hankel", c)
    row = lax.full_like(column, 0) if r is None else to_array(_NAME + "hankel", r)
    for name, x in (("c", column), ("r", row)):
        if x.ndim == 0:
            raise ValueError(f"hankel: {name} must be at least 1-dimensional, got a scalar.")
    column, row = _with_common_batch(*promote(_NAME + "hankel", column, row))
    m, n = column.shape[-1], row.shape[-1]
    if m == 0 or n == 0:
        return lax.full_like(column, 0, shape=(*column.shape[:-1], m, n))
    i, j = _grid(m, n)
    return with_weak_type(_taken(_join.concatenate([column, row[..., 1:]], axis=-1), i + j), False)


def circulant(c: ArrayLike) -> Array:
    """Matrices each column of which is the one before it, turned down by one.

    Args:
      c: array of shape (..., n): first columns.

    Returns:
      Array of shape (..., n, n).

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    x = _at_least_1d(to_array(_NAME + "circulant", c))
    n = x.shape[-1]
    i, j = _grid(n, n)
    return _taken(x, _ufuncs.where(i >= j, i - j, i - j + n))


def _first_row_and_diagonal(row: Array, below: Array) -> Array:
    """Matrices of a first row of n elements, and of n - 1 elements below the diagonal."""
    n = row.shape[-1]
    row, below = _with_common_batch(row, below)
    i, j = _grid(n, n)
    padding = [(0, 0, 0)] * (below.ndim - 1) + [(0, 1, 0)]
    below = lax.pad(below, lax.full_like(below, 0, shape=()), padding)
    lower = _ufuncs.where(i == j + 1, lax.expand_dims(below, (below.ndim - 1,)), lax.full_like(row, 0, shape=()))
    return _ufuncs.where(i == 0, lax.expand_dims(row, (row.ndim - 1,)), lower)


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie matrices, which take a population by ages one step on.

    Args:
      f: array of shape (..., n), n ≥ 2: how fertile each age is, the first row.
      s: array of shape (..., n - 1): how many survive, below the diagonal.

    Returns:
      Array of shape (..., n, n).

    Raises:
      ValueError: the lengths do not fit.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.leslie(jnp.array([1, 2]), jnp.array([3]))
    Array([[1, 2],
           [3, 0]], dtype=int32)
    """
    x, y = (_at_least_1d(z) for z in to_arrays(_NAME + "leslie", f, s))
    if x.shape[-1] < 2:
        raise ValueError(f"The length of f along the last axis must be at least 2; got shape {x.shape}.")
    if y.shape[-1] != x.shape[-1] - 1:
        raise ValueError(
            "The length of s along the last axis must be one less than that of f; "
            f"got f of shape {x.shape} and s of shape {y.shape}."
        )
    return _first_row_and_diagonal(*promote(_NAME + "leslie", x, y))


def companion(a: ArrayLike) -> Array:
    """Companion matrices of polynomials: their eigenvalues are the roots.

    Args:
      a: array of shape (..., n), n ≥ 2: coefficients, the highest power first.

    Returns:
      Floating array of shape (..., n - 1, n - 1).

    Raises:
      ValueError: there are fewer than two coefficients.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    to_array(_NAME + "companion", a)
    (x,) = inexact("companion", a)
    x = _at_least_1d(x)
    if x.shape[-1] < 2:
        raise ValueError(f"The length of `a` along the last axis must be at least 2; got shape {x.shape}.")
    row = with_weak_type(-x[..., 1:] / x[..., :1], False)
    return _first_row_and_diagonal(row, lax.full_like(row, 1)[..., 1:])


def fiedler(a: ArrayLike) -> Array:
    """Symmetric matrices of absolute differences of numbers.

    Args:
      a: array of shape (..., n).

    Returns:
      Array of shape (..., n, n).

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    x = _at_least_1d(to_array(_NAME + "fiedler", a))
    return _ufuncs.abs(lax.expand_dims(x, (x.ndim,)) - lax.expand_dims(x, (x.ndim - 1,)))


def fiedler_companion(a: ArrayLike) -> Array:
    """Companion matrices of polynomials with five diagonals.

    Args:
      a: array of shape (..., n): coefficients, the highest power first.

    Returns:
      Floating array of shape (..., n - 1, n - 1).

    Raises:
      ValueError: there are no coefficients.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.fiedler_companion(jnp.array([1., -6., 11., -6.]))
    Array([[  6., -11.,   1.],
           [  1.,   0.,   0.],
           [  0.,   6.,   0.]], dtype=float32)
    """
    to_array(_NAME + "fiedler_companion", a)
    (x,) = inexact("fiedler_companion", a)
    x = _at_least_1d(x)
    if x.shape[-1] == 0:
        raise ValueError(f"fiedler_companion needs at least one coefficient, got shape {x.shape}.")
    n = x.shape[-1] - 1
    i, j = (broadcast_to_shape(k, (n, n)) for k in _grid(n, n))
    even = i % 2 == 0
    coefficient = (even & (j == i + 1) & (i + 2 <= n)) | (even & (j == i - 1)) | ((i == 0) & (j == 0))
    index = _ufuncs.where(j == i + 1, i + 2, i + 1)
    one = (even & (j == i + 2)) | (~even & (j == i - 2)) | ((i == 1) & (j == 0))
    values = _taken(-x / x[..., :1], _ufuncs.where(coefficient, index, lax.full_like(index, 0)))
    return _ufuncs.where(coefficient, values, lax.convert_element_type(one, x.dtype))


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Matrices whose product with a vector is a convolution.

    Args:
      a: array of shape (..., m): what vectors are convolved with.
      n: static length of the vectors.
      mode: "full", "same" or "valid", as for `numpy.convolve`.

    Returns:
      Array of shape (..., k, n), with k = m + n - 1, max(m, n), or max(m, n) - min(m, n) + 1.

    Raises:
      ValueError: for no elements, or another mode.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    n = operator.index(n)
    if n <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    x = to_array(_NAME + "convolution_matrix", a)
    if x.ndim == 0 or x.shape[-1] < 1:
        raise ValueError(f"convolution_matrix: a must have at least one element and axis; got shape {x.shape}.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    m = x.shape[-1]
    cut = {"full": 0, "same": min(n, m) - 1, "valid": 2 * (min(n, m) - 1)}[mode]
    first = cut // 2
    rows = m + n - 1 - cut
    padded = lax.pad(x, lax.full_like(x, 0, shape=()), [(0, 0, 0)] * (x.ndim - 1) + [(n - 1, n - 1, 0)])
    i, j = _grid(rows, n)
    return with_weak_type(_taken(padded, i - j + (n - 1 + first)), False)


def hilbert(n: int) -> Array:
    """The Hilbert matrix, of elements 1 / (i + j + 1).

    Args:
      n: its size.

    Returns:
      Array of the default float dtype and shape (n, n).

    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    i, j = _grid(n, n)
    sums = lax.convert_element_type(i + j + 1, default_float())
    return lax.full_like(sums, 1) / sums


def _host_matrix(values: np.ndarray, dtype: Any = None) -> Array:
    """A host matrix of doubles in the default float dtype; what is too large is infinite."""
    with np.errstate(over="ignore"):
        return asarray(values.astype(default_float() if dtype is None else dtype))


def _float(x: int) -> float:
    """A Python integer as a float; infinite where it is too large."""
    try:
        return float(x)
    except OverflowError:
        return float("inf") if x > 0 else -float("inf")


def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix, whose elements are integers.

    Args:
      n: its size.

    Returns:
      Array of the default float dtype and shape (n, n), each element rounded; infinite where too large.

    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    # element i, j is r[i] r[j] / (i + j + 1), with r[i] = (-1)^i (n + i)! / (i!² (n - i - 1)!)
    r, factors = n, []
    for i in range(n):
        factors.append(_float(r))
        r = -r * (n + i + 1) * (n - i - 1) // (i + 1) ** 2
    column = np.array(factors, np.float64)
    index = np.arange(n)
    with np.errstate(over="ignore"):
        return _host_matrix(column[:, None] * (column[None, :] / (index[:, None] + index[None, :] + 1)))


def _binomials(n: int) -> np.ndarray:
    """Pascal's triangle: n rows, doubles."""
    out = np.zeros(static_shape((n, n)))
    out[:, :1] = 1
    for i in range(1, n):
        out[i, 1:] = out[i - 1, 1:] + out[i - 1, :-1]
    return out


def _check_kind(kind: str | None) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(f"Expected kind to be one of: ['symmetric', 'lower', 'upper']; got {kind}")
    return kind or "symmetric"


def pascal(n: int, kind: str | None = None) -> Array:
    """The matrix of binomial coefficients.

    Args:
      n: its size.
      kind: "lower" for Pascal's triangle L, "upper" for Lᵀ, "symmetric" or None for L Lᵀ.

    Returns:
      float32 array of shape (n, n), each element rounded; infinite where too large.

    Raises:
      ValueError: for another kind.

    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    kind = _check_kind(kind)
    if kind != "symmetric":
        lower = _binomials(n)
        return _host_matrix(lower if kind == "lower" else lower.T, np.float32)
    out = np.ones(static_shape((n, n)))
    for i in range(1, n):
        out[i] = np.cumsum(out[i - 1])
    return _host_matrix(out, np.float32)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of the matrix of binomial coefficients, whose elements are integers.

    Args:
      n: its size.
      kind: as for `pascal`.

    Returns:
      Array of the default float dtype and shape (n, n).

    Raises:
      ValueError: for another kind.

    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.invpascal(3, kind="lower")
    Array([[ 1., -0.,  0.],
           [-1.,  1., -0.],
           [ 1., -2.,  1.]], dtype=float32)
    """
    kind = _check_kind(kind)
    index = np.arange(n)
    lower = np.where(index[:, None] >= index[None, :], _binomials(n), 0.0)
    lower *= np.where((index[:, None] + index[None, :]) % 2, -1.0, 1.0)
    return _host_matrix({"lower": lower, "upper": lower.T}.get(kind, lower.T @ lower))


def helmert(n: int, full: bool = False) -> Array:
    """The Helmert matrix, whose rows are orthonormal.

    Args:
      n: number of columns.
      full: with the first row, which is constant.

    Returns:
      Array of the default float dtype and shape (n - 1, n), or (n, n).

    Raises:
      ValueError: `n` is not positive.

    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    if n < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")
    i, j = (broadcast_to_shape(k, (n, n)) for k in _grid(n, n))
    k = lax.convert_element_type(i, default_float())
    size = lax.sqrt(_ufuncs.where(i == 0, lax.full_like(k, n), k * (k + 1)))
    head = _ufuncs.where((j < i) | (i == 0), lax.full_like(k, 1), lax.full_like(k, 0))
    h = _ufuncs.where((j == i) & (i > 0), -k, head) / size
    return h if full else h[1:]


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """The Hadamard matrix of Sylvester's construction: elements 1 and -1, orthogonal rows.

    Args:
      n: its size, a power of two.
      dtype: dtype of the result.

    Returns:
      Array of shape (n, n).

    Raises:
      ValueError: `n` is no power of two.

    >>> import ferrax.scipy.linalg
    >>> ferrax.scipy.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    i, j = _grid(n, n)
    odd = lax.population_count(lax.bitwise_and(*(broadcast_to_shape(k, (n, n)) for k in (i, j)))) % 2
    return lax.convert_element_type(1 - 2 * odd, default_int() if dtype is int else user_dtype(dtype))


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike = None) -> Array:
    """The matrix of the discrete Fourier transform.

    Args:
      n: its size.
      scale: None, "sqrtn" to divide by the square root of `n`, "n" to divide by `n`.
      dtype: a complex dtype; None for the default one.

    Returns:
      Complex array of shape (n, n).

    Raises:
      ValueError: for another scale, or a real dtype.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> jnp.round(ferrax.scipy.linalg.dft(2), 3).real
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    found = user_dtype(dtype, np.complex128)
    if dtype_kind(found) != "c":
        raise ValueError(f"dtype must be a complex floating-point type; got {found}.")
    # the n roots of one are exact to rounding; which one an element is, is counted in integers
    roots = np.exp(-2j * np.pi * np.arange(n) / max(n, 1))
    roots = roots / {None: 1.0, "sqrtn": np.sqrt(max(n, 1)), "n": max(n, 1)}[scale]
    i, j = _grid(n, n)
    wide = np.uint32
    index = lax.rem(*(broadcast_to_shape(x, (n, n)) for x in (lax.convert_element_type(i, wide) *
                      lax.convert_element_type(j, wide), lax.full((1, 1), max(n, 1), wide))))  # fmt: skip
    return _taken(asarray(roots.astype(found)), index)
