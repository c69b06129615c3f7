"""Shardings, and the mesh in use."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.sharding._gspmd import GSPMDSharding as GSPMDSharding
from ferrax.sharding._jit import UNSPECIFIED as UNSPECIFIED

__getattr__ = unprovided_names(
    __name__,
    "AUTO NonUniformShardingError PmapSharding PositionalSharding SdyArray SdyDim "
    "UnspecifiedValue array_mapping_to_axis_resources cached_named_sharding canonicalize_sharding "
    "get_process_index_and_count local_to_global_shape make_key_array_phys_sharding physical_sharding "
    "prepare_axis_resources "
    "get_logical_mesh_ids logical_sharding named_sharding_to_xla_hlo_sharding num_addressable_indices "
    "parse_flatten_op_sharding physical_hlo_sharding pspec_to_hlo_sharding",
    "shardings in ferrax are NamedSharding, SingleDeviceSharding and GSPMDSharding",
    names_of(__name__, "ferrax.sharding", "ferrax"),
)
