"""The parts of an array: one for each device, cut out of its one buffer, or brought from its device, when asked for.

Read next: `_named.py` for which part is whose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, _processes
from ferrax._ferrax import SingleDeviceSharding

__all__ = ["Shard", "global_shards", "shards"]


class Shard:
    """One part of an array on one device.

    Args:
      device: the device.
      sharding: the array's sharding.
      global_shape: the array's shape.
      data: the part, an array on the device, or `None`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jnp.arange(3).addressable_shards[0].device == jax.devices()[0]
    True
    """

    def __init__(self, device: Any, sharding: Any, global_shape: tuple[int, ...], data: Any = None):
        self._device = device
        self._sharding = sharding
        self._global_shape = tuple(global_shape)
        self._data = data
        self._whole: Any = None

    @property
    def index(self) -> tuple[slice, ...]:
        """Where the part lies in the whole array: a slice for each axis."""
        found: tuple[slice, ...] = self._sharding.devices_indices_map(self._global_shape)[self._device]
        return found

    @property
    def replica_id(self) -> int:
        """Number of the copy, of a part that several devices hold."""
        parts = self._sharding.devices_indices_map(self._global_shape)
        own = _key(parts[self._device])
        before = [d for d, index in parts.items() if _key(index) == own]
        return before.index(self._device)

    @property
    def device(self) -> Any:
        """The device that holds the part."""
        return self._device

    @property
    def data(self) -> Any:
        """The elements, an array on the device; None of a device of another process."""
        if self._data is None and self._whole is not None:
            there = self._device
            if self._sharding.memory_kind not in (None, "device"):
                from ferrax.sharding._placement import place

                there = place(SingleDeviceSharding(there, memory_kind=self._sharding.memory_kind))
            part = _part(self._whole, self, there)
            self._data = part if _has_terms(self._sharding, self._device) else _zeros(part, there)
            self._whole = None
        return self._data

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data!s})"


def _key(index: Sequence[slice]) -> tuple[Any, ...]:
    return tuple((s.start, s.stop) for s in index)


def _has_terms(sharding: Any, device: Any) -> bool:
    """Whether a device holds more than zeros: the first one has all terms of a sum that is still due."""
    spec = getattr(sharding, "spec", None)
    if spec is None or not spec.unreduced:
        return True
    mesh = sharding.mesh
    (at,) = np.argwhere(mesh.devices == device)
    return not any(i for name, i in zip(mesh.axis_names, at, strict=True) if name in spec.unreduced)


def _zeros(part: Any, device: Any) -> Any:
    return _ferrax.device_put_leaf(np.zeros(part.shape, part.dtype), device, False)


def _part(x: Any, shard: Shard, device: Any) -> Any:
    """A part of an array, on a device."""
    from ferrax import dtypes, random

    if dtypes.issubdtype(x.dtype, dtypes.prng_key):
        return random.wrap_key_data(_part(random.key_data(x), shard, device))
    devices = x.sharding._device_assignment
    if len(devices) == 1 or shard.device.platform == "cpu":
        return _ferrax.device_put_leaf(np.asarray(x)[shard.index], device, False)
    return _ferrax.device_put_leaf(_ferrax.part_of(x, devices.index(shard.device)), device, False)


def shards(x: Any) -> list[Shard]:
    """The parts of an array that this process has, in order of its sharding's devices.

    Args:
      x: an array.
    """
    return [shard for shard in global_shards(x) if shard.device.process_index == _processes.state.index]


def global_shards(x: Any) -> list[Shard]:
    """The parts of an array on all devices, in order of its sharding's devices; those of other processes have no data.

    Args:
      x: an array.
    """
    sharding = x.sharding
    devices = sharding._device_assignment
    if len(devices) == 1 and not hasattr(sharding, "mesh"):
        return [Shard(devices[0], sharding, x.shape, x)]
    out = [Shard(d, sharding, x.shape) for d in devices]
    for shard in out:
        shard._whole = x if shard.device.process_index == _processes.state.index else None
    return out
