"""How much work a kernel is, under JAX's path."""

from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.experimental.pallas")
