"""How arrays lie in memory, as libraries ask for it: ferrax's arrays are always row by row.

Read next: `ferrax/sharding/__init__.py` for the devices that arrays are on.
"""

from __future__ import annotations

from typing import Any

from ferrax._boundary import expose as _expose

__all__ = ["Format", "Layout"]


class Layout:
    """The order of axes in memory.

    Args:
      major_to_minor: axes, the one with the largest steps first.
      tiling: sizes of tiles; None for none.

    Attributes:
      AUTO: None, the layout that is chosen for an array.

    >>> import ferrax as jax
    >>> jax.experimental.layout.Layout((0, 1)) == jax.experimental.layout.Layout((0, 1))
    True
    """

    AUTO = None

    def __init__(self, major_to_minor: tuple[int, ...], tiling: Any = None, sub_byte_element_size_in_bits: int = 0):
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = tiling
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def _key(self) -> Any:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Layout(major_to_minor={self.major_to_minor})"


class Format:
    """The devices that an array is on, and the order of its axes in memory.

    Args:
      layout: the order of axes; None for the default one.
      sharding: the devices.

    >>> import ferrax as jax
    >>> jax.experimental.layout.Format(None, None).layout
    """

    def __init__(self, layout: Layout | None = None, sharding: Any = None):
        self.layout = layout
        self.sharding = sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"


_expose(globals())
