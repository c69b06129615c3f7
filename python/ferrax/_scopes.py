"""Scopes of names as Python shows them: `NameStack` and what it is made of; places in the user's code.

The names are kept by `ferrax_base::scopes`, which also writes them as text. Read next: `extend/source_info_util.py`.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
import types
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ferrax import _ferrax
from ferrax._frames import is_of_library

__all__ = ["Frame", "NameStack", "Scope", "Traceback", "Transform", "user_frame", "user_frames"]


@dataclasses.dataclass(frozen=True)
class Scope:
    """A name that a user gave."""

    name: str


@dataclasses.dataclass(frozen=True)
class Transform:
    """A transformation: it stands around the names inside it."""

    name: str


@dataclasses.dataclass(frozen=True)
class NameStack:
    """Names of scopes, outer ones first.

    Args:
      stack: the names, each of a scope or a transformation.

    >>> import ferrax as jax
    >>> str(jax.extend.source_info_util.new_name_stack("layer").extend("norm"))
    'layer/norm'
    """

    stack: tuple[Scope | Transform, ...] = ()

    @classmethod
    def of(cls, names: Iterable[tuple[bool, str]]) -> NameStack:
        """Of names, with whether each is a transformation's."""
        return cls(tuple(Transform(name) if transform else Scope(name) for transform, name in names))

    def names(self) -> list[tuple[bool, str]]:
        """The names, with whether each is a transformation's."""
        return [(isinstance(part, Transform), part.name) for part in self.stack]

    def extend(self, name: str) -> NameStack:
        """With one more scope inside."""
        return NameStack((*self.stack, Scope(name)))

    def transform(self, name: str) -> NameStack:
        """With a transformation around what comes inside."""
        return NameStack((*self.stack, Transform(name)))

    def __getitem__(self, at: slice) -> NameStack:
        return NameStack(self.stack[at])

    def __len__(self) -> int:
        return len(self.stack)

    def __add__(self, other: NameStack) -> NameStack:
        return NameStack(self.stack + other.stack)

    def __str__(self) -> str:
        return _ferrax.scope_text(self.names())


class Frame(NamedTuple):
    """A place in the user's code: an expression, whose columns are counted from zero.

    >>> import ferrax as jax
    >>> def f(x):
    ...     return x + 1
    >>> jax.make_jaxpr(f)(1).eqns[0].source_info.traceback.frames[0].function_name
    'f'
    """

    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int

    @property
    def line_num(self) -> int:
        """The line that the expression begins in."""
        return self.start_line


class Traceback:
    """The user's code that asked for an operation: the innermost function.

    Args:
      place: file, line, column, function, and the line and the column of the end.
    """

    def __init__(self, place: tuple[str, int, int, str, int, int]):
        file, line, column, function, end, end_column = place
        self.frames = [Frame(file, function, line, column, end, end_column)]

    @classmethod
    def here(cls) -> Traceback:
        """The user's code that is running: all of its functions, the innermost first.

        >>> from ferrax._scopes import Traceback
        >>> Traceback.here().frames[0].start_line > 0
        True
        """
        traceback = cls.__new__(cls)
        traceback.frames = []
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if not is_of_library(code.co_filename):
                places = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
                line, end, column, end_column = (n or 0 for n in places)
                traceback.frames.append(Frame(code.co_filename, code.co_qualname, line, column, end, end_column))
            frame = frame.f_back
        return traceback


def user_frames(traceback: Traceback | None) -> Iterator[Frame]:
    """The frames of the user's, the innermost first.

    >>> from ferrax._scopes import user_frames
    >>> list(user_frames(None))
    []
    """
    return iter(() if traceback is None else traceback.frames)


def user_frame(traceback: Traceback | None) -> Frame | None:
    """The innermost frame of the user's, or None.

    >>> import ferrax as jax
    >>> info = jax.make_jaxpr(lambda x: x + 1)(1).eqns[0].source_info
    >>> from ferrax._scopes import user_frame
    >>> user_frame(info.traceback).function_name
    '<lambda>'
    """
    return next(user_frames(traceback), None)
