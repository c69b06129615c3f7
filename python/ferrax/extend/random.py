"""The hash that random keys are made of, as a function of arrays.

Read next: `ferrax/lax/random_bits.py`, which has the rounds, and `ferrax/random/_keys.py`.
"""

from __future__ import annotations

import numpy as np

from ferrax import lax
from ferrax import numpy as jnp
from ferrax._api import jit
from ferrax._boundary import expose as _expose
from ferrax._core import Array, dtype_of
from ferrax.lax.random_bits import threefry
from ferrax.typing import ArrayLike

__all__ = ["threefry_2x32"]


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
