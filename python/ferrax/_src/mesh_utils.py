"""Meshes for devices that there are."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

#: Kinds of TPUs, as their devices say.
_TPU_V2, _TPU_V3, _TPU_V4, _TPU_V4_LITE = "TPU v2", "TPU v3", "TPU v4", "TPU v4 lite"
_TPU_V5_LITE, _TPU_V5E, _TPU_V5P = "TPU v5 lite", "TPU v5e", "TPU v5p"
_TPU_V6_LITE, _TPU_7, _TPU_7X, _TPU_8I = "TPU v6 lite", "TPU7", "TPU7x", "TPU8i"

__getattr__ = unprovided_names(
    __name__,
    "_TRANSPOSE_TRICKS _TRAY_RING_ORDER _create_device_mesh_for_nd_torus _enumerate_feasible_logical_axis_assignments "
    "_create_device_mesh_for_nd_torus_splitting_axes _generate_logical_mesh _get_physical_tpu_mesh _get_prime_factors "
    "_prefer_first_logical_axis_assignment _transpose_trick",
    "meshes follow no TPU's wires",
    names_of(__name__, "ferrax.experimental.mesh_utils"),
)
