"""Arrays on many devices: meshes, which axes of a mesh divide an array, and the mesh in use.

Read next: `_mesh.py`, `_spec.py` and `_named.py` for the classes.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._ferrax import SingleDeviceSharding as SingleDeviceSharding
from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.sharding._axis_types import ManualAxisType as ManualAxisType
    from ferrax.sharding._axis_types import auto_axes as auto_axes
    from ferrax.sharding._axis_types import explicit_axes as explicit_axes
    from ferrax.sharding._context import get_abstract_mesh as get_abstract_mesh
    from ferrax.sharding._context import get_mesh as get_mesh
    from ferrax.sharding._context import set_mesh as set_mesh
    from ferrax.sharding._context import use_abstract_mesh as use_abstract_mesh
    from ferrax.sharding._mesh import AbstractDevice as AbstractDevice
    from ferrax.sharding._mesh import AbstractMesh as AbstractMesh
    from ferrax.sharding._mesh import AxisType as AxisType
    from ferrax.sharding._mesh import Mesh as Mesh
    from ferrax.sharding._named import NamedSharding as NamedSharding
    from ferrax.sharding._named import Sharding as Sharding
    from ferrax.sharding._named import make_single_device_sharding as make_single_device_sharding
    from ferrax.sharding._placement import reshard as reshard
    from ferrax.sharding._spec import PartitionSpec as PartitionSpec

_LATER = {
    "_axis_types": "ManualAxisType auto_axes explicit_axes",
    "_context": "get_abstract_mesh get_mesh set_mesh use_abstract_mesh",
    "_mesh": "AbstractDevice AbstractMesh AxisType Mesh",
    "_named": "NamedSharding Sharding make_single_device_sharding",
    "_placement": "reshard",
    "_spec": "PartitionSpec",
}

_defer(globals(), _LATER)
