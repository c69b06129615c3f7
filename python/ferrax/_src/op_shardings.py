"""HLO's shardings, which there are none of."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "are_hlo_shardings_equal get_num_ways_dim_sharded is_hlo_sharding_replicated is_op_sharding_replicated "
    "op_sharding_to_indices op_sharding_to_numpy_indices",
    "ferrax has no HLO shardings, only NamedSharding and SingleDeviceSharding",
)
