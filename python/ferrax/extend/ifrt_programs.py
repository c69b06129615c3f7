"""Programs of IFRT, the runtime that proxies and Pathways use with JAX: names to import, which say so when used."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(__name__, "ifrt_programs", "ferrax does not run on IFRT")
