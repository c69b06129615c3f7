"""What will go away: warnings by name, which can be made errors ahead of time."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class DeprecationState:
    """Whether a deprecation raises already."""

    accelerated: bool = False


_registered: dict[str, DeprecationState] = {}


def _state(deprecation_id: str) -> DeprecationState:
    if deprecation_id not in _registered:
        raise ValueError(f"{deprecation_id=} not registered.")
    return _registered[deprecation_id]


def register(deprecation_id: str) -> None:
    """Makes a deprecation known."""
    _registered.setdefault(deprecation_id, DeprecationState())


def unregister(deprecation_id: str) -> None:
    """Forgets a deprecation."""
    _state(deprecation_id)
    del _registered[deprecation_id]


def accelerate(deprecation_id: str) -> None:
    """Makes a deprecation an error."""
    _state(deprecation_id).accelerated = True


def is_accelerated(deprecation_id: str) -> bool:
    """Whether a deprecation is an error."""
    return _state(deprecation_id).accelerated


def warn(deprecation_id: str, message: str, stacklevel: int, *, error_class: type[Exception] = ValueError) -> None:
    """Warns of a deprecation, or raises where it is accelerated."""
    if is_accelerated(deprecation_id):
        raise error_class(message)
    warnings.warn(message, category=DeprecationWarning, stacklevel=stacklevel + 1)


def deprecation_getattr(module: str, deprecations: dict[str, tuple[str, Any]]) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has names which go away.

    Args:
      module: its name.
      deprecations: a message and a value a name; the value is None where the name is gone.

    Returns:
      A function that warns and gives the value, or raises AttributeError with the message.
    """

    def __getattr__(name: str) -> Any:
        if name not in deprecations:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        message, value = deprecations[name]
        if value is None or is_accelerated_attribute(module, name):
            raise AttributeError(message)
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return value

    return __getattr__


def _attribute(module: str, name: str) -> str:
    return f"attribute:{module}.{name}"


def accelerate_getattr_deprecation(module: str, name: str) -> None:
    """Makes the use of a module's deprecated name an error."""
    register(_attribute(module, name))
    accelerate(_attribute(module, name))


def is_accelerated_attribute(module: str, name: str) -> bool:
    """Whether the use of a module's deprecated name is an error."""
    state = _registered.get(_attribute(module, name))
    return state is not None and state.accelerated
