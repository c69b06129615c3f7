"""What HLO says of shardings; see `ferrax.sharding._hlo`."""

from __future__ import annotations

from typing import Any

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "is_op_sharding_replicated op_sharding_to_indices op_sharding_to_numpy_indices",
    "ferrax has no OpSharding messages, only NamedSharding, SingleDeviceSharding, and what HLO says of them",
)


def is_hlo_sharding_replicated(hs: Any) -> bool:
    """Whether each device holds all of the array."""
    return bool(hs.is_replicated())


def are_hlo_shardings_equal(a: Any, b: Any) -> bool:
    """Whether two shardings lay arrays out in the same way."""
    return bool(a == b)


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
