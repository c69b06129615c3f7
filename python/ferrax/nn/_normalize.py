"""The softmax family, log-sum-exp and its relatives, standardization and one-hot encoding.

All of them shift by the maximum before exponentiating, and treat the shift as a constant under differentiation (the
result does not depend on it). Entries that ``where`` leaves out take no part, in the value or in the gradient.
Read next: ``_attention.py``.
"""

from __future__ import annotations

import math
import operator
import warnings
from functools import partial
from typing import Any

import ferrax.numpy as jnp
from ferrax import config, custom_jvp, debug_nans, jit, lax
from ferrax._core import canonicalize_dtype, concrete_or_error
from ferrax._ferrax import Array
from ferrax._one_program import one_program
from ferrax._shapes import is_symbolic_dim
from ferrax.nn._arguments import to_array, to_inexact
from ferrax.numpy._args import entries, without_names
from ferrax.numpy._dtype_functions import dtype_kind, inexact_dtype
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["log1mexp", "log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax", "standardize"]


@custom_jvp
@jit
def log1mexp(x: ArrayLike) -> Array:
    """``log(1 - exp(-x))`` for positive ``x``, accurate for small and for large ones.

    Args:
      x: array of any shape.

    Returns:
      Array of the shape of ``x``; NaN where ``x`` is negative.

    Source: Martin Mächler, "Accurately computing log(1 - exp(-|a|))" (2012): each of the two forms loses accuracy on
    one side of log 2.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.log1mexp(jnp.array([0.5, 1.0]))
    Array([-0.93275213, -0.45867515], dtype=float32)
    """
    x = to_array("log1mexp", x)
    return jnp.where(x < jnp.log(2.0), jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


log1mexp.defjvps(lambda t, ans, x: t / jnp.expm1(x))


@partial(jit, static_argnames=("axis",))
def log_softmax(x: ArrayLike, axis: Any = -1, where: ArrayLike | None = None) -> Array:
    """Logarithm of softmax: ``x - logsumexp(x)`` along an axis.

    Args:
      x: array of any shape.
      axis: axis, or tuple of axes, to normalize over; None for all.
      where: mask, broadcastable to ``x``; entries left out get ``-inf``.

    Returns:
      Array of the shape of ``x``.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.log_softmax(jnp.array([0.0, 0.0]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    x = to_array("log_softmax", x)
    peak = jnp.max(x, axis, where=where, initial=-jnp.inf, keepdims=True)
    kept = x if where is None else jnp.where(where, x, -jnp.inf)
    shifted = kept - lax.stop_gradient(peak)
    total = jnp.log(jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True))
    result = shifted - total
    return result if where is None else jnp.where(where, result, -jnp.inf)


@one_program("axis")
def softmax(x: ArrayLike, axis: Any = -1, where: ArrayLike | None = None) -> Array:
    """``exp(x)`` scaled so that it sums to 1 along an axis.

    Args:
      x, axis: as in `log_softmax`.
      where: mask, broadcastable to ``x``; entries left out get 0.

    Returns: as in `log_softmax`.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.softmax(jnp.array([0.0, 0.0, 1000.0, 1000.0]))
    Array([0. , 0. , 0.5, 0.5], dtype=float32)
    """
    return (_softmax_with_rule if config.read("jax_softmax_custom_jvp") else _softmax)(x, axis, where)


def _softmax(x: ArrayLike, axis: Any, where: ArrayLike | None) -> Array:
    peak = jnp.max(x, axis, where=where, initial=-jnp.inf, keepdims=True)
    kept = x if where is None else jnp.where(where, x, -jnp.inf)
    unnormalized = jnp.exp(kept - lax.stop_gradient(peak))
    result = unnormalized / jnp.sum(unnormalized, axis, where=where, keepdims=True)
    return result if where is None else jnp.where(where, result, 0)


# keeps its result alone for the derivative, where `config.softmax_custom_jvp` asks for it
_softmax_with_rule = custom_jvp(_softmax, nondiff_argnums=(1,))


@_softmax_with_rule.defjvp
def _softmax_jvp(axis: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    (x, where), slope = primals, tangents[0]
    result = _softmax_with_rule(x, axis, where)
    return result, result * (slope - jnp.sum(result * slope, axis, where=where, keepdims=True))


@one_program("axis", "keepdims", "return_sign")
def logsumexp(
    a: ArrayLike,
    axis: Any = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """``log(sum(b * exp(a)))`` without overflow.

    Args:
      a: array of any shape.
      axis: axis, or tuple of axes, to sum over; None for all.
      b: factors, broadcastable with ``a``; negative ones are allowed.
      keepdims: keep the summed axes, with size 1.
      return_sign: return ``(log |sum|, sign of the sum)``; otherwise a negative sum gives NaN.
      where: mask, broadcastable to ``a``; entries left out take no part.

    Returns:
      Array of ``a``'s shape without the summed axes, or a pair of them.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.logsumexp(jnp.array([1000.0, 1000.0]))
    Array(1000.6932, dtype=float32)
    """
    a = to_array("logsumexp", a)
    if where is not None:
        a = jnp.where(where, a, 0)
    if b is None:
        a = _strong(to_inexact("logsumexp", a))
    else:
        b = to_array("logsumexp", b, 1)
        dtype = jnp.result_type(a, b)
        dtype = inexact_dtype(dtype)
        a, b = lax.convert_element_type(a, dtype), lax.convert_element_type(b, dtype)
        a = jnp.where(b != 0, a, -jnp.inf)
    axis, names = without_names(axis)
    axes = _axes(axis, jnp.broadcast_shapes(a.shape, jnp.shape(where)) if where is not None else a.shape)
    over = (*axes, *names)
    peak = jnp.max(a.real, axis=over, keepdims=keepdims, where=where, initial=-jnp.inf)
    peak = lax.stop_gradient(lax.select(jnp.isfinite(peak), peak, lax.full_like(peak, 0)))
    shift = (peak if keepdims else jnp.expand_dims(peak, axes)).astype(a.dtype)
    terms = jnp.exp(a - shift)
    if b is not None:
        terms = terms * b
    total = jnp.sum(terms, axis=over, keepdims=keepdims, where=where)
    sign = lax.sign(total)
    is_complex = jnp.issubdtype(total.dtype, jnp.complexfloating)
    if return_sign or not is_complex:
        total = lax.abs(total)
    result = lax.log(total) + peak.astype(total.dtype)
    if return_sign:
        return result, sign
    if b is not None and not is_complex:
        with debug_nans(False):  # NaN is the answer here, as in JAX
            result = jnp.where(sign < 0, jnp.nan, result)
    return result


@partial(jit, static_argnames=("axis", "keepdims"))
def logmeanexp(x: ArrayLike, axis: Any = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """``log(mean(exp(x)))`` without overflow.

    Args:
      x: array of any shape.
      axis: axis, or tuple of axes, to average over; None for all.
      where: mask, broadcastable to ``x``; entries left out are not counted.
      keepdims: keep the reduced axes, with size 1.

    Returns:
      Array of ``x``'s shape without the reduced axes.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.logmeanexp(jnp.array([1000.0, 1000.0]))
    Array(1000., dtype=float32)
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    return total - jnp.log(_count(jnp.asarray(x), axis, where, keepdims, total.dtype))


@partial(jit, static_argnames=("axis", "algorithm"))
def standardize(
    x: ArrayLike,
    axis: Any = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Shifts and scales to mean 0 and variance 1 along an axis.

    Args:
      x: array of any shape.
      axis: axis, or tuple of axes, to standardize over; None for all.
      mean: the mean to subtract; computed when None.
      variance: the variance to divide by; computed when None.
      epsilon: added to the variance before the square root.
      where: mask, broadcastable to ``x``; entries left out do not enter mean and variance.
      algorithm: ``"fast"`` computes the variance as mean of squares less square of mean, in one pass;
        ``"stable"`` as mean of squared deviations.

    Returns:
      Array of the shape of ``x``.

    Raises:
      ValueError: ``algorithm`` is neither.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.standardize(jnp.array([1.0, 3.0]))
    Array([-0.999995,  0.999995], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"Unknown algorithm {algorithm!r}. Expected 'fast' or 'stable'.")
    x = _strong(to_inexact("standardize", x))
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "stable":
            variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
        else:
            squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
            variance = jnp.clip(squares - jnp.square(mean), 0)  # rounding can make the difference negative
    return (x - jnp.asarray(mean)) * lax.rsqrt(jnp.asarray(variance) + jnp.asarray(epsilon, dtype=x.dtype))


@partial(jit, static_argnames=("num_classes", "dtype", "axis"))
def _one_hot(x, num_classes, *, dtype, axis):
    axis = operator.index(axis)
    ndim = x.ndim + 1
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    axis %= ndim
    x = jnp.expand_dims(x, axis)
    shape = (1,) * axis + (num_classes,) + (1,) * (ndim - 1 - axis)
    classes = lax.broadcasted_iota(x.dtype, shape, axis)
    return (x == classes).astype(dtype)


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: Any = -1) -> Array:
    """Encodes class indices as vectors with a single 1; an index out of range gives zeros.

    Args:
      x: integer array of any shape: the classes.
      num_classes: number of classes, a Python integer.
      dtype: dtype of the result; the default float when None.
      axis: where in the result the new axis goes, or the name of a mapped axis of this size: each of its places has
        the entry of its class.

    Returns:
      Array with one axis more than ``x``, of size ``num_classes``.

    Raises:
      ConcretizationTypeError: ``num_classes`` is traced.
      ValueError: the named axis has another size.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    if not is_symbolic_dim(num_classes):
        message = "The error arose in jax.nn.one_hot argument `num_classes`."
        num_classes = concrete_or_error(operator.index, num_classes, message)
    x = jnp.asarray(x)
    if dtype_kind(x.dtype) not in "iu":
        warnings.warn(
            f"jax.nn.one_hot input should be integer-typed; got dtype={x.dtype}", DeprecationWarning, stacklevel=2
        )
    dtype = canonicalize_dtype(float if dtype is None else dtype, "")
    if not isinstance(axis, str):
        return _one_hot(x, num_classes, dtype=dtype, axis=axis)
    if (size := lax.axis_size(axis)) != num_classes:
        raise ValueError(f"Expected num_classes to match the size of axis {axis}, but {num_classes} != {size}")
    return jnp.asarray(x == lax.axis_index(axis), dtype)


def _strong(x):
    """``x`` with a strong dtype."""
    return lax.convert_element_type(x, x.dtype)


def _axes(axis, shape):
    """``axis`` as a sorted tuple of non-negative axes of an array of that shape."""
    ndim = len(shape)
    if axis is None:
        return tuple(range(ndim))
    axes = []
    for one in entries(axis):
        one = operator.index(one)
        if not -ndim <= one < ndim:
            raise ValueError(f"axis {one} is out of bounds for array of dimension {ndim}")
        axes.append(one % ndim)
    return tuple(sorted(axes))


def _count(x, axis, where, keepdims, dtype):
    """How many entries of ``x`` a reduction over ``axis`` meets."""
    if where is not None:
        counted = jnp.broadcast_to(jnp.asarray(where), x.shape)
        return jnp.sum(counted, axis=axis, keepdims=keepdims, dtype=dtype)
    axis, names = without_names(axis)
    return jnp.asarray(math.prod([*(x.shape[i] for i in _axes(axis, x.shape)), *map(lax.axis_size, names)]), dtype)
