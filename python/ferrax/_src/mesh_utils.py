"""Meshes for devices that there are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.experimental._tpu_meshes import (
    MIXED as _TRANSPOSE_TRICKS,
    RING_OF_TRAY as _TRAY_RING_ORDER,
    V2 as _TPU_V2,
    V3 as _TPU_V3,
    V4_LITE as _TPU_V4_LITE,
    V5_LITE as _TPU_V5_LITE,
    V5P as _TPU_V5P,
    V6_LITE as _TPU_V6_LITE,
    V7 as _TPU_7,
    V7X as _TPU_7X,
    V8I as _TPU_8I,
    assigned as _assigned,
    contiguous as _transpose_trick,
    grid_of as _get_physical_tpu_mesh,
    over_grid as _generate_logical_mesh,
    prime_factors as _get_prime_factors,
)

__all__ = [
    "_TPU_7",
    "_TPU_7X",
    "_TPU_8I",
    "_TPU_V2",
    "_TPU_V3",
    "_TPU_V4_LITE",
    "_TPU_V5P",
    "_TPU_V5_LITE",
    "_TPU_V6_LITE",
    "_TRANSPOSE_TRICKS",
    "_TRAY_RING_ORDER",
    "_get_physical_tpu_mesh",
    "_get_prime_factors",
    "_transpose_trick",
]

#: Kinds of TPUs that are laid out as any other, as their devices say.
_TPU_V4, _TPU_V5E = "TPU v4", "TPU v5e"

__getattr__ = unprovided_names(
    __name__,
    "_enumerate_feasible_logical_axis_assignments _prefer_first_logical_axis_assignment",
    "an axis is given the best of all ways to divide it, in one step",
    names_of(__name__, "ferrax.experimental.mesh_utils"),
)


def _create_device_mesh_for_nd_torus(
    physical_mesh: np.ndarray[Any, Any], mesh_shape: Sequence[int], *, allow_split_physical_axes: bool = False
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The devices of a grid in a shape, and how far each axis of the shape runs along each axis of the grid."""
    parts = _assigned(physical_mesh.shape, mesh_shape, allow_split_physical_axes)
    return _generate_logical_mesh(physical_mesh, mesh_shape, parts), parts
