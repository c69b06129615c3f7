"""The default generator: keys of two words, under which counters are hashed."""

from __future__ import annotations

import math

import numpy as np

from ferrax import numpy as jnp
from ferrax._core import Array
from ferrax._src._public import names_of
from ferrax.extend.random import threefry_2x32 as threefry_2x32, threefry_prng_impl as threefry_prng_impl

__getattr__ = names_of(__name__, "ferrax.extend.random", "ferrax._src.random.prng")


def _data(key: Array) -> Array:
    if getattr(key, "shape", None) != (2,) or key.dtype != np.dtype("uint32"):
        raise TypeError("the data of a key are two numbers of dtype uint32")
    return jnp.asarray(key)


def threefry_seed(seed: Array) -> Array:
    """The data of the key of an integer."""
    if getattr(seed, "shape", ()) != ():
        raise TypeError(f"PRNG key seed must be a scalar; got {seed!r}.")
    return threefry_prng_impl.seed(jnp.asarray(seed))


def threefry_split(key: Array, shape: tuple[int, ...]) -> Array:
    """The data of a shape of keys, of a key's."""
    return threefry_prng_impl.split(_data(key), tuple(shape))


def threefry_fold_in(key: Array, data: Array) -> Array:
    """The data of a key, of a key's and an integer."""
    return threefry_prng_impl.fold_in(_data(key), jnp.asarray(data, np.uint32))


def threefry_random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Unsigned integers of 8, 16, 32 or 64 bits."""
    if bit_width not in (8, 16, 32, 64):
        raise TypeError("requires 8-, 16-, 32- or 64-bit field width.")
    if math.prod(shape) == 0:
        return jnp.zeros(shape, f"uint{bit_width}")
    return threefry_prng_impl.random_bits(_data(key), bit_width, tuple(shape))
