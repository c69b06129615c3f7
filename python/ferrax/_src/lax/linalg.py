"""Factorizations of matrices."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "geqp3 geqp3_p geqrf geqrf_p linalg_primitive register_cpu_gpu_lowering",
    "factorizations are ferrax.lax.linalg's",
    names_of(__name__, "ferrax.lax.linalg", "ferrax.lax", "ferrax.extend.core.primitives"),
)
