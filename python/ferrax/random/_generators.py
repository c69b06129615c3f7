"""Generators of random bits besides the default one: what a key of each is made of, and what is made of a key.

`rbg` and `unsafe_rbg` draw with Philox by `lax.rng_bit_generator`; the others encrypt counters under the key, each word
by itself. Functions take the data of one key, or of an array of keys with leading axes.
Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Read next: `_key_arrays.py`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import lax
from ferrax._api import jit, vmap
from ferrax._ferrax import Array, lax as _prims
from ferrax.config import config
from ferrax.custom_batching import custom_vmap
from ferrax.lax.random_bits import philox_words, threefry

__all__ = ["IMPLS", "PRNGImpl", "native_bits", "native_split", "register"]

Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class PRNGImpl:
    """A generator: what its keys are made of, and four functions of their data.

    Args:
      key_shape: shape of a key's data.
      seed: function from an integer scalar to a key's data.
      split: function from a key's data and a shape to the data of that many keys, with the shape in front.
      random_bits: function from a key's data, a number of bits and a shape to an array of unsigned integers.
      fold_in: function from a key's data and a uint32 scalar to a key's data.
      name: the name.
      tag: the short name, which dtypes show.
      leading: whether the functions take data with leading axes.

    >>> import ferrax as jax
    >>> jax.extend.random.rbg_prng_impl.key_shape
    (4,)
    """

    key_shape: Shape
    seed: Callable[[Array], Array]
    split: Callable[[Array, Shape], Array]
    random_bits: Callable[[Array, int, Shape], Array]
    fold_in: Callable[[Array, Any], Array]
    name: str = "<unnamed>"
    tag: str = "?"
    leading: bool = False

    def __repr__(self) -> str:
        return f"PRNGSpec({self.name!r})"

    @property
    def _impl(self) -> PRNGImpl:
        """Itself: JAX's descriptions of generators have theirs."""
        return self

    def over(self, function: Callable[..., Array], data: Array, *args: Any) -> Array:
        """Applies one of the functions to the data of an array of keys."""
        if self.leading:
            return function(data, *args)

        def one(data: Array) -> Array:
            return function(data, *args)

        for _ in range(data.ndim - len(self.key_shape)):
            one = vmap(one)
        return one(data)

    def over_seeds(self, seeds: Array) -> Array:
        """The data of keys of an array of integers."""
        if self.leading:
            return self.seed(seeds)
        one = self.seed
        for _ in range(seeds.ndim):
            one = vmap(one)
        return one(seeds)


#: Generators by name.
IMPLS: dict[str, PRNGImpl] = {}


def register(impl: PRNGImpl) -> PRNGImpl:
    """Makes a generator known by its name."""
    IMPLS[impl.name] = impl
    return impl


# --- the default generator, by keys of the core


def native_split(keys: Array, shape: Shape) -> Array:
    """Keys of the core from each of an array of them, with the shape behind the array's."""
    if config.read("jax_threefry_partitionable"):
        return _prims.random_split(keys, shape)
    data = _prims.random_unwrap(keys)
    words = _by_halves(data, 2 * math.prod(shape)).reshape(*keys.shape, *shape, 2)
    return _prims.random_wrap(words)


