"""Backends: those of all platforms start when the first device is looked at."""

from typing import Any

from ferrax import (
    default_backend as default_backend,
    device_count as device_count,
    devices as devices,
    host_ids as host_ids,
    local_device_count as local_device_count,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
    process_indices as process_indices,
)
from ferrax._ferrax import devices_were_counted as _devices_were_counted
from ferrax._logging import logger as _logger_of
from ferrax._src._unprovided import unprovided_names
from ferrax.extend.backend import (
    backend_xla_version as backend_xla_version,
    backends as backends,
    get_backend as get_backend,
    register_backend_factory as register_backend_factory,
)


def backends_are_initialized() -> bool:
    """Whether devices were looked at, so that their number can no longer be chosen."""
    return _devices_were_counted()


def get_device_backend(device: Any = None) -> Any:
    """The backend of a device, or of the default platform."""
    return get_backend() if device is None else device.client


def host_count(backend: Any = None) -> int:
    """The number of processes."""
    return process_count(backend)


def host_id(backend: Any = None) -> int:
    """The number of this process."""
    return process_index(backend)


def known_platforms() -> set[str]:
    """The platforms that have devices."""
    return {*backends()}


def is_known_platform(platform: str) -> bool:
    """Whether a platform has devices."""
    return not known_platforms().isdisjoint(expand_platform_alias(platform))


def canonicalize_platform(platform: str) -> str:
    """The name of a platform that has devices, for one that stands for several; other names stay.

    Raises:
      RuntimeError: none of the platforms that it stands for has devices.

    >>> canonicalize_platform("cpu"), canonicalize_platform("tpu")
    ('cpu', 'tpu')
    """
    names = expand_platform_alias(platform)
    if names == [platform]:
        return platform
    for name in names:
        if name in known_platforms():
            return name
    raise RuntimeError(
        f"Unknown backend: '{platform}' requested, but no platforms that are instances of {platform} are present. "
        f"Platforms present are: {','.join(sorted(known_platforms()))}"
    )


def expand_platform_alias(platform: str) -> list[str]:
    """The platforms that a name stands for.

    >>> expand_platform_alias("gpu"), expand_platform_alias("cpu")
    (['cuda', 'rocm', 'oneapi'], ['cpu'])
    """
    return ["cuda", "rocm", "oneapi"] if platform == "gpu" else [platform]


def using_pjrt_c_api(backend: Any = None) -> bool:
    """Whether a plugin computes."""
    return "PJRT C API" in getattr(backend, "platform_version", "")


def _backends_there(name: str) -> Any:
    if name == "_backends":  # by platform, as far as there are any
        return backends() if backends_are_initialized() else {}
    raise AttributeError(name)


logger = _logger_of("ferrax")

__getattr__ = unprovided_names(
    __name__,
    "BackendRegistration CROSS_HOST_TRANSFER_SOCKET_ADDRESS _CPU_ENABLE_ASYNC_DISPATCH _NameValueMapping "
    "_backend_factories _clear_backends _discover_and_register_pjrt_plugins _get_pjrt_plugin_names_and_library_paths "
    "_init_backend _options_from_jax_configs _suggest_missing_backends discover_pjrt_plugins make_cpu_client "
    "make_pjrt_c_api_client make_pjrt_topology register_pjrt_plugin_factories_from_env register_plugin",
    "platforms are the core's, and plugins are found by ferrax itself",
    _backends_there,
)
