"""Programs of IFRT's, the runtime of JAX's that proxies and Pathways use: they can be imported, and say so when used."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(__name__, "ifrt_programs", "ferrax does not run on IFRT")
