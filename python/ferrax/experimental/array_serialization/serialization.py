"""Arrays in files of many processes: not provided."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "AsyncManager GlobalAsyncCheckpointManager GlobalAsyncCheckpointManagerBase async_deserialize async_serialize "
    "get_tensorstore_spec load load_pytreedef nonblocking_load nonblocking_save run_deserialization "
    "run_serialization save",
    "ferrax writes no arrays of many processes; ferrax.numpy.save writes one",
)
