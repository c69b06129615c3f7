"""Shardings by names of mesh axes."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.sharding._named import DuplicateSpecError as DuplicateSpecError

__getattr__ = unprovided_names(
    __name__,
    "SdyArray SdyDim UNSPECIFIED UnspecifiedValue check_pspec flatten_spec",
    "ferrax has no HLO shardings",
    names_of(__name__, "ferrax.sharding"),
)
