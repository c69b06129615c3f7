"""What this process knows of the others of its program: its number, how many there are, their devices.

A plugin whose client knows the devices of all processes has arrays and programs over them. The embedded engine moves
nothing between processes: there, devices of others are to be counted and to be in meshes. Read next:
`distributed.py`, which sets it.
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
    """A device of another process, of a platform whose engine moves nothing between processes.

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


def all_devices(backend: str | None) -> list[Any]:
    """The devices of all processes, of a platform; the first call waits for the others."""
    own = list(_ferrax.devices(backend))
    if state.count == 1 or not own:
        return own
    known = list(_ferrax.devices_of_all(backend))
    if len(known) > len(own):
        return known
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
    _ferrax.set_processes(index, count, client)
    state.index, state.count, state.client = index, count, client
    _found.clear()
