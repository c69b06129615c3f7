"""Reductions over axes: sums, products, extrema, truth, means and variances.

Narrow floats (float16, bfloat16) are accumulated in float32 and the result is rounded once; narrow integers and bools
are summed in the default integer. `where` masks elements out by replacing them with the identity of the reduction.
Read `_nan_reductions.py` and `_cumulative.py` next.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray
from ferrax._one_program import one_program
from ferrax._rust import with_shortcut
from ferrax.numpy._args import (  # fmt: skip
    Array,
    ArrayLike,
    Axis,
    DTypeLike,
    broadcast_to_shape,
    canonicalize_dtype,
    cast,
    no_out,
    normalize_axes,
    normalize_axis,
    promote_inexact,
    require,
    require_or_none,
    to_array,
    user_dtype,
    warn_complex,
    without_names,
)
from ferrax.numpy._dtype_functions import default_int, dtype_kind, inexact_dtype, integer_limits, real_dtype
from ferrax.numpy._ufuncs import where as _where

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "max", "mean", "min", "prod", "ptp",
    "std", "sum", "var",
]  # fmt: skip

_NARROW_FLOATS = ("float16", "bfloat16")


def keep_dims(x: Array, axes: tuple[int, ...]) -> Array:
    """`x` with axes of length one where `axes` were reduced away."""
    return lax.expand_dims(x, axes) if axes else x


def _across(name: str, x: Array, names: tuple[str, ...]) -> Array:
    """`x` reduced over mapped axes, by their names."""
    if not names:
        return x
    if name not in ("sum", "max", "min"):
        raise NotImplementedError(
            f"jnp.{name} over a mapped axis ({', '.join(map(repr, names))}): jnp.sum, jnp.max and jnp.min take names, "
            "and what is made of them"
        )
    return {"sum": lax.psum, "max": lax.pmax, "min": lax.pmin}[name](x, names)


def _count(shape: tuple[int, ...], axes: tuple[int, ...], names: tuple[str, ...]) -> int:
    """The number of elements that are reduced to one."""
    return axis_count(shape, axes) * math.prod(map(lax.axis_size, names))


def _mask(name: str, x: Array, where: ArrayLike | None, identity: Any) -> Array:
    if where is None:
        return x
    require(name, where)
    where = asarray(where)
    if where.dtype != np.bool_:
        raise ValueError(f"jnp.{name}: where must be None or a boolean array; got where.dtype={where.dtype!r}.")
    return _where(where, x, asarray(identity, x.dtype))


def sum_dtype(dtype: np.dtype, promote_integers: bool) -> np.dtype:
    """The dtype in which a sum or product of `dtype` is returned."""
    kind = dtype_kind(dtype)
    if kind == "b":
        return default_int()
    if promote_integers and kind in "iu":
        wide = default_int() if kind == "i" else canonicalize_dtype(np.uint64)
        return wide if wide.itemsize > dtype.itemsize else dtype
    return dtype


def _initial(x: Array, initial: ArrayLike | None) -> Array | None:
    if initial is None:
        return None
    initial = cast(initial, x.dtype)
    if initial.shape != ():
        raise ValueError(f"initial value must be a scalar. Got array of shape {initial.shape}")
    return initial


def _accumulate(name, reducer, combine, identity, a, axis, dtype, out, keepdims, initial, where, promote_integers):
    """Sum and product: masked, accumulated wide, combined with `initial`, cast to the result dtype."""
    no_out(f"jnp.{name}", out)
    x = to_array(name, a)
    axis, names = without_names(axis)
    axes = normalize_axes(axis, x.ndim, f"axis argument to jnp.{name}().")
    result = sum_dtype(x.dtype, promote_integers) if dtype is None else user_dtype(dtype)
    warn_complex(x.dtype, result)
    # the primitive accumulates wide anyway; programs show it where no dtype is asked for, as JAX's do
    asked = dtype is not None and x.dtype == result
    if result == np.bool_:
        reducer, combine = (lax.reduce_or, lax.bitwise_or) if name == "sum" else (lax.reduce_and, lax.bitwise_and)
    x = cast(_mask(name, x, where, identity), np.float32 if result.name in _NARROW_FLOATS and not asked else result)
    first = _initial(x, initial)
    total = _across(name, reducer(x, axes) if axes else x, names)
    if first is not None:
        total = combine(broadcast_to_shape(first, total.shape), total)
    total = cast(total, result)
    return keep_dims(total, axes) if keepdims else total


@with_shortcut("sum")
def sum(a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None,
        promote_integers: bool = True) -> Array:  # fmt: skip
    """Sum of elements over axes.

    Args:
      a: array of any dtype; bools count as 0 and 1.
      axis: the axis or axes to sum over; None for all.
      dtype: dtype of the result; by default that of `a`, narrow integers widened to the default integer.
      out: not supported.
      keepdims: keep reduced axes with length 1.
      initial: scalar to add to the sum.
      where: bool array that broadcasts with `a`: which elements to include.
      promote_integers: widen narrow integers.

    Returns:
      Array of the sums.

    >>> import ferrax.numpy as jnp
    >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int32)
    """
    return _accumulate(
        "sum", lax.reduce_sum, lax.add, 0, a, axis, dtype, out, keepdims, initial, where, promote_integers
    )


@with_shortcut("prod")
def prod(a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
         initial: ArrayLike | None = None, where: ArrayLike | None = None,
         promote_integers: bool = True) -> Array:  # fmt: skip
    """Product of elements over axes.

    Args:
      a: array of any dtype.
      axis: the axis or axes to multiply over; None for all.
      dtype, out, keepdims: as in `sum`.
      initial: scalar to multiply the product with.
      where, promote_integers: as in `sum`.

    Returns:
      Array of the products.

    >>> import ferrax.numpy as jnp
    >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([ 2, 12], dtype=int32)
    """
    return _accumulate(
        "prod", lax.reduce_prod, lax.mul, 1, a, axis, dtype, out, keepdims, initial, where, promote_integers
    )


def lowest(dtype: np.dtype) -> Any:
    """The identity of max over `dtype`."""
    kind = dtype_kind(dtype)
    if kind == "b":
        return False
    if kind == "f":
        return -np.inf
    return integer_limits(dtype)[0] if kind != "c" else complex(-np.inf, -np.inf)


def highest(dtype: np.dtype) -> Any:
    """The identity of min over `dtype`."""
    kind = dtype_kind(dtype)
    if kind == "b":
        return True
    if kind == "f":
        return np.inf
    return integer_limits(dtype)[1] if kind != "c" else complex(np.inf, np.inf)


def _extremum(name, reducer, combine, identity, a, axis, out, keepdims, initial, where):
    no_out(f"jnp.{name}", out)
    x = to_array(name, a)
    axis, names = without_names(axis)
    axes = normalize_axes(axis, x.ndim, f"axis argument to jnp.{name}().")
    if where is not None and initial is None:
        raise ValueError(
            f"reduction operation {name} does not have an identity, so to use a where mask one has to specify 'initial'"
        )
    if initial is None and 0 in [x.shape[i] for i in axes]:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    x = lax.convert_element_type(x, x.dtype)
    first = _initial(x, initial)
    x = _mask(name, x, where, identity(x.dtype))
    result = _across(name, reducer(x, axes) if axes else x, names)
    if first is not None:
        result = combine(broadcast_to_shape(first, result.shape), result)
    return keep_dims(result, axes) if keepdims else result


@with_shortcut("max")
def max(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Largest element over axes; NaN where any element is NaN.

    Args:
      a: array of any dtype; complex numbers compare by real part, then imaginary part.
      axis: the axis or axes to reduce; None for all.
      out: not supported.
      keepdims: keep reduced axes with length 1.
      initial: scalar below which the result does not fall; required with `where` and for empty axes.
      where: bool array that broadcasts with `a`: which elements to include.

    Returns:
      Array of the dtype of `a`.

    Raises:
      ValueError: for an empty axis without `initial`.

    >>> import ferrax.numpy as jnp
    >>> jnp.max(jnp.array([[1, 5], [3, 2]]), axis=0)
    Array([3, 5], dtype=int32)
    """
    return _extremum("max", lax.reduce_max, lax.max, lowest, a, axis, out, keepdims, initial, where)


