"""Backends, as libraries ask for them: one client a platform.

Read next: `ferrax/_devices.py`.
"""

from __future__ import annotations

from typing import Any

from ferrax._api import clear_caches as _clear_caches
from ferrax._boundary import expose as _expose
from ferrax._devices import (
    default_backend as _default_backend,
    devices as _devices,
    local_devices as _local_devices,
    process_index as _process_index,
)

__all__ = [
    "Backend",
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_default_device",
]


class Backend:
    """The devices of a platform.

    Args:
      platform: its name.

    >>> import ferrax as jax
    >>> jax.extend.backend.get_backend("cpu").platform
    'cpu'
    """

    def __init__(self, platform: str):
        self.platform = platform

    @property
    def platform_version(self) -> str:
        """What runs programs there."""
        from ferrax.version import __version__

        return f"ferrax {__version__}"

    def devices(self) -> list[Any]:
        """The devices."""
        return _devices(self.platform)

    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return _local_devices(backend=self.platform)

    def device_count(self) -> int:
        """Number of devices."""
        return len(self.devices())

    def local_device_count(self) -> int:
        """Number of devices of this process."""
        return len(self.local_devices())

    def process_index(self) -> int:
        """The number of this process."""
        return _process_index()

    def __repr__(self) -> str:
        return f"Backend(platform={self.platform!r})"


_known: dict[str, Backend] = {}


def get_backend(platform: Any = None) -> Backend:
    """The backend of a platform.

    Args:
      platform: its name, a backend, or None for the default one.

    Returns:
      The backend.

    Raises:
      RuntimeError: there is none.

    >>> import ferrax as jax
    >>> jax.extend.backend.get_backend("cpu")
    Backend(platform='cpu')
    """
    if isinstance(platform, Backend):
        return platform
    name = platform or _default_backend()
    _devices(name)
    return _known.setdefault(name, Backend(name))


def backends() -> dict[str, Backend]:
    """The backends by platform.

    >>> import ferrax as jax
    >>> "cpu" in jax.extend.backend.backends()
    True
    """
    names = {"cpu", _default_backend()}
    return {name: get_backend(name) for name in sorted(names)}


def get_default_device() -> Any:
    """The device that new arrays are on.

    >>> import ferrax as jax
    >>> jax.extend.backend.get_default_device() == jax.devices()[0]
    True
    """
    from ferrax import _ferrax

    return _ferrax.get_default_device() or _devices()[0]


def clear_backends() -> None:
    """Forgets compiled programs; devices stay.

    >>> import ferrax as jax
    >>> jax.extend.backend.clear_backends()
    """
    _clear_caches()


def clear_in_memory_compilation_cache() -> None:
    """Forgets compiled programs.

    >>> import ferrax as jax
    >>> jax.extend.backend.clear_in_memory_compilation_cache()
    """
    _clear_caches()


_expose(globals())
