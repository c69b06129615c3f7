"""Diagonals and triangles, and the indices of both.

Read `_shape.py` first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray
from ferrax._one_program import one_program
from ferrax._shapes import is_symbolic_dim
from ferrax.numpy import _reductions
from ferrax.numpy._args import (  # fmt: skip
    Array,
    ArrayLike,
    DTypeLike,
    cast,
    cast_to,
    no_out,
    normalize_axis,
    require,
    shape_of,
    static_int,
    static_shape,
    static_sizes,
    to_array,
    user_dtype,
)
from ferrax.numpy._dtype_functions import default_int

__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "fill_diagonal", "mask_indices", "trace",
    "tri",
    "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip


def _below(rows: int, columns: int, k: Any) -> Array:
    """Bool matrix: True on and below diagonal `k`."""
    i = lax.broadcasted_iota(default_int(), (rows, columns), 0)
    j = lax.broadcasted_iota(default_int(), (rows, columns), 1)
    return i + k >= j


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = None) -> Array:
    """A matrix with ones on and below a diagonal and zeros above it.

    Args:
      N: number of rows.
      M: number of columns, by default `N`.
      k: which diagonal.
      dtype: dtype; by default the default float.

    Returns:
      Array of shape (N, M).

    >>> import ferrax.numpy as jnp
    >>> jnp.tri(2, 3, 1, dtype=int)
    Array([[1, 1, 0],
           [1, 1, 1]], dtype=int32)
    """
    rows, columns = static_sizes((N, N if M is None else M))
    return cast(_below(rows, columns, k), user_dtype(dtype, np.float32))


def _triangle(name: str, m: ArrayLike, k: int, lower: bool) -> Array:
    x = to_array(name, m)
    if x.ndim < 2:
        raise ValueError(f"Argument to jnp.{name} must be at least 2D")
    mask = _below(x.shape[-2], x.shape[-1], k if lower else k - 1)
    mask = lax.broadcast_in_dim(mask, x.shape, (x.ndim - 2, x.ndim - 1))
    zero = lax.full_like(x, 0)
    return lax.select(mask, x, zero) if lower else lax.select(mask, zero, x)


@one_program("k")
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangles of matrices: zeros above a diagonal.

    Args:
      m: array of shape (..., rows, columns).
      k: the last diagonal to keep.

    Returns:
      Array of the shape of `m`.

    >>> import ferrax.numpy as jnp
    >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return _triangle("tril", m, k, True)


@one_program("k")
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangles of matrices: zeros below a diagonal.

    Args:
      m: array of shape (..., rows, columns).
      k: the first diagonal to keep.

    Returns:
      Array of the shape of `m`.

    >>> import ferrax.numpy as jnp
    >>> jnp.triu(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    return _triangle("triu", m, k, False)


@one_program("offset", "axis1", "axis2")
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals of an array in the plane of two axes.

    Args:
      a: array with at least two axes.
      offset: which diagonal: 0 the main one, positive above it, negative below.
      axis1: axis of the rows.
      axis2: axis of the columns.

    Returns:
      Array without the two axes and with the diagonal as its last one.

    Raises:
      ValueError: for fewer than two axes, or one axis given twice.

    >>> import ferrax.numpy as jnp
    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    x = to_array("diagonal", a)
    if x.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    offset = static_int(offset, "'offset' argument of jnp.diagonal()")
    i, j = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    if i == j:
        raise ValueError(f"axis1 and axis2 can not be same. axis1={axis1} and axis2={axis2}")
    kept = [d for d in range(x.ndim) if d not in (i, j)]
    x = lax.transpose(x, [*kept, i, j])
    rows, columns = x.shape[-2:]
    row, column = max(0, -offset), max(0, offset)
    n = max(0, min(rows - row, columns - column))
    if n == 0:
        return lax.full_like(x, 0, shape=x.shape[:-2] + (0,))
    if offset == 0 and rows == columns:
        x = lax.convert_element_type(x, x.dtype)  # a main diagonal's type is not weak, as JAX has it
    flat = lax.reshape(x, x.shape[:-2] + (rows * columns,))
    start = row * columns + column
    return lax.slice_in_dim(flat, start, start + (n - 1) * (columns + 1) + 1, columns + 1, axis=flat.ndim - 1)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal.

    Args:
      v: vector or matrix.
      k: which diagonal.

    Returns:
      Vector or square matrix.

    Raises:
      ValueError: for other ranks.

    >>> import ferrax.numpy as jnp
    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = to_array("diag", v)
    k = static_int(k, "'k' argument of jnp.diag()")
    if x.ndim == 1:
        zero = lax.full_like(x, 0, shape=())
        n = x.shape[0] + abs(k)
        padded = lax.pad(x, zero, [(max(0, k), max(0, -k), 0)])
        rows = lax.broadcasted_iota(default_int(), (n, n), 0)
        columns = lax.broadcasted_iota(default_int(), (n, n), 1)
        wide = lax.broadcast_in_dim(padded, (n, n), (1,))
        return lax.select(rows + k == columns, wide, lax.full_like(wide, 0))
    if x.ndim == 2:
        return diagonal(x, k)
    raise ValueError("diag input must be 1d or 2d")


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the flattened array on its diagonal.

    Args:
      v: array.
      k: which diagonal.

    Returns:
      Square matrix.

    >>> import ferrax.numpy as jnp
    >>> jnp.diagflat(jnp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = to_array("diagflat", v)
    x = lax.convert_element_type(x, x.dtype)  # as that of a matrix's main diagonal
    return diag(lax.reshape(x, (x.size,)), static_int(k, "'k' argument of jnp.diagflat()"))


@one_program("offset", "axis1", "axis2")
def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike = None,
          out: None = None) -> Array:  # fmt: skip
    """The sums along diagonals in the plane of two axes.

    Args:
      a: array with at least two axes.
      offset: which diagonal.
      axis1: axis of the rows.
      axis2: axis of the columns.
      dtype: dtype of the result; by default as for `sum`.
      out: not supported.

    Returns:
      Array without the two axes.

    >>> import ferrax.numpy as jnp
    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    no_out("jnp.trace", out)
    x = to_array("trace", a)
    if any(is_symbolic_dim(n) for n in x.shape) and x.ndim >= 2:
        return _trace_of_any_size(x, static_int(offset, "'offset' argument of jnp.trace()"), (axis1, axis2), dtype)
    return _reductions.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def _trace_of_any_size(x: Array, offset: int, axes: tuple[int, int], dtype: DTypeLike) -> Array:
    """As `trace`, where it is not known how long the diagonal is."""
    rows, columns = (normalize_axis(axis, x.ndim) for axis in axes)
    row, column = (lax.broadcasted_iota(default_int(), x.shape, axis) for axis in (rows, columns))
    kept = lax.select(row + offset == column, x, lax.full_like(x, 0))
    return _reductions.sum(kept, axis=(rows, columns), dtype=dtype)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """An array with its main diagonal replaced.

    Args:
      a: array of at least two axes, all of one length if more than two.
      val: scalar, or values that are repeated along the diagonal.
      wrap: not supported.
      inplace: must be False: arrays are immutable and the result is a new one.

    Returns:
      Array.

    Raises:
      NotImplementedError: unless `inplace=False`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 3, inplace=False)
    Array([[3., 0.],
           [0., 3.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    x, values = to_array("fill_diagonal", a), to_array("fill_diagonal", val)
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(x.shape)
    if n == 0:
        return x
    values = cast_to(values, x.dtype)
    if values.ndim:
        from ferrax.numpy._rearrange import resize

        values = resize(values, (n,))
    index = lax.iota(default_int(), n)
    return x.at[(index,) * x.ndim].set(values)


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix of a vector: its powers as columns.

    Args:
      x: vector.
      N: number of columns, by default the length of `x`.
      increasing: powers from 0 up; otherwise from N - 1 down.

    Returns:
      Matrix of shape (len(x), N).

    >>> import ferrax.numpy as jnp
    >>> jnp.vander(jnp.array([1, 2, 3]))
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = to_array("vander", x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    n = x.shape[0] if N is None else static_int(N, "'N' argument of jnp.vander()")
    if n < 0:
        raise ValueError("N must be nonnegative")
    if n == 0:
        return lax.full((x.shape[0], 0), 0, x.dtype)
    one = lax.full((x.shape[0], 1), 1, x.dtype)
    wide = lax.broadcast_in_dim(x, (x.shape[0], n - 1), (0,))
    powers = lax.concatenate([one, lax.cumprod(wide, 1)], 1)
    return powers if increasing else lax.rev(powers, (1,))


def _host_indices(arrays: tuple[np.ndarray, ...]) -> tuple[Array, ...]:
    return tuple(asarray(x.astype(default_int())) for x in arrays)


def _triangle_indices(name: str, indices: Callable[..., Any], n: int, k: int, m: int | None) -> tuple[Array, Array]:
    """The indices of a triangle of an n by m matrix."""
    n, k = static_int(n, f"n argument of jnp.{name}()"), static_int(k, f"k argument of jnp.{name}()")
    rows, columns = static_shape((n, n if m is None else m))
    return _host_indices(indices(rows, k, columns))  # type: ignore[return-value]


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of a lower triangle.

    Args:
      n: number of rows.
      k: the last diagonal to include.
      m: number of columns, by default `n`.

    Returns:
      Pair (rows, columns).

    >>> import ferrax.numpy as jnp
    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _triangle_indices("tril_indices", np.tril_indices, n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of an upper triangle.

    Args:
      n: number of rows.
      k: the first diagonal to include.
      m: number of columns, by default `n`.

    Returns:
      Pair (rows, columns).

    >>> import ferrax.numpy as jnp
    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _triangle_indices("triu_indices", np.triu_indices, n, k, m)


def _matrix_shape(name: str, arr: ArrayLike) -> tuple[int, int]:
    require(name, arr)
    shape = shape_of(arr)
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return shape


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix.

    Args:
      arr: matrix.
      k: the last diagonal to include.

    Returns:
      Pair (rows, columns).

    >>> import ferrax.numpy as jnp
    >>> jnp.tril_indices_from(jnp.zeros((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix.

    Args:
      arr: matrix.
      k: the first diagonal to include.

    Returns:
      Pair (rows, columns).

    >>> import ferrax.numpy as jnp
    >>> jnp.triu_indices_from(jnp.zeros((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with equal axes.

    Args:
      n: length of the axes.
      ndim: number of axes.

    Returns:
      Tuple of `ndim` index arrays.

    >>> import ferrax.numpy as jnp
    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n = static_int(n, "'n' argument of jnp.diag_indices()")
    ndim = static_int(ndim, "'ndim' argument of jnp.diag_indices()")
    if n < 0:
        raise ValueError(f"n argument to diag_indices must be nonnegative, got {n}")
    if ndim < 0:
        raise ValueError(f"ndim argument to diag_indices must be nonnegative, got {ndim}")
    return (lax.iota(default_int(), n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of a given array.

    Args:
      arr: array of at least two axes, all of one length.

    Returns:
      Tuple of index arrays, one for each axis.

    >>> import ferrax.numpy as jnp
    >>> jnp.diag_indices_from(jnp.zeros((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    require("diag_indices_from", arr)
    shape = shape_of(arr)
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(shape[0], len(shape))


def mask_indices(n: int, mask_func: Callable[..., Array], k: Any = 0, *, size: int | None = None) -> tuple[Array, ...]:
    """The indices where a masking function leaves elements of a square matrix.

    Args:
      n: number of rows and columns.
      mask_func: function of a matrix and `k`, such as `jnp.triu`.
      k: passed on to `mask_func`.
      size: static number of indices, for use under `jit`.

    Returns:
      Pair (rows, columns).

    >>> import ferrax.numpy as jnp
    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    from ferrax.numpy._search import nonzero

    return nonzero(mask_func(lax.full((n, n), 1, default_int()), k), size=size)
