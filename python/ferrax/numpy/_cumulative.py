"""Running sums and products.

Read `_reductions.py` first.
"""

from __future__ import annotations

import numpy as np

from ferrax import lax
from ferrax.numpy import _reductions
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    DTypeLike,
    cast,
    cast_to,
    no_out,
    normalize_axis,
    to_array,
    user_dtype,
    warn_complex,
)
from ferrax.numpy._dtype_functions import default_int

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]


def _running(name, primitive, a, axis, dtype, out):
    no_out(f"jnp.{name}", out)
    x = to_array(name, a)
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim, f"axis argument to jnp.{name}().")
    if dtype is not None:
        x = cast_to(x, dtype)
    elif x.dtype == np.bool_:
        x = cast(x, default_int())
    else:
        x = cast(x, x.dtype)
    if x.dtype == np.bool_:
        return cast(primitive(cast(x, default_int()), axis), np.bool_)
    return primitive(x, axis)


def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array:
    """Running sums along an axis.

    Args:
      a: array of any dtype.
      axis: axis to sum along; None for the flattened array.
      dtype: dtype of the result; by default that of `a`, the default integer for bools.
      out: not supported.

    Returns:
      Array of the shape of `a` (or flat).

    >>> import ferrax.numpy as jnp
    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _running("cumsum", lax.cumsum, a, axis, dtype, out)


def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None) -> Array:
    """Running products along an axis.

    Args:
      a: array of any dtype.
      axis: axis to multiply along; None for the flattened array.
      dtype, out: as in `cumsum`.

    Returns: as in `cumsum`.

    >>> import ferrax.numpy as jnp
    >>> jnp.cumprod(jnp.array([2, 3, 4]))
    Array([ 2,  6, 24], dtype=int32)
    """
    return _running("cumprod", lax.cumprod, a, axis, dtype, out)


def _sum_dtype(dtype: np.dtype) -> np.dtype:
    return _reductions.sum_dtype(dtype, promote_integers=True)


def _cumulative(name, noun, running, first, own, x, axis, dtype, include_initial):
    x = to_array(name, x)
    if x.ndim == 0:
        raise ValueError(
            f"The input must be non-scalar to take a cumulative {noun}, however a scalar value or scalar array "
            f"was given."
        )
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                f"The input array has rank {x.ndim}, however axis was not set to an explicit value. "
                "The axis argument is only optional for one-dimensional arrays."
            )
        axis = 0
    axis = normalize_axis(axis, x.ndim)
    if dtype is None:
        dtype = own(x.dtype) if x.dtype != np.bool_ else default_int()
    dtype = user_dtype(dtype)
    warn_complex(x.dtype, dtype)
    result = running(x, axis, dtype)
    if not include_initial:
        return result
    shape = x.shape[:axis] + (1,) + x.shape[axis + 1 :]
    return lax.concatenate([lax.full(shape, first, result.dtype), result], axis)


def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike = None,
                   include_initial: bool = False) -> Array:  # fmt: skip
    """Running sums along an axis, as the array API standard has it.

    Args:
      x: array with at least one axis.
      axis: axis to sum along; optional only for a one-dimensional array.
      dtype: dtype of the result.
      include_initial: start with the empty sum, zero.

    Returns:
      Array of the shape of `x`, one longer along `axis` with `include_initial`.

    >>> import ferrax.numpy as jnp
    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("cumulative_sum", "sum", cumsum, 0, _sum_dtype, x, axis, dtype, include_initial)


def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike = None,
                    include_initial: bool = False) -> Array:  # fmt: skip
    """Running products along an axis, as the array API standard has it.

    Args:
      x: array with at least one axis.
      axis: axis to multiply along; optional only for a one-dimensional array.
      dtype: dtype of the result.
      include_initial: start with the empty product, one.

    Returns:
      Array of the shape of `x`, one longer along `axis` with `include_initial`.

    >>> import ferrax.numpy as jnp
    >>> jnp.cumulative_prod(jnp.array([2, 3]), include_initial=True)
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", "product", cumprod, 1, lambda d: d, x, axis, dtype, include_initial)