def native_bits(keys: Array, width: int, shape: Shape) -> Array:
    """Random words of each of an array of keys of the core."""
    if config.read("jax_threefry_partitionable"):
        return _prims.random_bits(keys, width, shape)
    size = math.prod(shape)
    words = _by_halves(_prims.random_unwrap(keys), -(-size * width // 32))
    dtype = np.dtype(f"uint{width}")
    if width == 64:
        high, low = (part.astype(dtype) for part in jnp.split(words, 2, axis=-1))
        words = (high << np.uint64(32)) | low
    elif width < 32:
        shifts = np.arange(32 // width, dtype=np.uint32) * np.uint32(width)
        parts = words[..., None] >> lax.broadcast_in_dim(
            jnp.asarray(shifts), (*words.shape, len(shifts)), (words.ndim,)
        )
        words = parts.reshape(*keys.shape, -1).astype(dtype)[..., :size]
    return words.reshape(*keys.shape, *shape)


@partial(jit, static_argnums=1)
def _by_halves(data: Array, count: int) -> Array:
    """Encrypted counters 0..count of each key, the first half of them with the second: the older streams."""
    half = -(-count // 2)
    counters = jnp.arange(2 * half, dtype=np.uint32)
    if count % 2:
        counters = counters.at[-1].set(np.uint32(0))
    batch = data.shape[:-1]
    key = tuple(jnp.broadcast_to(data[..., i, None], (*batch, half)) for i in range(2))
    x, y = threefry(
        (key[0], key[1]), tuple(jnp.broadcast_to(c, (*batch, half)) for c in (counters[:half], counters[half:]))
    )
    return jnp.concatenate([x, y], axis=-1)[..., :count]


def _threefry_seed(seeds: Array) -> Array:
    return _prims.random_unwrap(_prims.random_seed(seeds))


def _threefry_split(data: Array, shape: Shape) -> Array:
    return _prims.random_unwrap(native_split(_prims.random_wrap(data), tuple(shape)))


def _threefry_bits(data: Array, width: int, shape: Shape) -> Array:
    return native_bits(_prims.random_wrap(data), width, tuple(shape))


def _threefry_fold_in(data: Array, msg: Any) -> Array:
    return _prims.random_unwrap(_prims.random_fold_in(_prims.random_wrap(data), jnp.asarray(msg, np.uint32)))


THREEFRY = register(
    PRNGImpl((2,), _threefry_seed, _threefry_split, _threefry_bits, _threefry_fold_in, "threefry2x32", "fry", True)
)


# --- rbg


def _rbg_words(data: Array, dtype: Any, shape: Shape) -> Array:
    """Words that Philox draws for each key.

    Under `vmap` over keys the first key draws for all of them, as JAX has it: the words of a row depend on how many
    rows there are.
    """

    def draw(data: Array) -> Array:
        batch = data.shape[:-1]
        one = partial(philox_words, shape=shape, dtype=np.dtype(dtype))
        words = vmap(one)(data.reshape(-1, 4)) if batch else one(data)
        return words.reshape(*batch, *shape)

    drawn = custom_vmap(draw)

    @drawn.def_vmap
    def rule(size: int, batched: Any, data: Array) -> tuple[Array, bool]:
        words = _rbg_words(data[0], dtype, (size, *shape))
        return jnp.moveaxis(words, data.ndim - 2, 0), True

    return drawn(data)


def _halves(data: Array) -> Array:
    """The two keys of the default generator that a key of four words is."""
    return _prims.random_wrap(data.reshape(*data.shape[:-1], 2, 2))


def _rbg_seed(seeds: Array) -> Array:
    half = _threefry_seed(seeds)
    return jnp.concatenate([half, half], axis=-1)


def _rbg_split(data: Array, shape: Shape) -> Array:
    batch = data.ndim - 1
    words = _prims.random_unwrap(native_split(_halves(data), tuple(shape)))
    return jnp.moveaxis(words, batch, -2).reshape(*data.shape[:-1], *shape, 4)


def _rbg_fold_in(data: Array, msg: Any) -> Array:
    keys = _halves(data)
    folded = _prims.random_fold_in(keys, jnp.broadcast_to(jnp.asarray(msg, np.uint32), keys.shape))
    return _prims.random_unwrap(folded).reshape(data.shape)


def _rbg_bits(data: Array, width: int, shape: Shape) -> Array:
    return _rbg_words(data, f"uint{width}", tuple(shape))


def _unsafe_split(data: Array, shape: Shape) -> Array:
    words = _rbg_words(data, np.uint32, (10 * math.prod(shape), 4))
    return words[..., ::10, :].reshape(*data.shape[:-1], *shape, 4)


def _unsafe_fold_in(data: Array, msg: Any) -> Array:
    words = _rbg_words(_rbg_seed(jnp.asarray(msg, np.uint32)), np.uint32, (10, 4))
    return data ^ jnp.broadcast_to(words[-1], data.shape)


RBG = register(PRNGImpl((4,), _rbg_seed, _rbg_split, _rbg_bits, _rbg_fold_in, "rbg", "rbg", True))
UNSAFE_RBG = register(PRNGImpl((4,), _rbg_seed, _unsafe_split, _rbg_bits, _unsafe_fold_in, "unsafe_rbg", "urbg", True))


# --- counters encrypted under keys


def _mul_wide(x: Array, factor: int) -> tuple[Array, Array]:
    """The high and the low word of products with a word."""
    words = jnp.full(x.shape, np.uint32(factor))
    return lax.mulhi(x, words), x * words


def _philox2(key: tuple[Array, ...], counter: tuple[Array, ...]) -> tuple[Array, ...]:
    """Philox of two words in 10 rounds."""
    (k,), (a, b) = key, counter
    for i in range(10):
        high, low = _mul_wide(a, 0xD256D193)
        a, b = high ^ (k + np.uint32(i * 0x9E3779B9 % 2**32)) ^ b, low
    return a, b


def _philox4(key: tuple[Array, ...], counter: tuple[Array, ...]) -> tuple[Array, ...]:
    from ferrax.lax.random_bits import philox

    a, b, c, d = counter
    return philox((key[0], key[1]), (a, b, c, d))


_TURNS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def _turned(x: Array, by: int) -> Array:
    return (x << np.uint32(by)) | (x >> np.uint32(32 - by))


def _threefry4(key: tuple[Array, ...], counter: tuple[Array, ...]) -> tuple[Array, ...]:
    """Threefry of four words in 20 rounds."""
    schedule = (*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ np.uint32(0x1BD11BDA))
    x = [c + k for c, k in zip(counter, key, strict=True)]
    for i in range(20):
        # the second word of each pair changes place from round to round
        first, second = (1, 3) if i % 2 == 0 else (3, 1)
        for base, partner, turn in ((0, first, _TURNS[i % 8][0]), (2, second, _TURNS[i % 8][1])):
            x[base] = x[base] + x[partner]
            x[partner] = _turned(x[partner], turn) ^ x[base]
        if i % 4 == 3:
            step = i // 4 + 1
            x = [word + schedule[(step + j) % 5] for j, word in enumerate(x)]
            x[3] = x[3] + np.uint32(step)
    return tuple(x)


@dataclasses.dataclass(frozen=True)
class _Cipher:
    """A block cipher: how many words its keys and counters have, and the words that make up a key or 64 bits."""

    block: Callable[[tuple[Array, ...], tuple[Array, ...]], tuple[Array, ...]]
    key_words: int
    words: int

    def encrypt(self, data: Array, high: Any, low: Any, at: int) -> tuple[Array, ...]:
        """Blocks of counters of 64 bits, of one shape, whose high word is at a place, for each key."""
        shape = (*data.shape[:-1], *low.shape)
        lead = data.ndim - 1

        def spread(x: Array, axes: range) -> Array:
            return lax.broadcast_in_dim(x, shape, tuple(axes))

        key = tuple(spread(data[..., i], range(lead)) for i in range(self.key_words))
        counter = [jnp.zeros(shape, np.uint32)] * self.words
        counter[at], counter[at + 1] = (spread(x, range(lead, len(shape))) for x in (high, low))
        return self.block(key, tuple(counter))

    def seed(self, seeds: Array) -> Array:
        """A key from an integer: the integer encrypted; where keys are as long as blocks, zero encrypted by it."""
        high, low = (x for x in jnp.moveaxis(_threefry_seed(seeds), -1, 0))
        zero = jnp.zeros_like(low)
        if self.key_words == self.words:
            out = self.block((high, low, zero, zero), (zero,) * 4)
        else:
            counter = (high, low) if self.words == 2 else (high, low, zero, zero)
            out = self.block((zero,) * self.key_words, counter)
        return jnp.stack(out[: self.key_words], -1)

    def split(self, data: Array, shape: Shape) -> Array:
        """Keys from counters, which stand in a block's last words."""
        out = self.encrypt(data, *_counters(tuple(shape)), self.words - 2)
        return jnp.stack(out[: self.key_words], -1)

    def fold_in(self, data: Array, msg: Any) -> Array:
        """A key from a counter."""
        low = jnp.asarray(msg, np.uint32)
        out = self.encrypt(data, jnp.zeros_like(low), low, self.words - 2)
        return jnp.stack(out[: self.key_words], -1)

    def random_bits(self, data: Array, width: int, shape: Shape) -> Array:
        """Words from counters, which stand in a block's first words, the words of a block folded together."""
        out = self.encrypt(data, *_counters(tuple(shape)), 0)
        if width == 64:
            high, low = (out[0] ^ out[2], out[1] ^ out[3]) if self.key_words == 4 else (out[0], out[1])
            return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        word = out[0] ^ out[1] if self.words == 2 else out[0] ^ out[1] ^ out[2] ^ out[3]
        return word.astype(f"uint{width}")


def _counters(shape: Shape) -> tuple[Array, Array]:
    """The places of an array's elements, as high and low words."""
    size = math.prod(shape)
    if size > 2**32:
        raise NotImplementedError(f"arrays of more than 2**32 random words are not implemented, got shape {shape}")
    return jnp.zeros(shape, np.uint32), jnp.arange(size, dtype=np.uint32).reshape(shape)


def _of_cipher(cipher: _Cipher, name: str, tag: str) -> PRNGImpl:
    functions = (
        jit(cipher.seed),
        jit(cipher.split, static_argnums=1),
        jit(cipher.random_bits, static_argnums=(1, 2)),
        jit(cipher.fold_in),
    )
    return register(PRNGImpl((cipher.key_words,), *functions, name, tag, True))


_of_cipher(_Cipher(_philox2, 1, 2), "philox2x32", "phx2")
_of_cipher(_Cipher(_philox4, 2, 4), "philox4x32", "phx4")
_of_cipher(_Cipher(_threefry4, 4, 4), "threefry4x32", "fry4")
