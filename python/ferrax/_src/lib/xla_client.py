"""Classes of the compiled part, under the name of XLA's client."""

from ferrax._ferrax import ArrayImpl as ArrayImpl, Device as Device
from ferrax._src._unprovided import unprovided_names
from ferrax._src.lib._tracebacks import Frame as Frame, Traceback as Traceback
from ferrax.errors import JaxRuntimeError as XlaRuntimeError
from ferrax.sharding._hlo import HloSharding as HloSharding
from ferrax.sharding._op_sharding import OpSharding as OpSharding

__getattr__ = unprovided_names(
    __name__,
    "ArrayCopySemantics Client CompileOptions DeviceList Layout PrimitiveType Shape "
    "make_c_api_client make_cpu_client register_custom_call_target",
    "the compiled part is ferrax._ferrax, with no such class",
)

__all__ = ["ArrayImpl", "Device", "HloSharding", "OpSharding", "XlaRuntimeError"]
