"""Shardings by HLO's tiles: devices, and what HLO says of the part that each has.

Read next: `_hlo.py` for the tiles, `_named.py` for shardings of meshes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax.sharding._hlo import HloSharding, replicated
from ferrax.sharding._named import Sharding, check_memory_kind

__all__ = ["GSPMDSharding"]


class GSPMDSharding(Sharding):
    """Devices, and the tile of an array that each of them has.

    Args:
      devices: the devices.
      op_sharding: the tiles, as `NamedSharding._to_xla_hlo_sharding` gives them, or HLO's message of them.
      memory_kind: kind of memory, `None` for the devices' own.

    Raises:
      ValueError: the devices have no such memory.

    >>> import ferrax as jax
    >>> GSPMDSharding.get_replicated(jax.devices()[:1])
    GSPMDSharding({replicated}, memory_kind=device)
    """

    def __init__(self, devices: Sequence[Any], op_sharding: Any, *, memory_kind: str | None = None):
        if not isinstance(op_sharding, HloSharding):
            op_sharding = HloSharding.from_proto(op_sharding)
        self._devices = tuple(devices)
        self._hlo_sharding = op_sharding
        check_memory_kind(self._devices[0].device_kind, memory_kind)
        self._memory_kind = "device" if memory_kind is None else memory_kind

    @classmethod
    def get_replicated(cls, device_assignment: Sequence[Any], *, memory_kind: str | None = None) -> GSPMDSharding:
        """All of an array on each device.

        Args:
          device_assignment: the devices.
          memory_kind: kind of memory, `None` for the devices' own.
        """
        return cls(device_assignment, replicated(), memory_kind=memory_kind)

    @property
    def _device_assignment(self) -> tuple[Any, ...]:  # type: ignore[override]
        return self._devices

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> HloSharding:
        return self._hlo_sharding

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold parts."""
        return set(self._devices)

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory."""
        return self._memory_kind

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds all of the array."""
        return self._hlo_sharding.is_replicated() or math.prod(self._tiles()) == 1

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        """The same sharding in another kind of memory."""
        return GSPMDSharding(self._devices, self._hlo_sharding, memory_kind=kind)

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Raises `ValueError` where arrays of a shape have fewer axes than the tiles."""
        if not self._hlo_sharding.is_replicated() and len(aval_shape) < len(self._tiles()):
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self._tiles())}, but was applied to a "
                f"value of rank {len(aval_shape)}"
            )

    def _tiles(self) -> list[int]:
        """Number of tiles along each axis."""
        dims = self._hlo_sharding.tile_assignment_dimensions()
        return dims[:-1] if self._hlo_sharding.replicate_on_last_tile_dim() else dims

    def _blocks(self, ndim: int) -> tuple[tuple[int, ...], np.ndarray[Any, Any]]:
        count = len(self._devices)
        if self._hlo_sharding.is_replicated():
            return (1,) * ndim, np.zeros((count, ndim), int)
        tiles = self._tiles()
        order = self._hlo_sharding.tile_assignment_devices()
        where = np.empty((count, len(tiles)), int)
        copies = count // math.prod(tiles)
        where[order] = np.stack(np.unravel_index(np.arange(count) // copies, tiles), axis=-1)
        missing = ndim - len(tiles)
        return (*tiles, *(1,) * missing), np.pad(where, ((0, 0), (0, missing)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GSPMDSharding):
            return False
        return (self._devices, self._hlo_sharding, self._memory_kind) == (
            other._devices,
            other._hlo_sharding,
            other._memory_kind,
        )

    def __hash__(self) -> int:
        return hash((self._devices, self._hlo_sharding, self._memory_kind))

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo_sharding}, memory_kind={self._memory_kind})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._devices, self._hlo_sharding, self._memory_kind)


def _again(devices: tuple[Any, ...], tiles: HloSharding, kind: str | None) -> GSPMDSharding:
    return GSPMDSharding(devices, tiles, memory_kind=kind)
