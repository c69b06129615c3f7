"""Random bits from counters, by the algorithms that programs can name: `rng_bit_generator`.

Both algorithms turn a key and a counter of 64 bits into a block of words, so that any block can be made alone.
Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Read next: `ferrax/random/_keys.py` for
random keys, which are not of this kind.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ferrax._api import jit
from ferrax._core import asarray, canonicalize_dtype
from ferrax._ferrax import Array, making_placed
from ferrax._out_sharding import put
from ferrax._shapes import static_shape
from ferrax.lax.conversion import bitcast_convert_type, convert_element_type
from ferrax.lax.elementwise import mulhi
from ferrax.lax.shape import broadcast_in_dim, broadcasted_iota, iota, reshape
from ferrax.lax.slicing import concatenate, slice_in_dim
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["RandomAlgorithm", "rng_bit_generator"]


class RandomAlgorithm(enum.IntEnum):
    """The algorithms of random bits that programs can name.

    The default is Philox.

    Example:
      >>> from ferrax import lax
      >>> str(lax.RandomAlgorithm(1))
      'RNG_THREE_FRY'
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """Random bits from a state, and the state for the next ones; `ferrax.random` is what most programs want.

    Under `vmap` over states the first one draws for all rows, as in JAX.

    Args:
      key: uint32 array of shape (4,) or uint64 array of shape (2,): a key and a counter.
      shape: shape of the bits.
      dtype: uint8, uint16, uint32 or uint64.
      algorithm: which algorithm; the default is Philox.
      out_sharding: how the bits are spread over explicit axes of the mesh in use.

    Returns:
      Pair (state with the counter moved on, array of bits).

    Raises:
      TypeError: the state or the dtype is of another kind.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> state, bits = lax.rng_bit_generator(jnp.arange(4, dtype="uint32"), (2, 3))
      >>> state, bits.shape
      (Array([0, 1, 4, 3], dtype=uint32), (2, 3))
    """
    if out_sharding is not None:
        after, bits = making_placed(lambda: rng_bit_generator(key, shape, dtype, algorithm), "rng_bit_generator")
        return after, put(bits, out_sharding, "rng_bit_generator")
    dtype = np.dtype(canonicalize_dtype(dtype, ""))
    if dtype not in (np.uint8, np.uint16, np.uint32, np.uint64):
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}")
    state = asarray(key)
    if (state.shape, state.dtype) not in (((4,), np.uint32), ((2,), np.uint64)):
        raise TypeError(
            f"rng_bit_generator takes a state of uint32[4] or uint64[2], got {state.dtype}{list(state.shape)}"
        )
    return _drawn(state, static_shape(shape), dtype, RandomAlgorithm(algorithm))


def _drawn(state: Array, shape: tuple[int, ...], dtype: Any, algorithm: RandomAlgorithm) -> tuple[Array, Array]:
    """The words, and the next state.

    Under `vmap` over states the first one draws for all rows, and is the only one that moves on, as JAX has it.
    """
    from ferrax.custom_batching import custom_vmap

    drawn = custom_vmap(lambda state: _generated(state, shape, dtype, algorithm))

    @drawn.def_vmap
    def rule(size: int, batched: Any, states: Array) -> tuple[tuple[Array, Array], tuple[bool, bool]]:
        after, bits = _drawn(states[0], (size, *shape), dtype, algorithm)
        return (states.at[0].set(after), bits), (True, True)

    return drawn(state)


