"""Calls of Python with buffers."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "buffer_callback_p",
    "calls with buffers are no equations of their own",
    names_of(__name__, "ferrax.experimental.buffer_callback"),
)
