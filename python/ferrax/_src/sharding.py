"""Shardings."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "IndivisibleError",
    "sizes that a mesh does not divide are refused by ValueError",
    names_of(__name__, "ferrax.sharding"),
)
