"""Functions of foreign libraries."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "ffi_call_p _convert_layouts_for_ffi_call",
    "what is under these names in JAX is its own lowering",
    names_of(__name__, "ferrax.ffi"),
)
