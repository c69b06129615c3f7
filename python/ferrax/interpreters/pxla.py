"""Compilation for meshes of devices: which mesh is in use, as older libraries ask for it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Union

from ferrax._boundary import expose as _expose, shielded
from ferrax.sharding import PartitionSpec
from ferrax.sharding._jit import UNSPECIFIED

__all__: list[str] = []


class _Environment:
    """The meshes of `with mesh:`."""

    @property
    def physical_mesh(self) -> Any:
        """The mesh in use; one without axes where there is none."""
        from ferrax.sharding._context import physical_mesh

        return physical_mesh()

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return bool(self.physical_mesh.empty)

    def __repr__(self) -> str:
        return f"ResourceEnv(mesh={self.physical_mesh!s})"


class _ThreadResources:
    """What a thread has in use."""

    env = _Environment()


_thread_resources = _ThreadResources()


def _array_mapping_to_axis_resources(array_mapping: Mapping[Any, int]) -> PartitionSpec:
    """The `PartitionSpec` of a mapping from mesh axes to axes of an array."""
    entries: list[list[Any]] = [[] for _ in range(max(array_mapping.values(), default=-1) + 1)]
    for name, axis in array_mapping.items():
        entries[axis].append(name)
    return PartitionSpec(*(tuple(e) if len(e) > 1 else (*e, None)[0] for e in entries))


#: Names that JAX is about to take away.
_DEPRECATED = {
    "ArrayMapping": OrderedDict[Any, int],
    "Index": Union[int, slice, tuple[Union[int, slice], ...]],  # noqa: UP007
    "MeshAxisName": Any,
    "_UNSPECIFIED": UNSPECIFIED,
    "array_mapping_to_axis_resources": shielded(_array_mapping_to_axis_resources),
}


#: The same, which are in `ferrax._src`.
_MOVED = {
    "MeshComputation": "interpreters.pxla",
    "MeshExecutable": "interpreters.pxla",
    "are_hlo_shardings_equal": "op_shardings",
    "global_aval_to_result_handler": "interpreters.pxla",
    "global_avals_to_results_handler": "interpreters.pxla",
    "global_result_handlers": "interpreters.pxla",
    "is_hlo_sharding_replicated": "op_shardings",
    "op_sharding_to_indices": "op_shardings",
}


def __getattr__(name: str) -> Any:
    if name == "thread_resources":
        warnings.warn(
            "jax.interpreters.pxla.thread_resources is deprecated. Use jax.sharding.get_mesh or "
            "jax.sharding.get_abstract_mesh.",
            DeprecationWarning,
            stacklevel=2,
        )
        return _thread_resources
    if name == "create_compile_options":
        from ferrax._src.interpreters.pxla import create_compile_options

        return create_compile_options
    if name in _DEPRECATED or name in _MOVED:
        text = f"jax.interpreters.pxla.{name} is deprecated as of JAX v0.8.2."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        if name in _DEPRECATED:
            return _DEPRECATED[name]
        import importlib

        return getattr(importlib.import_module(f"ferrax._src.{_MOVED[name]}"), name)
    import sys

    from ferrax._boundary import missing

    raise missing(sys.modules[__name__], name)


_expose(globals())