def philox_words(state: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Words that Philox draws from a state, as `rng_bit_generator` does for one.

    Args:
      state: uint32 array of shape (4,).
      shape: shape of the words.
      dtype: an unsigned integer dtype.

    Returns:
      Array of that shape and dtype.

    >>> import ferrax.numpy as jnp
    >>> print(philox_words(jnp.zeros(4, "uint32"), (2,), jnp.dtype("uint32")))
    [1713891541 3781805453]
    """
    return _generated(state, shape, dtype, RandomAlgorithm.RNG_PHILOX)[1]


@partial(jit, static_argnums=(1, 2, 3))
def _generated(state: Array, shape: tuple[int, ...], dtype: Any, algorithm: RandomAlgorithm) -> tuple[Array, Array]:
    words = reshape(bitcast_convert_type(state, np.uint32), (4,))
    key, low, high = (words[0], words[1]), words[2], words[3]
    size, double = math.prod(shape), dtype == np.uint64
    if algorithm == RandomAlgorithm.RNG_THREE_FRY:
        blocks, bits = _threefry_bits(key, (low, high), (*shape, 2) if double else shape, double)
    else:
        blocks = -(-size * (2 if double else 1) // 4)
        first, second = _plus(low, high, *_counted(blocks))
        # the key is the upper half of a counter of 128 bits, too
        wraps = convert_element_type(second < high, np.uint32)
        block = philox(key, (first, second, *_plus(*key, wraps)))
        bits = _in_turn(block, 0)[: size * (2 if double else 1)]
    bits = reshape(bits, (*shape, 2) if double else shape)
    bits = bitcast_convert_type(bits, np.uint64) if double else convert_element_type(bits, dtype)
    following = _plus(low, high, np.uint32(blocks & _LOW_WORD), np.uint32(blocks >> 32))
    after = concatenate([words[:2], *(reshape(word, (1,)) for word in following)], 0)
    if state.dtype == np.uint64:
        after = bitcast_convert_type(reshape(after, (2, 2)), np.uint64)
    return after, bits


def _plus(low: Any, high: Any, by: Any, turns: Any = None) -> tuple[Any, Any]:
    """A number of 64 bits, in two words, plus one whose upper word, 0 where none is given, comes last."""
    total = low + by
    upper = high + convert_element_type(total < low, np.uint32)
    return total, upper if turns is None else upper + turns


def _counted(count: int) -> tuple[Array] | tuple[Array, Array]:
    """The numbers below one: their lower words, and the upper ones where any is not 0."""
    if count <= _LOW_WORD:
        return (iota(np.uint32, count),)
    square = (-(-count // (_LOW_WORD + 1)), _LOW_WORD + 1)
    low, high = (reshape(broadcasted_iota(np.uint32, square, axis), (math.prod(square),))[:count] for axis in (1, 0))
    return low, high


def _in_turn(parts: Sequence[Array], axis: int) -> Array:
    """The entries of several arrays along an axis by turns: the first of each, the second of each, and so on."""
    shape = parts[0].shape
    each = [reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :])) for x in parts]
    return reshape(concatenate(each, axis + 1), (*shape[:axis], shape[axis] * len(parts), *shape[axis + 1 :]))


def _threefry_bits(
    key: tuple[Any, Any], counter: tuple[Any, Any], shape: tuple[int, ...], double: bool
) -> tuple[int, Array]:
    """The number of blocks and the words of an array of words.

    A block's two words are neighbours along one axis: the last for words of 64 bits, else the first axis of even
    length, or the longest where there is none and one word in two blocks is left out.
    """
    whole = shape or (1,)
    even = [i for i, n in enumerate(whole) if n % 2 == 0]
    axis = len(whole) - 1 if double else even[0] if even else whole.index(max(whole))
    half = (*whole[:axis], -(-whole[axis] // 2), *whole[axis + 1 :])
    blocks = math.prod(half)
    words = threefry(key, _plus(*counter, *_counted(blocks)))
    return blocks, slice_in_dim(_in_turn([reshape(word, half) for word in words], axis), 0, whole[axis], axis=axis)


# how far words are turned in the rounds of two groups, which alternate
_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_LOW_WORD = 2**32 - 1


def threefry(key: tuple[Any, Any], block: tuple[Any, Any]) -> tuple[Any, Any]:
    """Threefry of two words in 20 rounds.

    Args:
      key: two uint32 scalars.
      block: two uint32 arrays of one shape.

    Returns:
      Two arrays of that shape.

    >>> import ferrax.numpy as jnp
    >>> zero = jnp.uint32(0)
    >>> [hex(int(word)) for word in threefry((zero, zero), (zero, zero))]
    ['0x6b200159', '0x99ba4efe']
    """
    schedule = (*key, key[0] ^ key[1] ^ _PARITY)
    x, y = block[0] + key[0], block[1] + key[1]
    for group in range(5):
        for turn in _TURNS[group % 2]:
            x = x + y
            y = ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn))) ^ x
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


_FACTORS = np.uint32(0xD2511F53), np.uint32(0xCD9E8D57)
_STEPS = 0x9E3779B9, 0xBB67AE85


def philox(key: tuple[Any, Any], block: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Philox of four words in 10 rounds.

    Args:
      key: two uint32 scalars.
      block: four uint32 arrays of one shape.

    Returns:
      Four arrays of that shape.

    >>> import ferrax.numpy as jnp
    >>> zero = jnp.uint32(0)
    >>> [hex(int(word)) for word in philox((zero, zero), (zero, zero, zero, zero))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    a, b, c, d = block
    for i in range(10):
        first, second = (k + np.uint32(i * step % 2**32) for k, step in zip(key, _STEPS))
        upper = [mulhi(x, broadcast_in_dim(asarray(f), x.shape, ())) for x, f in zip((a, c), _FACTORS)]
        a, b, c, d = upper[1] ^ b ^ first, c * _FACTORS[1], upper[0] ^ d ^ second, a * _FACTORS[0]
    return a, b, c, d
