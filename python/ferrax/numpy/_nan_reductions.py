"""Reductions that leave NaN out.

Each replaces NaN by the identity of the plain reduction and calls it. Dtypes without NaN go to the plain reduction
directly. Read `_reductions.py` first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray
from ferrax._one_program import one_program
from ferrax.numpy import _cumulative, _reductions
from ferrax.numpy._args import Array, ArrayLike, Axis, DTypeLike, cast, no_out, normalize_axes, require, to_array
from ferrax.numpy._dtype_functions import dtype_kind, is_inexact
from ferrax.numpy._ufuncs import isnan, logical_and, logical_not, where as _where

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]  # fmt: skip


def _replace(x: Array, value: Any) -> Array:
    return _where(isnan(x), asarray(value, x.dtype), x)


def _without_nan(name: str, a: ArrayLike, value: Any) -> Array:
    """An argument as an array, with a number in the place of NaN."""
    x = to_array(name, a)
    return _replace(x, value) if is_inexact(x.dtype) else x


def _nan_extremum(name, plain, identity, a, axis, out, keepdims, initial, where):
    no_out(f"jnp.{name}", out)
    x = to_array(name, a)
    if not is_inexact(x.dtype):
        return plain(x, axis, keepdims=keepdims, initial=initial, where=where)
    result = plain(_replace(x, identity(x.dtype)), axis, keepdims=keepdims, initial=initial, where=where)
    if initial is not None:
        return result
    return _where(_reductions.all(isnan(x), axis, keepdims=keepdims), asarray(np.nan, x.dtype), result)


@one_program("axis", "keepdims")
def nanmax(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Largest element over axes, NaN left out.

    Args:
      a: array of any dtype.
      axis: the axis or axes to reduce; None for all.
      out: not supported.
      keepdims: keep reduced axes with length 1.
      initial: scalar below which the result does not fall.
      where: bool array: which elements to include; needs `initial`.

    Returns:
      Array of the dtype of `a`; NaN where every element is NaN.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanmax(jnp.array([1., jnp.nan, 3.]))
    Array(3., dtype=float32)
    """
    return _nan_extremum("nanmax", _reductions.max, _reductions.lowest, a, axis, out, keepdims, initial, where)


