"""Notes for XLA on operations: the embedded engine reads none, so they are checked and change nothing."""

from __future__ import annotations

import contextlib
from typing import Any

from ferrax import tree_util
from ferrax._boundary import expose as _expose
from ferrax._core import asarray as _asarray

__all__ = ["set_xla_metadata"]


class _Noted(contextlib.nullcontext[None]):
    """A context that changes nothing, and gives back the function that it decorates."""

    def __call__(self, fun: Any) -> Any:
        return fun


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Notes for XLA, on the operations of a context, of a function or on a value.

    Args:
      x: a tree of arrays; without it, the result is a context, which decorates functions as well.
      **kwargs: notes by name.

    Returns:
      The arrays, or the context.

    Raises:
      TypeError: `x` has leaves that are no arrays.

    >>> from ferrax.experimental.xla_metadata import set_xla_metadata
    >>> with set_xla_metadata(inlineable="false"):
    ...     print(set_xla_metadata(2.0, kind="loss"))
    2.0
    """
    if x is None:
        return _Noted()
    return tree_util.tree_map(_asarray, x)


_expose(globals())
