"""`pjit`, the former name of `jit`."""

from __future__ import annotations

import warnings
from typing import Any

from ferrax._boundary import expose as _expose, missing as _missing

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name == "pjit":
        from ferrax import jit

        text = "ferrax.experimental.pjit.pjit has been deprecated. Please use `ferrax.jit` instead."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return jit
    import sys

    raise _missing(sys.modules[__name__], name)


_expose(globals())
