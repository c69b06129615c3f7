"""Finding who keeps a leaked tracer, and naming the place as Python source would: ``store.d['k'][0]``.

Run only when a leak is being reported, and for some 50 ms, however much there is in memory. The search is breadth
first, so that the shortest name wins. What lies further away starts later: first the module of the traced function and
those on the stack, then the variables of running functions, other modules of the user's, and last the libraries. Long
containers are looked through a part at a time, their newest elements first. Where no name is found, the garbage
collector is asked which of the young objects holds the tracer.

Read next: ``_leak_steps.py``, the ways from an object to what it keeps.
"""

from __future__ import annotations

import contextlib
import gc
import linecache
import sys
import threading
import time
import types
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from ferrax import _ferrax
from ferrax._leak_steps import LAST, LATER, PLAIN, WEAK, How, Step, attribute, is_plain, stepper, type_name

#: Seconds for naming the place, for naming a container after a mere variable was found, and in all.
_SEARCH, _FURTHER, _WHOLE = 0.030, 0.015, 0.038
#: How many elements of containers are looked at whatever the clock says: what lies near is named on any machine,
#: however busy it is with other things. They take about ten milliseconds.
_SURE = 10_000
#: How many elements of a container are looked at before others of the same depth.
_PART = 64
_MOST_PART = 4096
#: How much there may be for the garbage collector to be asked: young objects, and blocks of memory in all.
_FEW_YOUNG, _FEW_BLOCKS = 30_000, 300_000
_FRAMES = 1000
#: How many steps later than the modules on the stack it begins elsewhere.
_LOCALS, _OTHER_MODULES, _OTHER_THREADS, _LIBRARY_LOCALS, _INSTALLED_MODULES, _STANDARD_MODULES = 1, 2, 3, 6, 9, 12

#: How a place was reached: the way to the container, the function that writes the rest, and its argument.
Path = tuple[Any, How, Any] | None
#: Where a module comes from, and with it how late it is looked at.
_USER, _INSTALLED, _STANDARD, _OWN = range(4)


def variable(_: str, name: str) -> str:
    return name


def local_elsewhere(_: str, name: str) -> str:
    return name


def _text(path: Path) -> str:
    ways = []
    while path is not None:
        parent, how, key = path
        ways.append((how, key))
        path = parent
    if len(ways) == 1 and ways[0][0] is variable:
        return f"the variable {ways[0][1]}"
    text = ""
    for how, key in reversed(ways):
        text = how(text, key)
        if how in LAST:
            break
    return text


