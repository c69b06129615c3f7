"""Functions with batching rules of their own."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "custom_vmap_p",
    "functions with rules of batching are the core's",
    names_of(__name__, "ferrax.custom_batching"),
)
