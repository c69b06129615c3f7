"""JAX's private paths: the public names that JAX defines there, and helpers that libraries and their tests use.

Most files say only of which public modules they have the names (`_public.py`). Nothing of ferrax's own imports from
here, and nothing else is promised: what is not here is not part of the interface.
"""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
