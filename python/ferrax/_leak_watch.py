"""Noting the line that stores a tracer: what ``checking_leaks`` adds to the name of the place that keeps it.

While a function is traced under ``checking_leaks``, its lines are followed. After each line the references to every
tracer are counted, those from variables of running functions aside. A count that rose, and did not fall again, was a
store by that line. The extension module calls :func:`call` in place of the function, and :func:`note` with every new
tracer.

Read next: ``_leaks.py``, which finds the place.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import types
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ferrax import _ferrax

#: Where code lies that is not the user's: a store there is one of the line that called it.
_LIBRARIES = (
    os.path.dirname(__file__) + os.sep,
    os.path.dirname(os.__file__) + os.sep,
    os.path.dirname(os.path.dirname(np.__file__)) + os.sep,
    "<frozen ",
)
#: How often a variable of a running function counts: before 3.13 the snapshot of `f_locals` holds it once more.
_COPIES = 2 if sys.version_info < (3, 13) else 1
#: References to a tracer that are this module's own: a local variable and the argument of `getrefcount`.
_OWN = 2
#: Seconds for asking the garbage collector who holds a tracer, and how many blocks of memory there may be: it looks at
#: all of them.
_ASKING, _MANY_BLOCKS = 0.02, 4_000_000


class Line(NamedTuple):
    """A line of the user's."""

    file: str
    number: int


class _Store(NamedTuple):
    line: Line
    holders: frozenset[int]


class _Seen:
    """A tracer: how many references variables do not explain, and the lines that added them."""

    def __init__(self, tracer: Any):
        self.ref = weakref.ref(tracer)
        self.excess = 0
        self.stores: list[_Store] = []


class _Watch(threading.local):
    def __init__(self) -> None:
        self.depth = 0
        self.frames: list[types.FrameType] = []
        self.lines: list[int | None] = []
        self.seen: list[_Seen] = []
        self.asked = 0.0


_watch = _Watch()


def note(tracer: Any) -> None:
    """Takes a new tracer into account; called by the extension module under ``checking_leaks``."""
    _watch.seen.append(_Seen(tracer))


def call(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a function that is being traced, following its lines."""
    if _watch.depth == 0:
        _watch.frames, _watch.lines, _watch.asked = [], [], 0.0
        _watch.seen = [s for s in _watch.seen if s.ref() is not None]
    before = sys.gettrace()
    _watch.depth += 1
    sys.settrace(_on_call)
    try:
        return fun(*args, **kwargs)
    finally:
        sys.settrace(before)
        _watch.depth -= 1


def storing_line(tracer: Any) -> Line | None:
    """The line that stored a tracer of the last watched call where it is kept now."""
    seen = next((s for s in _watch.seen if s.ref() is tracer), None)
    if seen is None or not seen.stores:
        return None
    holders = _holders(tracer)
    # later stores see the holders of earlier ones, too
    first = next((s for s in seen.stores if s.holders & holders), seen.stores[-1])
    return first.line


def _holders(tracer: Any) -> frozenset[int]:
    """Which objects hold a tracer; none once asking has taken its time, and then the latest store counts."""
    if _watch.asked > _ASKING or sys.getallocatedblocks() > _MANY_BLOCKS:
        return frozenset()
    start = time.perf_counter()
    holders = frozenset(id(h) for h in gc.get_referrers(tracer))
    _watch.asked += time.perf_counter() - start
    return holders


def _on_call(frame: types.FrameType, event: str, _: Any) -> Callable[..., Any] | None:
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    # code that dataclasses and named tuples write has no file
    written = file == "<string>" and (name.startswith("__") or frame.f_globals.get("__name__") != "__main__")
    if written or file.startswith(_LIBRARIES):
        return None
    _watch.frames.append(frame)
    _watch.lines.append(None)
    return _on_event


def _on_event(frame: types.FrameType, event: str, result: Any) -> Callable[..., Any]:
    if event == "line":
        _count()
        if _watch.frames and _watch.frames[-1] is frame:
            _watch.lines[-1] = frame.f_lineno
    elif event == "return" and _watch.frames and _watch.frames[-1] is frame:
        _count(result)
        _watch.frames.pop()
        _watch.lines.pop()
    return _on_event


def _variables() -> Counter[int]:
    """How often variables of the running functions refer to each tracer."""
    held: Counter[int] = Counter()
    for frame in _watch.frames:
        free = frame.f_code.co_freevars
        whole = frame.f_code.co_flags & 2  # CO_NEWLOCALS: a function's frame, whose f_locals is a snapshot
        for name, value in frame.f_locals.items():
            if isinstance(value, _ferrax.Tracer):
                # the cell of a free variable outlives the function: it counts as a place
                copies = _COPIES - 1 if name in free else _COPIES if whole else 1
                held[id(value)] += copies
    return held


def _current_line() -> Line | None:
    """The line that runs: that of the caller where a function has only begun."""
    running = zip(reversed(_watch.frames), reversed(_watch.lines), strict=True)
    return next((Line(f.f_code.co_filename, n) for f, n in running if n is not None), None)


def _count(returned: Any = None) -> None:
    """Attributes references that variables do not explain to the line that has just run; not those of a result."""
    held = _variables()
    line = _current_line()
    for seen in _watch.seen:
        tracer = seen.ref()
        if tracer is None or tracer is returned:
            continue
        excess = sys.getrefcount(tracer) - _OWN - held[id(tracer)]
        if excess < seen.excess:
            del seen.stores[max(excess, 0) :]
        elif excess > seen.excess and line is not None:
            seen.stores += [_Store(line, _holders(tracer))] * (excess - max(seen.excess, len(seen.stores)))
        seen.excess = excess
    _watch.seen = [s for s in _watch.seen if s.ref() is not None]
