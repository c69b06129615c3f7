"""Tests of several processes."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__, "MultiProcessTest NUM_PROCESSES main", "ferrax's tests start their processes themselves"
)
