"""Decorators that make functions objects, such as `custom_jvp`: attributes of one may be another's around it."""

from typing import Any

_decorators: set[type] = set()


def register_custom_decorator_type(cls: type) -> type:
    """Makes a class known as one of such decorators."""
    _decorators.add(cls)
    return cls


def forward_attr(self_: Any, name: str) -> Any:
    """What a decorated function has under a name beginning with `def`, where it is such an object itself.

    Raises:
      AttributeError: it has not.
    """
    if name.startswith("def") and isinstance(self_.fun, tuple(_decorators)):
        return getattr(self_.fun, name)
    raise AttributeError(name)
