"""Public names, and members of classes, whose files load when somebody asks for one of them.

A package's `__init__.py` hands `defer` a table: files and the names that each has. Type checkers see the names by
imports under `TYPE_CHECKING`. A name that was asked for once stays in the package, so that the second look is an
ordinary one. Classes of the extension module get members from files of the facade: `defer_members` puts a placeholder
there until the file is loaded. `tests/docs/test_lazy.py` holds the tables to the files. Read next: `_boundary.py`,
which shields the names.
"""

from __future__ import annotations

import _signal
import builtins
import importlib
import sys
import threading
from collections.abc import Mapping
from types import FrameType, ModuleType
from typing import Any

from ferrax._boundary import expose, is_home, missing, public_form

__all__ = ["DeferredMember", "defer", "defer_members", "lend"]


#: Files of the packages that are in use from the first call on, by name: those of `defer`'s tables.
_core: set[str] = {"ferrax._planned", "ferrax._watch"}
_CORE_PACKAGES = ("ferrax", "ferrax.numpy", "ferrax.lax", "ferrax.sharding")
#: Held by the thread that imports for the main thread.
_turn = threading.Lock()


def _load(name: str) -> ModuleType:
    """Imports a file of the facade, whole, whatever handlers of signals do meanwhile.

    They run in the main thread between any two steps, may use the library, and may raise. So where there are some,
    another thread imports, and everything that is in use from the first call on at once: a handler that needs a file
    waits for it, and one that raises leaves it to be finished.
    """
    if threading.get_ident() != threading.main_thread().ident or not _handled() or _importing():
        return importlib.import_module(name)
    if name in sys.modules and _core <= sys.modules.keys() and not _turn.locked():
        return sys.modules[name]
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with _turn:
                for file in (name, *sorted(_core - sys.modules.keys())):
                    importlib.import_module(file)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name=f"import of {name}")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return sys.modules[name]


def _handled() -> bool:
    """Whether Python code handles a signal, Ctrl-C's own apart."""
    handlers = map(_signal.getsignal, _signal.valid_signals())
    return any(callable(h) and h is not _signal.default_int_handler for h in handlers)


def _importing() -> bool:
    """Whether this thread is importing a file of the library, so that no other one could import what asks for it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        imports = code.co_name == "_find_and_load" and "importlib" in code.co_filename
        if imports and str(frame.f_locals.get("name")).startswith("ferrax"):
            return True
        frame = frame.f_back
    return False


def defer(namespace: dict[str, Any], files: Mapping[str, str], modules: str = "", optional: str = "") -> None:
    """Shields a module's public names, of those too that are still to load.

    Args:
      namespace: the `globals()` of the module; gets `__getattr__` and `__dir__`, and where names of files are to load
        and it has none, `__all__`, which brings them to `import *`.
      files: names of files of the package, each with its public names.
      modules: names of public submodules, and of `_src`, which no list shows.
      optional: those of the names that a file may lack, with an older release of what it is made of.
    """
    module, package = namespace["__name__"], namespace["__package__"]
    where = {name: f"{package}.{file}" for file, names in files.items() for name in names.split()}
    submodules = frozenset(modules.split())
    if module in _CORE_PACKAGES:
        _core.update(where.values())
    for file, names in files.items():
        if file.startswith("_"):  # public files are the homes of what they have
            is_home(f"{package}.{file}", module, names)
    there = [name for name, v in namespace.items() if not (name.startswith("_") or isinstance(v, ModuleType))]
    lists_names = "__all__" in namespace or not files

    def public() -> list[str]:
        lacking = {name for name in optional.split() if not hasattr(sys.modules[module], name)}
        return sorted(n for n in {*there, *where, *submodules} - lacking if n != "_src")

    def __getattr__(name: str) -> Any:
        if name in submodules:
            return _load(f"{module}.{name}")
        if name in where:
            found = vars(_load(where[name]))
            if name in found:
                return namespace.setdefault(name, public_form(found[name], module))
        if name == "__all__" and not lists_names:
            return namespace.setdefault(name, public())
        raise missing(sys.modules[module], name)

    namespace["__getattr__"] = __getattr__
    namespace["__dir__"] = lambda: sorted({*namespace, *public()})
    expose(namespace)


def lend(module: str, files: Mapping[str, str]) -> Any:
    """The `__getattr__` of a module that has names of other modules, which load when they are asked for.

    JAX's modules hold whatever they import; programs that are written for them ask for it there.

    Args:
      module: the module's name.
      files: whole names of modules, each with the names that are lent; `here=there` for one with another name.

    Returns:
      A function of a name.

    >>> lend("ferrax.experimental.ode", {"ferrax._src.util": "map=safe_map"})("map").__name__
    'safe_map'
    """
    where: dict[str, tuple[str, str]] = {}
    for file, names in files.items():
        for entry in names.split():
            here, _, there = entry.partition("=")
            where[here] = (file, there or here)

    def __getattr__(name: str) -> Any:
        if name not in where:
            raise missing(sys.modules[module], name)
        file, there = where[name]
        found = getattr(_load(file), there)
        # the module's own functions mean Python's `map` and `zip` by these names
        return found if hasattr(builtins, name) else vars(sys.modules[module]).setdefault(name, found)

    return __getattr__


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
        _load(self._file)
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
