"""Classes of the compiled part."""

from ferrax._ferrax import ArrayImpl as ArrayImpl, Device as Device
from ferrax.errors import JaxRuntimeError as JaxRuntimeError
