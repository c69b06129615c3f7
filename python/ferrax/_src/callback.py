"""Callbacks."""

from ferrax._callbacks import io_callback as io_callback, pure_callback as pure_callback
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.extend.core._effects import (
    IOEffect as IOEffect,
    OrderedIOEffect as OrderedIOEffect,
    io_effect as _IOEffect,
    ordered_io_effect as _OrderedIOEffect,
)

__all__ = ["IOEffect", "OrderedIOEffect", "_IOEffect", "_OrderedIOEffect", "io_callback", "pure_callback"]

__getattr__ = unprovided_names(
    __name__,
    "_FlatCallback emit_python_callback io_callback_impl pure_callback_impl receive_from_host send_to_host",
    "calls of Python are the core's",
    names_of(__name__, "ferrax.extend.core.primitives"),
)
