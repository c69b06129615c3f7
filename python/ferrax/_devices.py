"""Devices and placement: `devices`, `device_put`, and the counts that JAX's multi-process functions report.

Data that was put on a device is committed: computation follows it. Read next: `crates/ferrax/src/device.rs`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ferrax import _ferrax, _processes, tree_util
from ferrax._boundary import shielded
from ferrax._prefixes import prefix_leaves, specification_error

__all__ = [
    "default_backend",
    "device_count",
    "device_memory_stats",
    "device_put",
    "devices",
    "host_count",
    "host_id",
    "host_ids",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "process_indices",
]

# the class is the extension module's, which knows nothing of `ferrax.devices`
_ferrax.Device.__doc__ = """A device: what computes, with memory of its own.

>>> import ferrax as jax
>>> isinstance(jax.devices()[0], jax.Device)
True
"""


class _Memory:
    """A memory that a device can address."""

    def __init__(self, device: Any, kind: str, number: int) -> None:
        self.device_kind, self.platform, self.kind = device.device_kind, device.platform, kind
        self.process_index, self._device = device.process_index, device
        self._text = f"{'CPU_DEVICE' if kind == 'device' else kind.upper()}_{number}"

    def addressable_by_devices(self) -> list[Any]:
        """The devices that can address it."""
        return [self._device]

    def __repr__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Memory) and (self._device, self.kind) == (other._device, other.kind)

    def __hash__(self) -> int:
        return hash((self._device, self.kind))


class _Client:
    """What the devices of a platform belong to."""

    runtime_type = "ferrax"

    def __init__(self, platform: str) -> None:
        self.platform = platform
        self.platform_version = platform
        self.process_index = _processes.state.index

    def devices(self) -> list[Any]:
        """The platform's devices."""
        return list(_ferrax.devices(self.platform))

    local_devices = devices

    def device_count(self) -> int:
        """Number of the platform's devices."""
        return len(self.devices())

    local_device_count = device_count

    def live_arrays(self) -> list[Any]:
        """Every array that is alive."""
        return list(_ferrax.live_arrays())

    def __repr__(self) -> str:
        return f"<client of platform {self.platform}>"


_KINDS = ("device", "pinned_host", "unpinned_host")


def _addressable_memories(self: Any) -> list[_Memory]:
    """The memories that the device can address, its own first."""
    return [_Memory(self, kind, len(_KINDS) * self.id + i) for i, kind in enumerate(_KINDS)]


def _default_memory(self: Any) -> _Memory:
    """The device's own memory."""
    return _addressable_memories(self)[0]


def _memory(self: Any, kind: str) -> _Memory:
    """The memory of a kind that the device can address."""
    for memory in _addressable_memories(self):
        if memory.kind == kind:
            return memory
    raise ValueError(
        f"Could not find memory addressable by device {self.device_kind}. Device {self.device_kind} can address the "
        f"following memory kinds: {', '.join(_KINDS)}. Got memory kind: {kind}"
    )


_clients: dict[str, _Client] = {}


def _client(self: Any) -> _Client:
    """What the devices of the platform belong to."""
    return _clients.setdefault(self.platform, _Client(self.platform))


