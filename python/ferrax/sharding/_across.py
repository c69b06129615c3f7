"""Arrays that go to devices of other processes: `device_put` from one part of a machine to another, as in a pipeline.

The processes that have the array or are to have it call `device_put` alike. Those that have it give its parts to the
coordinator of `jax.distributed`, the others fetch what they need. Read next: `_processes.py`.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, _processes
from ferrax.sharding._arrays import make_array_from_callback
from ferrax.sharding._mesh import Mesh
from ferrax.sharding._named import NamedSharding
from ferrax.sharding._spec import PartitionSpec

__all__ = ["carried", "reachable"]

#: How long the others may take, in milliseconds.
_PATIENCE = 300_000
#: By the processes that take part: numbers of what they carried. All of them carry in one order.
_turns: collections.defaultdict[tuple[int, ...], Any] = collections.defaultdict(itertools.count)


def reachable(there: Any) -> Any:
    """What is known here of a place: a mesh of it alone, where it is a device of another process."""
    devices = [there] if isinstance(there, _ferrax.Device) else list(getattr(there, "device_set", ()))
    if isinstance(there, NamedSharding) or len(devices) != 1:
        return there
    device = devices[0]
    if device.process_index == _processes.state.index or device.platform == "cpu":
        return there
    return NamedSharding(Mesh(np.array([device]), ("_device",)), PartitionSpec())


def carried(x: Any, there: Any) -> Any:
    """A committed array on devices of other processes; `None` where these have no part in it.

    Args:
      x: the array.
      there: a device, or a sharding, that is `reachable`.

    Returns:
      The array.

    Raises:
      NotImplementedError: devices of other processes are to have what one process has on its own, beside itself.
    """
    abstract = isinstance(there, NamedSharding) and not isinstance(there.mesh, Mesh)
    wanted = {there} if isinstance(there, _ferrax.Device) else None if abstract else getattr(there, "device_set", None)
    source = x.sharding.device_set
    if wanted is None or source == wanted or "cpu" in {d.platform for d in wanted}:
        return None
    of = lambda devices: {d.process_index for d in devices}
    have, get, own = of(source), of(wanted), _processes.state.index
    if have == {own} and own in get:
        return None
    if len(have) == 1 and have < get:
        raise NotImplementedError(
            f"jax.device_put from a device of process {min(have)} alone to devices of processes {sorted(get)} is not "
            "implemented: put it on devices of processes that do not have it"
        )
    sharding = _ferrax.SingleDeviceSharding(there) if isinstance(there, _ferrax.Device) else there
    return _carried(x, sharding, tuple(sorted(have | get)), get)


def _check_alike(x: Any, sharding: Any, taking: tuple[int, ...], folder: str) -> None:
    """Raises `ValueError` when the others put something else, or elsewhere: each would wait for what nobody gives."""
    own, client = _processes.state.index, _processes.state.client
    if own not in taking:
        return
    devices = [d.id for d in sharding._device_assignment]
    said = f"{x.dtype}{list(x.shape)} on devices {devices} by {getattr(sharding, 'spec', PartitionSpec())}"
    client.key_value_set(f"{folder}/said/{own}", said)
    for process in taking:
        other = client.blocking_key_value_get(f"{folder}/said/{process}", _PATIENCE)
        if other != said:
            raise ValueError(
                "jax.device_put to devices of other processes has to be the same in all processes that have the array "
                f"or are to have it: process {process} puts {other}, process {own} {said}"
            )


def _carried(x: Any, sharding: Any, taking: tuple[int, ...], get: set[int]) -> Any:
    from ferrax import dtypes, random
    from ferrax.experimental.multihost_utils import packed, unpacked

    if dtypes.issubdtype(x.dtype, dtypes.prng_key):
        return random.wrap_key_data(_carried(random.key_data(x), sharding, taking, get))
    own, client = _processes.state.index, _processes.state.client
    folder = f"ferrax/put/{'-'.join(map(str, taking))}/{next(_turns[taking])}"
    _check_alike(x, sharding, taking, folder)
    pieces = {n: s for n, s in enumerate(x.global_shards) if s.replica_id == 0}
    mine = {n: np.asarray(s.data) for n, s in pieces.items() if s.device.process_index == own}
    for n, data in mine.items() if get - {own} else ():
        client.key_value_set_bytes(f"{folder}/{n}", packed(data))

    def fetched(n: int) -> np.ndarray[Any, Any]:
        if n not in mine:
            mine[n] = unpacked(client.blocking_key_value_get_bytes(f"{folder}/{n}", _PATIENCE))
        return mine[n]

    def part(index: Sequence[slice]) -> np.ndarray[Any, Any]:
        wanted = [s.indices(size)[:2] for s, size in zip(index, x.shape, strict=True)]
        out = np.empty([stop - start for start, stop in wanted], x.dtype)
        for n, piece in pieces.items():
            has = [s.indices(size)[:2] for s, size in zip(piece.index, x.shape, strict=True)]
            both = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(wanted, has, strict=True)]
            if all(a < b for a, b in both):
                at = lambda begins: tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(both, begins, strict=True))
                out[at(wanted)] = fetched(n)[at(has)]
        return out

    result = make_array_from_callback(x.shape, sharding, part, dtype=x.dtype)
    if own in taking and len(taking) > 1:
        client.wait_at_barrier(folder, _PATIENCE, list(taking))
        if own == taking[0]:
            client.key_value_delete(folder)
    return result
