"""Backends: there is nothing that has to be set up before devices are asked for."""

from typing import Any

from ferrax import (
    default_backend as default_backend,
    device_count as device_count,
    devices as devices,
    local_device_count as local_device_count,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
)
from ferrax.extend.backend import backends as backends, get_backend as get_backend

#: Clients of XLA that have been made: none.
_backends: dict[str, Any] = {}
