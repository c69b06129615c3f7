"""Shardings, and the mesh in use."""

from collections.abc import Sequence
from typing import Any

from ferrax import _processes
from ferrax._out_sharding import require_sharding
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.interpreters.pxla import _array_mapping_to_axis_resources
from ferrax.sharding._arrays import blocks_of_processes
from ferrax.sharding._context import get_abstract_mesh
from ferrax.sharding._gspmd import GSPMDSharding as GSPMDSharding
from ferrax.sharding._hlo import HloSharding, entries_of
from ferrax.sharding._jit import UNSPECIFIED as UNSPECIFIED
from ferrax.sharding._mesh import Mesh
from ferrax.sharding._named import NamedSharding
from ferrax.sharding._placement import check_context, check_explicit, with_mesh
from ferrax.sharding._spec import PartitionSpec

__getattr__ = unprovided_names(
    __name__,
    "AUTO PmapSharding PositionalSharding SdyArray SdyDim UnspecifiedValue cached_named_sharding "
    "make_key_array_phys_sharding physical_sharding prepare_axis_resources get_logical_mesh_ids logical_sharding "
    "named_sharding_to_xla_hlo_sharding physical_hlo_sharding pspec_to_hlo_sharding",
    "shardings in ferrax are NamedSharding, SingleDeviceSharding and GSPMDSharding",
    names_of(__name__, "ferrax.sharding", "ferrax"),
)

array_mapping_to_axis_resources = _array_mapping_to_axis_resources


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


def canonicalize_sharding(sharding: Any, api_name: str, check_mesh_consistency: bool = True) -> NamedSharding | None:
    """What an `out_sharding` argument asks for, over the types of a mesh; None where it asks for nothing.

    Args:
      sharding: a `NamedSharding`, a `PartitionSpec` of the mesh in use, or None.
      api_name: the function that was asked, for errors.
      check_mesh_consistency: whether a mesh that is not the one in use is an error.

    Raises:
      TypeError: `sharding` is something else.
      ValueError: it is over another mesh than the one in use, or over axes that are not explicit.
    """
    if sharding is None or (isinstance(sharding, NamedSharding) and sharding.mesh.empty):
        return None
    require_sharding(sharding, api_name)
    sharding = with_mesh(sharding, api_name)
    mesh = sharding.mesh.abstract_mesh
    if check_mesh_consistency and not (mesh.are_all_axes_auto and get_abstract_mesh().are_all_axes_auto):
        check_context(sharding, api_name)
    check_explicit(sharding, api_name)
    return NamedSharding(mesh, sharding.spec)


class NonUniformShardingError(ValueError):
    """Processes share some parts of an axis, and have others each for itself."""


def get_process_index_and_count(tensor_sharding: Any, dim: int, ndims: int) -> tuple[int, int]:
    """The place of this process among those that have other parts of an axis, and how many of these there are.

    Args:
      tensor_sharding: the sharding.
      dim: the axis.
      ndims: how many axes the array has.

    Raises:
      NonUniformShardingError: processes share some of their parts.
    """
    if tensor_sharding.is_fully_addressable or tensor_sharding.is_fully_replicated:
        return 0, 1
    parts, count = blocks_of_processes(tensor_sharding, dim, ndims)
    sets = sorted({tuple(sorted(blocks)) for blocks in parts.values()})
    if sum(map(len, sets)) != count or len({len(blocks) for blocks in sets}) > 1:
        raise NonUniformShardingError(f"the parts of axis {dim} that processes have differ in more than place: {sets}")
    return sets.index(tuple(sorted(parts[_processes.state.index]))), len(sets)


def local_to_global_shape(sharding: Any, local_shape: Sequence[int]) -> tuple[int | None, ...]:
    """The shape of an array of which this process has `local_shape`; None for axes that do not tell."""

    def whole(axis: int, size: int) -> int | None:
        try:
            return size * get_process_index_and_count(sharding, axis, len(local_shape))[1]
        except NonUniformShardingError:
            return None

    return tuple(whole(axis, size) for axis, size in enumerate(local_shape))


def num_addressable_indices(tensor_sharding: Any, dim: int, global_shape: Sequence[int]) -> int:
    """How many indices along an axis the devices of this process have."""
    parts = tensor_sharding.addressable_devices_indices_map(tuple(global_shape)).values()
    return len({i for index in parts for i in range(*index[dim].indices(global_shape[dim]))})
