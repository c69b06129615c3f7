"""Random bits and what is made of them directly: uniform, integer and boolean values.

A uniform float is made from the high bits of a random word, as the fraction of a float in [1, 2), less 1.
Read next: ``_continuous.py``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import dtypes, jit, lax
from ferrax._ferrax import Array
from ferrax._narrow import limits
from ferrax._shapes import static_shape
from ferrax.numpy._ranks import check_ranks
from ferrax.random import _arguments as args
from ferrax.random._generators import native_bits
from ferrax.random._key_arrays import KeyArray
from ferrax.random._keys import checked_key, split_keys
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["bernoulli", "bits", "randint", "rademacher", "uniform"]


def random_words(key: Array, width: int, shape: Any) -> Array:
    """Random words of 8, 16, 32 or 64 bits; one array of ``shape`` for each of an array of keys."""
    if isinstance(key, KeyArray):
        return key._impl.over(key._impl.random_bits, key._base_array, width, tuple(shape))
    return native_bits(key, width, tuple(shape))


@args.placed
def bits(key: Array, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Uniformly distributed bits, as unsigned integers.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: an unsigned integer dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of that shape and dtype.

    Raises:
      ValueError: ``dtype`` is not an unsigned integer dtype.

    >>> import ferrax
    >>> ferrax.random.bits(ferrax.random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    key, _ = checked_key("bits", key)
    default = dtypes.canonicalize_dtype(np.uint64)
    dtype = args.checked_dtype("bits", default if dtype is None else dtype, "unsigned int")
    return random_words(key, dtype.itemsize * 8, static_shape(shape))


@args.placed
def uniform(
    key: Array,
    shape: Any = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniformly distributed values in [minval, maxval).

    Args:
      key, shape: as in `bits`.
      dtype: a float dtype; the default when None.
      minval: lower bound, broadcastable to ``shape``; a scalar's may have axes of one element, which the result takes.
      maxval: upper bound, broadcastable to ``shape``; it may have more axes of one element at the left.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns: as in `bits`.

    Raises:
      ValueError: ``dtype`` is not a float dtype, or the bounds do not broadcast to ``shape``.

    >>> import ferrax
    >>> ferrax.random.uniform(ferrax.random.key(0), (3,))
    Array([0.947667  , 0.9785799 , 0.33229148], dtype=float32)
    """
    return _uniform(*args.sampler("uniform", key, shape, dtype), minval, maxval)


@partial(jit, static_argnums=(1, 2))
def _uniform(key, shape, dtype, minval, maxval):
    if shape == () and {*np.shape(minval), *np.shape(maxval)} == {1}:
        scalars = (args.as_dtype(x, dtype).reshape(()) for x in (minval, maxval))
        return scaled_uniform(unit_uniform(key, shape, dtype), *scalars).reshape(np.shape(minval))
    more = np.ndim(maxval) - len(shape)
    if more > 0 and np.shape(maxval)[:more] == (1,) * more:
        check_ranks("subtract", maxval, np.broadcast_to(0, shape))
        maxval = lax.squeeze(args.as_dtype(maxval, dtype), range(more))
    args.broadcast_shape(shape, minval, maxval)
    minval, maxval = (lax.broadcast_to_rank(args.as_dtype(x, dtype), len(shape)) for x in (minval, maxval))
    return scaled_uniform(unit_uniform(key, shape, dtype), minval, maxval)


def unit_uniform(key: Array, shape: Any, dtype: DTypeLike) -> Array:
    """Uniform values in [0, 1) for one key, or of shape ``key.shape + shape`` for several."""
    info = limits(dtype)
    # a word has at least 8 bits, and enough of them for the fraction
    width = 8 if info.nmant < 8 else info.bits
    words = random_words(key, width, shape)
    word = jnp.dtype(f"uint{info.bits}")
    if width != info.bits:
        words = lax.convert_element_type(words, word)
    one = np.ones((), dtype).view(word)
    fraction = lax.shift_right_logical(words, np.array(width - info.nmant, word))
    return lax.bitcast_convert_type(lax.bitwise_or(fraction, one), dtype) - np.ones((), dtype)


def scaled_uniform(unit: ArrayLike, minval: ArrayLike, maxval: ArrayLike) -> Array:
    """Values in [0, 1) moved to [minval, maxval); rounding never goes below."""
    return lax.max(*jnp.broadcast_arrays(minval, unit * (maxval - minval) + minval))


@args.placed
def bernoulli(
    key: Array, p: ArrayLike = 0.5, shape: Any = None, mode: Any = "low", *, out_sharding: Any = None
) -> Array:
    """Booleans that are True with a given probability.

    Args:
      key: a key.
      p: probability of True, of a float dtype.
      shape: shape of the result; that of ``p`` when None.
      mode: ``"high"`` draws twice the bits, so that probabilities below 2**-24 come out right.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Boolean array.

    Raises:
      TypeError: ``p`` is not of a float dtype.

    >>> import ferrax
    >>> ferrax.random.bernoulli(ferrax.random.key(0), 0.7, (3,))
    Array([False, False,  True], dtype=bool)
    """
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}; expected 'high' or 'low'")
    key, _ = checked_key("bernoulli", key)
    dtype = args.canonical(jnp.result_type(p))
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype}.")
    return _bernoulli(key, args.as_dtype(p, dtype), args.broadcast_shape(shape, p), mode)


