"""Looking at values while they are computed."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.debug import print as debug_print

__all__ = ["debug_print"]

__getattr__ = unprovided_names(
    __name__,
    "DebugEffect OrderedDebugEffect debug_effect inspect_sharding_p make_color_iter ordered_debug_effect",
    "effects of prints are the core's",
    names_of(__name__, "ferrax.debug", "ferrax.extend.core.primitives"),
)