@with_shortcut("min")
def min(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Smallest element over axes; NaN where any element is NaN.

    Args:
      a, axis, out, keepdims: as in `max`.
      initial: scalar above which the result does not rise; required with `where` and for empty axes.
      where: bool array that broadcasts with `a`: which elements to include.

    Returns, Raises: as in `max`.

    >>> import ferrax.numpy as jnp
    >>> jnp.min(jnp.array([[1, 5], [3, 2]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    return _extremum("min", lax.reduce_min, lax.min, highest, a, axis, out, keepdims, initial, where)


def amax(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
         where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Another name of `max`.

    Args:
      a: array of any dtype.
      axis, out, keepdims: as in `max`.
      initial: scalar below which the result does not fall.
      where: bool array: which elements to include.

    Returns: as in `max`.

    >>> import ferrax.numpy as jnp
    >>> jnp.amax(jnp.array([1, 5, 3]))
    Array(5, dtype=int32)
    """
    return max(a, axis, out, keepdims, initial, where)


def amin(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
         where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Another name of `min`.

    Args:
      a: array of any dtype.
      axis, out, keepdims: as in `max`.
      initial: scalar above which the result does not rise.
      where: bool array: which elements to include.

    Returns: as in `max`.

    >>> import ferrax.numpy as jnp
    >>> jnp.amin(jnp.array([1, 5, 3]))
    Array(1, dtype=int32)
    """
    return min(a, axis, out, keepdims, initial, where)


def _truth(name, reducer, identity, a, axis, out, keepdims, where):
    no_out(f"jnp.{name}", out)
    x = to_array(name, a)
    # as JAX has it: of complex numbers, the real parts are looked at
    x = cast(lax.real(x) if dtype_kind(x.dtype) == "c" else x, np.bool_)
    axis, names = without_names(axis)
    axes = normalize_axes(axis, x.ndim, f"axis argument to jnp.{name}().")
    x = _mask(name, x, where, identity)
    result = _across(name, reducer(x, axes) if axes else x, names)
    return keep_dims(result, axes) if keepdims else result


@with_shortcut("all")
def all(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Whether every element over axes is true (non-zero).

    Args:
      a: array of any dtype.
      axis, out, keepdims, where: as in `max`.

    Returns:
      Bool array.

    >>> import ferrax.numpy as jnp
    >>> jnp.all(jnp.array([[True, False], [True, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _truth("all", lax.reduce_and, True, a, axis, out, keepdims, where)


@with_shortcut("any")
def any(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Whether some element over axes is true (non-zero).

    Args:
      a: array of any dtype.
      axis, out, keepdims, where: as in `max`.

    Returns:
      Bool array.

    >>> import ferrax.numpy as jnp
    >>> jnp.any(jnp.array([[True, False], [False, False]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return _truth("any", lax.reduce_or, False, a, axis, out, keepdims, where)


def _arg_extremum(name, finder, a, axis, out, keepdims):
    no_out(f"jnp.{name}", out)
    x = to_array(name, a)
    if axis is None:
        ndim, flat = x.ndim, lax.reshape(x, (x.size,))
        position, x = 0, flat
        kept = tuple(range(ndim))
    else:
        position = normalize_axis(axis, x.ndim, f"axis argument to jnp.{name}().")
        kept = (position,)
    if x.shape[position] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    result = finder(x, position, default_int())
    return keep_dims(result, kept) if keepdims else result


@with_shortcut("argmax")
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the first largest element along an axis; that of the first NaN where there is one.

    Args:
      a: real or bool array.
      axis: axis to search; None to search the flattened array.
      out: not supported.
      keepdims: keep the reduced axis with length 1.

    Returns:
      Array of the default integer dtype.

    Raises:
      ValueError: when the axis is empty.

    >>> import ferrax.numpy as jnp
    >>> jnp.argmax(jnp.array([1, 5, 3, 5]))
    Array(1, dtype=int32)
    """
    return _arg_extremum("argmax", lax.argmax, a, axis, out, keepdims)


@with_shortcut("argmin")
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the first smallest element along an axis; that of the first NaN where there is one.

    Args, Returns, Raises: as in `argmax`.

    >>> import ferrax.numpy as jnp
    >>> jnp.argmin(jnp.array([4, 1, 3, 1]))
    Array(1, dtype=int32)
    """
    return _arg_extremum("argmin", lax.argmin, a, axis, out, keepdims)


def axis_count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """How many elements the reduction over `axes` takes in."""
    size = 1
    for i in axes:
        size *= shape[i]
    return size


def mean_dtypes(dtype: np.dtype, requested: DTypeLike) -> tuple[np.dtype, np.dtype]:
    """(dtype to compute a mean in, dtype to return it in)."""
    result = inexact_dtype(dtype) if requested is None else user_dtype(requested)
    warn_complex(dtype, result)
    compute = np.dtype(np.float32) if result.name in _NARROW_FLOATS else inexact_dtype(result)
    return compute, result


@with_shortcut("mean")
def mean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, keepdims: bool = False, *,
         where: ArrayLike | None = None) -> Array:  # fmt: skip
    """Arithmetic mean over axes.

    Args:
      a: array of any dtype.
      axis: the axis or axes to average; None for all.
      dtype: dtype of the result; by default that of `a`, or the default float for integers.
      out, keepdims, where: as in `sum`.

    Returns:
      Array of the means; NaN over nothing.

    >>> import ferrax.numpy as jnp
    >>> jnp.mean(jnp.array([[1., 2.], [3., 4.]]), axis=0)
    Array([2., 3.], dtype=float32)
    """
    no_out("jnp.mean", out)
    x = to_array("mean", a)
    axis, names = without_names(axis)
    axes = normalize_axes(axis, x.ndim, "axis argument to jnp.mean().")
    compute, result = mean_dtypes(x.dtype, dtype)
    whole = dtype is not None and dtype_kind(result) in "iu"
    x = x if whole else cast(x, compute)
    total = sum(x, (*axes, *names), result if whole else None, keepdims=keepdims, where=where)
    if where is None:
        number = _count(x.shape, axes, names)
        count = cast(number, result) if whole else cast(asarray(number, real_dtype(compute)), total.dtype)
    else:
        require("mean", where)
        mask = broadcast_to_shape(asarray(where), x.shape)
        count = cast(sum(mask, (*axes, *names), keepdims=keepdims), total.dtype)
    if whole:  # the sum of what is left of the elements, over their number
        return lax.div(total, broadcast_to_shape(count, total.shape))
    return cast(total / count, result)


def _squared_deviation(x: Array, center: Array) -> Array:
    centered = x - center
    if dtype_kind(centered.dtype) == "c":
        real, imag = lax.real(centered), lax.imag(centered)
        return real * real + imag * imag
    return centered * centered


def _variance(name, a, axis, dtype, out, ddof, keepdims, where, mean_, correction):
    no_out(f"jnp.{name}", out)
    require_or_none(name, a, mean_)
    if correction is None:
        correction = ddof
    elif not (isinstance(ddof, int) and ddof == 0):
        raise ValueError("ddof and correction can't be provided simultaneously.")
    x = asarray(a)
    axis, names = without_names(axis)
    axes = normalize_axes(axis, x.ndim, f"axis argument to jnp.{name}().")
    if dtype is not None and dtype_kind(x.dtype) == "c" and dtype_kind(np.dtype(dtype)) != "c":
        raise ValueError(
            f"jax.numpy.{name} does not yet support real dtype parameters when computing the variance of an array of "
            "complex values: pass a complex dtype, or take the real part first."
        )
    compute, result = mean_dtypes(x.dtype, dtype)
    if result != canonicalize_dtype(result) or dtype_kind(result) not in "fc":
        result = inexact_dtype(x.dtype)
    x = cast(x, compute)
    over = (*axes, *names)
    center = mean(x, over, keepdims=True, where=where) if mean_ is None else cast(mean_, compute)
    squares = _squared_deviation(x, center)
    total = sum(squares, over, keepdims=keepdims, where=where)
    if where is None:
        count = asarray(_count(x.shape, axes, names) - correction, squares.dtype)
    else:
        mask = broadcast_to_shape(asarray(where), x.shape)
        count = cast(sum(mask, over, keepdims=keepdims), squares.dtype) - correction
    count = _where(count > 0, count, asarray(np.nan, squares.dtype))
    return total / count, variance_dtype(result, dtype)


def variance_dtype(result: np.dtype, requested: DTypeLike) -> np.dtype:
    """The dtype of a variance of elements of dtype `result`: real, unless a complex one is asked for."""
    return real_dtype(result) if requested is None else result


@one_program("axis", "ddof", "keepdims", "correction")
def var(a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
        correction: int | float | None = None) -> Array:  # fmt: skip
    """Variance over axes: the mean of squared deviations from the mean.

    Args:
      a: array of any dtype.
      axis: the axis or axes to reduce; None for all.
      dtype: dtype in which to compute.
      out: not supported.
      ddof: the sum of squares is divided by `count - ddof`.
      keepdims: keep reduced axes with length 1.
      where: bool array that broadcasts with `a`: which elements to include.
      mean: the means, if known, of a shape that broadcasts with `a`.
      correction: another name of `ddof`.

    Returns:
      Real array, unless `dtype` is complex; NaN where `count - ddof` is not positive.

    Raises:
      ValueError: when both `ddof` and `correction` are given.

    >>> import ferrax.numpy as jnp
    >>> jnp.var(jnp.array([1., 3., 5., 7.]))
    Array(5., dtype=float32)
    """
    value, dtype = _variance("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)
    return cast(value, dtype)


@one_program("axis", "ddof", "keepdims", "correction")
def std(a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None,
        correction: int | float | None = None) -> Array:  # fmt: skip
    """Standard deviation over axes: the square root of the variance.

    Args, Returns, Raises: as in `var`.

    >>> import ferrax.numpy as jnp
    >>> jnp.std(jnp.array([1., 1., 5., 5.]))
    Array(2., dtype=float32)
    """
    value, dtype = _variance("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction)
    return cast(lax.sqrt(value), dtype)


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Peak to peak: the largest minus the smallest element over axes.

    Args:
      a: numeric array.
      axis, out, keepdims: as in `max`.

    Returns: as in `max`.

    >>> import ferrax.numpy as jnp
    >>> jnp.ptp(jnp.array([4, 9, 2]))
    Array(7, dtype=int32)
    """
    no_out("jnp.ptp", out)
    x = to_array("ptp", a)
    return lax.sub(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements over axes are not zero.

    Args:
      a, axis, keepdims: as in `var`.

    Returns:
      Array of the default integer dtype.

    >>> import ferrax.numpy as jnp
    >>> jnp.count_nonzero(jnp.array([[1, 0], [2, 3]]), axis=0)
    Array([2, 1], dtype=int32)
    """
    return sum(cast(to_array("count_nonzero", a), np.bool_), axis, keepdims=keepdims)


@one_program("axis", "returned", "keepdims")
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False,
            keepdims: bool = False) -> Array | tuple[Array, Array]:  # fmt: skip
    """Weighted mean over axes.

    Args:
      a: array of any dtype.
      axis: the axis or axes to average; None for all.
      weights: array of the shape of `a`, or of the shape of the averaged axes; None for equal weights.
      returned: also return the sums of weights.
      keepdims: keep reduced axes with length 1.

    Returns:
      The averages, or with `returned` the pair (averages, sums of weights).

    Raises:
      ValueError: when the shape of `weights` does not fit.

    >>> import ferrax.numpy as jnp
    >>> jnp.average(jnp.array([1., 2., 4.]), weights=jnp.array([1., 1., 2.]))
    Array(2.75, dtype=float32)
    """
    if weights is None:
        (x,) = promote_inexact("average", a)
        axes = normalize_axes(axis, x.ndim)
        result = mean(x, axes, keepdims=keepdims)
        total = lax.full_like(result, axis_count(x.shape, axes))
        return (result, total) if returned else result
    x, w = promote_inexact("average", a, weights)
    axes = normalize_axes(axis, x.ndim)
    if w.shape != x.shape:
        if axis is None:
            raise ValueError("Axis must be specified when shapes of a and weights differ.")
        if w.shape != tuple(x.shape[i] for i in axes):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        order = sorted(range(len(axes)), key=lambda i: axes[i])
        w = lax.broadcast_in_dim(lax.transpose(w, order), x.shape, tuple(axes[i] for i in order))
    total = sum(w, axes, keepdims=keepdims)
    result = sum(x * w, axes, keepdims=keepdims) / total
    return (result, total) if returned else result
