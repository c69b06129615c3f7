"""Collectives."""

from typing import Any

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.lax import all_gather


def all_gather_invariant(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """The rows of a mapped axis, the same on all devices along it."""
    return all_gather(x, axis_name, axis=axis, tiled=tiled, to="invariant")


__getattr__ = unprovided_names(
    __name__,
    "all_gather_invariant_p all_gather_reduced all_gather_reduced_p preduced unreduced_psum "
    "unreduced_psum_scatter vary_unreduced_cast",
    "arrays are summed over axes at once",
    names_of(__name__, "ferrax.lax", "ferrax.extend.core.primitives"),
)
