"""Experimental functions of JAX's: `io_callback`, `enable_x64`."""

from ferrax._boundary import expose as _expose
from ferrax._callbacks import io_callback as io_callback

__all__ = ["io_callback"]


_expose(globals())
