"""Processes that clusters start."""

from ferrax._src._public import with_submodules
from ferrax._src._unprovided import unprovided_names

__getattr__ = with_submodules(
    __name__,
    unprovided_names(
        __name__,
        "ClusterEnv K8sCluster Mpi4pyCluster OmpiCluster SlurmCluster",
        "processes are named by ferrax.distributed.initialize's arguments",
    ),
)