def _live_buffers(self: Any) -> list[Any]:
    """The arrays on the device that are alive; deprecated for `jax.live_arrays`."""
    warnings.warn(
        "Per device live_buffers() is deprecated. Please use the jax.live_arrays() for jax.Arrays instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return [x for x in _ferrax.live_arrays() if self in x.devices()]


def _get_stream_for_external_ready_events(self: Any) -> int:
    """The device's stream: only GPUs have one, and PJRT hands none out."""
    raise _ferrax.JaxRuntimeError(
        f"UNIMPLEMENTED: the device {self} has no stream for external events; block_until_ready waits for an array"
    )


def _poison_execution(self: Any, launch_id: int, error: Any) -> bool:
    """Makes a run that has not ended fail; whether there was one of that number: no run has one."""
    return False


_MEMBERS = {
    "addressable_memories": shielded(_addressable_memories),
    "client": property(_client),
    "default_memory": shielded(_default_memory),
    "get_stream_for_external_ready_events": shielded(_get_stream_for_external_ready_events),
    "live_buffers": shielded(_live_buffers),
    "memory": shielded(_memory),
    "poison_execution": shielded(_poison_execution),
}
for _name, _member in _MEMBERS.items():
    setattr(_ferrax.Device, _name, _member)


def devices(backend: str | None = None) -> list[Any]:
    """Every device of a platform, of all processes.

    Args:
      backend: `"cpu"`, or `None` for the default platform.

    Returns:
      A list of devices, in order of their ids.

    >>> import ferrax as jax
    >>> jax.devices()[0].platform
    'cpu'
    """
    return _processes.all_devices(backend)


def device_memory_stats(device: Any = None) -> dict[str, int]:
    """Bytes that arrays use and that freed ones keep for the next, counted exactly.

    Args:
      device: a device, or `None` for the default platform's first.

    Returns:
      A dictionary: `bytes_in_use` of live buffers, `peak_bytes_in_use`, the most there has been, and `pool_bytes`,
      which are kept for reuse. CPU devices share their memory, and so the counts.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> before = jax.device_memory_stats()["bytes_in_use"]
    >>> x = jnp.zeros(1000)
    >>> jax.device_memory_stats()["bytes_in_use"] - before
    4000
    """
    stats: dict[str, int] = (device or local_devices()[0]).memory_stats()
    return stats


def live_arrays(platform: str | None = None) -> list[Any]:
    """Every array that is alive, in no particular order: for finding out what uses memory.

    Args:
      platform: `"cpu"`, or `None` for the default platform.

    Returns:
      A list of arrays, deleted ones left out. Constants that compiled programs keep are among them.

    Raises:
      RuntimeError: there is no such platform.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> x = jnp.ones((3, 41))
    >>> [a.shape for a in jax.live_arrays() if a.shape == (3, 41)]
    [(3, 41)]
    """
    devices(platform)
    return list(_ferrax.live_arrays())


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """Devices of a process.

    Args:
      process_index: number of the process; this one by default.
      backend: `"cpu"`, or `None` for the default platform.
      host_id: the former name of `process_index`.

    Returns:
      A list of devices, in order of their ids.

    Raises:
      ValueError: there is no such process.

    >>> import ferrax as jax
    >>> jax.local_devices() == jax.devices()
    True
    """
    if host_id is not None:
        warnings.warn(
            "The argument to jax.local_devices has been renamed from `host_id` to `process_index`.", stacklevel=2
        )
    process = host_id if process_index is None else process_index
    if process is None or process == _processes.state.index:
        return list(_ferrax.devices(backend))
    if process not in range(_processes.state.count):
        raise ValueError(f"Unknown process_index {process}")
    return [d for d in devices(backend) if d.process_index == process]


def device_count(backend: str | None = None) -> int:
    """Number of devices.

    Args:
      backend: `"cpu"`, or `None` for the default platform.

    Returns:
      The number of devices of all processes.

    >>> import ferrax as jax
    >>> jax.device_count() == len(jax.devices())
    True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Number of devices of this process.

    Args:
      backend: `"cpu"`, or `None` for the default platform.

    Returns:
      The number of devices.

    >>> import ferrax as jax
    >>> jax.local_device_count() == jax.device_count()
    True
    """
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """Name of the default platform.

    >>> import ferrax as jax
    >>> jax.default_backend()
    'cpu'
    """
    return str(next(iter(_ferrax.devices(None))).platform)


def _known(backend: str | None) -> None:
    """Raises RuntimeError where there is no platform of a name."""
    if backend is not None:
        _ferrax.devices(backend)


def process_index(backend: str | None = None) -> int:
    """Number of this process among all.

    Args:
      backend: the name of a platform, which must be there.

    Returns:
      The number that `jax.distributed.initialize` got; 0 without it.

    >>> import ferrax as jax
    >>> jax.process_index()
    0
    """
    _known(backend)
    return _processes.state.index


def process_count(backend: str | None = None) -> int:
    """Number of processes.

    Args:
      backend: the name of a platform, which must be there.

    Returns:
      The number that `jax.distributed.initialize` got; 1 without it.

    >>> import ferrax as jax
    >>> jax.process_count()
    1
    """
    _known(backend)
    return _processes.state.count


def process_indices(backend: str | None = None) -> list[int]:
    """Numbers of all processes.

    Args:
      backend: the name of a platform, which must be there.

    Returns:
      Those from 0 on.

    >>> import ferrax as jax
    >>> jax.process_indices()
    [0]
    """
    return list(range(process_count(backend)))


def host_ids(backend: str | None = None) -> list[int]:
    """The former name of `process_indices`.

    Args:
      backend: accepted for compatibility.

    Returns:
      `[0]`.

    >>> import ferrax as jax, warnings
    >>> warnings.simplefilter("ignore")
    >>> jax.host_ids()
    [0]
    """
    warnings.warn(
        "jax.process_indexs has been renamed to jax.process_indices. This alias will eventually be removed; please "
        "update your code.",
        stacklevel=2,
    )
    return process_indices(backend)


host_id = process_index
host_count = process_count


def _is_place(x: Any) -> bool:
    return (
        x is None
        or isinstance(x, _ferrax.Device)
        or hasattr(x, "device_set")
        or hasattr(x, "partitions")
        or _is_space(x)
    )


def _is_space(x: Any) -> bool:
    return type(x).__module__ == "ferrax._memory"


def _put(x: Any, device: Any, donate: Any, alias: bool) -> Any:
    """One leaf on a device or with a sharding; itself where it is there already and may be shared."""
    if alias and type(x) is _ferrax.ArrayImpl and (device is None or (x.committed and _is_at(x, device))):
        return x
    if _processes.state.count > 1 and _ferrax.is_eager() and not _ferrax.is_tracer(x):
        from ferrax.sharding._across import carried, reachable

        device = reachable(device)
        there = carried(x, device) if isinstance(x, _ferrax.Array) and x.committed else None
        if there is not None:
            return _given_up(x, there, donate)
    if device is not None and _ferrax.is_tracer(x) and _ferrax.is_eager() and not _is_space(device) and alias:
        from ferrax.sharding._moved import moved

        elsewhere = moved(x, device) if _is_place(device) else None
        if elsewhere is not None:
            return elsewhere
    if device is None or isinstance(device, (_ferrax.Device, _ferrax.SingleDeviceSharding)):
        if isinstance(device, _ferrax.SingleDeviceSharding) and device.memory_kind != "device":
            return _with_sharding(x, device, donate, alias)
        if isinstance(device, _ferrax.SingleDeviceSharding) and (_ferrax.is_tracer(x) or not _ferrax.is_eager()):
            return _ferrax.sharding_constraint(x if isinstance(x, _ferrax.Array) else _ferrax.asarray(x), device)
        if device is None and not alias and type(x) is _ferrax.ArrayImpl and not _ferrax.is_tracer(x):
            return _given_up(x, x.copy(), donate)
        return _given_up(x, _ferrax.device_put_leaf(x, device, alias), donate)
    if type(device).__name__ == "Format" and type(device).__module__ == "ferrax.experimental.layout":
        from ferrax.experimental.layout import Layout, sharding_of

        if device.layout is Layout.AUTO:
            raise ValueError(
                f"sharding and layout in `Layout` instance should be concrete. Got layout: {device} for input "
                f"{_ferrax.typeof(x).str_short()}"
            )
        return _put(x, sharding_of(device, np.shape(x), "device_put"), donate, alias)
    if not _is_place(device):
        raise ValueError(
            "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, `Format`, `jax.memory.Space` "
            f"or a pytree of these values. Received invalid value: {device}"
        )
    return _with_sharding(x, device, donate, alias)


def _is_at(x: Any, device: Any) -> bool:
    """Whether an array has the sharding that is asked for."""
    return hasattr(device, "device_set") and bool(x.sharding == device)


def _with_sharding(x: Any, sharding: Any, donate: Any, alias: bool) -> Any:
    from ferrax.sharding import _placement

    if _is_space(sharding):
        kind = {"Host": "pinned_host"}.get(sharding.name, "device")
        return _given_up(x, _placement.put_in_memory(x, kind), donate)
    sharding = _placement.with_mesh(sharding, "device_put")
    return _given_up(x, _placement.put(x, sharding, alias), donate)


def _given_up(x: Any, put: Any, donate: Any) -> Any:
    """What was put somewhere; frees what it was copied from when that is donated."""
    if donate and put is not x and isinstance(x, _ferrax.ArrayImpl) and not _ferrax.is_tracer(put):
        put.block_until_ready()
        x.delete()
    return put


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: bool | None = None
) -> Any:
    """Puts a pytree of arrays on a device, or on several by a sharding.

    Args:
      x: pytree of arrays, NumPy arrays or Python numbers.
      device: a device, a sharding, a `PartitionSpec` of the mesh in use, or a pytree prefix of such; with `None`, data
        that is on a device stays where it is and other data goes to the default device, uncommitted.
      src: accepted for compatibility.
      donate: whether arrays that are copied are freed; a bool, or a pytree prefix of such.
      may_alias: whether the result may share memory with an array that is already there (default: yes).

    Returns:
      The pytree with arrays on the device, committed to it if one was given.

    Raises:
      ValueError: it is no device or sharding, an array cannot be divided so, or a function of `shard_map` asks for it.

    >>> import ferrax as jax
    >>> x = jax.device_put(1.0, jax.devices()[0])
    >>> x.committed
    True
    """
    if may_alias and donate is True:
        raise ValueError("may_alias and donate cannot be True at the same time.")
    alias = may_alias is not False
    if device is not None and _ferrax.is_eager():
        _check_outside(device)
    if _is_place(device) and isinstance(donate, bool):
        return tree_util.tree_map(lambda leaf: _put(leaf, device, donate, alias), x)
    leaves, tree = tree_util.tree_flatten(x)
    places = _prefix("device", device, x, _is_place)
    given_up = _prefix("donate", donate, x, None)
    return tree.unflatten([_put(v, d, g, alias) for v, d, g in zip(leaves, places, given_up, strict=True)])


def _check_outside(device: Any) -> None:
    """Raises inside of a function that `shard_map` runs at once: where its values are, the mesh says."""
    from ferrax.sharding._manual import names_in_force

    if names_in_force() and not _is_space(device):
        raise ValueError(
            f"device_put with explicit device not allowed within shard_map-decorated functions, but got device {device}"
        )


def _prefix(what: str, prefix: Any, tree: Any, is_leaf: Any) -> list[Any]:
    try:
        return prefix_leaves(prefix, tree, is_leaf)
    except ValueError as error:
        # a leaf that is no place says so itself
        if what == "device" and tree_util.all_leaves([prefix]):
            return [prefix] * len(tree_util.tree_leaves(tree))
        raise specification_error(f"device_put {what}", prefix, tree, is_leaf, str(error)) from None
