"""Names for parts of programs: `named_scope`, `named_call`.

Equations carry the names of the scopes that they were asked for in, and of the transformations around them
(`ferrax_base::scopes`); outside of traced programs a scope does nothing. Read next: `extend/source_info_util.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ferrax import _ferrax
from ferrax._api import named_as
from ferrax._typed import P, R

__all__ = ["named_call", "named_scope"]


class _NamedScope(contextlib.ContextDecorator):
    """A scope, as a context or a decorator; it may be entered again while it is open."""

    __slots__ = ("_name", "_outer")

    def __init__(self, name: str) -> None:
        self._name = name
        self._outer: list[int] = []

    def _recreate_cm(self) -> _NamedScope:
        # a decorated function may run in several threads
        return _NamedScope(self._name)

    def __enter__(self) -> None:
        self._outer.append(_ferrax.enter_scope(self._name))

    def __exit__(self, *error: Any) -> None:
        outer = self._outer.pop()
        if outer:
            _ferrax.set_scope(outer)


def named_scope(name: str) -> contextlib.AbstractContextManager[None]:
    """Names the operations traced inside, for reading programs; a decorator of functions, too.

    The names are in `source_info.name_stack` of equations and in the locations of lowered programs
    (`as_text(debug_info=True)`); they change no results.

    Args:
      name: a string.

    Returns:
      A context manager.

    Raises:
      TypeError: `name` is no string.

    >>> import ferrax as jax
    >>> @jax.named_scope("layer")
    ... def f(x):
    ...     with jax.named_scope("scale"):
    ...         return 2 * x
    >>> print(jax.make_jaxpr(f)(1.0).eqns[0].source_info.name_stack)
    layer/scale
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {type(name)}.")
    return _NamedScope(name)


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
