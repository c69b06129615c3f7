"""Frames of errors that libraries hide, and the ways of `jax_traceback_filtering`, in processes of their own."""

import subprocess
import sys

import pytest

LIBRARY = """
import ferrax as jax

def call(f, x):
    return inner(f, x)

def inner(f, x):
    return jax.jit(f)(x)
"""
SCRIPT = """
import traceback
import library
import ferrax as jax

call = library.call
if {hides}:
    from ferrax._src import traceback_util
    traceback_util.register_exclusion(library.__file__)
    call = traceback_util.api_boundary(call)
jax.config.update("jax_traceback_filtering", {mode!r})

def user(x):
    raise ValueError("mine") from KeyError("before")

try:
    call(user, 1.0)
except ValueError as error:
    caught = error
tb, shown, hidden = caught.__traceback__, [], 0
while tb is not None:
    if "__tracebackhide__" in tb.tb_frame.f_locals:
        hidden += 1
    else:
        shown.append(tb.tb_frame.f_code.co_name)
    tb = tb.tb_next
cause = caught.__cause__
noted = ["noted" for note in getattr(caught, "__notes__", ()) if "For simplicity" in note]
print(*shown, "hidden" if hidden else "", *noted, type(cause).__name__, end=" ")
if cause.__cause__ is not None:
    print(cause, len(traceback.extract_tb(cause.__traceback__)) > len(shown), type(cause.__cause__).__name__)
"""


@pytest.mark.parametrize(
    ("hides", "mode", "wanted"),
    [
        (False, "auto", "<module> call inner user KeyError"),
        (True, "auto", "<module> user KeyError"),
        (True, "quiet_remove_frames", "<module> user noted KeyError"),
        (False, "tracebackhide", "<module> call inner user KeyError"),
        (True, "tracebackhide", "<module> user hidden KeyError"),
        (True, "remove_frames", "<module> user UnfilteredStackTrace ValueError: mine True KeyError"),
        (True, "off", "<module> call inner user hidden KeyError"),
    ],
)
def test_frames_that_are_shown(tmp_path, hides, mode, wanted):
    (tmp_path / "library.py").write_text(LIBRARY)
    (tmp_path / "script.py").write_text(SCRIPT.format(hides=hides, mode=mode))
    got = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=True).stdout
    assert got.split() == wanted.split()
