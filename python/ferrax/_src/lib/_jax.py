"""Classes of the compiled part."""

from ferrax._ferrax import ArrayImpl as ArrayImpl, Device as Device
from ferrax._src._unprovided import unprovided_names
from ferrax.errors import JaxRuntimeError as JaxRuntimeError

__getattr__ = unprovided_names(
    __name__,
    "Client DeviceList Traceback config get_distributed_runtime_client get_topology_for_devices pytree",
    "the compiled part is ferrax._ferrax, with no such name",
)
