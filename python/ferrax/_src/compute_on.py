"""Where parts of programs are computed."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "extend_compute_type",
    "what a compute type adds to is not looked at",
    names_of(__name__, "ferrax.experimental.compute_on"),
)
