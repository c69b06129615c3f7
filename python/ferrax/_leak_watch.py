"""Noting the line that stores a tracer: what ``checking_leaks`` adds to the name of the place that keeps it.

While a function is traced under ``checking_leaks``, its lines are followed. After each line the references to every
tracer are counted, those from variables of running functions aside. A count that rose, and did not fall again, was a
store by that line. The extension module calls :func:`call` in place of the function, and :func:`note` with every new
tracer.

Read next: ``_leaks.py``, which finds the place.
"""

from __future__ import annotations

import dis
import functools
import gc
import itertools
import operator
import os
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ferrax import _ferrax

#: Where code lies that is not the user's: a store there is one of the line that called it.
_LIBRARIES = (
    os.path.dirname(__file__) + os.sep,
    os.path.dirname(os.__file__) + os.sep,
    os.path.dirname(os.path.dirname(np.__file__)) + os.sep,
    *(p + os.sep for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")),
    "<frozen ",
)
#: How often a variable of a running function counts: before 3.13 the snapshot of `f_locals` holds it once more.
_COPIES = 2 if sys.version_info < (3, 13) else 1
#: The flag of a function's code, whose `f_locals` is a snapshot.
_NEW_LOCALS = 2
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
        self.ref, self.id = weakref.ref(tracer), id(tracer)
        self.excess = 0
        self.stores: list[_Store] = []


#: How often variables refer to a tracer, by its `id`.
_Held = dict[int, int]


class _Watch(threading.local):
    def __init__(self) -> None:
        self.depth = 0
        self.frames: list[types.FrameType] = []
        #: For each frame, how often variables of those below it, which stand still, refer to tracers.
        self.below: list[_Held] = []
        self.lines: list[int | None] = []
        self.seen: list[_Seen] = []
        #: What was found after the line before: references to each of `seen`, and those that variables explain.
        self.counts: list[int] = []
        self.held: _Held = {}
        self.asked = 0.0


_watch = _Watch()


def note(tracer: Any) -> None:
    """Takes a new tracer into account; called by the extension module under ``checking_leaks``."""
    _watch.seen.append(_Seen(tracer))


def call(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a function that is being traced, following its lines."""
    if _watch.depth == 0:
        _watch.frames, _watch.below, _watch.lines, _watch.asked = [], [], [], 0.0
        _keep(s.ref() is not None for s in _watch.seen)
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
    _watch.below.append(_variables())
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
        _watch.below.pop()
        _watch.lines.pop()
    return _on_event


@functools.lru_cache(4096)
def _changes_others(code: types.CodeType) -> bool:
    """Whether code assigns variables of frames below its own: `nonlocal` ones, or those of a module or class."""
    if not code.co_flags & _NEW_LOCALS:
        return True
    free = set(code.co_freevars)
    return bool(free) and any(
        i.argval in free and i.opname in ("STORE_DEREF", "DELETE_DEREF") for i in dis.get_instructions(code)
    )


def _held_by(frame: types.FrameType) -> _Held:
    """How often the variables of a function refer to each tracer."""
    held: _Held = {}
    for name, value in frame.f_locals.items():
        if isinstance(value, _ferrax.Tracer):
            # the cell of a free variable outlives the function: it counts as a place
            whole = frame.f_code.co_flags & _NEW_LOCALS
            copies = _COPIES - 1 if name in frame.f_code.co_freevars else _COPIES if whole else 1
            held[id(value)] = held.get(id(value), 0) + copies
    return held


def _together(one: _Held, other: _Held) -> _Held:
    if not one or not other:
        return one or other
    return one | {key: one.get(key, 0) + count for key, count in other.items()}


def _variables() -> _Held:
    """How often variables of the running functions refer to each tracer."""
    if not _watch.frames:
        return {}
    if _changes_others(_watch.frames[-1].f_code):
        below: _Held = {}
        for i, frame in enumerate(_watch.frames):
            _watch.below[i] = below
            below = _together(below, _held_by(frame))
        return below
    return _together(_watch.below[-1], _held_by(_watch.frames[-1]))


def _current_line() -> Line | None:
    """The line that runs: that of the caller where a function has only begun."""
    running = zip(reversed(_watch.frames), reversed(_watch.lines), strict=True)
    return next((Line(f.f_code.co_filename, n) for f, n in running if n is not None), None)


def _keep(alive: Iterable[bool]) -> None:
    """Forgets the tracers that are gone."""
    _watch.seen = list(itertools.compress(_watch.seen, alive))
    _watch.counts, _watch.held = [], {}


def _count(returned: Any = None) -> None:
    """Attributes references that variables do not explain to the line that has just run; not those of a result."""
    held = _variables()
    refs = [seen.ref for seen in _watch.seen]
    counts = list(map(sys.getrefcount, map(operator.call, refs)))
    before, held_before = _watch.counts, _watch.held
    if counts == before and held == held_before:
        return
    _watch.counts, _watch.held = counts, held
    moved = {key for key in held.keys() | held_before.keys() if held.get(key) != held_before.get(key)}
    line = _current_line()
    gone = skipped = False
    for seen, count, old in itertools.zip_longest(_watch.seen, counts, before):
        if count == old and seen.id not in moved:
            continue
        tracer = seen.ref()
        if tracer is None or tracer is returned:
            gone, skipped = gone or tracer is None, skipped or tracer is not None
            continue
        excess = sys.getrefcount(tracer) - _OWN - held.get(seen.id, 0)
        if excess < seen.excess:
            del seen.stores[max(excess, 0) :]
        elif excess > seen.excess and line is not None:
            seen.stores += [_Store(line, _holders(tracer))] * (excess - max(seen.excess, len(seen.stores)))
        seen.excess = excess
    if gone or skipped:
        _keep([s.ref() is not None for s in _watch.seen])
