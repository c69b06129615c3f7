"""The user's frame among those of the library, for what is told at their line."""

from __future__ import annotations

import os
import sys
import types
import warnings

__all__ = ["is_of_library", "user_frame", "warn_user"]

_FOLDER = os.path.dirname(__file__) + os.sep


def is_of_library(file: str) -> bool:
    """Whether a file of code is the library's.

    Args:
      file: its name, as code objects have it.

    >>> is_of_library(__file__)
    True
    """
    return file.startswith(_FOLDER)


def user_frame(depth: int = 1) -> types.FrameType:
    """The innermost frame that is not the library's.

    Args:
      depth: where to begin, counted from here.

    Returns:
      The frame.

    >>> user_frame().f_code.co_filename == __file__
    False
    """
    frame = sys._getframe(depth)
    while frame.f_back is not None and is_of_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def warn_user(text: str) -> None:
    """Warns at the user's line.

    Args:
      text: the warning.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     warn_user("look")
    >>> found[0].category.__name__
    'UserWarning'
    """
    frame = user_frame(2)
    names = frame.f_globals
    warnings.warn_explicit(
        text,
        UserWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        names.get("__name__", "<unknown>"),
        names.setdefault("__warningregistry__", {}),
    )
