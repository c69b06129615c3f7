"""Arrays of devices for meshes: `create_device_mesh`, `create_hybrid_device_mesh`.

Devices of a CPU or of GPUs have no topology that is known here, so they stand in order of their numbers; those of TPUs
say where they are. Read next: `_tpu_meshes.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _devices
from ferrax._boundary import expose as _expose
from ferrax.experimental import _tpu_meshes

__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]

#: Functions that lay out devices of a kind, by the kind: `(mesh_shape, devices, **kwargs) -> array or None`.
device_kind_handler_dict: dict[str, Callable[..., Any]] = dict(_tpu_meshes.HANDLERS)


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Devices in an array of a shape.

    Args:
      mesh_shape: the shape.
      devices: the devices, as many as the array has entries; all of them by default.
      contiguous_submeshes: whether the devices of each process must be together in the array; of TPUs.
      allow_split_physical_axes: whether several axes of the array may share an axis of the devices' grid; of TPUs.

    Returns:
      An array of devices, for `Mesh`. Of TPUs, whose chips are wired to their neighbours, each axis runs along axes of
      the grid of chips; the last one is given the most of them.

    Raises:
      ValueError: there are more or fewer devices, the shape is no sequence of integers, or the devices of processes
        cannot be together.
      NotImplementedError: an axis would have to share one of the grid, which `allow_split_physical_axes` allows.

    >>> from ferrax.experimental import mesh_utils
    >>> mesh_utils.create_device_mesh((1, 1)).shape
    (1, 1)
    """
    found = list(_devices.devices() if devices is None else devices)
    try:
        shape = tuple(int(size) for size in mesh_shape)
    except (TypeError, ValueError):
        raise ValueError(
            f"`mesh_shape` passed to `create_device_mesh` should be a sequence of ints. Got {mesh_shape}"
        ) from None
    if math.prod(shape) != len(found):
        raise ValueError(f"Number of devices {len(found)} must equal the product of mesh_shape {shape}")
    handler = device_kind_handler_dict.get(found[-1].device_kind)
    if handler is not None:
        result = handler(shape, found, contiguous_submeshes=contiguous_submeshes)
        if result is not None:
            return np.asarray(result)
    if found[-1].platform == "tpu":
        grid = _tpu_meshes.grid_of(found)
        grid = _tpu_meshes.contiguous(grid, shape) if contiguous_submeshes else grid
        return _tpu_meshes.over_grid(grid, shape, _tpu_meshes.assigned(grid.shape, shape, allow_split_physical_axes))
    if found[-1].platform == "gpu":
        found.sort(key=lambda d: d.id)
    array = np.empty(len(found), dtype=object)
    array[:] = found
    return array.reshape(shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Devices of several granules (slices, or processes) in an array: fast links within a granule, slow ones between.

    Args:
      mesh_shape: shape of a granule's part.
      dcn_mesh_shape: how many parts there are along each axis.
      devices: the devices; all of them by default.
      process_is_granule: whether a process is a granule, instead of a slice.
      should_sort_granules_by_key: whether granules stand in order of their numbers.
      allow_split_physical_axes: as in `create_device_mesh`.

    Returns:
      An array of devices whose shape is the product of both.

    Raises:
      ValueError: there are not as many granules as `dcn_mesh_shape` has entries.

    >>> from ferrax.experimental import mesh_utils
    >>> mesh_utils.create_hybrid_device_mesh((1, 1), (1, 1), process_is_granule=True).shape
    (1, 1)
    """
    found = list(_devices.devices() if devices is None else devices)
    attribute = "process_index" if process_is_granule else "slice_index"
    if not all(hasattr(d, attribute) for d in found):
        raise ValueError(f"Device {found[0]} does not have attribute {attribute}. See `process_is_granule` option.")
    granules: dict[Any, list[Any]] = {}
    for device in found:
        granules.setdefault(getattr(device, attribute), []).append(device)
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    outer = tuple(dcn_mesh_shape)
    if math.prod(outer) != len(keys):
        raise ValueError(f"Number of slices {len(keys)} must equal the product of dcn_mesh_shape {outer}")
    split = allow_split_physical_axes
    parts = [create_device_mesh(mesh_shape, granules[k], allow_split_physical_axes=split) for k in keys]
    blocks = np.empty(len(parts), dtype=object)
    for i, part in enumerate(parts):
        blocks[i] = part
    return np.block(blocks.reshape(outer).tolist())


_expose(globals())
