"""The class of arrays, and how they are put together."""

from ferrax import (
    make_array_from_callback as make_array_from_callback,
    make_array_from_process_local_data as make_array_from_process_local_data,
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from ferrax._ferrax import ArrayImpl as ArrayImpl
from ferrax._src._unprovided import unprovided_names
from ferrax.sharding import _arrays as _arrays  # by which the class makes arrays
from ferrax.sharding._shards import Shard as Shard

__getattr__ = unprovided_names(
    __name__,
    "as_slice_indices shard_device_array shard_sharded_device_array_slow_path",
    "arrays are put on devices by the core",
)
