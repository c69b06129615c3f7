"""Public names, and members of classes, whose files load when somebody asks for one of them.

A package's `__init__.py` hands `defer` a table: files and the names that each has. Type checkers see the names by
imports under `TYPE_CHECKING`. A name that was asked for once stays in the package, so that the second look is an
ordinary one. Classes of the extension module get members from files of the facade: `defer_members` puts a placeholder
there until the file is loaded. `tests/docs/test_lazy.py` holds the tables to the files. Read next: `_boundary.py`,
which shields the names.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from ferrax._boundary import expose, is_home, missing, public_form

__all__ = ["DeferredMember", "defer", "defer_members"]


def defer(namespace: dict[str, Any], files: Mapping[str, str], modules: str = "", optional: str = "") -> None:
    """Shields a module's public names, of those too that are still to load.

    Args:
      namespace: the `globals()` of the module; gets `__getattr__` and `__dir__`, and where names of files are to load
        and it has none, `__all__`, which brings them to `import *`.
      files: names of files of the package, each with its public names.
      modules: names of public submodules.
      optional: those of the names that a file may lack, with an older release of what it is made of.
    """
    module, package = namespace["__name__"], namespace["__package__"]
    where = {name: f"{package}.{file}" for file, names in files.items() for name in names.split()}
    submodules = frozenset(modules.split())
    for file, names in files.items():
        if file.startswith("_"):  # public files are the homes of what they have
            is_home(f"{package}.{file}", module, names)
    there = [name for name, v in namespace.items() if not (name.startswith("_") or isinstance(v, ModuleType))]
    lists_names = "__all__" in namespace or not files

    def public() -> list[str]:
        lacking = {name for name in optional.split() if not hasattr(sys.modules[module], name)}
        return sorted({*there, *where, *submodules} - lacking)

    def __getattr__(name: str) -> Any:
        if name in submodules:
            return importlib.import_module(f"{module}.{name}")
        if name in where:
            found = vars(importlib.import_module(where[name]))
            if name in found:
                return namespace.setdefault(name, public_form(found[name], module))
        if name == "__all__" and not lists_names:
            return namespace.setdefault(name, public())
        raise missing(sys.modules[module], name)

    namespace["__getattr__"] = __getattr__
    namespace["__dir__"] = lambda: sorted({*namespace, *public()})
    expose(namespace)


class DeferredMember:
    """Stands for a member of a class until the file is loaded that puts the member there.

    Args:
      cls: the class.
      file: the module, with the package's name.
      name: the member.
    """

    __slots__ = ("_cls", "_file", "_name")

    def __init__(self, cls: type, file: str, name: str) -> None:
        self._cls, self._file, self._name = cls, file, name

    def __get__(self, instance: Any, owner: type) -> Any:
        importlib.import_module(self._file)
        if vars(self._cls)[self._name] is self:
            raise AttributeError(f"{self._cls.__name__}.{self._name} is asked for while {self._file} is being loaded")
        return getattr(owner if instance is None else instance, self._name)


def defer_members(cls: type, file: str, names: str) -> None:
    """Lets a class have members whose file is still to load.

    Args:
      cls: a class of the extension module.
      file: the private file, which puts the members into the class when it is loaded.
      names: the members.
    """
    for name in names.split():
        setattr(cls, name, DeferredMember(cls, f"ferrax.{file}", name))
