"""Packages whose modules load when they are asked for."""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any


def attach(package_name: str, submodules: Sequence[str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], Any]:
    """What a package needs so that its modules load when they are asked for.

    Args:
      package_name: the package.
      submodules: names of its modules.

    Returns:
      The package's `__getattr__`, `__dir__` and `__all__`.
    """
    owner = sys._getframe(1).f_globals.get("__name__")
    if owner is None:
        raise RuntimeError("Cannot determine the ``__name__`` of the caller.")
    names = list(submodules)

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package_name!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package_name}.{name}")
        setattr(sys.modules[owner], name, module)
        return module

    return __getattr__, lambda: names, names
