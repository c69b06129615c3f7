"""Shardings of exported functions: meshes without devices, which a call puts over the devices of its arguments.

Read next: `_exported.py`, whose functions have them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from ferrax.sharding._context import context_mesh

__all__ = [
    "of_arguments",
    "of_results",
    "over",
    "over_mesh_in_use",
    "placed",
    "placed_results",
    "read_sharding",
    "write_sharding",
]


def of_arguments(leaves: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
    """The shardings of arguments over abstract meshes, None for those without, and the number of devices.

    Args:
      leaves: arrays, or `ShapeDtypeStruct`s.

    Raises:
      ValueError: the meshes are of several sizes.
    """
    given = [x.sharding if isinstance(getattr(x, "sharding", None), NamedSharding) else None for x in leaves]
    found = tuple(None if s is None else NamedSharding(_abstract(s.mesh), s.spec) for s in given)
    sizes = {math.prod(s.mesh.axis_sizes) for s in found if s is not None} or {1}
    if len(sizes) > 1:
        raise ValueError(f"the arguments' meshes have different numbers of devices: {sorted(sizes)}")
    return found, sizes.pop()


def over(mesh: Any, sharding: Any) -> NamedSharding:
    """A sharding over an abstract mesh, over another mesh with the same axes.

    Raises:
      ValueError: it has others.
    """
    own, other = sharding.mesh, _abstract(mesh)
    if (own.axis_sizes, own.axis_names, own.axis_types) != (other.axis_sizes, other.axis_names, other.axis_types):
        raise ValueError(f"NamedSharding new mesh {mesh} does not match the mesh used for export {own}.")
    return NamedSharding(mesh, sharding.spec)


def over_mesh_in_use() -> int:
    """The number of devices of the mesh in use; 1 without one."""
    mesh = context_mesh()
    return 1 if mesh is None else math.prod(mesh.axis_sizes)


def _abstract(mesh: Any) -> Any:
    mesh = mesh if isinstance(mesh, AbstractMesh) else mesh.abstract_mesh
    return AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=mesh.axis_types)


def placed(name: str, shardings: Sequence[Any], devices: int, values: Sequence[Any]) -> list[Any]:
    """The arguments of a call, over their devices as the function was exported for.

    Args:
      name: of the function, for the error.
      shardings: that it was exported with.
      devices: how many.
      values: the arguments; traced ones are nowhere yet, and stay so.

    Raises:
      ValueError: the arguments are on another number of devices.
    """
    if devices == 1 or any(map(_ferrax.is_tracer, values)):
        return list(values)
    over = max((x.sharding._device_assignment for x in values), key=len, default=())
    if len(over) != devices:
        raise ValueError(
            f"Function {name} was exported for {devices} devices and is called in a context with {len(over)} devices, "
            "which is not allowed."
        )

    return _put(values, shardings, over)


def _put(values: Sequence[Any], shardings: Sequence[Any], devices: Sequence[Any]) -> list[Any]:
    """Values with shardings over abstract meshes, over these devices."""
    from ferrax import device_put

    def put(x: Any, sharding: Any) -> Any:
        mesh = sharding.mesh
        grid = Mesh(np.array(devices).reshape(mesh.axis_sizes), mesh.axis_names, axis_types=mesh.axis_types)
        return device_put(x, NamedSharding(grid, sharding.spec))

    return [x if s is None else put(x, s) for x, s in zip(values, shardings, strict=True)]


def placed_results(shardings: Sequence[Any], values: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The results of a call as the exported function asks for them, over the devices of the arguments.

    Args:
      shardings: that it was exported with.
      values: the arguments.
      results: the results; of traced arguments they are nowhere yet, and stay so.
    """
    if all(s is None for s in shardings) or any(map(_ferrax.is_tracer, [*values, *results])):
        return list(results)
    return _put(results, shardings, max((x.sharding._device_assignment for x in values), key=len, default=()))


def of_results(program: Any) -> list[Any]:
    """For each result of a program the sharding that it asks for last, or None.

    Args:
      program: the program.
    """
    asked = {
        v: eqn.params["sharding"]
        for eqn in program.jaxpr.eqns
        if eqn.primitive.name == "sharding_constraint"
        for v in eqn.outvars
    }
    return [None if isinstance(v, _ferrax.Literal) else asked.get(v) for v in program.jaxpr.outvars]


def write_sharding(sharding: Any) -> Any:
    """A sharding as JSON."""
    if sharding is None:
        return None
    mesh, spec = sharding.mesh, sharding.spec
    if spec.unreduced or spec.reduced or not all(isinstance(n, str) for n in mesh.axis_names):
        raise NotImplementedError(f"serialization of the sharding {sharding} is not implemented")
    entries = [list(e) if isinstance(e, tuple) else e for e in spec]
    return [list(mesh.axis_sizes), list(mesh.axis_names), [t.name for t in mesh.axis_types], entries]


def read_sharding(data: Any) -> Any:
    """A sharding from JSON; raises ValueError or TypeError for what is none."""
    if data is None:
        return None
    sizes, names, types, entries = data
    if not all(type(n) is int and 0 < n < 2**31 for n in sizes):
        raise ValueError(f"the file is malformed: a mesh of the sizes {sizes}")
    kinds = tuple(AxisType[str(t)] for t in types)
    mesh = AbstractMesh(tuple(sizes), tuple(map(str, names)), axis_types=kinds)
    return NamedSharding(mesh, PartitionSpec(*(tuple(e) if isinstance(e, list) else e for e in entries)))
