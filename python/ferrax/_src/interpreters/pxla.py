"""Programs over several devices."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "MeshComputation MeshExecutable SemanticallyEqualShardings UnloadedMeshExecutable batched_device_put "
    "global_result_handlers lower_sharding_computation shard_arg_handlers shard_args",
    "programs run in the core",
    names_of(__name__, "ferrax.interpreters.pxla"),
)
