"""What this process knows of the others of its program: its number, how many there are, their devices.

Arrays live on the devices of one process: neither the embedded engine nor XLA's CPU client moves data between
processes. Devices of others are there to be counted and to be in meshes. Read next: `distributed.py`, which sets it.
"""

from __future__ import annotations

import json
from typing import Any

from ferrax import _ferrax

__all__ = ["RemoteDevice", "all_devices", "joined", "state"]

#: A device's number is that of its process times this, and its place there.
_PLACES = 1 << 17
#: How long the other processes may take until they look at their devices, in milliseconds.
_PATIENCE = 300_000


class _State:
    """The process among others."""

    index = 0
    count = 1
    client: Any = None


state = _State()


class RemoteDevice:
    """A device of another process, which this one cannot use.

    Args:
      platform: what computes, such as `"cpu"`.
      kind: kind of the device.
      process: number of its process.
      place: its number there.
    """

    def __init__(self, platform: str, kind: str, process: int, place: int) -> None:
        self.platform, self.device_kind, self.process_index = platform, kind, process
        self.id, self.local_hardware_id = process * _PLACES + place, None

    host_id = task_id = property(lambda self: self.process_index)

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteDevice) and (self.platform, self.id) == (other.platform, other.id)

    def __hash__(self) -> int:
        return hash((self.platform, self.id))


_found: dict[str, list[Any]] = {}


def all_devices(own: list[Any]) -> list[Any]:
    """The devices of all processes, of the platform of this process's own; the first call waits for the others."""
    if state.count == 1 or not own:
        return own
    platform = own[0].platform
    if platform not in _found:
        client, folder = state.client, f"ferrax/devices/{platform}"
        said = json.dumps([own[0].device_kind, len(own)])
        client.key_value_set(f"{folder}/{state.index}", said, allow_overwrite=True)
        devices: list[Any] = []
        for process in range(state.count):
            if process == state.index:
                devices += own
                continue
            kind, number = json.loads(client.blocking_key_value_get(f"{folder}/{process}", _PATIENCE))
            devices += [RemoteDevice(platform, kind, process, place) for place in range(number)]
        _found[platform] = devices
    return list(_found[platform])


def joined(index: int, count: int, client: Any) -> None:
    """Notes which process this is; its devices get numbers of their own among all."""
    state.index, state.count, state.client = index, count, client
    _found.clear()
    if count > 1:
        _number_devices()


_plain = {name: getattr(_ferrax.Device, name) for name in ("id", "process_index", "host_id", "task_id")}


def _number_devices() -> None:
    """Makes the devices of this process say their numbers among those of all."""
    place = _plain["id"].__get__
    number = lambda self: state.index * _PLACES + place(self)
    setattr(_ferrax.Device, "id", property(number))  # noqa: B010
    for name in ("process_index", "host_id", "task_id"):
        setattr(_ferrax.Device, name, property(lambda self: state.index))
    text = lambda self: f"{self.platform.capitalize()}Device(id={self.id})"
    setattr(_ferrax.Device, "__repr__", text)  # noqa: B010
    setattr(_ferrax.Device, "__str__", lambda self: f"{self.platform}:{self.id}")  # noqa: B010
    place_of = lambda self: f"device={next(iter(self.device_set))!r}, memory_kind={self.memory_kind}"
    setattr(_ferrax.SingleDeviceSharding, "__repr__", lambda self: f"SingleDeviceSharding({place_of(self)})")  # noqa: B010
