"""Keys: their types, the primitives that make and use them, and the counters that a counting generator hashes."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

import ferrax.numpy as jnp
from ferrax import lax, vmap
from ferrax._core import Array, ShapedArray
from ferrax._ferrax import KeyTy as KeyTy, PRNGKeyArray as PRNGKeyArray
from ferrax._src._public import names_of
from ferrax.dtypes import issubdtype, prng_key
from ferrax.extend.core import Primitive
from ferrax.extend.random import random_seed as random_seed, seed_with_impl as seed_with_impl
from ferrax.interpreters import mlir
from ferrax.random import fold_in, split, wrap_key_data
from ferrax.random._bits import random_words
from ferrax.random._generators import IMPLS as prngs, PRNGImpl as PRNGImpl
from ferrax.random._keys import unwrapped

#: Unsigned dtypes by their bits.
UINT_DTYPES = {bits: np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}

iota_2x32_shape_p = Primitive("iota_2x32_shape")
iota_2x32_shape_p.multiple_results = True

__getattr__ = names_of(__name__, "ferrax.extend.random", "ferrax.random", "ferrax.extend.core.primitives")


def register_prng(impl: PRNGImpl) -> None:
    """Makes a generator known by its name.

    Raises:
      ValueError: there is one of the name.
    """
    if impl.name in prngs:
        raise ValueError(f"PRNG with name {impl.name} already registered: {impl}")
    prngs[impl.name] = impl


def random_split(keys: Array, shape: tuple[int, ...]) -> Array:
    """A shape of keys, of each key."""
    one = partial(split, num=tuple(shape))
    for _ in range(keys.ndim):
        one = vmap(one)  # type: ignore[assignment]
    return one(keys)


def random_wrap(base_arr: Array, *, impl: PRNGImpl) -> Array:
    """Keys from their data.

    Raises:
      TypeError: the data are no uint32 numbers whose last axes are a key's.
    """
    return wrap_key_data(base_arr, impl=impl)


def random_unwrap(keys: Array) -> Array:
    """The data of keys.

    Raises:
      TypeError: it is no array of keys.
    """
    _require_keys("random_unwrap", keys)
    return unwrapped(keys)


def random_fold_in(keys: Array, msgs: Array) -> Array:
    """Keys from keys and integers, whose shapes broadcast.

    Raises:
      TypeError: the first is no array of keys.
    """
    _require_keys("random_fold_in", keys)
    keys, msgs = jnp.broadcast_arrays(keys, jnp.asarray(msgs))
    one = fold_in
    for _ in range(keys.ndim):
        one = vmap(one)
    return one(keys, msgs)


def random_bits(keys: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Unsigned integers of 8, 16, 32 or 64 bits: a shape of them of each key.

    Raises:
      TypeError: it is no array of keys.
    """
    _require_keys("random_bits", keys)
    return random_words(keys, bit_width, tuple(shape))


def _require_keys(name: str, keys: Array) -> None:
    if not issubdtype(keys.dtype, prng_key):
        raise TypeError(f"{name} takes key array operand, got keys.dtype={keys.dtype}")


def iota_2x32_shape(shape: tuple[int, ...]) -> list[Array]:
    """The 64-bit positions of a shape's elements, row after row, as their high and low halves.

    Args:
      shape: the shape.

    Returns:
      Two uint32 arrays of the shape.
    """
    high, low = iota_2x32_shape_p.bind(shape=shape)
    return [high, low]


def _halves(*, shape: tuple[int, ...]) -> list[Array]:
    size = math.prod(shape)
    if size > 2**32:
        raise NotImplementedError("iota_2x32_shape of more than 2**32 elements")
    return [jnp.zeros(shape, np.uint32), lax.iota(np.uint32, size).reshape(shape)]


def _avals(*, shape: tuple[int, ...]) -> list[ShapedArray]:
    return [ShapedArray(shape, np.dtype(np.uint32))] * 2


iota_2x32_shape_p.def_impl(_halves)
iota_2x32_shape_p.def_abstract_eval(_avals)
mlir.register_lowering(iota_2x32_shape_p, mlir.lower_fun(_halves, multiple_results=True))
