"""Names of JAX's insides that mean nothing here: they can be imported, and say so when they are used."""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

_C = TypeVar("_C", bound=type)


class UnprovidedAttribute(NotImplementedError, AttributeError):
    """What an attribute of such a name raises: `hasattr` and inspection take it for one that is not there."""


class _Unprovided(type):
    """The class of such names, which are classes: they can be derived from, and nothing is an instance of them."""

    why: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(cls.why)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or "why" not in vars(cls):
            raise AttributeError(name)  # a class that is derived from one has attributes of its own alone
        raise UnprovidedAttribute(cls.why)

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


class UnprovidedMember:
    """A member of JAX's class that means nothing here: it can be seen in the class, and objects say that they lack it.

    Args:
      text: what it raises when it is called, or asked of an object.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.__doc__ = f"Not there: {text}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        raise UnprovidedAttribute(self._text)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(self._text)


def lacking(names: str, why: str) -> Callable[[_C], _C]:
    """A decorator of classes, which gives them JAX's members that mean nothing here.

    Args:
      names: the members, parted by spaces.
      why: the reason, as a sentence's end.

    >>> @lacking("thread_pool", "ferrax has no contexts")
    ... class Context: ...
    >>> hasattr(Context, "thread_pool"), hasattr(Context(), "thread_pool")
    (True, False)
    >>> Context.thread_pool()
    Traceback (most recent call last):
    NotImplementedError: Context.thread_pool: ferrax has no contexts
    """

    def fill(cls: _C) -> _C:
        for name in names.split():
            setattr(cls, name, UnprovidedMember(f"{cls.__name__}.{name}: {why}"))
        return cls

    return fill


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
