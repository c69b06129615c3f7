"""Errors of ferrax never show its own frames; those of libraries stay."""

import os
import types
from typing import Any, TypeVar

import ferrax
from ferrax.extend.source_info_util import register_exclusion as register_exclusion

_F = TypeVar("_F", bound=Any)


class UnfilteredStackTrace(Exception):
    """The cause of an error whose frames were filtered; errors of ferrax have none."""


class SimplifiedTraceback(Exception):
    """The cause of an error whose frames were removed; errors of ferrax have none."""


#: Beginnings of the paths of files that are no user's: ferrax's own, and those that libraries add.
_exclude_paths = [os.path.dirname(ferrax.__file__) + os.sep]


def api_boundary(fun: _F, *, repro_api_name: str | None = None, repro_user_func: bool = False) -> _F:
    """The function itself: what JAX writes programs that reproduce an error for has no meaning here."""
    return fun


def include_frame(frame) -> bool:  # type: ignore[no-untyped-def]
    """Whether a frame is a user's: not one of ferrax's, and not one that a library has excluded."""
    return not frame.f_code.co_filename.startswith(tuple(_exclude_paths))


def filter_traceback(tb: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback of the frames that are users'."""
    frames = []
    while tb is not None:
        if include_frame(tb.tb_frame):
            frames.append(tb)
        tb = tb.tb_next
    out: types.TracebackType | None = None
    for frame in reversed(frames):
        out = types.TracebackType(out, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return out