@one_program("axis", "keepdims")
def nanmin(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Smallest element over axes, NaN left out.

    Args:
      a, axis, out, keepdims: as in `nanmax`.
      initial: scalar above which the result does not rise.
      where: bool array: which elements to include; needs `initial`.

    Returns: as in `nanmax`.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanmin(jnp.array([1., jnp.nan, 3.]))
    Array(1., dtype=float32)
    """
    return _nan_extremum("nanmin", _reductions.min, _reductions.highest, a, axis, out, keepdims, initial, where)


@one_program("axis", "keepdims")
def nansum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Sum over axes with NaN counted as zero.

    Args:
      a: array of any dtype.
      axis: the axis or axes to sum over; None for all.
      dtype: dtype of the result.
      out: not supported.
      keepdims: keep reduced axes with length 1.
      initial: scalar to add to the sum.
      where: bool array: which elements to include.

    Returns:
      Array of the sums.

    >>> import ferrax.numpy as jnp
    >>> jnp.nansum(jnp.array([1., jnp.nan, 3.]))
    Array(4., dtype=float32)
    """
    no_out("jnp.nansum", out)
    return _reductions.sum(_without_nan("nansum", a, 0), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@one_program("axis", "keepdims")
def nanprod(a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
            initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Product over axes with NaN counted as one.

    Args:
      a: array of any dtype.
      axis: the axis or axes to multiply over; None for all.
      dtype, out, keepdims: as in `nansum`.
      initial: scalar to multiply the product with.
      where: bool array: which elements to include.

    Returns:
      Array of the products.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanprod(jnp.array([2., jnp.nan, 3.]))
    Array(6., dtype=float32)
    """
    no_out("jnp.nanprod", out)
    return _reductions.prod(_without_nan("nanprod", a, 1), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@one_program("axis", "keepdims")
def nanmean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
            where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Mean over axes of the elements that are not NaN.

    Args:
      a: array of any dtype.
      axis: the axis or axes to average; None for all.
      dtype, out, keepdims, where: as in `nansum`.

    Returns:
      Array of the means; NaN where every element is NaN.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanmean(jnp.array([1., jnp.nan, 3.]))
    Array(2., dtype=float32)
    """
    no_out("jnp.nanmean", out)
    x = to_array("nanmean", a)
    if not is_inexact(x.dtype):
        return _reductions.mean(x, axis, dtype, keepdims=keepdims, where=where)
    return _reductions.mean(x, axis, dtype, keepdims=keepdims, where=_valid(x, where))


def _valid(x: Array, where: ArrayLike | None) -> Array:
    valid = logical_not(isnan(x))
    if where is None:
        return valid
    require("where", where)
    return logical_and(valid, asarray(where))


@one_program("axis", "ddof", "keepdims")
def nanvar(a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: int = 0,
           keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:  # fmt: skip
    """Variance over axes of the elements that are not NaN.

    Args:
      a: array of any dtype.
      axis: the axis or axes to reduce; None for all.
      dtype: dtype in which to compute.
      out: not supported.
      ddof: the sum of squares is divided by `count - ddof`.
      keepdims: keep reduced axes with length 1.
      where: bool array: which elements to include.
      mean: the means, if known, of a shape that broadcasts with `a`.

    Returns:
      Real array; NaN where `count - ddof` is not positive.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanvar(jnp.array([1., jnp.nan, 3.]))
    Array(1., dtype=float32)
    """
    no_out("jnp.nanvar", out)
    x = to_array("nanvar", a)
    if not is_inexact(x.dtype):
        return _reductions.var(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean)
    axes = normalize_axes(axis, x.ndim)
    compute, result = _reductions.mean_dtypes(x.dtype, dtype)
    x = cast(x, compute)
    valid = _valid(x, where)
    center = _reductions.mean(x, axes, keepdims=True, where=valid) if mean is None else asarray(mean)
    centered = _where(valid, x - center, asarray(0, compute))
    if dtype_kind(centered.dtype) == "c":
        squares = lax.real(centered) ** 2 + lax.imag(centered) ** 2
    else:
        squares = centered * centered
    count = cast(_reductions.sum(valid, axes, keepdims=keepdims), squares.dtype) - ddof
    total = _reductions.sum(squares, axes, keepdims=keepdims)
    value = total / _where(count > 0, count, asarray(np.nan, squares.dtype))
    return cast(value, _reductions.variance_dtype(result, dtype))


@one_program("axis", "ddof", "keepdims")
def nanstd(a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: int = 0,
           keepdims: bool = False, where: ArrayLike | None = None, mean: ArrayLike | None = None) -> Array:  # fmt: skip
    """Standard deviation over axes of the elements that are not NaN.

    Args, Returns: as in `nanvar`.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanstd(jnp.array([1., jnp.nan, 5.]))
    Array(2., dtype=float32)
    """
    no_out("jnp.nanstd", out)
    return lax.sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))


def _nan_arg(name, plain, identity, a, axis, out, keepdims):
    no_out(f"jnp.{name}", out)
    x = to_array(name, a)
    if not is_inexact(x.dtype):
        return plain(x, axis, keepdims=keepdims)
    index = plain(_replace(x, identity(x.dtype)), axis, keepdims=keepdims)
    empty = _reductions.all(isnan(x), axis, keepdims=bool(keepdims))
    return _where(empty, asarray(-1, index.dtype), index)


@one_program("axis", "keepdims")
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the first largest element along an axis, NaN left out.

    Args:
      a: real array.
      axis: axis to search; None to search the flattened array.
      out: not supported.
      keepdims: keep the reduced axis with length 1.

    Returns:
      Array of the default integer dtype; -1 where every element is NaN.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanargmax(jnp.array([1., jnp.nan, 3.]))
    Array(2, dtype=int32)
    """
    return _nan_arg("nanargmax", _reductions.argmax, _reductions.lowest, a, axis, out, keepdims)


@one_program("axis", "keepdims")
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the first smallest element along an axis, NaN left out.

    Args, Returns: as in `nanargmax`.

    >>> import ferrax.numpy as jnp
    >>> jnp.nanargmin(jnp.array([jnp.nan, 2., 3.]))
    Array(1, dtype=int32)
    """
    return _nan_arg("nanargmin", _reductions.argmin, _reductions.highest, a, axis, out, keepdims)


@one_program("axis")
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array:
    """Running sums along an axis with NaN counted as zero.

    Args:
      a: array of any dtype.
      axis: axis to sum along; None for the flattened array.
      dtype: dtype of the result.
      out: not supported.

    Returns:
      Array of the shape of `a` (or flat).

    >>> import ferrax.numpy as jnp
    >>> jnp.nancumsum(jnp.array([1., jnp.nan, 3.]))
    Array([1., 1., 4.], dtype=float32)
    """
    return _cumulative.cumsum(_without_nan("nancumsum", a, 0), axis, dtype, out)


@one_program("axis")
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array:
    """Running products along an axis with NaN counted as one.

    Args:
      a: array of any dtype.
      axis: axis to multiply along; None for the flattened array.
      dtype, out: as in `nancumsum`.

    Returns: as in `nancumsum`.

    >>> import ferrax.numpy as jnp
    >>> jnp.nancumprod(jnp.array([2., jnp.nan, 3.]))
    Array([2., 2., 6.], dtype=float32)
    """
    return _cumulative.cumprod(_without_nan("nancumprod", a, 1), axis, dtype, out)
