"""Looking at values while they are computed."""

from ferrax._src._public import names_of
from ferrax.debug import print as debug_print

__all__ = ["debug_print"]

__getattr__ = names_of(__name__, "ferrax.debug", "ferrax.extend.core.primitives")
