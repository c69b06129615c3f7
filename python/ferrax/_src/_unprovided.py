"""Names of JAX's insides that mean nothing here: they can be imported, and say so when they are used."""

from collections.abc import Callable
from typing import Any, NoReturn


class _UnprovidedAttribute(NotImplementedError, AttributeError):
    """What an attribute of such a name raises: `hasattr` and inspection take it for one that is not there."""


class _Unprovided(type):
    """The class of such names, which are classes: they can be derived from, and nothing is an instance of them."""

    why: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(cls.why)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or "why" not in vars(cls):
            raise AttributeError(name)  # a class that is derived from one has attributes of its own alone
        raise _UnprovidedAttribute(cls.why)

    def __instancecheck__(cls, instance: Any) -> bool:
        return False


def unprovided(module: str, name: str, why: str) -> Any:
    """What stands for one name.

    Args:
      module: the module that has it in JAX, under ferrax's path.
      name: the name.
      why: the reason, as a sentence's end.

    Returns:
      A class whose every use raises NotImplementedError.

    >>> unprovided("ferrax._src.hijax", "Box", "ferrax has no boxes")(3)
    Traceback (most recent call last):
    NotImplementedError: ferrax._src.hijax.Box: ferrax has no boxes
    """
    return _Unprovided(name, (), {"why": f"{module}.{name}: {why}", "__module__": module})


def unprovided_names(module: str, names: str, why: str, otherwise: Callable[[str], Any] | None = None) -> Any:
    """The `__getattr__` of a module of which some names mean nothing here.

    Args:
      module: its name.
      names: the names, parted by spaces.
      why: as of `unprovided`.
      otherwise: the `__getattr__` that is asked first.

    Returns:
      A function from a name to what it stands for.
    """
    known = frozenset(names.split())

    def __getattr__(name: str) -> Any:
        if otherwise is not None:
            try:
                return otherwise(name)
            except AttributeError:
                pass
        if name in known:
            return unprovided(module, name, why)
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    return __getattr__
