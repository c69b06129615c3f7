"""Ranges of numbers: arange, linspace, logspace, geomspace, and the identity matrices.

Read `_creation.py` first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ferrax import _core, lax
from ferrax._core import asarray, concrete_or_error, is_tracer
from ferrax._one_program import one_program
from ferrax._rust import with_shortcut
from ferrax._shapes import broadcast_shapes, is_symbolic_dim, max_dim, static_size
from ferrax._texts import short
from ferrax.numpy._args import (  # fmt: skip
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    cast,
    cast_to,
    normalize_axis,
    place,
    require,
    static_int,
    static_sizes,
    user_dtype,
    with_out_sharding,
)
from ferrax.numpy._dtype_functions import default_int, dtype_kind, inexact_dtype, real_dtype
from ferrax.numpy._ranks import check_ranks
from ferrax.numpy._ufuncs import isfinite, where as _where

__all__ = ["arange", "eye", "geomspace", "identity", "linspace", "logspace"]


def _range_argument(value: Any, name: str) -> Any:
    """`value` as a NumPy or Python scalar that `arange` can count with."""
    if value is None:
        return None
    if is_tracer(value):
        value = concrete_or_error(
            None, value, f"It arose in the jnp.arange argument '{name}': the length of the result must be static."
        )
    if isinstance(value, (int, float)):
        return value
    require("arange", value)
    if np.ndim(value) != 0:
        raise ValueError(f"jax.numpy.arange: arguments must be scalars; got {name}={value}")
    value = np.asarray(value)[()]
    if dtype_kind(value.dtype) not in "biuf":
        if dtype_kind(value.dtype) == "c":
            raise ValueError(
                f"Passing complex start/stop/step to jnp.arange is no longer supported: got {name}={short(value)}."
            )
        raise ValueError(f"jnp.arange takes real numbers, got {name}={short(value)} of dtype {value.dtype}.")
    return value


@with_shortcut("arange")
def arange(start: ArrayLike, stop: ArrayLike | None = None, step: ArrayLike | None = None, dtype: DTypeLike = None, *,
           device: Any = None, out_sharding: None = None) -> Array:  # fmt: skip
    """Evenly spaced numbers from a start up to, not including, a stop.

    Args:
      start: first number; with one argument the stop, and 0 is the start.
      stop: end of the range.
      step: spacing, by default 1.
      dtype: dtype of the result; by default that of the arguments.
      device: where to place the array.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      One-dimensional array of `ceil((stop - start) / step)` numbers.

    Raises:
      ConcretizationTypeError: for traced arguments: the length of the result must be static.

    >>> import ferrax.numpy as jnp
    >>> jnp.arange(1, 7, 2)
    Array([1, 3, 5], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(lambda: arange(start, stop, step, dtype, device=device), out_sharding, "jnp.arange")
    if start is None:
        raise TypeError("jnp.arange must be called with a number, got None.")
    if any(map(is_symbolic_dim, (start, stop, step))):
        return place(_symbolic_range(start, stop, step, dtype), device)
    given = [x for x in (start, stop, step) if x is not None]
    start_value = _range_argument(start, "stop" if stop is None and step is None else "start")
    stop_value, step_value = _range_argument(stop, "stop"), _range_argument(step, "step")
    target = np.dtype(_core.result_type(*given)) if dtype is None else user_dtype(dtype)
    if stop is None:
        start_value, stop_value = 0, start_value
    step_value = 1 if step_value is None else step_value
    if step_value == 0:
        raise ZeroDivisionError("jnp.arange: the step is zero")
    length = max(0, math.ceil(_exact(stop_value, start_value) / step_value))
    if dtype_kind(target) == "b":
        if length > 2:
            raise TypeError("jnp.arange of dtype bool has at most two elements.")
        return place(asarray((np.arange(length) * step_value + start_value).astype(bool)), device)
    if start_value == 0 and step_value == 1:
        return place(lax.iota(target, length), device)
    if dtype_kind(target) in "iu":
        positions = lax.iota(target, length)
        if step_value != 1:
            positions = positions * cast(step_value, target)
        return place(positions + cast(start_value, target), device)
    host = (np.arange(length) * np.float64(step_value) + np.float64(start_value)).astype(target)
    return place(asarray(host), device)


def _symbolic_range(start: Any, stop: Any, step: Any, dtype: DTypeLike) -> Array:
    """`arange` where an argument is a symbolic size: the others are integers."""
    given = [static_size(x) for x in (start, stop, step) if x is not None]
    first, last = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    length = -((first - last) // by)
    if not (is_symbolic_dim(length) and first == 0 and by == 1):
        length = max_dim(length, 0)
    target = np.dtype(_core.result_type(*(0 for _ in given))) if dtype is None else user_dtype(dtype)
    positions = lax.iota(target, length)
    if first == 0 and by == 1:
        return positions
    return positions * cast(asarray(by), target) + cast(asarray(first), target)


def _exact(stop: Any, start: Any) -> Any:
    """stop - start without the overflow of narrow NumPy integers."""
    as_python = lambda v: v if isinstance(v, (int, float)) else v.item()
    return as_python(stop) - as_python(start)


def eye(N: int, M: int | None = None, k: int | ArrayLike = 0, dtype: DTypeLike = None, *, device: Any = None) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Args:
      N: number of rows.
      M: number of columns, by default `N`.
      k: which diagonal: 0 the main one, positive above it, negative below.
      dtype: dtype; by default the default float.
      device: where to place the array.

    Returns:
      Array of shape (N, M).

    >>> import ferrax.numpy as jnp
    >>> jnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    rows = _size_argument(N, "argument of 'N' jnp.eye().")
    columns = rows if M is None else _size_argument(M, "argument of 'M' jnp.eye().")
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {N} and {M}")
    if np.ndim(k) or dtype_kind(np.dtype(_core.result_type(k))) not in "biu":
        raise ValueError(f"k must be a scalar integer; got {short(k)}")
    index = default_int()
    # a diagonal beyond the edge is as good as the next one outside, and fits the index dtype
    offset = max(-rows, min(k, columns)) if isinstance(k, int) else cast(k, index)
    i = lax.broadcasted_iota(index, (rows, columns), 0)
    j = lax.broadcasted_iota(index, (rows, columns), 1)
    return place(cast_to(i + offset == j, dtype, np.float64), device)


def _size_argument(value: Any, context: str) -> int:
    if is_tracer(value):
        static_sizes((value,))  # which says that sizes are not traced
    try:
        return static_size(value)
    except TypeError:
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {short((value,))}. {context}"
        ) from None


def identity(n: int, dtype: DTypeLike = None) -> Array:
    """The square identity matrix.

    Args:
      n: number of rows and columns.
      dtype: dtype; by default the default float.

    Returns:
      Array of shape (n, n).

    >>> import ferrax.numpy as jnp
    >>> jnp.identity(2, dtype=int)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


@one_program("num", "endpoint", "retstep", "axis")
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: DTypeLike = None, axis: int = 0, *, device: Any = None) -> Any:  # fmt: skip
    """A number of evenly spaced values between two ends.

    Args:
      start: first value, scalar or array.
      stop: last value (the first one left out without `endpoint`).
      num: how many values.
      endpoint: whether `stop` is the last value.
      retstep: also return the spacing.
      dtype: dtype of the result; by default the inexact dtype of the ends.
      axis: axis of the result along which the values run.
      device: where to place the array.

    Returns:
      Array with `num` values along `axis`, or with `retstep` the pair (array, spacing).

    Raises:
      ValueError: when `num` is negative.

    >>> import ferrax.numpy as jnp
    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = static_int(num, "'num' argument of jnp.linspace")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    require("linspace", start, stop)
    target = np.dtype(_core.result_type(start, stop)) if dtype is None else user_dtype(dtype)
    compute = inexact_dtype(target)
    target = compute if dtype is None else target
    first, last = cast(start, compute), cast(stop, compute)
    check_ranks("linspace", first, last)
    shape = broadcast_shapes(first.shape, last.shape)
    first, last = broadcast_to_shape(first, shape), broadcast_to_shape(last, shape)
    divisions = num - 1 if endpoint else num
    if divisions > 0:
        spacing = (last - first) / divisions
    else:
        spacing = lax.full((), np.nan, compute)
    values = _spaced(first, last, num, divisions, endpoint, _fit(start, stop, divisions, compute))
    if dtype_kind(target) in "iu" and dtype_kind(compute) not in "iu":
        values = lax.floor(values)
    position = normalize_axis(axis, len(shape) + 1)
    order = list(range(1, len(shape) + 1))
    order.insert(position, 0)
    result = place(cast(lax.transpose(values, order), target), device)
    return (result, spacing) if retstep else result


def _fit(start: ArrayLike, stop: ArrayLike, divisions: int, dtype: Any) -> bool:
    """Whether both ends are numbers whose multiples by a number of steps are known to be finite."""
    if not all(isinstance(x, int | float) for x in (start, stop)):
        return False
    import ml_dtypes

    most = float(ml_dtypes.finfo(real_dtype(dtype)).max) / 4
    return max(abs(start), abs(stop)) * max(divisions, 1) < most


def _spaced(first: Array, last: Array, num: int, divisions: int, endpoint: bool, fit: bool) -> Array:
    """The values along a new first axis; mixes the two ends so that both are exact.

    Whole numbers of steps as weights, divided at the end, give round values (15, not 15.000001); shares, which round
    twice, take over where such products overflow, unless they `fit`.
    """
    shape = (num, *first.shape)
    rows = tuple(range(1, len(shape)))
    if divisions <= 0:
        return lax.broadcast_in_dim(first, shape, rows)
    if endpoint:
        between = _spaced(first, last, num - 1, divisions, False, fit)
        return lax.concatenate([between, lax.expand_dims(last, (0,))], 0)
    low, high = lax.broadcast_in_dim(first, shape, rows), lax.broadcast_in_dim(last, shape, rows)
    real = real_dtype(first.dtype)
    steps = lax.broadcast_in_dim(lax.iota(real, num), shape, (0,))
    count = asarray(divisions, real)
    whole, rest = cast(steps, first.dtype), cast(count - steps, first.dtype)
    values = (low * rest + high * whole) / cast(count, first.dtype)
    if fit:
        return values
    share = cast(steps * (1 / count), first.dtype)
    return lax.select(isfinite(values), values, low * (1 - share) + high * share)


@one_program("num", "endpoint", "axis")
def logspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, base: ArrayLike = 10.0,
             dtype: DTypeLike = None, axis: int = 0) -> Array:  # fmt: skip
    """Powers of a base with evenly spaced exponents.

    Args:
      start: first exponent, scalar or array.
      stop: last exponent.
      num: how many values.
      endpoint: whether `base ** stop` is the last value.
      base: the base.
      dtype: dtype of the result.
      axis: axis of the result along which the values run.

    Returns:
      Array with `num` values along `axis`.

    >>> import ferrax.numpy as jnp
    >>> jnp.logspace(0, 3, 4, base=2)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    require("logspace", start, stop, base)
    compute = inexact_dtype(np.dtype(_core.result_type(start, stop)))
    exponents = linspace(cast(start, compute), cast(stop, compute), num, endpoint, dtype=compute, axis=axis)
    return cast(
        lax.pow(broadcast_to_shape(cast(base, compute), exponents.shape), exponents), user_dtype(dtype, compute)
    )


@one_program("num", "endpoint", "axis")
def geomspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: DTypeLike = None,
              axis: int = 0) -> Array:  # fmt: skip
    """A number of values between two ends with a constant ratio.

    Args:
      start: first value, scalar or array, not zero.
      stop: last value, of the sign of `start`.
      num: how many values.
      endpoint: whether `stop` is the last value.
      dtype, axis: as in `logspace`.

    Returns: as in `logspace`.

    >>> import ferrax.numpy as jnp
    >>> jnp.geomspace(1, 16, 5)
    Array([ 1.,  2.,  4.,  8., 16.], dtype=float32)
    """
    require("geomspace", start, stop)
    compute = inexact_dtype(np.dtype(_core.result_type(start, stop)))
    first, last = cast(start, compute), cast(stop, compute)
    check_ranks("geomspace", first, last)
    shape = broadcast_shapes(first.shape, last.shape)
    first, last = broadcast_to_shape(first, shape), broadcast_to_shape(last, shape)
    sign = lax.sign(first)
    ratio = linspace(lax.log(first / sign), lax.log(last / sign), num, endpoint, dtype=compute, axis=0)
    values = lax.exp(ratio) * lax.expand_dims(sign, (0,))
    position = lax.broadcasted_iota(default_int(), values.shape, 0)
    values = _where(position == 0, lax.expand_dims(first, (0,)), values)
    if endpoint and num > 1:
        values = _where(position == num - 1, lax.expand_dims(last, (0,)), values)
    order = list(range(1, values.ndim))
    order.insert(normalize_axis(axis, values.ndim), 0)
    return cast_to(lax.transpose(values, order), dtype, compute)
