"""Names for parts of programs: `named_scope`, `named_call`. They are checked, and change nothing yet.

Read next: `_api.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ferrax._api import named_as
from ferrax._typed import P, R

__all__ = ["named_call", "named_scope"]


def named_scope(name: str) -> contextlib.AbstractContextManager[None]:
    """Names the operations traced inside, for reading programs.

    Args:
      name: a string; it does not change results.

    Returns:
      A context manager.

    Raises:
      TypeError: `name` is no string.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> with jax.named_scope("layer"):
    ...     print(jnp.ones(1))
    [1.]
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {type(name)}.")
    return _scope()


@contextlib.contextmanager
def _scope() -> Iterator[None]:
    yield


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """`fun` under `named_scope(name)`.

    Args:
      fun: function to call.
      name: name of the scope; by default the function's.

    Returns:
      A function of the same arguments and results.

    >>> import ferrax as jax
    >>> print(jax.named_call(lambda x: x + 1, name="inc")(1))
    2
    """

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with named_scope(name or str(getattr(fun, "__name__", "call"))):
            return fun(*args, **kwargs)

    return named_as(wrapped, fun, name or "Call")
