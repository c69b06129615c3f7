"""`jax.memory`: kinds of memory that arrays can be in, wherever their devices are."""

from __future__ import annotations

import enum
from types import SimpleNamespace

__all__ = ["MemorySpace", "memory"]


class MemorySpace(enum.Enum):
    """Memory of the device, of its host, or either.

    >>> import ferrax as jax
    >>> jax.memory.Space.Host
    MemorySpace.Host
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


#: What `jax.memory` is.
memory = SimpleNamespace(Space=MemorySpace)
