"""What pickle stores of functions that are objects of the extension module.

A function is stored by its name, as Python's are. A jitted function that its module does not have under its name, such
as one inside of a function, is stored as the function that was jitted, with the options: `cloudpickle` stores those by
what they do. Read next: `_api.py`.
"""

from __future__ import annotations

import sys
from typing import Any

from ferrax import _ferrax


def reduced(function: Any) -> Any:
    """The value of `function.__reduce__()`."""
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    parts = None if found is function else _ferrax.jit_parts(function)
    if parts is None:
        return function.__qualname__
    return _jitted, (*parts, getattr(function, "_compiler_options", None))


def _jitted(*parts: Any) -> Any:
    from ferrax._api import _with_options

    fun, statics, static_names, numbers, names, must, inline, options = parts
    return _with_options(fun, (statics, static_names), numbers, names, must, inline, options)
