"""Processes that a cluster starts."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "SlurmCluster",
    "processes are named by ferrax.distributed.initialize's arguments",
)
