"""Functions that say how they are divided."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "custom_partitioning_p",
    "such functions are no equations of a program",
    names_of(__name__, "ferrax.experimental.custom_partitioning"),
)
