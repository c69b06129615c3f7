"""Shardings, and the mesh in use."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.sharding._gspmd import GSPMDSharding as GSPMDSharding
from ferrax.sharding._hlo import HloSharding, entries_of
from ferrax.sharding._jit import UNSPECIFIED as UNSPECIFIED
from ferrax.sharding._mesh import Mesh
from ferrax.sharding._spec import PartitionSpec

__getattr__ = unprovided_names(
    __name__,
    "AUTO NonUniformShardingError PmapSharding PositionalSharding SdyArray SdyDim "
    "UnspecifiedValue array_mapping_to_axis_resources cached_named_sharding canonicalize_sharding "
    "get_process_index_and_count local_to_global_shape make_key_array_phys_sharding physical_sharding "
    "prepare_axis_resources "
    "get_logical_mesh_ids logical_sharding named_sharding_to_xla_hlo_sharding num_addressable_indices "
    "physical_hlo_sharding pspec_to_hlo_sharding",
    "shardings in ferrax are NamedSharding, SingleDeviceSharding and GSPMDSharding",
    names_of(__name__, "ferrax.sharding", "ferrax"),
)


def parse_flatten_op_sharding(sharding: HloSharding, mesh: Mesh) -> list[PartitionSpec]:
    """What HLO says of a sharding over a mesh, as a `PartitionSpec` alone in a list.

    Args:
      sharding: what HLO says.
      mesh: the mesh.

    Raises:
      ValueError: no axes of the mesh divide an array so.
    """
    entries = entries_of(sharding, dict(mesh.shape))
    if entries is None:
        raise ValueError(f"no axes of {mesh} divide an array as {sharding} says")
    while entries and not entries[-1]:
        entries.pop()
    return [PartitionSpec(*entries)]
