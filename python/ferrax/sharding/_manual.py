"""The manual axes in force: names of the mesh axes that `shard_map` and `pmap` map a function over.

Read next: `_shard_map.py`, which puts them in force.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["manual", "names_in_force", "text"]


class _State(threading.local):
    def __init__(self) -> None:
        self.names: tuple[Any, ...] = ()
        self.mesh: Any = None


_state = _State()


def names_in_force() -> tuple[Any, ...]:
    """Names of the manual axes, outer ones first."""
    return _state.names


@contextlib.contextmanager
def manual(names: tuple[Any, ...], mesh: Any = None) -> Iterator[None]:
    """Puts manual axes in force on this thread; `mesh` has the devices along them, where they are known."""
    before = _state.names, _state.mesh
    _state.names, _state.mesh = (*before[0], *names), mesh
    try:
        yield
    finally:
        _state.names, _state.mesh = before


def text(whole: Any, axes: Sequence[tuple[str, int | None]]) -> str | None:
    """What each device holds of a value, as text; None where a device's part is not known.

    Args:
      whole: an array with all parts.
      axes: the manual axes along which the parts lie, inner ones first, each with the axis of `whole` (without the
        outer ones) that it is; None for what is the same along it.
    """
    mesh = _state.mesh
    names = () if mesh is None else tuple(mesh.axis_names)
    if not names or set(names) != set(_state.names) or whole.dtype.kind not in "biufcV":
        return None
    values = np.asarray(whole)
    devices = []
    for at in np.ndindex(mesh.devices.shape):
        part = values
        for name, axis in reversed(axes):
            if axis is not None:
                part = np.take(part, at[names.index(name)], axis)
        devices.append(f"On {mesh.devices[at]} at mesh coordinates ({', '.join(names)},) = {at}:\n{part}\n")
    return "\n".join(devices)
