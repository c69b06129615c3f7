"""Norms of vectors and matrices. Read next: `linalg.py`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray
from ferrax._one_program import one_program
from ferrax.numpy import _reductions, _shape
from ferrax.numpy._args import Array, ArrayLike, cast, normalize_axes, normalize_axis, promote_inexact, require
from ferrax.numpy._dtype_functions import default_float, dtype_kind, is_inexact
from ferrax.numpy._linalg_factors import svdvals

__all__ = ["matrix_norm", "norm", "vector_norm"]


def _squares(x: Array) -> Array:
    if dtype_kind(x.dtype) == "c":
        return lax.real(x) ** 2 + lax.imag(x) ** 2
    return x * x


@functools.cache
def _magnitude() -> Any:
    """The magnitude of a number, whose slope is the one that the root of its square has: none at 0."""
    from ferrax import custom_jvp

    magnitude = custom_jvp(lax.abs)
    magnitude.defjvps(lambda tangent, size, x: tangent * (x / size))
    return magnitude


def _euclidean(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """The root of the sum of squares; of one number its magnitude, as a square may be too small or too large."""
    if dtype_kind(x.dtype) != "c" and all(type(x.shape[a]) is int and x.shape[a] == 1 for a in axes):
        size = _magnitude()(lax.convert_element_type(x, x.dtype))
        return size if keepdims else lax.squeeze(size, axes)
    return lax.sqrt(_reductions.sum(_squares(x), axes, keepdims=keepdims))


#: The largest of sizes, of which none is below 0: of no sizes it is 0.
_largest = functools.partial(_reductions.max, initial=0)


def _vector_norm(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord is None or (isinstance(ord, (int, float)) and ord == 2):
        return _euclidean(x, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    size = lax.abs(x)
    if isinstance(ord, (int, float)) and ord == np.inf:
        return _largest(size, axes, keepdims=keepdims)
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
        return _euclidean(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        summed, kept = (row, column) if abs(ord) == 1 else (column, row)
        sums = _reductions.sum(lax.abs(x), summed, keepdims=True)
        result = (_largest if ord > 0 else _reductions.min)(sums, kept, keepdims=True)
        return result if keepdims else lax.squeeze(result, axes)
    if ord in (2, -2, "nuc"):
        s = svdvals(_shape.moveaxis(x, axes, (-2, -1)))
        reduce = {"nuc": _reductions.sum, 2: _largest, -2: _reductions.min}[ord]
        result = reduce(s, -1)
        return lax.expand_dims(result, sorted(axes)) if keepdims else result
    raise ValueError(f"Invalid order '{ord}' for matrix norm.")


@one_program("ord", "axis", "keepdims")
def norm(x: ArrayLike, ord: Any = None, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The norm of vectors or matrices.

    Args:
      x: array.
      ord: order. For vectors any number, inf, -inf or 0; for matrices "fro", "nuc", 1, -1, 2, -2, inf or -inf. None for
        the 2-norm of all elements.
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
            return _euclidean(x, tuple(range(x.ndim)), keepdims)
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
        f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, "
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
      Floating array; of integers, of the default float dtype.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.vector_norm(jnp.array([3., 4.]))
    Array(5., dtype=float32)
    """
    require("jnp.linalg.vector_norm", x)
    x = asarray(x)
    x = x if is_inexact(x.dtype) else cast(x, default_float())
    return _vector_norm(x, ord, normalize_axes(axis, x.ndim), keepdims)
