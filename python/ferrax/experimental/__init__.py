"""Experimental functions of JAX's: `io_callback`, `enable_x64`."""

import sys as _sys
from typing import Any as _Any

from ferrax._boundary import expose as _expose
from ferrax._boundary import missing as _missing
from ferrax._callbacks import io_callback as io_callback

__all__ = ["io_callback"]


def __getattr__(name: str) -> _Any:
    raise _missing(_sys.modules[__name__], name)


_expose(globals())