@partial(jit, static_argnums=(2, 3))
def _bernoulli(key, p, shape, mode):
    args.broadcast_shape(shape, p)
    dtype = p.dtype
    if mode == "low":
        return uniform(key, shape, dtype) < p
    low, high = uniform(key, (2, *shape), dtype)
    return high * args.as_dtype(limits(dtype).eps, dtype) < p - low


@args.placed
def rademacher(key: Array, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """-1 or 1, with equal probability.

    Args:
      key, shape: as in `bits`.
      dtype: dtype of the result; the default integer when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns: as in `bits`.

    >>> import ferrax
    >>> ferrax.random.rademacher(ferrax.random.key(0), (3,))
    Array([-1, -1,  1], dtype=int32)
    """
    key, _ = checked_key("rademacher", key)
    return _rademacher(key, static_shape(shape), args.int_or(dtype))


@partial(jit, static_argnums=(1, 2))
def _rademacher(key, shape, dtype):
    heads = bernoulli(key=key, p=0.5, shape=shape).astype(dtype)
    return (2 * heads - 1).astype(dtype)


@args.placed
def randint(
    key: Array,
    shape: Any,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniformly distributed integers in [minval, maxval).

    Args:
      key: a key.
      shape: shape of the result.
      minval: lower bound, broadcastable to ``shape``.
      maxval: upper bound (not reached), broadcastable to ``shape``.
      dtype: an integer dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of that shape and dtype; ``minval`` where the interval is empty.

    Raises:
      TypeError: ``dtype`` is not an integer dtype.

    >>> import ferrax
    >>> ferrax.random.randint(ferrax.random.key(0), (4,), 0, 10)
    Array([9, 0, 2, 3], dtype=int32)
    """
    key, _ = checked_key("randint", key)
    dtype = args.int_or(dtype)
    if not jnp.issubdtype(dtype, jnp.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}")
    shape = static_shape(shape)
    drawn = dtype
    if dtype.itemsize < 4:
        # narrow integers are drawn as int32: their interval may end just above the largest of them
        info, drawn = limits(dtype), jnp.dtype("int32")
        minval = jnp.clip(args.as_dtype(jnp.asarray(minval), drawn), int(info.min), int(info.max))
        maxval = jnp.clip(args.as_dtype(jnp.asarray(maxval), drawn), int(info.min), int(info.max) + 1)
    result = _randint(key, shape, minval, maxval, drawn)
    return result if drawn == dtype else lax.convert_element_type(result, dtype)


def _clipped(x, dtype):
    """Integers ``x`` as ``dtype``, those out of its range as its nearest end."""
    have, want = limits(x.dtype), limits(dtype)
    low, high = max(int(have.min), int(want.min)), min(int(have.max), int(want.max))
    return lax.convert_element_type(jnp.clip(x, np.array(low, x.dtype), np.array(high, x.dtype)), dtype)


@partial(jit, static_argnums=(1, 4))
def _randint(key, shape, minval, maxval, dtype):
    args.broadcast_shape(shape, minval, maxval)
    minval, maxval = jnp.asarray(minval), jnp.asarray(maxval)
    if not jnp.issubdtype(minval.dtype, jnp.integer):
        minval = minval.astype(int)
    if not jnp.issubdtype(maxval.dtype, jnp.integer):
        maxval = maxval.astype(int)
    # an upper bound one above the largest value of the dtype is clipped below, and the interval widened again
    past_end = maxval > _clipped(jnp.asarray(np.array(limits(dtype).max, dtype)), maxval.dtype)
    minval, maxval = (lax.broadcast_to_rank(_clipped(x, dtype), len(shape)) for x in (minval, maxval))
    past_end = lax.broadcast_to_rank(past_end, len(shape))

    width = dtype.itemsize * 8
    word = jnp.dtype(f"uint{width}")
    one = np.array(1, word)
    high_key, low_key = split_keys(key, 2)
    high, low = random_words(high_key, width, shape), random_words(low_key, width, shape)
    span = lax.convert_element_type(maxval - minval, word)
    span = jnp.where(maxval <= minval, one, span)
    span = jnp.where(past_end & (maxval > minval), span + one, span)
    # 2**width mod span, by way of its square root; two words make the bias of the remainder negligible
    multiplier = lax.rem(jnp.broadcast_to(np.array(2 ** (width // 2), word), span.shape), span)
    multiplier = lax.rem(multiplier * multiplier, span)
    span, multiplier = jnp.broadcast_to(span, shape), jnp.broadcast_to(multiplier, shape)
    offset = lax.rem(lax.rem(high, span) * multiplier + lax.rem(low, span), span)
    return minval + lax.convert_element_type(offset, dtype)


def tiny(dtype: DTypeLike) -> Any:
    """The smallest normal number of a dtype, of that dtype."""
    return np.array(limits(dtype).tiny, dtype)


def below_one(dtype: DTypeLike) -> Any:
    """The number next to -1 on the side of 0, of that dtype."""
    return np.array(-1 + float(limits(dtype).epsneg), dtype)


SQRT2 = math.sqrt(2)
