"""What `ferrax` itself has for arrays on many devices: meshes of this process's devices, and names of `sharding`.

Read next: `sharding/_mesh.py` for what a mesh is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import _devices
from ferrax._memory import memory
from ferrax.sharding._arrays import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from ferrax.sharding._context import set_mesh
from ferrax.sharding._mesh import AxisType, Mesh
from ferrax.sharding._named import NamedSharding
from ferrax.sharding._placement import reshard
from ferrax.sharding._pmap import pmap
from ferrax.sharding._shard_map import shard_map, smap
from ferrax.sharding._shards import Shard
from ferrax.sharding._spec import PartitionSpec

__all__ = [
    "NamedSharding",
    "P",
    "Shard",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_mesh",
    "memory",
    "pmap",
    "reshard",
    "set_mesh",
    "shard_map",
    "smap",
]

P = PartitionSpec


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of devices, laid out for the machine.

    Args:
      axis_shapes: sizes of the axes.
      axis_names: their names.
      axis_types: an `AxisType` for each axis; all `Explicit` by default.
      devices: the devices, the first of which are used; all of them by default.

    Returns:
      A `Mesh`.

    Raises:
      ValueError: there are too few devices, or not as many names as sizes.

    >>> import ferrax as jax
    >>> jax.make_mesh((1,), ("x",))
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Explicit,))
    """
    found = _devices.devices() if devices is None else list(devices)
    shape = tuple(axis_shapes)
    if not all(hasattr(size, "__index__") for size in shape):
        raise ValueError(f"`axis_shapes` passed to `make_mesh` should be a sequence of ints. Got {axis_shapes}")
    count = math.prod(shape)
    if len(found) < count:
        raise ValueError(f"Number of devices {len(found)} must be >= the product of mesh_shape {shape}")
    array = np.empty(count, dtype=object)
    array[:] = found[:count]
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types
    return Mesh(array.reshape(shape), names, types)
