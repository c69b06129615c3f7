"""The debugger that `debug.breakpoint` starts: the user's frames as they were traced, with the values of the run.

A stop is a callback. When it is traced, the user's frames are noted: the arrays among their variables become operands
of the callback, everything else is kept as it is. Read next: `debug.py`.
"""

from __future__ import annotations

import cmd
import inspect
import pprint
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ferrax import _ferrax, tree_util
from ferrax._callbacks import debug_callback
from ferrax._frames import user_frame
from ferrax.errors import UnexpectedTracerError

__all__ = ["Debugger", "stop"]


class Frame(NamedTuple):
    """A frame of the user's that was active when the stop was traced."""

    file: str
    line: int
    source: Sequence[str]
    offset: int
    locals: dict[str, Any]
    globals: dict[str, Any]


class _Value(NamedTuple):
    """Stands for an operand of the callback."""

    number: int


class _Held(NamedTuple):
    """A variable's value taken apart, in whose leaves operands are stood for."""

    tree: Any
    leaves: list[Any]


def stop(
    ordered: bool,
    every_frame: bool,
    most: int | None,
    *,
    stdin: Any = None,
    stdout: Any = None,
    completekey: str = "tab",
) -> None:
    """Has the program start the debugger here.

    Args:
      ordered: whether stops keep their order.
      every_frame: whether frames of the library are shown, too.
      most: how many frames are shown; all by default.
      stdin, stdout: files that commands come from and answers go to; the process' own by default.
      completekey: the key that completes a command's name.
    """
    operands: list[Any] = []
    frames = [_noted(frame, line, operands) for frame, line in _active(every_frame)[:most]]

    def run(*values: Any) -> None:
        shown = [f._replace(locals=_filled(f.locals, values)) for f in frames]
        Debugger(shown, stdin, stdout, completekey).cmdloop()

    debug_callback(run, *operands, ordered=ordered)


def _active(every_frame: bool) -> list[tuple[types.FrameType, int]]:
    """Frames with their lines, the innermost first."""
    found: list[tuple[types.FrameType, int]] = []
    frame: types.FrameType | None = user_frame(2)
    while frame is not None:
        if every_frame or not frame.f_globals.get("__name__", "").startswith("ferrax"):
            found.append((frame, frame.f_lineno))
        frame = frame.f_back
    return found


def _noted(frame: types.FrameType, line: int, operands: list[Any]) -> Frame:
    """A frame; the arrays among its variables are added to the operands."""
    module = frame.f_locals is frame.f_globals
    variables = {} if module else {name: _held(value, operands) for name, value in frame.f_locals.items()}
    try:
        source, start = inspect.getsourcelines(frame)
    except (OSError, TypeError):  # nobody kept it
        source, start = [], 1
    # what ends a source is a line without text, as the file goes on
    lines = [*(text.rstrip("\n") for text in source), ""]
    return Frame(frame.f_code.co_filename, line, lines, line - max(start, 1), variables, frame.f_globals)


def _held(value: Any, operands: list[Any]) -> Any:
    """A variable's value, in which operands stand for arrays."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a variable may be whatever the function needs
            leaves, tree = tree_util.tree_flatten(value)
    except (TypeError, ValueError, RecursionError):  # keys without an order, containers that are in themselves
        return value
    places = [i for i, leaf in enumerate(leaves) if _is_operand(leaf)]
    for i in places:
        operands.append(leaves[i])
        leaves[i] = _Value(len(operands) - 1)
    return _Held(tree, leaves) if places else value


def _is_operand(leaf: Any) -> bool:
    """Whether a leaf is a traced value, and of a trace that has not ended."""
    if not _ferrax.is_tracer(leaf):
        return False
    try:
        leaf.__array__()
    except UnexpectedTracerError:
        return False
    except Exception:  # what a traced value says to this, of whatever trace
        return True
    return True


def _filled(variables: dict[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    """Variables with the values that operands have."""

    def value_of(held: Any) -> Any:
        if not isinstance(held, _Held):
            return held
        leaves = (_ferrax.asarray(values[x.number]) if isinstance(x, _Value) else x for x in held.leaves)
        return held.tree.unflatten(leaves)

    return {name: value_of(held) for name, held in variables.items()}


class Debugger(cmd.Cmd):
    """Reads commands about frames from the terminal, until one of them goes on.

    >>> import io
    >>> Debugger([Frame("f.py", 1, ["y = x"], 0, {"x": 2}, {})], io.StringIO("p x + 1\nl\nc\n")).cmdloop()
    Entering jdb:
    (jdb) 3
    (jdb) > f.py(1)
    ->  y = x
    (jdb)
    """

    prompt = "(jdb) "

    def __init__(self, frames: Sequence[Frame], stdin: Any = None, stdout: Any = None, completekey: str = "tab"):
        super().__init__(completekey, stdin or sys.stdin, stdout or sys.stdout)
        self.use_rawinput = self.stdin is sys.__stdin__
        self.frames, self.at = frames, 0

    def preloop(self) -> None:
        """Says who reads."""
        self._say("Entering jdb:")

    def _say(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def _show(self, expression: str, shown: Callable[[Any], str]) -> None:
        frame = self.frames[self.at]
        try:
            text = shown(eval(expression, frame.globals, dict(frame.locals)))
        except Exception as error:
            text = "*** " + traceback.format_exception_only(error)[-1].strip()
        self._say(text)

    def default(self, line: str) -> None:
        """What is no command is an expression."""
        self._show(line, repr)

    def emptyline(self) -> bool:
        """Nothing is repeated."""
        return False

    def do_p(self, expression: str) -> None:
        """p expression: prints its value, in the frame that is looked at."""
        self._show(expression, repr)

    def do_pp(self, expression: str) -> None:
        """pp expression: prints its value over several lines."""
        self._show(expression, pprint.pformat)

    def do_list(self, _: str) -> None:
        """list: shows the lines around the one of the frame."""
        frame = self.frames[self.at]
        self._say(f"> {frame.file}({frame.line})")
        for i in range(max(0, frame.offset - 6), min(len(frame.source), frame.offset + 6)):
            self._say(("->  " if i == frame.offset else "    ") + frame.source[i])

    def do_where(self, _: str) -> None:
        """where: shows the frames, the innermost last."""
        self._say("Traceback:")
        for frame in reversed(self.frames):
            self._say(f'  File "{frame.file}", line {frame.line}')
            if frame.offset < len(frame.source):
                self._say(f"    {frame.source[frame.offset].strip()}")

    def do_args(self, _: str) -> None:
        """args: prints the variables of the frame."""
        for name, value in self.frames[self.at].locals.items():
            self._say(f"{name} = {value!r}")

    def do_up(self, _: str) -> None:
        """up: looks at the frame that called this one."""
        self._move(1, "At topmost frame.")

    def do_down(self, _: str) -> None:
        """down: looks at the frame that this one called."""
        self._move(-1, "At bottommost frame.")

    def _move(self, by: int, end: str) -> None:
        if 0 <= self.at + by < len(self.frames):
            self.at += by
        else:
            self._say(end)
        self.do_list("")

    def do_continue(self, _: str) -> bool:
        """continue: goes on with the program."""
        return True

    def do_quit(self, _: str) -> None:
        """quit: ends the process, as the end of the input does."""
        sys.exit(0)

    do_l, do_w, do_bt, do_a, do_u, do_d = do_list, do_where, do_where, do_args, do_up, do_down
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit
