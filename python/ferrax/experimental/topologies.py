"""Devices as a group that meshes are made of; JAX also has groups of devices that are not there, to compile for.

Read next: `mesh_utils.py`, which arranges devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrax import devices as _devices
from ferrax._boundary import expose as _expose
from ferrax.experimental.mesh_utils import create_device_mesh as _create_device_mesh
from ferrax.sharding import Mesh as _Mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """A group of devices.

    Args:
      devices: the devices.

    >>> import ferrax as jax
    >>> len(jax.experimental.topologies.TopologyDescription(jax.devices()).devices) == jax.device_count()
    True
    """

    def __init__(self, devices: list[Any]):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices that are there.

    Args:
      platform: which ones; those of the default platform without it.

    >>> import ferrax as jax
    >>> jax.experimental.topologies.get_attached_topology("cpu").devices[0].platform
    'cpu'
    """
    return TopologyDescription(_devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> TopologyDescription:
    """Devices that need not be there, by the name of their arrangement: ferrax compiles for devices that are.

    Args:
      topology_name: the name.
      platform: the platform.
      **kwargs: what the platform asks for.

    Raises:
      NotImplementedError: always.

    >>> import ferrax as jax
    >>> jax.experimental.topologies.get_topology_desc("v5e:2x2", "tpu")
    Traceback (most recent call last):
    NotImplementedError: get_topology_desc: ferrax compiles for devices that are there, not for 'v5e:2x2' of 'tpu'
    """
    raise NotImplementedError(
        f"get_topology_desc: ferrax compiles for devices that are there, not for {topology_name!r} of {platform!r}"
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> _Mesh:
    """A mesh of a group of devices.

    Args:
      topo: the group.
      mesh_shape: how many devices each axis has.
      axis_names: the names of the axes.
      contiguous_submeshes: as of `mesh_utils.create_device_mesh`.

    >>> import ferrax as jax
    >>> topologies = jax.experimental.topologies
    >>> topologies.make_mesh(topologies.TopologyDescription(jax.devices()[:1]), (1,), ("x",)).axis_names
    ('x',)
    """
    devices = _create_device_mesh(mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes)
    return _Mesh(devices, axis_names)


_expose(globals())
