"""Draws of an array in blocks, which are the same however it is cut: each tile of it has a key of its own.

A tile divides blocks of all the sizes that are to agree. Tiles are counted row by row over the whole array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrax import numpy as jnp
from ferrax._src._unprovided import unprovided_names
from ferrax.random import fold_in

__all__ = ["NdKeyList", "SampleFn", "blocked_fold_in", "sample_block"]

#: Keys of tiles, a list for each axis.
NdKeyList = Any
SampleFn = Callable[..., Any]

__getattr__ = unprovided_names(__name__, "NotDivisible", "sizes that tiles do not divide are cut off")


def blocked_fold_in(
    global_key: Any, total_size: Sequence[int], block_size: Sequence[int], tile_size: Sequence[int], block_index: Any
) -> NdKeyList:
    """Keys of the tiles of a block.

    Args:
      global_key: the key of the whole array.
      total_size, block_size, tile_size: shapes of the array, of the block and of a tile.
      block_index: which block it is along each axis; numbers, or traced ones.

    Returns:
      Lists in lists, one level for each axis.

    >>> import ferrax as jax
    >>> keys = blocked_fold_in(jax.random.key(0), (4, 8), (4, 4), (2, 4), (0, 1))
    >>> len(keys), len(keys[0])
    (2, 1)
    """
    counts = [block // tile for block, tile in zip(block_size, tile_size, strict=True)]
    whole = [-(-size // tile) for size, tile in zip(total_size, tile_size, strict=True)]
    first = [at * count for at, count in zip(block_index, counts, strict=True)]

    def keys(*at: int) -> NdKeyList:
        if len(at) < len(counts):
            return [keys(*at, i) for i in range(counts[len(at)])]
        number: Any = 0
        for start, i, size in zip(first, at, whole, strict=True):
            number = number * size + start + i
        return fold_in(global_key, number)

    return keys()


def sample_block(
    sampler_fn: SampleFn,
    keys: NdKeyList,
    block_size: Sequence[int],
    tile_size: Sequence[int],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """The draws of a block.

    Args:
      sampler_fn: a sampler of `ferrax.random`, which takes a key and `shape`.
      keys: what `blocked_fold_in` gives.
      block_size, tile_size: shapes of the block and of a tile.
      *args, **kwargs: what else the sampler takes.

    >>> import ferrax as jax
    >>> keys = blocked_fold_in(jax.random.key(0), (4, 8), (4, 4), (2, 4), (0, 1))
    >>> sample_block(jax.random.uniform, keys, (4, 4), (2, 4)).shape
    (4, 4)
    """

    def drawn(part: NdKeyList, axis: int) -> Any:
        if axis == len(block_size):
            return sampler_fn(part, *args, shape=tuple(tile_size), **kwargs)
        tiles = range(block_size[axis] // tile_size[axis])
        return jnp.concatenate([drawn(part[i], axis + 1) for i in tiles], axis=axis)

    return drawn(keys, 0)
