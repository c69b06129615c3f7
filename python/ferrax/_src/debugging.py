"""Looking at values while they are computed."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.debug import DebugEffect, OrderedDebugEffect, print as debug_print
from ferrax.extend.core._effects import debug_effect, ordered_debug_effect

__all__ = ["DebugEffect", "OrderedDebugEffect", "debug_effect", "debug_print", "ordered_debug_effect"]

__getattr__ = unprovided_names(
    __name__,
    "inspect_sharding_p make_color_iter",
    "effects of prints are the core's",
    names_of(__name__, "ferrax.debug", "ferrax.extend.core.primitives"),
)
