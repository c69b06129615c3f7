"""Functions that run in the extension module and are described in Python.

The Python definition gives name, signature, annotations and docstring, for readers and for tools; calls go straight
to the Rust callable, without a Python frame.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ferrax import _ferrax
from ferrax._documentation import completed

F = TypeVar("F", bound=Callable[..., Any])


def implemented_by(callable_: Any, *, module: str | None = None) -> Callable[[F], F]:
    """Puts a Rust callable in place of the decorated definition.

    Args:
      callable_: the Rust callable; it takes over the definition's name, module, annotations and docstring.
      module: the module to name as its home, by default the definition's.

    Returns:
      A decorator that returns ``callable_``.

    >>> from ferrax import _ferrax
    >>> @implemented_by(_ferrax.tree_function("leaves"))
    ... def leaves(tree):
    ...     "The leaves."
    >>> leaves((1, 2)), leaves.__doc__
    ([1, 2], 'The leaves.')
    """

    def decorate(definition: F) -> F:
        callable_.__name__ = definition.__name__
        callable_.__qualname__ = definition.__qualname__
        callable_.__module__ = module or definition.__module__
        callable_.__doc__ = completed(definition.__doc__, sys.modules[definition.__module__])
        callable_.__definition__ = definition
        return cast(F, callable_)

    return decorate


def with_shortcut(name: str) -> Callable[[F], F]:
    """Lets the usual calls of the decorated definition run in the extension module; the others come here.

    Args:
      name: the shortcut's name in the extension module.

    Returns:
      A decorator that returns a callable, which is a method where it is a class's attribute.

    >>> import ferrax.numpy as jnp
    >>> jnp.sum.__name__, type(jnp.sum).__name__
    ('sum', 'function')
    """

    def decorate(definition: F) -> F:
        return implemented_by(_ferrax.shortcut(name, definition))(definition)

    return decorate
