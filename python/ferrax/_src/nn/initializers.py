"""Initial weights."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "DTypeLikeInexact",
    "types of arguments are ferrax.typing's",
    names_of(__name__, "ferrax.nn.initializers"),
)
