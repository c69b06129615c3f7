"""Experimental functions of JAX's: `io_callback`, `enable_x64`, and the modules beside this file."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._callbacks import io_callback as io_callback
from ferrax._lazy import defer as _defer
from ferrax.config import enable_x64 as enable_x64

if _TYPE_CHECKING:
    from ferrax.experimental import checkify as checkify

_SUBMODULES = "checkify"

_defer(globals(), {}, _SUBMODULES)
