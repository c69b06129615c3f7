"""Groups of operations that a scheduler keeps together: the embedded engine has an order of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ferrax._boundary import expose as _expose

__all__ = ["scheduling_group", "xla_metadata_call"]


def scheduling_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions whose operations are to be scheduled together.

    Args:
      name: the group's name.

    Returns:
      The decorator.

    >>> from ferrax.experimental.scheduling_groups import scheduling_group
    >>> print(scheduling_group("layer")(lambda x: x + 1)(1))
    2
    """
    return xla_metadata_call(scheduling_group=name)


def xla_metadata_call(f: Callable[..., Any] | None = None, **meta: Any) -> Any:
    """A function whose operations have notes for XLA.

    Args:
      f: the function; without it, the result is a decorator.
      **meta: notes by name.

    Returns:
      The function.

    >>> from ferrax.experimental.scheduling_groups import xla_metadata_call
    >>> print(xla_metadata_call(lambda x: x + 1, note="a")(1))
    2
    """
    if f is None:
        return functools.partial(xla_metadata_call, **meta)
    return f


_expose(globals())
