"""Which frames of an error are shown: no file's that ferrax or a library hides.

Once this is imported, errors leave ferrax through `filter_error`, and not through
`crates/ferrax-python/src/boundary.rs`, which knows ferrax's own files alone.
"""

import functools
import os
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import ferrax
from ferrax import _ferrax
from ferrax.extend.source_info_util import register_exclusion as _hide_place

_F = TypeVar("_F", bound=Any)
_DEEPEST = 8  # exceptions of a chain that are looked at
_NOTE = (
    "--------------------\nFor simplicity, ferrax has removed its internal frames from the traceback of the following "
    'exception. Set ferrax.config.update("jax_traceback_filtering", "off") to include these.'
)


class UnfilteredStackTrace(Exception):
    """The cause of an error whose frames were removed, with all of them (`jax_traceback_filtering="remove_frames"`)."""


class SimplifiedTraceback(Exception):
    """The cause of an error whose frames were removed without a word; errors of ferrax have none."""


#: Beginnings of the paths of files that are no user's: ferrax's own, and those that libraries add.
_exclude_paths = [os.path.dirname(ferrax.__file__) + os.sep]


def register_exclusion(path: str) -> None:
    """Hides the frames of a library's file."""
    _exclude_paths.append(path)
    _hide_place(path)


def api_boundary(fun: _F, *, repro_api_name: str | None = None, repro_user_func: bool = False) -> _F:
    """A library's function; errors leave it without the frames that are hidden.

    Args:
      fun: the function.
      repro_api_name, repro_user_func: accepted for compatibility: no programs that reproduce an error are written.
    """

    def filtered(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            if _mode() != "off":
                filter_error(error, sys._getframe(1))
            raise

    _boundaries.add(filtered.__code__)
    return cast(_F, functools.update_wrapper(filtered, fun))


_boundaries: set[types.CodeType] = set()


def include_frame(frame: types.FrameType) -> bool:
    """Whether a frame is a user's: not one of ferrax's, and not one that a library has excluded."""
    return not frame.f_code.co_filename.startswith(tuple(_exclude_paths))


def filter_traceback(tb: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback of the frames that are users'."""
    out: types.TracebackType | None = None
    for entry in reversed([t for t in _entries(tb) if include_frame(t.tb_frame)]):
        out = types.TracebackType(out, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return out


def _entries(tb: types.TracebackType | None) -> Iterator[types.TracebackType]:
    while tb is not None:
        yield tb
        tb = tb.tb_next


def _mode() -> str:
    return str(ferrax.config.jax_traceback_filtering)


def filter_error(error: BaseException, caller: types.FrameType | None = None) -> None:
    """Hides the frames of an error, and of those that it was raised from, as `jax_traceback_filtering` says.

    Args:
      error: the error, which leaves a function of ferrax's or of a library's.
      caller: who called that function. Inside of a library's nothing is done: it does so for all.
    """
    mode, frame = _mode(), caller or sys._getframe(1)
    if any(f.f_code in _boundaries for f, _ in traceback.walk_stack(frame)):
        return
    each: BaseException | None = error
    for _ in range(_DEEPEST):
        if each is None or isinstance(each, UnfilteredStackTrace):
            return
        after = each.__cause__ or each.__context__
        if mode == "tracebackhide":
            for entry in _entries(each.__traceback__):
                if not include_frame(entry.tb_frame):
                    entry.tb_frame.f_locals["__tracebackhide__"] = True
        else:
            if mode == "remove_frames" and each is error:
                _keep_all(error)
            if mode == "quiet_remove_frames" and each is error and _NOTE not in getattr(error, "__notes__", ()):
                error.add_note(_NOTE)
            each.__traceback__ = filter_traceback(each.__traceback__)
        each = after


def _keep_all(error: BaseException) -> None:
    """Has an error caused by one with all frames, which was caused by what caused it."""
    if isinstance(error.__cause__, UnfilteredStackTrace):
        return
    whole = UnfilteredStackTrace("".join(traceback.format_exception_only(type(error), error)).strip())
    whole.__traceback__ = error.__traceback__
    whole.__cause__, whole.__context__ = error.__cause__, error.__context__
    whole.__suppress_context__ = error.__suppress_context__
    error.__context__ = None
    error.__cause__ = whole


_ferrax.set_traceback_filter(filter_error)
