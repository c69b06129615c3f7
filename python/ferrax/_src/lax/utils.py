"""Rules of primitives are in the core: what is here are names of `ferrax.lax`."""

from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.lax", "ferrax.extend.core.primitives")
