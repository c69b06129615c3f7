"""Shardings."""

import functools
from typing import Any

from ferrax._src._public import names_of
from ferrax.sharding._named import IndivisibleError as IndivisibleError


@functools.lru_cache(maxsize=4096)
def common_devices_indices_map(s: Any, global_shape: tuple[int, ...]) -> dict[Any, tuple[slice, ...]]:
    """The part of an array of a shape that each device of a sharding has.

    Raises:
      ValueError: the sharding does not divide the shape.
    """
    return dict(s.devices_indices_map(tuple(global_shape)))


__getattr__ = names_of(__name__, "ferrax.sharding")
