"""The devices that a lowered program is compiled for, where its arguments have shardings over abstract meshes.

Read next: `ferrax/_stages.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax._ferrax import SingleDeviceSharding
from ferrax.sharding._context import concrete_mesh, physical_mesh
from ferrax.sharding._mesh import Mesh
from ferrax.sharding._named import NamedSharding, Sharding, is_abstract

__all__ = ["check_abstract", "on_devices"]


def _known(shardings: Sequence[Any]) -> list[Any] | None:
    """The devices that shardings say; those of the mesh in use where none does."""
    for s in shardings:
        if isinstance(s, (Sharding, SingleDeviceSharding)) and not is_abstract(s):
            return list(s._device_assignment)
    mesh = concrete_mesh()
    return None if mesh is None else list(mesh.devices.flat)


def check_abstract(shardings: Sequence[Any], platforms: Any) -> None:
    """Raises where a program cannot be lowered for the abstract meshes of its arguments.

    Args:
      shardings: of each argument, or None.
      platforms: the platforms that it is lowered for, or None.

    Raises:
      ValueError: nobody says for which platform, or the mesh has another size than the devices of other arguments.
    """
    meshes = [s.mesh for s in shardings if is_abstract(s)]
    if not meshes:
        return
    devices = _known(shardings)
    if devices is None:
        if platforms is None:
            raise ValueError(
                "Passing lowering_platforms via jax.export or jit(f).trace(*args).lower(lowering_platforms=...) is "
                f"required when only AbstractMesh exists in a jitted computation. Got context mesh: {physical_mesh()}"
            )
        return
    for mesh in meshes:
        if mesh.size != len(devices):
            raise ValueError(
                f"AbstractMesh size: {mesh.size} does not match the device assignment size: {len(devices)}"
            )


def on_devices(shardings: Sequence[Any], devices: Any) -> list[Any]:
    """The shardings of a program's arguments over the devices that it is compiled for.

    Args:
      shardings: of each argument, or None.
      devices: what `compile` is given.

    Raises:
      RuntimeError: they are over an abstract mesh, and no devices are given.
      ValueError: they are over other devices, or over a mesh of another size.
    """
    abstract = [s for s in shardings if is_abstract(s)]
    known = _known(shardings)
    if devices is None:
        if abstract and known is None:
            raise RuntimeError(
                "device_assignment cannot be `None` during compilation. Please pass a tuple of devices to "
                "`.compile(device_assignment=)`"
            )
        return list(shardings)
    devices = list(devices)
    if known is not None and known != devices:
        ids = [[d.id for d in some] for some in (devices, known)]
        platforms = [some[0].platform.upper() for some in (devices, known)]
        raise ValueError(
            "device_assignment passed to `.compile` must match the device_assignment calculated from array shardings "
            f"and out_shardings. Got device ids passed to compile {ids[0]} on platform {platforms[0]} and devices ids "
            f"calculated from array shardings and out_shardings {ids[1]} on platform {platforms[1]}"
        )
    for s in abstract:
        if s.mesh.size != len(devices):
            raise ValueError(
                f"The size of abstract mesh {s.mesh.size} in {s} must match the length of device assignment: "
                f"{len(devices)}"
            )
    if not abstract and known is None:
        if len(devices) != 1:
            raise ValueError(
                f"device_assignment passed to `.compile` has {len(devices)} devices, and the program runs on one"
            )
        return [SingleDeviceSharding(devices[0])] * len(shardings)
    return [_over(s, devices) if is_abstract(s) else s for s in shardings]


def _over(sharding: NamedSharding, devices: Sequence[Any]) -> NamedSharding:
    mesh = sharding.mesh
    placed = Mesh(np.array(devices).reshape(mesh.axis_sizes), mesh.axis_names, axis_types=mesh.axis_types)
    return NamedSharding(placed, sharding.spec)
