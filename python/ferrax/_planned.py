"""Names of JAX's public interface that are not here yet: asking for one says so, instead of that it does not exist.

A name is taken off when it is implemented. Read next: `_boundary.py`, which raises for missing names.
"""

from __future__ import annotations

PLANNED: dict[str, frozenset[str]] = {
    "ferrax": frozenset(
        [
            "ds", "distributed", "export", "extend", "ffi", "image", "make_array_from_callback",
            "make_array_from_process_local_data", "make_array_from_single_device_arrays", "make_mesh", "pmap",
            "print_environment_info", "profiler", "ref", "scipy", "set_mesh", "shard_map", "sharding", "smap",
        ]
    ),
    "ferrax.lax": frozenset(
        [
            "RaggedDotDimensionNumbers", "RandomAlgorithm", "betainc", "igamma_grad_a",
            "precv", "psend", "ragged_all_to_all", "ragged_dot", "ragged_dot_general", "random_gamma_grad",
            "rng_bit_generator", "scaled_dot",
        ]
    ),
    "ferrax.lax.linalg": frozenset(["qdwh"]),
    "ferrax.debug": frozenset(["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"]),
}  # fmt: skip


class MissingName(NotImplementedError, AttributeError):
    """A name of JAX's that is not implemented yet; `hasattr` is False, as for names that do not exist.

    >>> import ferrax
    >>> hasattr(ferrax, "pmap")
    False
    """
