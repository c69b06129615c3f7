"""Initial values of the parameters of neural networks.

An initializer is a function ``(key, shape, dtype) -> Array``; most names here make one. Sources: LeCun et al.,
"Efficient BackProp" (1998); Glorot and Bengio (2010); He et al. (2015); Saxe et al. (2014) for the orthogonal ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import ferrax.numpy as jnp
from ferrax import random
from ferrax._boundary import expose as _expose, shielded as _shielded
from ferrax._core import canonicalize_dtype
from ferrax._ferrax import Array
from ferrax._out_sharding import with_out_sharding
from ferrax.typing import ArrayLike, DTypeLike

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
    "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip

# standard deviations of a unit normal truncated to [-2, 2], and of its complex counterpart truncated to radius 2
_TRUNCATED_STDDEV = 0.87962566103423978
_COMPLEX_TRUNCATED_STDDEV = 0.95311164380491208


@runtime_checkable
class Initializer(Protocol):
    """What an initializer is: a function of a key, a shape and a dtype.

    >>> import ferrax
    >>> isinstance(ferrax.nn.initializers.zeros, ferrax.nn.initializers.Initializer)
    True
    """

    def __call__(self, key, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None):
        """An array of that shape and dtype."""
        raise NotImplementedError


def _dtype(dtype):
    """``dtype`` as a canonical dtype, the default float when None."""
    return canonicalize_dtype(float if dtype is None else dtype, "")


def _placing(make: Callable[..., Array], default: DTypeLike | None) -> Initializer:
    """The initializer that makes arrays, of `default` dtype, and puts them where `out_sharding` says."""

    def init(key, shape, dtype=default, out_sharding=None):
        if out_sharding is None:
            return make(key, shape, dtype)
        return with_out_sharding(lambda: make(key, shape, dtype), out_sharding, "an initializer")

    # warnings name the function that the user called by its frame
    init.__code__ = init.__code__.replace(co_qualname=make.__code__.co_qualname)
    return _shielded(init)


def zeros(key: Array, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """An array of zeros; the key is not used.

    Args:
      key: ignored.
      shape: the shape.
      dtype: the dtype; the default float when None.
      out_sharding: how the array is spread over explicit axes of the mesh in use.

    Returns:
      Array of that shape.

    >>> import ferrax.nn
    >>> ferrax.nn.initializers.zeros(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    return jnp.zeros(shape, _dtype(dtype), out_sharding=out_sharding)


def ones(key: Array, shape: Any, dtype: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """An array of ones; the key is not used.

    Args, Returns: as in `zeros`.

    >>> import ferrax.nn
    >>> ferrax.nn.initializers.ones(None, (2,))
    Array([1., 1.], dtype=float32)
    """
    return jnp.ones(shape, _dtype(dtype), out_sharding=out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Initializer that fills with a value.

    Args:
      value: scalar or array broadcastable to the shape.
      dtype: default dtype of the results.

    Returns:
      Initializer.

    >>> import ferrax.nn
    >>> ferrax.nn.initializers.constant(7.0)(None, (2,))
    Array([7., 7.], dtype=float32)
    """

    def init(key, shape, dtype):
        return jnp.full(shape, value, dtype=_dtype(dtype))

    return _placing(init, dtype)


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Initializer of independent uniform values in [0, scale).

    Args:
      scale: upper bound.
      dtype: default dtype of the results.

    Returns:
      Initializer.

    >>> import ferrax
    >>> ferrax.nn.initializers.uniform(10.0)(ferrax.random.key(0), (2,))
    Array([9.47667 , 9.785799], dtype=float32)
    """

    def init(key, shape, dtype):
        dtype = _dtype(dtype)
        return random.uniform(key, shape, dtype) * jnp.asarray(scale, dtype)

    return _placing(init, dtype)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Initializer of independent normal values.

    Args:
      stddev: standard deviation.
      dtype: default dtype of the results.

    Returns:
      Initializer.

    >>> import ferrax
    >>> ferrax.nn.initializers.normal(5.0)(ferrax.random.key(0), (2,))
    Array([ 8.113211, 10.126324], dtype=float32)
    """

    def init(key, shape, dtype):
        dtype = _dtype(dtype)
        return random.normal(key, shape, dtype) * jnp.asarray(stddev, dtype)

    return _placing(init, dtype)


def truncated_normal(
    stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0
) -> Initializer:
    """Initializer of independent values of a normal distribution cut off at both sides.

    Args:
      stddev: standard deviation of the normal distribution before it is cut.
      dtype: default dtype of the results.
      lower: lower bound, in units of ``stddev``.
      upper: upper bound, in units of ``stddev``.

    Returns:
      Initializer.

    >>> import ferrax
    >>> ferrax.nn.initializers.truncated_normal(5.0)(ferrax.random.key(0), (2,)).shape
    (2,)
    """

    def init(key, shape, dtype):
        dtype = _dtype(dtype)
        return random.truncated_normal(key, lower, upper, shape, dtype) * jnp.asarray(stddev, dtype)

    return _placing(init, dtype)


def _size(shape, axis):
    """Product of the sizes along an axis or several."""
    axes = axis if isinstance(axis, Sequence) else (axis,)
    return math.prod(shape[i] for i in axes)


def _fans(shape, in_axis, out_axis, batch_axis):
    """How many inputs an output depends on, and how many outputs an input enters."""
    if len(shape) <= 1:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor with default "
            "in_axis. Must be at least 2D or specify in_axis explicitly."
        )
    inputs, outputs, batch = (_size(shape, axis) for axis in (in_axis, out_axis, batch_axis))
    field = math.prod(shape) / inputs / outputs / batch
    return inputs * field, outputs * field


def _complex_uniform(key, shape, dtype):
    """Uniform values in the complex disk of radius sqrt(2), so of variance 1."""
    radius_key, angle_key = random.split(key)
    real = jnp.zeros((), dtype).real.dtype
    radius = jnp.sqrt(2 * random.uniform(radius_key, shape, real)).astype(dtype)
    angle = 2 * math.pi * random.uniform(angle_key, shape, real).astype(dtype)
    return radius * jnp.exp(1j * angle)


def _complex_truncated_normal(key, upper, shape, dtype):
    """Standard complex normal values, their absolute value cut off at ``upper``."""
    radius_key, angle_key = random.split(key)
    real = jnp.zeros((), dtype).real.dtype
    kept = 1 - jnp.exp(jnp.asarray(-(upper**2), dtype))
    radius = jnp.sqrt(-jnp.log(1 - kept * random.uniform(radius_key, shape, real).astype(dtype)))
    angle = 2 * math.pi * random.uniform(angle_key, shape, real).astype(dtype)
    return radius * jnp.exp(1j * angle)


def variance_scaling(
    scale: ArrayLike,
    mode: Any,
    distribution: Any,
    in_axis: Any = -2,
    out_axis: Any = -1,
    batch_axis: Any = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Initializer whose variance is ``scale`` over the number of inputs, outputs, or a mean of both.

    Args:
      scale: numerator of the variance.
      mode: ``"fan_in"``, ``"fan_out"``, ``"fan_avg"`` or ``"fan_geo_avg"``.
      distribution: ``"truncated_normal"``, ``"normal"`` or ``"uniform"``.
      in_axis: axis or axes of the inputs.
      out_axis: axis or axes of the outputs.
      batch_axis: axis or axes that number independent weights.
      dtype: default dtype of the results.

    Returns:
      Initializer.

    Raises:
      ValueError: ``mode`` or ``distribution`` is none of these.

    >>> import ferrax
    >>> init = ferrax.nn.initializers.variance_scaling(2.0, "fan_in", "normal")
    >>> init(ferrax.random.key(0), (3, 4)).shape
    (3, 4)
    """

    def init(key, shape, dtype):
        dtype = _dtype(dtype)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        denominators = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": (fan_in * fan_out) ** 0.5,
        }
        if mode not in denominators:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = jnp.asarray(scale / denominators[mode], dtype=dtype)
        return _scaled(key, shape, dtype, distribution, variance)

    return _placing(init, dtype)


def _scaled(key, shape, dtype, distribution, variance):
    """Values of a distribution with mean 0 and that variance."""
    is_complex = jnp.issubdtype(dtype, jnp.complexfloating)
    if distribution == "normal":
        return random.normal(key, shape, dtype) * jnp.sqrt(variance)
    if distribution == "uniform":
        if is_complex:
            return _complex_uniform(key, shape, dtype) * jnp.sqrt(variance)
        return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
    if distribution == "truncated_normal":
        if is_complex:
            stddev = jnp.sqrt(variance) / jnp.asarray(_COMPLEX_TRUNCATED_STDDEV, dtype)
            return _complex_truncated_normal(key, 2, shape, dtype) * stddev
        stddev = jnp.sqrt(variance) / jnp.asarray(_TRUNCATED_STDDEV, dtype)
        return random.truncated_normal(key, -2, 2, shape, dtype) * stddev
    raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")


def glorot_uniform(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Glorot (Xavier) uniform: variance 1 over the mean of inputs and outputs.

    Args:
      in_axis, out_axis, batch_axis, dtype: as in `variance_scaling`.

    Returns: as in `variance_scaling`.

    >>> import ferrax
    >>> ferrax.nn.initializers.glorot_uniform()(ferrax.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


xavier_uniform = glorot_uniform


def glorot_normal(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Glorot (Xavier) truncated normal: variance 1 over the mean of inputs and outputs.

    Args:
      in_axis, out_axis, batch_axis, dtype: as in `variance_scaling`.

    Returns: as in `variance_scaling`.

    >>> import ferrax
    >>> ferrax.nn.initializers.glorot_normal()(ferrax.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_normal = glorot_normal


def lecun_uniform(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: DTypeLike | None = None
) -> Initializer:
    """LeCun uniform: variance 1 over the number of inputs.

    Args:
      in_axis, out_axis, batch_axis, dtype: as in `variance_scaling`.

    Returns: as in `variance_scaling`.

    >>> import ferrax
    >>> ferrax.nn.initializers.lecun_uniform()(ferrax.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: DTypeLike | None = None
) -> Initializer:
    """LeCun truncated normal: variance 1 over the number of inputs.

    Args:
      in_axis, out_axis, batch_axis, dtype: as in `variance_scaling`.

    Returns: as in `variance_scaling`.

    >>> import ferrax
    >>> ferrax.nn.initializers.lecun_normal()(ferrax.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: DTypeLike | None = None
) -> Initializer:
    """He (Kaiming) uniform: variance 2 over the number of inputs.

    Args:
      in_axis, out_axis, batch_axis, dtype: as in `variance_scaling`.

    Returns: as in `variance_scaling`.

    >>> import ferrax
    >>> ferrax.nn.initializers.he_uniform()(ferrax.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


kaiming_uniform = he_uniform


def he_normal(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: DTypeLike | None = None
) -> Initializer:
    """He (Kaiming) truncated normal: variance 2 over the number of inputs.

    Args:
      in_axis, out_axis, batch_axis, dtype: as in `variance_scaling`.

    Returns: as in `variance_scaling`.

    >>> import ferrax
    >>> ferrax.nn.initializers.he_normal()(ferrax.random.key(0), (3, 4)).shape
    (3, 4)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


kaiming_normal = he_normal


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Initializer of uniformly distributed orthogonal matrices (of matrices with orthogonal columns or rows).

    Args:
      scale: factor.
      column_axis: the axis of the columns; the others together are the rows.
      dtype: default dtype of the results.

    Returns:
      Initializer.

    Raises:
      ValueError: (from the initializer) the shape has fewer than 2 axes.

    >>> import ferrax
    >>> init = ferrax.nn.initializers.orthogonal()
    >>> callable(init)
    True
    """

    def init(key, shape, dtype):
        dtype = _dtype(dtype)
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        if 0 in shape:
            return jnp.zeros(shape, dtype)
        columns = shape[column_axis]
        rows = math.prod(shape) // columns
        matrix = random.orthogonal(key, rows, (), dtype, columns)
        matrix = matrix.reshape(tuple(n for i, n in enumerate(shape) if i != column_axis % len(shape)) + (columns,))
        return jnp.asarray(scale, dtype) * jnp.moveaxis(matrix, -1, column_axis)

    return _placing(init, dtype)


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Initializer of convolution kernels that act as an orthogonal matrix at their centre and are 0 elsewhere.

    Args:
      scale: factor.
      column_axis: the axis of the columns of the matrix.
      dtype: default dtype of the results.

    Returns:
      Initializer, for shapes of 3, 4 or 5 axes with at least as many outputs (last) as inputs (last but one).

    Raises:
      ValueError: (from the initializer) the shape is not such a shape.

    Source: Xiao et al. (2018), "Dynamical isometry and a mean field theory of CNNs".

    >>> import ferrax
    >>> callable(ferrax.nn.initializers.delta_orthogonal())
    True
    """

    def init(key, shape, dtype):
        dtype = _dtype(dtype)
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`. ")
        matrix = orthogonal(scale, column_axis, dtype)(key, tuple(shape[-2:]))
        centre = tuple((n - 1) // 2 for n in shape[:-2])
        return jnp.zeros(shape, dtype).at[centre].set(matrix)

    return _placing(init, dtype)


_expose(globals())
