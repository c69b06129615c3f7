"""Types and primitives that users define."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "Box BoxEffect BoxGet BoxSet BoxTy BoxTypeState HiPspec HipSpec HipSpecs Log LogExtend LogTy MappingSpec NewBox "
    "NewLog QDD ReadLog Static Ty box_effect box_get box_get_p box_set box_set_p call_hi_primitive_p custom_vjp3 "
    "hijax_method log_append log_effect log_extend log_extend_p log_read log_read_p new_box new_box_p new_log "
    "new_log_p",
    "ferrax has no boxes, no logs and no mapping specifications; the types that it has are ferrax.experimental.hijax's",
    names_of(__name__, "ferrax.experimental.hijax", "ferrax.core"),
)
