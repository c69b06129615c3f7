"""Backends, as libraries ask for them: one client a platform.

Read next: `ferrax/_devices.py`.
"""

from __future__ import annotations

from typing import Any

from ferrax._api import clear_caches as _clear_caches, registered_caches as _registered_caches
from ferrax._boundary import expose as _expose
from ferrax._devices import (
    default_backend as _default_backend,
    devices as _devices,
    live_arrays as _live_arrays,
    local_devices as _local_devices,
    process_index as _process_index,
)
from ferrax._src._unprovided import lacking as _lacking
from ferrax.errors import JaxRuntimeError

__all__ = [
    "Backend",
    "backend_xla_version",
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_compile_options",
    "get_default_device",
    "register_backend_cache",
    "register_backend_factory",
]


@_lacking(
    "compile compile_and_load compile_and_load_ifrt_program compile_ifrt_program defragment deserialize_executable "
    "dma_map dma_unmap get_default_layout live_executables make_python_callback_from_host_send_and_recv runtime_type "
    "serialize_executable unsafe_client_pointer",
    "programs are compiled by jit, and run in the core",
)
class Backend:
    """The devices of a platform.

    Args:
      platform: its name.

    >>> import ferrax as jax
    >>> jax.extend.backend.get_backend("cpu").platform
    'cpu'
    """

    def __init__(self, platform: str):
        self._platform = platform

    @property
    def platform(self) -> str:
        """The name of the platform."""
        return self._platform

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

    host_id = task_id = process_index

    def device_from_local_hardware_id(self, local_hardware_id: int) -> Any:
        """The device of this process with a number of the hardware's; JaxRuntimeError where there is none."""
        for device in self.local_devices():
            if device.local_hardware_id == local_hardware_id:
                return device
        raise JaxRuntimeError(
            f"INVALID_ARGUMENT: no device of {self.platform} has the local_hardware_id {local_hardware_id}"
        )

    def live_arrays(self) -> list[Any]:
        """The arrays on its devices that are alive."""
        return _live_arrays(self.platform)

    live_buffers = live_arrays

    def heap_profile(self) -> bytes:
        """The arrays that are alive, as `ferrax.profiler.device_memory_profile` tells of them."""
        from ferrax.profiler import device_memory_profile

        return device_memory_profile(self.platform)

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


def clear_backends(_crash: bool = False) -> None:
    """Forgets compiled programs; devices stay.

    Args:
      _crash: accepted for compatibility.

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


def backend_xla_version(platform: Any = None) -> int | None:
    """The version of XLA that a plugin states.

    Args:
      platform: as for `get_backend`.

    Returns:
      The version, or None where the platform runs without XLA or does not say.

    Raises:
      RuntimeError: there is no such platform.

    >>> import ferrax as jax
    >>> print(jax.extend.backend.backend_xla_version("cpu"))
    None
    """
    version = getattr(get_backend(platform), "xla_version", None)
    return None if version is None else int(version)


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: dict[str, str] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> None:
    """Raises: options of XLA's compiler as objects are jaxlib's.

    Args:
      num_replicas: number of replicas.
      num_partitions: number of partitions.
      device_assignment: devices of the parts.
      env_options_overrides: options by name.
      fdo_profile: a profile.
      detailed_logging: whether XLA logs.
      backend: the backend.

    Raises:
      NotImplementedError: always.

    >>> import ferrax as jax
    >>> try:
    ...     jax.extend.backend.get_compile_options(1, 1)
    ... except NotImplementedError as error:
    ...     print(str(error).partition(":")[0])
    get_compile_options makes an object of jaxlib's for XLA's compiler
    """
    raise NotImplementedError(
        "get_compile_options makes an object of jaxlib's for XLA's compiler: hand options by name to "
        "jax.jit(f).lower(x).compile(compiler_options={...})"
    )


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Has a cache cleared with those of ferrax, by `ferrax.clear_caches` and `clear_backends`.

    Args:
      cache: an object with the method `cache_clear`, as `functools.lru_cache` makes them.
      for_what: what it is for.

    Raises:
      TypeError: the object has no such method.

    >>> import functools, ferrax as jax
    >>> squares = functools.lru_cache(lambda n: n * n)
    >>> jax.extend.backend.register_backend_cache(squares, "squares")
    >>> _ = squares(3)
    >>> jax.clear_caches()
    >>> squares.cache_info().currsize
    0
    """
    if not callable(getattr(cache, "cache_clear", None)):
        raise TypeError(
            f"the cache for {for_what!r} is a {type(cache).__name__} without the method cache_clear; "
            "functools.lru_cache makes caches that have it"
        )
    _registered_caches.append(cache)


def register_backend_factory(
    name: str,
    factory: Any,
    *,
    priority: int = 0,
    fail_quietly: bool = True,
    experimental: bool = False,
    make_topology: Any = None,
    c_api: Any = None,
) -> None:
    """Raises: a client of jaxlib's cannot be a platform here; plugins of PJRT can.

    Args:
      name: name of the platform.
      factory: function that makes a client.
      priority: which platform is the default.
      fail_quietly: whether failures pass in silence.
      experimental: whether it warns.
      make_topology: function that makes a topology.
      c_api: the plugin's table of functions.

    Raises:
      NotImplementedError: always.

    >>> import ferrax as jax
    >>> try:
    ...     jax.extend.backend.register_backend_factory("rocket", lambda: None)
    ... except NotImplementedError as error:
    ...     print(str(error).partition(";")[0])
    the platform 'rocket' would be a client of jaxlib's
    """
    raise NotImplementedError(
        f"the platform {name!r} would be a client of jaxlib's; ferrax takes plugins of the PJRT C API: "
        f"jax.register_plugin({name!r}, path)"
    )


_expose(globals())
