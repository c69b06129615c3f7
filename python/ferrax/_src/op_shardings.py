"""What HLO says of shardings; see `ferrax.sharding._hlo`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "is_op_sharding_replicated",
    "is_hlo_sharding_replicated says it of what HLO says of a sharding",
)


def is_hlo_sharding_replicated(hc: Any) -> bool:
    """Whether each device holds all of the array."""
    return hc.num_devices() == 1 or bool(hc.is_replicated())


def are_hlo_shardings_equal(hc1: Any, hc2: Any) -> bool:
    """Whether two shardings lay arrays out in the same way."""
    return (is_hlo_sharding_replicated(hc1) and is_hlo_sharding_replicated(hc2)) or bool(hc1 == hc2)


def get_num_ways_dim_sharded(hs: Any, allow_partial_manual: bool = False) -> tuple[list[int], int]:
    """Into how many parts each axis is cut, and how many copies there are of each part.

    Args:
      hs: what HLO says of a sharding.
      allow_partial_manual: whether some axes may be manual; none is.
    """
    if hs.is_replicated():
        return [], 1
    dims = hs.tile_assignment_dimensions()
    return (dims[:-1], dims[-1]) if hs.replicate_on_last_tile_dim() else (dims, 1)


def op_sharding_to_numpy_indices(hlo_sharding: Any, shape: Sequence[int], num_devices: int) -> Any:
    """The part of an array that each device has: an array of tuples of slices.

    Args:
      hlo_sharding: what HLO says of a sharding.
      shape: the array's shape, each size a multiple of its number of tiles.
      num_devices: number of devices.

    Raises:
      ValueError: the tiles are of another number of devices or axes, or do not divide the shape.
    """
    indices = np.empty(num_devices, object)
    if is_hlo_sharding_replicated(hlo_sharding):
        indices.fill((slice(None),) * len(shape))
        return indices
    tiles, copies = get_num_ways_dim_sharded(hlo_sharding)
    fits = len(tiles) == len(shape) and hlo_sharding.num_devices() == num_devices
    if not fits or any(size % count for size, count in zip(shape, tiles)):
        raise ValueError(f"{hlo_sharding} does not divide an array of shape {tuple(shape)} over {num_devices} devices")
    parts = [
        [slice(i * (size // count), (i + 1) * (size // count)) for i in range(count)] if count > 1 else [slice(None)]
        for size, count in zip(shape, tiles)
    ]
    places = np.reshape(hlo_sharding.tile_assignment_devices(), (math.prod(tiles), copies))
    for devices, part in zip(places, itertools.product(*parts)):
        for device in devices:
            indices[device] = part
    return indices


def op_sharding_to_indices(op_sharding: Any, shape: Sequence[int], num_devices: int) -> tuple[Any, ...]:
    """As `op_sharding_to_numpy_indices`: a tuple.

    >>> from ferrax.sharding._hlo import HloSharding
    >>> op_sharding_to_indices(HloSharding((2,), (2,), (0,)), (4,), 2)
    ((slice(0, 2, None),), (slice(2, 4, None),))
    """
    return tuple(op_sharding_to_numpy_indices(op_sharding, shape, num_devices).flat)
