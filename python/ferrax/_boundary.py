"""The edge between the facade and its users: errors leave it without the library's own frames.

`expose` puts a Rust callable in place of each public Python function of a module. Inside the facade, modules import
from the private modules that define the functions, and so call them directly. The callable itself is in
`crates/ferrax-python/src/boundary.rs`.
"""

from __future__ import annotations

import enum
import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ferrax import _ferrax
from ferrax._documentation import completed

__all__ = ["expose", "is_home", "missing", "public_form", "shielded"]

F = TypeVar("F", bound=Callable[..., Any])

# Special methods that run user's arguments through checks.
_CALLED_BY_USERS = frozenset(
    f"__{name}__" for name in ("init", "call", "len", "iter", "getitem", "getattr", "setattr", "enter", "exit")
)
_HEAP_TYPE = 1 << 9
_JITTED = _ferrax.jit_type()

#: Names that JAX's modules do not have any more, and what stands for them.
_INSTEAD = {
    "ferrax.device_put_replicated": "ferrax.device_put with a sharding",
    "ferrax.device_put_sharded": "ferrax.device_put with a sharding",
    "ferrax.lax.pvary": "ferrax.lax.pcast(..., to='varying')",
    "ferrax.numpy.fix": "ferrax.numpy.trunc",
    "ferrax.scipy.special.sph_harm": "ferrax.scipy.special.sph_harm_y",
}

_boundaries: dict[Any, Any] = {}
#: By private file: the public module that its names are from, and the names.
_homes: dict[str, tuple[str, str]] = {}

# before anything is shielded: what is met earlier counts as a user's
_ferrax.set_library_folder(os.path.dirname(__file__) + os.sep)


def shielded(function: F) -> F:
    """A function whose errors do not show the library's frames.

    Args:
      function: a Python function of the library.

    Returns:
      A callable with its name, signature and documentation, which binds to instances as a function in a class does.

    >>> import ferrax.numpy as jnp
    >>> try:
    ...     jnp.zeros(-1)
    ... except TypeError as error:
    ...     error.__traceback__.tb_next is None
    True
    """
    return cast(F, _ferrax.boundary(function))


def shielded_for(function: F, wrapped: Any) -> F:
    """A shielded function that stands for another one: it has its name, documentation and attributes.

    Args:
      function: a Python function of the library that calls the other one.
      wrapped: the other one, the user's: `__wrapped__` of the result.

    >>> import ferrax as jax
    >>> def square(x):
    ...     return x * x
    >>> jax.checkpoint(square).__wrapped__ is square
    True
    """
    return cast(F, functools.update_wrapper(shielded(function), wrapped))


def expose(namespace: dict[str, Any]) -> None:
    """Shields the public functions of a module, and the methods of its public classes; missing names say so.

    Args:
      namespace: the module's `globals()`.
    """
    module = namespace["__name__"]
    namespace["__getattr__"] = shielded(namespace.get("__getattr__") or _without(sys.modules[module]))
    seen: set[type] = set()
    for name, value in list(namespace.items()):
        if not name.startswith("_"):
            namespace[name] = public_form(value, module, seen)


def public_form(value: Any, module: str, seen: set[type] | None = None) -> Any:
    """What a public module has in the place of an object: a function of the library shielded, others themselves.

    Args:
      value: the object; a class of the library gets its methods shielded.
      module: the name of the module. A shielded function says that it is from the module that its file is the home of
        (`is_home`), others from the first that has them.
      seen: classes that need not be looked at again; gets those of the object.

    Returns:
      The shielded function, or the object.
    """
    if not getattr(value, "__module__", "").startswith("ferrax."):
        return value
    seen = set() if seen is None else seen
    if isinstance(value, (types.FunctionType, _JITTED)):
        if value not in _boundaries:
            value.__doc__ = completed(value.__doc__, sys.modules[value.__module__])
            home, names = _homes.get(value.__module__, (module, ""))
            shield = shielded(value)
            shield.__module__ = home if value.__name__ in names.split() else module
            _boundaries.setdefault(value, shield)
        return _boundaries[value]
    if not (isinstance(value, type) and issubclass(value, (enum.Enum, BaseException))):
        # a class, one with a class of its own (`jnp.uint8`), or an object that stands for functions (`jnp.r_`)
        for cls in (value, type(value)) if isinstance(value, type) else type(value).__mro__:
            if cls not in seen and cls.__module__.startswith("ferrax."):
                seen.add(cls)
                _expose_class(cls)
    return value


def is_home(file: str, module: str, names: str) -> None:
    """Says which public module functions of a file are from, in whatever order modules ask for them.

    Args:
      file: the private module that defines them.
      module: the public module.
      names: their names.
    """
    _homes[file] = (module, names)


def _without(module: types.ModuleType) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has nothing to add."""

    def __getattr__(name: str) -> Any:
        raise missing(module, name)

    return __getattr__


def _expose_class(cls: type) -> None:
    """Shields the methods that a class of the library defines itself."""
    if not cls.__flags__ & _HEAP_TYPE:
        return
    for name, value in list(vars(cls).items()):
        if isinstance(value, types.FunctionType) and (name in _CALLED_BY_USERS or not name.startswith("_")):
            setattr(cls, name, shielded(value))


def missing(module: types.ModuleType, name: str) -> Exception:
    """The error of an attribute that a module does not have; Python adds what is spelled almost like it.

    Args:
      module: the module, whose `__getattr__` asks.
      name: the attribute.

    Returns:
      The exception, to be raised.

    >>> import ferrax
    >>> str(missing(ferrax, "vmapp"))
    "module 'ferrax' has no attribute 'vmapp'"
    """
    if not name.startswith("_"):  # the import system asks modules for `__path__`
        from ferrax._planned import is_planned, planned

        if is_planned(module.__name__, name):
            return planned(f"{module.__name__}.{name}", sys._getframe(2))
    whole = f"{module.__name__}.{name}"
    if whole in _INSTEAD:
        text = f"{whole} was removed in JAX v0.10.0. Use {_INSTEAD[whole]}."
        return AttributeError(text, name=name, obj=module)
    return AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module)


def _find_spec(name: str, path: Any = None, target: Any = None) -> None:
    """Says of planned modules that they are planned, to whoever imports them; `importlib.util.find_spec` only asks."""
    if name.startswith("ferrax.") and sys._getframe(2).f_globals.get("__name__") != "importlib.util":
        from ferrax._planned import refuse

        refuse(name)


class _Finder:
    """The last finder of the import system, for modules that are planned."""

    find_spec = staticmethod(shielded(_find_spec))


def install() -> None:
    """Makes imports of planned modules say that they are not there yet."""
    sys.meta_path.append(_Finder)
