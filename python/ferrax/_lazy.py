"""Public names whose files load when somebody asks for one of them.

A package's `__init__.py` imports what nearly every program uses, and hands `defer` a table of the rest: files and the
names that each has. Type checkers see the names by imports under `TYPE_CHECKING`. A name that was asked for once stays
in the package, so that the second look is an ordinary one. `tests/docs/test_lazy.py` holds the tables to the files.
Read next: `_boundary.py`, which shields the names.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from ferrax._boundary import expose, missing, public_form

__all__ = ["defer"]


def defer(namespace: dict[str, Any], files: Mapping[str, str], modules: str = "") -> None:
    """Shields a package's public names, of those too that are still to load.

    Args:
      namespace: the `globals()` of the package's `__init__.py`; gets `__getattr__` and `__dir__`, and where names of
        files are to load `__all__`, which brings them to `import *`.
      files: names of private files of the package, each with its public names.
      modules: names of public submodules.
    """
    package = namespace["__name__"]
    where = {name: f"{package}.{file}" for file, names in files.items() for name in names.split()}
    submodules = frozenset(modules.split())
    namespace["__getattr__"] = _finder(namespace, where, submodules)
    expose(namespace)
    if files:
        there = [name for name, v in namespace.items() if not (name.startswith("_") or isinstance(v, ModuleType))]
        namespace["__all__"] = sorted({*there, *where, *submodules})
    namespace["__dir__"] = lambda: sorted({*namespace, *where, *submodules})


def _finder(namespace: dict[str, Any], where: Mapping[str, str], submodules: frozenset[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package."""
    package = namespace["__name__"]

    def __getattr__(name: str) -> Any:
        if name in submodules:
            return importlib.import_module(f"{package}.{name}")
        if name in where:
            value = vars(importlib.import_module(where[name]))[name]
            return namespace.setdefault(name, public_form(value, package))
        raise missing(sys.modules[package], name)

    return __getattr__
