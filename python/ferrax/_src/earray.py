"""Arrays of types that users define."""

from ferrax.experimental._extended_arrays import EArray as EArray

__all__ = ["EArray"]
