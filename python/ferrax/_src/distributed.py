"""Several processes."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "State global_state",
    "processes are ferrax.distributed's",
    names_of(__name__, "ferrax.distributed"),
)
