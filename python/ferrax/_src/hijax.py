"""Types and primitives that users define."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "Box BoxTy BoxEffect HipSpec HipSpecs MappingSpec Ty box_effect box_get box_set new_box",
    "ferrax has no boxes and no mapping specifications; the types that it has are ferrax.experimental.hijax's",
    names_of(__name__, "ferrax.experimental.hijax"),
)
