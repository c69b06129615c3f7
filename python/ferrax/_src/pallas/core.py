"""What describes kernels, under JAX's path."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "AbstractSemaphoreTy BlockMapping CoreMemorySpace GridAxis GridMapping Mesh core_map_p get_grid_mapping grid_env",
    "kernels are functions of arrays here, which need no descriptions of their own",
    names_of(__name__, "ferrax.experimental.pallas", "ferrax.experimental.pallas._specs"),
)
