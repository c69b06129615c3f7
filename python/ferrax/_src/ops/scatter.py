"""Sums and other reductions over segments."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "_scatter_update",
    "arrays are updated by their .at",
    names_of(__name__, "ferrax.ops"),
)
