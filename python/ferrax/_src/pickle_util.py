"""Functions as bytes."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "dumps loads",
    "what pickle does not take is not made bytes of",
)
