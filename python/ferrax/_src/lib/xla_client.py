"""Classes of the compiled part, under the name of XLA's client."""

from ferrax._ferrax import ArrayImpl as ArrayImpl, Device as Device
from ferrax.errors import JaxRuntimeError as XlaRuntimeError

__all__ = ["ArrayImpl", "Device", "XlaRuntimeError"]