class _Search:
    """A search for a tracer: what is still to be looked at, by distance."""

    def __init__(self, wanted: Callable[[Any], bool], seconds: float):
        self.wanted = wanted
        self.deadline = time.perf_counter() + seconds
        self.looked = 0
        self.seen: set[int] = {id(sys.modules)}
        self.levels: list[deque[tuple[Iterator[Step], Path, int]]] = []
        self.roots: dict[int, list[tuple[Iterator[Step], Path]]] = {}
        self.steppers: dict[type, Callable[[Any], Iterator[Step]]] = {}
        self.variable: tuple[Path, Any] | None = None

    def add(self, steps: Iterator[Step], path: Path, level: int, part: int = _PART) -> None:
        while len(self.levels) <= level:
            self.levels.append(deque())
        self.levels[level].append((steps, path, part))

    def begin(self, steps: Iterator[Step], path: Path, level: int) -> None:
        """Takes a place to begin with; what was begun nearer comes first in each level."""
        self.roots.setdefault(level, []).append((steps, path))

    def run(self) -> tuple[Path, Any] | None:
        """The way to the tracer, and the tracer; a container's comes before that of a mere variable."""
        level = 0
        while level < len(self.levels) or self.roots:
            if level == len(self.levels):
                self.levels.append(deque())
            queue = self.levels[level]
            if not queue:
                queue.extend((steps, path, _MOST_PART) for steps, path in self.roots.pop(level, ()))
            if not queue:
                level += 1
                continue
            if self.looked >= _SURE and time.perf_counter() > self.deadline:
                break
            steps, path, part = queue.popleft()
            found = self._take(steps, path, part, level + 1)
            if found is not None:
                return found
        return self.variable

    def _take(self, steps: Iterator[Step], path: Path, part: int, level: int) -> tuple[Path, Any] | None:
        """Looks at a part of a container's elements."""
        taken = 0
        containers: list[tuple[Any, How, Any]] = []
        try:
            for step in islice(steps, part):
                taken += 1
                self.looked += 1
                child, how, key = step
                cls = type(child)
                if cls in PLAIN or id(child) in self.seen:
                    continue
                if issubclass(cls, _ferrax.Array):
                    if issubclass(cls, _ferrax.Tracer) and how not in WEAK and self.wanted(child):
                        if how is not variable:
                            return (path, how, key), child
                        self._found_variable((path, how, key), child)
                    continue
                self.seen.add(id(child))
                if not is_plain(child, cls, self.seen):
                    containers.append(step)
        except Exception:
            # a container that changes meanwhile, an attribute that raises: what else it has is let go
            taken = 0
        if taken == part:
            # of a long container the newest and the oldest elements come with those of short ones, the others later
            self.add(steps, path, level + 1, min(2 * part, _MOST_PART))
            level += part > _PART
        for child, how, key in containers:
            self._follow(child, (path, how, key), level + LATER.get(how, 0))
        return None

    def _follow(self, obj: Any, path: Path, level: int) -> None:
        cls = type(obj)
        if issubclass(cls, types.ModuleType):
            names = vars(obj)
            if id(names) in self.seen or _origin(names) != _USER:
                return
            self.seen.add(id(names))
        follow = self.steppers.get(cls)
        if follow is None:
            follow = self.steppers[cls] = stepper(cls)
        self.add(follow(obj), path, level)

    def _found_variable(self, path: Path, tracer: Any) -> None:
        if self.variable is None:
            self.variable = path, tracer
            self.deadline = min(self.deadline, time.perf_counter() + _FURTHER)


# ---- where the search begins ----------------------------------------------------------------------------------------


def _origin(names: dict[str, Any]) -> int:
    """Whose a module is, by its namespace."""
    name = str(names.get("__name__", ""))
    top = name.partition(".")[0]
    if top == "ferrax":
        return _OWN
    if top in sys.stdlib_module_names:
        return _STANDARD
    file = names.get("__file__")
    while not isinstance(file, str) and "." in name:
        # a part of an extension module, or a folder of modules: it is where the package is that it belongs to
        name = name.rpartition(".")[0]
        file = getattr(sys.modules.get(name), "__file__", None)
    return _INSTALLED if isinstance(file, str) and ("site-packages" in file or "dist-packages" in file) else _USER


def _variables(names: dict[str, Any], how: How = variable, prefix: str = "") -> Iterator[Step]:
    for name, value in list(names.items()):
        if not name.startswith("__"):
            yield value, how, prefix + name


def _frames(frame: types.FrameType | None) -> list[types.FrameType]:
    """The frames of a stack that are not the library's own, innermost first."""
    frames = []
    for _ in range(_FRAMES):
        if frame is None:
            break
        if _origin(frame.f_globals) != _OWN:
            frames.append(frame)
        frame = frame.f_back
    return frames


def _globals(search: _Search, names: dict[str, Any], here: dict[str, Any] | None, level: int) -> None:
    """Begins with a module: its names as they are where the error is raised, otherwise with the module's name."""
    if id(names) in search.seen:
        return
    search.seen.add(id(names))
    module = names.get("__name__", "__main__")
    if names is here or module in ("__main__", "builtins"):
        search.begin(_variables(names), None, level)
    else:
        search.begin(_variables(names, attribute), (None, variable, module), level)


