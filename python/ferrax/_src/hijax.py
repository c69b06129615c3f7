"""Types and primitives that users define."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "Box BoxEffect BoxTy BoxTypeState HiPspec HipSpec HipSpecs MappingSpec QDD Ty box_effect box_get box_get_p box_set "
    "box_set_p call_hi_primitive_p custom_vjp3 hijax_method new_box new_box_p",
    "ferrax has no boxes and no mapping specifications; the types that it has are ferrax.experimental.hijax's",
    names_of(__name__, "ferrax.experimental.hijax", "ferrax.core"),
)
