"""Tracebacks that outlive their frames: code and lines, from which Python's own tracebacks can be made again."""

import itertools
import sys
import types
from collections.abc import Iterable, Sequence

__all__ = ["Frame", "Traceback", "set_tracebacks_enabled", "tracebacks_enabled"]

_enabled = True


def tracebacks_enabled() -> bool:
    """Whether tracebacks are taken."""
    return _enabled


def set_tracebacks_enabled(enabled: bool) -> None:
    """Says whether tracebacks are taken."""
    global _enabled
    _enabled = enabled


class Frame:
    """A place in a function's code.

    Args:
      file_name: the file.
      function_name: the function.
      function_start_line: the line that the function begins in.
      line_num: the line of the place.
    """

    def __init__(self, file_name: str, function_name: str, function_start_line: int, line_num: int, /):
        self.file_name = file_name
        self.function_name = function_name
        self.function_start_line = function_start_line
        self.line_num = line_num

    def __repr__(self) -> str:
        return f"{self.function_name};{self.file_name}:{self.line_num}"


def _location(code: types.CodeType, lasti: int) -> tuple[int, int, int, int]:
    """Line and column where an instruction's expression begins, and where it ends."""
    line, end, column, end_column = next(itertools.islice(code.co_positions(), lasti // 2, None))
    return line or code.co_firstlineno, column or 0, end or line or code.co_firstlineno, end_column or 0


def _here() -> types.FrameType:
    return sys._getframe()


def _python_traceback(places: Iterable[tuple[str, str, str, int, int]]) -> types.TracebackType | None:
    """A traceback of file, name, qualified name, first line and line of each function, the innermost first.

    The frames are those of a function that is called so, and have no variables.
    """
    found = None
    for file, name, qualified, first, line in places:
        code = _here.__code__.replace(co_filename=file, co_name=name, co_qualname=qualified, co_firstlineno=first)
        frame = types.FunctionType(code, {"sys": sys})()
        found = types.TracebackType(found, frame, -1, line)
    return found


class Traceback:
    """The functions that ran when it was taken, the innermost first."""

    __slots__ = ("_places",)

    _places: tuple[tuple[types.CodeType, int], ...]

    def __init__(self) -> None:
        raise TypeError("a Traceback is taken by Traceback.get_traceback()")

    @staticmethod
    def get_traceback() -> "Traceback | None":
        """That of the caller; None while tracebacks are not taken."""
        if not _enabled:
            return None
        places = []
        frame = sys._getframe(1)
        while frame is not None:
            places.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back  # type: ignore[assignment]
        self = object.__new__(Traceback)
        self._places = tuple(places)
        return self

    @property
    def frames(self) -> list[Frame]:
        """The places."""
        return [
            Frame(code.co_filename, code.co_qualname, code.co_firstlineno, _location(code, lasti)[0])
            for code, lasti in self._places
        ]

    def raw_frames(self) -> tuple[list[types.CodeType], list[int]]:
        """Code objects, and the instructions that ran."""
        return [code for code, _ in self._places], [lasti for _, lasti in self._places]

    def as_python_traceback(self) -> types.TracebackType | None:
        """A traceback as exceptions have it."""
        return _python_traceback(
            (c.co_filename, c.co_name, c.co_qualname, c.co_firstlineno, _location(c, lasti)[0])
            for c, lasti in self._places
        )

    @staticmethod
    def traceback_from_frames(frames: Sequence[Frame]) -> types.TracebackType | None:
        """A traceback as exceptions have it, of places, the innermost first."""
        return _python_traceback(
            (f.file_name, f.function_name, f.function_name, f.function_start_line, f.line_num) for f in frames
        )

    @staticmethod
    def code_addr2line(code: types.CodeType, lasti: int) -> int:
        """The line of an instruction."""
        return _location(code, lasti)[0]

    @staticmethod
    def code_addr2location(code: types.CodeType, lasti: int) -> tuple[int, int, int, int]:
        """Line and column where an instruction's expression begins, and where it ends."""
        return _location(code, lasti)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Traceback) and self._places == other._places

    def __hash__(self) -> int:
        return hash(self._places)

    def __str__(self) -> str:
        return "\n".join(f"{f.file_name}:{f.line_num} ({f.function_name})" for f in self.frames)