def _modules() -> Iterator[dict[str, Any]]:
    """The namespaces of the modules that are imported."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict):
            yield names


def _begin(search: _Search, place: str | None) -> None:
    """Puts the places to begin with into a search."""
    frames = _frames(sys._getframe(1))
    origins = [_origin(f.f_globals) for f in frames]
    users = [f for f, origin in zip(frames, origins, strict=True) if origin == _USER]
    here = (users or frames or [sys._getframe(0)])[0].f_globals
    file = place.rpartition(":")[0] if place else None
    for names in _modules():
        if file and names.get("__file__") == file:
            _globals(search, names, here, 0)
    for frame in users:
        _globals(search, frame.f_globals, here, 0)
    for frame, origin in zip(frames, origins, strict=True):
        if frame.f_locals is not frame.f_globals:
            search.begin(_variables(frame.f_locals), None, _LOCALS if origin == _USER else _LIBRARY_LOCALS)
    for ident, top in sys._current_frames().items():
        for frame in _frames(top) if ident != threading.get_ident() else ():
            if _origin(frame.f_globals) == _USER and frame.f_locals is not frame.f_globals:
                prefix = f"{frame.f_code.co_name}'s local variable "
                search.begin(_variables(frame.f_locals, local_elsewhere, prefix), None, _OTHER_THREADS)
    levels = {_USER: _OTHER_MODULES, _INSTALLED: _INSTALLED_MODULES, _STANDARD: _STANDARD_MODULES}
    for names in _modules():
        origin = _origin(names)
        if origin == _OWN:
            search.seen.add(id(names))
        else:
            _globals(search, names, here, levels[origin])


# ---- the questions --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No collection of garbage meanwhile: one of a large heap takes longer than the search."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _find(wanted: Callable[[Any], bool], place: str | None) -> tuple[str, Any] | None:
    with _uncollected():
        search = _Search(wanted, _SEARCH)
        _begin(search, place)
        found = search.run()
    return found and (_text(found[0]), found[1])


def _few_young() -> bool:
    count, (most, _, _) = gc.get_count(), gc.get_threshold()
    return count[0] + count[1] * most < _FEW_YOUNG


def _find_holder(wanted: Callable[[Any], bool], deadline: float) -> tuple[str, Any] | None:
    """An object that holds the tracer and that no name was found for, among the young ones or, if few, among all."""
    with _uncollected():
        generations = [0, 1] if _few_young() else []
        if sys.getallocatedblocks() < _FEW_BLOCKS:
            generations.append(2)
        for generation in generations:
            for obj in gc.get_objects(generation):
                if time.perf_counter() > deadline:
                    return None
                if isinstance(obj, types.FrameType):
                    continue
                for held in gc.get_referents(obj):
                    if isinstance(held, _ferrax.Tracer) and wanted(held):
                        return f"an object of type {type_name(type(obj))} that no name was found for", held
    return None


def find_tracer(tracer: int, place: str | None) -> str | None:
    """The place that keeps a tracer; `None` when it cannot be told.

    Args:
      tracer: the tracer's identity.
      place: file and line of the traced function.

    >>> import ferrax
    >>> class Store: pass
    >>> store = Store(); store.d = {"k": [None]}
    >>> def step(x):
    ...     store.d["k"][0] = x
    ...     return x
    >>> _ = ferrax.jit(step)(1.0)
    >>> find_tracer(_ferrax.tracer_id(store.d["k"][0]), None)
    "store.d['k'][0]"
    """

    def wanted(x: Any) -> bool:
        return bool(_ferrax.tracer_id(x) == tracer)

    deadline = time.perf_counter() + _WHOLE
    found = _find(wanted, place) or _find_holder(wanted, deadline)
    return found and found[0]


def find_trace(trace: int, place: str | None) -> str | None:
    """The place that keeps any tracer of a trace, and the line that put it there, where it is known.

    Args:
      trace: the trace's number.
      place: file and line of the traced function.
    """
    return _with_line(_find(lambda x: _ferrax.trace_id(x) == trace, place))


def find_holder(trace: int, place: str | None) -> str | None:
    """As `find_trace`, for what no name leads to."""
    deadline = time.perf_counter() + _WHOLE
    return _with_line(_find_holder(lambda x: _ferrax.trace_id(x) == trace, deadline))


def _with_line(found: tuple[str, Any] | None) -> str | None:
    if found is None:
        return None
    from ferrax import _leak_watch  # no other report needs it

    place, tracer = found
    line = _leak_watch.storing_line(tracer)
    if line is None:
        return place
    text = linecache.getline(line.file, line.number).strip()
    return f"{place}, stored at {line.file}:{line.number}" + (f"\n    {text}\n" if text else "")


def collect_young() -> None:
    """Collects the garbage that was made lately, if it is not much: cycles are no leaks."""
    if _few_young():
        gc.collect(1)


def collect_all() -> None:
    """Collects all garbage, which takes the time that it takes: only before a leak is reported that has no name."""
    gc.collect()
