"""The manual axes in force: names of the mesh axes that `shard_map` and `pmap` map a function over.

Read next: `_shard_map.py`, which puts them in force.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["manual", "names_in_force"]


class _State(threading.local):
    def __init__(self) -> None:
        self.names: tuple[Any, ...] = ()


_state = _State()


def names_in_force() -> tuple[Any, ...]:
    """Names of the manual axes, outer ones first."""
    return _state.names


@contextlib.contextmanager
def manual(names: tuple[Any, ...]) -> Iterator[None]:
    """Puts manual axes in force on this thread."""
    before = _state.names
    _state.names = (*before, *names)
    try:
        yield
    finally:
        _state.names = before
