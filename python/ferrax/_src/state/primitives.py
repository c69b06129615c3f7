"""Reads and writes of references."""

from ferrax._primitives import built_in
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.numpy import broadcast_to as broadcast_to
from ferrax.ref import addupdate as ref_addupdate, get as ref_get, set as ref_set, swap as ref_swap

addupdate_p = built_in("addupdate")

__all__ = ["broadcast_to", "ref_addupdate", "ref_get", "ref_set", "ref_swap"]

__getattr__ = unprovided_names(
    __name__,
    "broadcast_to_p create_linear get_ref_and_transforms pin unpin",
    "references are Python's objects here, and programs have their values",
    names_of(__name__, "ferrax.ref", "ferrax.extend.core.primitives"),
)
