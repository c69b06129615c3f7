"""Backends: those of all platforms start when the first device is looked at."""

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
from ferrax._ferrax import devices_were_counted as _devices_were_counted
from ferrax.extend.backend import backends as backends, get_backend as get_backend


def backends_are_initialized() -> bool:
    """Whether devices were looked at, so that their number can no longer be chosen."""
    return _devices_were_counted()


def __getattr__(name: str) -> Any:
    if name == "_backends":  # by platform, as far as there are any
        return backends() if backends_are_initialized() else {}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
