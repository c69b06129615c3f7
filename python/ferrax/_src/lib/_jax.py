"""Classes of the compiled part."""

from ferrax._ferrax import ArrayImpl as ArrayImpl, Device as Device
from ferrax._src._unprovided import unprovided_names
from ferrax._src.lib._tracebacks import (
    Frame as Frame,
    Traceback as Traceback,
    set_tracebacks_enabled as set_tracebacks_enabled,
    tracebacks_enabled as tracebacks_enabled,
)
from ferrax.errors import JaxRuntimeError as JaxRuntimeError

__getattr__ = unprovided_names(
    __name__,
    "Client DeviceList config get_distributed_runtime_client get_topology_for_devices pytree",
    "the compiled part is ferrax._ferrax, with no such name",
)
