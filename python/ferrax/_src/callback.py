"""Callbacks."""

from ferrax._callbacks import io_callback as io_callback, pure_callback as pure_callback
from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.extend.core.primitives")
