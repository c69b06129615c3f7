"""Modules whose names are those of public ones: JAX keeps a function's definition elsewhere than where it offers it."""

import importlib
import importlib.util
import types
from collections.abc import Callable
from typing import Any


def names_of(module: str, *public: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has the names of others.

    Args:
      module: its name.
      public: names of modules of ferrax; the first that has a name gives it, unless it is a module's and `module` is
        a package with one of that name.

    Returns:
      A function from a name to what it stands for. Private names are nobody's.
    """

    def __getattr__(name: str) -> Any:
        if not name.startswith("_"):
            for source in public:
                try:
                    found = getattr(importlib.import_module(source), name)
                except AttributeError:
                    continue
                if isinstance(found, types.ModuleType):
                    try:
                        return importlib.import_module(f"{module}.{name}")
                    except ModuleNotFoundError:
                        pass
                return found
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    return __getattr__


def with_submodules(package: str, otherwise: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose modules are there, as after JAX's import, without being imported.

    Args:
      package: its name.
      otherwise: the `__getattr__` that is asked for names that are no module's.

    Returns:
      A function from a name to the module, or to what `otherwise` gives.
    """

    def __getattr__(name: str) -> Any:
        if not name.startswith("__") and importlib.util.find_spec(f"{package}.{name}") is not None:
            return importlib.import_module(f"{package}.{name}")
        if otherwise is not None:
            return otherwise(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)

    return __getattr__
