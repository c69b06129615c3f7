"""Functions that are transformed in steps."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "EmptyStoreValue EqualStore Store annotate hashable_partial",
    "ferrax keeps no such stores",
    names_of(__name__, "ferrax.extend.linear_util"),
)
