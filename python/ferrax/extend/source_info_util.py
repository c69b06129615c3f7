"""Where operations were asked for, as libraries see it: names of scopes, and files that error texts leave out.

ferrax keeps the place of every operation itself and leaves its own frames out of errors. The scopes that are in force
here are those of `named_scope`: operations that are traced inside have their names. Read next: `_scopes.py`.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
from typing import Any

from ferrax import _ferrax
from ferrax._boundary import expose as _expose
from ferrax._scopes import NameStack, Traceback, user_frames

__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "new_source_info",
    "register_exclusion",
    "reset_name_stack",
    "set_name_stack",
    "summarize",
    "transform_name_stack",
    "user_context",
]


@dataclasses.dataclass(frozen=True, slots=True)
class SourceInfo:
    """Where an operation was asked for.

    Args:
      traceback: the code that asked for it, or None.
      name_stack: the scopes.

    >>> import ferrax as jax
    >>> jax.extend.source_info_util.new_source_info().name_stack
    NameStack(stack=())
    """

    traceback: Any
    name_stack: NameStack

    def replace(self, **changes: Any) -> SourceInfo:
        """With other parts."""
        return dataclasses.replace(self, **changes)


def current_name_stack() -> NameStack:
    """The scopes in force.

    >>> import ferrax as jax
    >>> jax.extend.source_info_util.current_name_stack()
    NameStack(stack=())
    """
    return NameStack.of(_ferrax.present_scopes())


def current() -> SourceInfo:
    """The place that is running: the user's functions, and the scopes in force.

    >>> import ferrax as jax
    >>> jax.extend.source_info_util.current().name_stack
    NameStack(stack=())
    """
    return SourceInfo(Traceback.here(), current_name_stack())


def new_source_info() -> SourceInfo:
    """An unknown place.

    >>> import ferrax as jax
    >>> jax.extend.source_info_util.new_source_info().traceback
    """
    return SourceInfo(None, NameStack())


def new_name_stack(name: str = "") -> NameStack:
    """Scopes with one name, or none.

    Args:
      name: the name.

    Returns:
      The scopes.

    >>> import ferrax as jax
    >>> str(jax.extend.source_info_util.new_name_stack("a"))
    'a'
    """
    return NameStack().extend(name) if name else NameStack()


def _enter(stack: NameStack) -> int:
    """Puts scopes in force; gives the number of those before."""
    return _ferrax.set_scope(_ferrax.scope_of(stack.names()))


class _Scopes(contextlib.ContextDecorator):
    """A context manager, or decorator of functions, in which there are other scopes.

    Attributes:
      prev: the place before, once it was entered.
    """

    __slots__ = ("_outer", "prev")

    def _inside(self) -> NameStack:
        raise NotImplementedError

    def _recreate_cm(self) -> _Scopes:
        # a decorated function may call itself
        return copy.copy(self)

    def __enter__(self) -> Any:
        self.prev, inside = current(), self._inside()
        self._outer = _enter(inside)
        return inside

    def __exit__(self, *error: Any) -> None:
        _ferrax.set_scope(self._outer)


class set_name_stack(_Scopes):
    """A context with other scopes; a decorator, too.

    Args:
      name_stack: the scopes.

    >>> import ferrax as jax
    >>> util = jax.extend.source_info_util
    >>> with util.set_name_stack(util.new_name_stack("a")):
    ...     print(util.current_name_stack())
    a
    """

    __slots__ = ("name_stack",)

    def __init__(self, name_stack: NameStack):
        self.name_stack = name_stack

    def _inside(self) -> NameStack:
        return self.name_stack

    def __enter__(self) -> None:
        super().__enter__()


def reset_name_stack() -> Any:
    """A context without scopes.

    >>> import ferrax as jax
    >>> with jax.extend.source_info_util.reset_name_stack():
    ...     pass
    """
    return set_name_stack(NameStack())


class extend_name_stack(_Scopes):
    """A context with one more scope inside, which gives the scopes; a decorator, too.

    Args:
      name: its name.

    >>> import ferrax as jax
    >>> with jax.extend.source_info_util.extend_name_stack("a") as stack:
    ...     print(stack)
    a
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def _inside(self) -> NameStack:
        return current_name_stack().extend(self.name)


class transform_name_stack(_Scopes):
    """A context for a transformation, which gives the scopes; a decorator, too.

    Args:
      name: its name.

    >>> import ferrax as jax
    >>> with jax.extend.source_info_util.transform_name_stack("vmap"):
    ...     print(jax.extend.source_info_util.current_name_stack())
    vmap()
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def _inside(self) -> NameStack:
        return current_name_stack().transform(self.name)


class user_context:
    """A context in which operations count as asked for at another place; ferrax keeps their own.

    Args:
      traceback: accepted for compatibility.
      name_stack: the scopes.

    Attributes:
      prev: the place before, once it was entered.

    >>> import ferrax as jax
    >>> with jax.extend.source_info_util.user_context(None):
    ...     pass
    """

    __slots__ = ("_outer", "name_stack", "prev", "traceback")

    def __init__(self, traceback: Any, *, name_stack: NameStack | None = None):
        self.traceback, self.name_stack = traceback, name_stack

    def __enter__(self) -> None:
        self.prev = current()
        self._outer = _enter(self.prev.name_stack if self.name_stack is None else self.name_stack)

    def __exit__(self, *error: Any) -> None:
        _ferrax.set_scope(self._outer)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """A place as text.

    Args:
      source_info: the place.
      num_frames: how many frames are told at most.

    Returns:
      A line for each frame, the innermost last, which names file, line, column and function; an empty string where
      nothing is known.

    >>> import ferrax as jax
    >>> util = jax.extend.source_info_util
    >>> util.summarize(util.new_source_info())
    ''
    """
    lines = []
    for frame in itertools.islice(user_frames(source_info.traceback), num_frames):
        column = f":{frame.start_column}" if frame.start_column else ""
        lines.append(f"{frame.file_name}:{frame.start_line}{column} ({frame.function_name})")
    return "\n".join(reversed(lines))


def register_exclusion(path: str) -> None:
    """Asks for a file's frames to be left out of errors. ferrax leaves its own out, and keeps those of libraries.

    Args:
      path: the file.

    >>> import ferrax as jax
    >>> jax.extend.source_info_util.register_exclusion("library.py")
    """


_expose(globals())
