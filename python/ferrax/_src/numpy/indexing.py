"""Functions of `ferrax.numpy`, under the name of JAX's file `indexing`."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "IndexType NDIndexer ParsedIndex rewriting_take",
    "indices are read by the core",
    names_of(__name__, "ferrax.numpy"),
)
