"""Values that users' functions are traced anew for: `make_user_context`. Read next: `config.py`."""

from __future__ import annotations

from typing import Any

from ferrax.config import context_value, set_context_everywhere, swap_context

__all__ = ["make_user_context"]


class _Entered:
    """A context manager in which a context has a value on this thread."""

    def __init__(self, context: UserConfig, value: Any):
        self._context, self._value = context, value

    def __enter__(self) -> None:
        self.before = swap_context(self._context, (self._value,))

    def __exit__(self, *error: Any) -> None:
        swap_context(self._context, self.before)


class UserConfig:
    """A value that jitted functions are traced anew for; called with another one, it gives a context manager.

    Args:
      default_value: its value at the start.
    """

    def __init__(self, default_value: Any):
        self.default = default_value

    @property
    def value(self) -> Any:
        """The value on this thread."""
        return context_value(self)

    def get_global(self) -> Any:
        """The value on threads that have none of their own."""
        return context_value(self, everywhere=True)

    def set_global(self, new_value: Any) -> None:
        """Sets the value on threads that have none of their own; it can be hashed."""
        hash(new_value)
        set_context_everywhere(self, new_value)

    def __call__(self, new_value: Any) -> _Entered:
        hash(new_value)
        return _Entered(self, new_value)


def make_user_context(default_value: Any = None) -> UserConfig:
    """A value that jitted functions are traced anew for.

    Args:
      default_value: its value at the start; it can be hashed.

    Returns:
      The context: `context(value)` is a context manager in which it has another value on this thread, `context.value`
      is the one that it has, and `context.set_global(value)` sets it for all threads.

    Raises:
      TypeError: a value cannot be hashed.

    >>> import ferrax as jax
    >>> scale = jax.make_user_context(1.0)
    >>> @jax.jit
    ... def f(x):
    ...     return x * scale.value
    >>> with scale(3.0):
    ...     print(f(2.0))
    6.0
    >>> print(f(2.0))
    2.0
    """
    hash(default_value)
    return UserConfig(default_value)
