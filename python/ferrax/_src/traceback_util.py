"""Errors of ferrax never show its own frames; those of libraries stay."""

import os

import ferrax
from ferrax.extend.source_info_util import register_exclusion as register_exclusion

_FOLDER = os.path.dirname(ferrax.__file__) + os.sep


def api_boundary(fun):  # type: ignore[no-untyped-def]
    """The function itself."""
    return fun


def include_frame(frame) -> bool:  # type: ignore[no-untyped-def]
    """Whether a frame is a user's: not one of ferrax's."""
    return not frame.f_code.co_filename.startswith(_FOLDER)
