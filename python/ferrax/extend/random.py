"""Generators of random keys, also of one's own, and the hash that keys of the default one are made of.

Read next: `ferrax/lax/random_bits.py`, which has the rounds, `ferrax/random/_generators.py`, and
`ferrax/random/_keys.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from ferrax import lax, numpy as jnp
from ferrax._api import jit
from ferrax._boundary import expose as _expose
from ferrax._core import Array, dtype_of
from ferrax._primitives import built_in
from ferrax.lax.random_bits import threefry
from ferrax.random._generators import RBG, THREEFRY, UNSAFE_RBG, PRNGImpl
from ferrax.random._keys import seeded
from ferrax.typing import ArrayLike

__all__ = [
    "PRNGImpl",
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry2x32_p",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]

threefry_prng_impl = THREEFRY
rbg_prng_impl = RBG
unsafe_rbg_prng_impl = UNSAFE_RBG
threefry2x32_p = built_in("threefry2x32")


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[Array], Array],
    split: Callable[[Array, tuple[int, ...]], Array],
    random_bits: Callable[[Array, int, tuple[int, ...]], Array],
    fold_in: Callable[[Array, int], Array],
    name: str = "<unnamed>",
    tag: str = "?",
) -> Hashable:
    """A generator of one's own, which `ferrax.random.key` and others take as `impl`.

    Args:
      key_shape: shape of a key's data, a uint32 array.
      seed: function from an integer scalar to a key's data.
      split: function from a key's data and a shape to the data of that many keys, with the shape in front.
      random_bits: function from a key's data, a number of bits (8, 16, 32 or 64) and a shape to unsigned integers.
      fold_in: function from a key's data and a uint32 scalar to a key's data.
      name: the name.
      tag: the short name, which dtypes show.

    Returns:
      The generator.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> impl = jax.extend.random.define_prng_impl(
    ...     key_shape=(1,),
    ...     seed=lambda seed: jnp.full((1,), seed, "uint32"),
    ...     split=lambda key, shape: key + jnp.arange(shape[0], dtype="uint32")[:, None],
    ...     random_bits=lambda key, width, shape: jnp.full(shape, key[0]).astype(f"uint{width}"),
    ...     fold_in=lambda key, data: key + data,
    ... )
    >>> jax.random.bits(jax.random.key(7, impl=impl), (2,))
    Array([7, 7], dtype=uint32)
    """
    return PRNGImpl(tuple(key_shape), seed, split, random_bits, fold_in, name, tag)


def seed_with_impl(impl: PRNGImpl, seed: ArrayLike) -> Array:
    """Keys of a generator from integers.

    Args:
      impl: the generator.
      seed: integer array.

    Returns:
      Array of typed keys, of the same shape.

    >>> import ferrax as jax
    >>> jax.extend.random.seed_with_impl(jax.extend.random.rbg_prng_impl, 0).dtype
    key<rbg>
    """
    return random_seed(seed, impl)


def random_seed(seeds: ArrayLike, impl: PRNGImpl) -> Array:
    """Keys of a generator from integers.

    Args:
      seeds: integer array.
      impl: the generator.

    Returns:
      Array of typed keys, of the same shape.

    Raises:
      TypeError: the seeds are not integers.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jax.extend.random.random_seed(jnp.arange(3), jax.extend.random.threefry_prng_impl).shape
    (3,)
    """
    array = jnp.asarray(seeds)
    if not jnp.issubdtype(array.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {seeds!r}")
    return seeded(array, impl)


def threefry_2x32(keypair: tuple[ArrayLike, ArrayLike], count: ArrayLike) -> Array:
    """The Threefry hash of pairs of words: the first half of an array with its second half.

    Args:
      keypair: two uint32 scalars, or one uint32 array of shape (2,).
      count: uint32 array of any shape; with an odd number of words, a zero is added for the hash.

    Returns:
      uint32 array of the shape of `count`.

    Raises:
      TypeError: something is not uint32.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> zero = jnp.uint32(0)
    >>> jax.extend.random.threefry_2x32((zero, zero), jnp.zeros(2, "uint32"))
    Array([1797259609, 2579123966], dtype=uint32)
    """
    first, second = keypair
    found = [dtype_of(x) for x in (first, second, count)]
    if any(dtype != np.uint32 for dtype in found):
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {found}")
    words = jnp.asarray(count)
    return lax.reshape(_hashed(jnp.asarray(first), jnp.asarray(second), jnp.ravel(words)), words.shape)


@jit
def _hashed(first: Array, second: Array, words: Array) -> Array:
    n = words.shape[0]
    padded = jnp.concatenate([words, jnp.zeros(n % 2, np.uint32)])
    half = padded.shape[0] // 2
    x, y = threefry((first, second), (padded[:half], padded[half:]))
    return jnp.concatenate([x, y])[:n]


_expose(globals())
