"""Types and primitives that users define."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names


class MappingSpec:
    """How a value that is no array is mapped: classes derived from it can be made; `vmap` takes none."""


class HiPspec:
    """How a value that is no array is divided: classes derived from it can be made; `shard_map` takes none."""


__getattr__ = unprovided_names(
    __name__,
    "Box BoxEffect BoxGet BoxSet BoxTy BoxTypeState HipSpec HipSpecs Log LogExtend LogTy NewBox NewLog QDD ReadLog "
    "Static Ty box_effect box_get box_get_p box_set box_set_p call_hi_primitive_p custom_vjp3 hijax_method log_append "
    "log_effect log_extend log_extend_p log_read log_read_p new_box new_box_p new_log new_log_p",
    "ferrax has no boxes and no logs; the types that it has are ferrax.experimental.hijax's",
    names_of(__name__, "ferrax.experimental.hijax", "ferrax.core"),
)
