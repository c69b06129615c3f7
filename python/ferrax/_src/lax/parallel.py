"""Collectives."""

from typing import Any

from ferrax._src._public import names_of
from ferrax.lax import all_gather


def all_gather_invariant(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """The rows of a mapped axis, the same on all devices along it."""
    return all_gather(x, axis_name, axis=axis, tiled=tiled, to="invariant")


__getattr__ = names_of(__name__, "ferrax.lax", "ferrax.extend.core.primitives")
