"""Finding who keeps a leaked tracer, and naming the place as Python source would: ``store.d['k'][0]``.

Run only when a leak is being reported. The search goes breadth first from the globals of the modules on the stack,
then from the locals of its frames, through containers, instances, closures, defaults, generators and caches.
"""

from __future__ import annotations

import functools
import gc
import linecache
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ferrax import _ferrax, _leak_watch

_LIMIT = 200_000
_PLAIN = (
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    type(None),
    types.ModuleType,
    types.CodeType,
    types.BuiltinFunctionType,
)


def _key(key: Any) -> str:
    return repr(key)


def _items(obj: dict[Any, Any], path: str) -> Iterator[tuple[Any, str]]:
    for k, v in list(obj.items()):
        yield v, f"{path}[{_key(k)}]"


def _attributes(obj: Any, path: str) -> Iterator[tuple[Any, str]]:
    fields = getattr(obj, "__dict__", None)
    if isinstance(fields, (dict, types.MappingProxyType)):
        for k, v in list(fields.items()):
            if not (isinstance(k, str) and k.startswith("__")):
                yield v, f"{path}.{k}"
    for cls in type(obj).__mro__:
        for slot in getattr(cls, "__slots__", ()):
            if isinstance(slot, str) and not slot.startswith("__") and hasattr(obj, slot):
                yield getattr(obj, slot), f"{path}.{slot}"


def _function(obj: types.FunctionType, path: str) -> Iterator[tuple[Any, str]]:
    for name, cell in zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=False):
        try:
            yield cell.cell_contents, f"{path}'s closure variable {name}"
        except ValueError:
            continue
    names = obj.__code__.co_varnames[: obj.__code__.co_argcount]
    defaults = obj.__defaults__ or ()
    for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=False):
        yield value, f"{path}'s default argument {name}"
    for name, value in (obj.__kwdefaults__ or {}).items():
        yield value, f"{path}'s default argument {name}"
    yield from _attributes(obj, path)


def _children(obj: Any, path: str) -> Iterator[tuple[Any, str]]:
    """What an object holds, with the expression that reaches it."""
    if isinstance(obj, dict):
        yield from _items(obj, path)
    elif isinstance(obj, (list, tuple, deque)):
        for i, v in enumerate(list(obj)):
            yield v, f"{path}[{i}]"
    elif isinstance(obj, (set, frozenset)):
        for v in list(obj):
            yield v, f"an element of {path}"
    elif isinstance(obj, types.FunctionType):
        yield from _function(obj, path)
    elif isinstance(obj, types.MethodType):
        yield obj.__self__, f"{path}.__self__"
    elif isinstance(obj, types.GeneratorType):
        if obj.gi_frame is not None:
            for k, v in obj.gi_frame.f_locals.items():
                yield v, f"{path}.gi_frame.f_locals[{_key(k)}]"
    elif isinstance(obj, functools._lru_cache_wrapper):
        for v in gc.get_referents(obj):
            yield v, f"the cache of {path}"
    elif isinstance(obj, functools.partial):
        yield from _items(obj.keywords, f"{path}.keywords")
        for i, v in enumerate(obj.args):
            yield v, f"{path}.args[{i}]"
    else:
        yield from _attributes(obj, path)
    if isinstance(obj, (dict, list, set)) and type(obj) not in (dict, list, set):
        yield from _attributes(obj, path)


def _is_library(name: Any) -> bool:
    return isinstance(name, str) and (name == "ferrax" or name.startswith("ferrax."))


def _roots() -> tuple[list[tuple[Any, str]], list[tuple[Any, str]]]:
    """Globals of the modules on the stack, and locals of its frames, innermost first."""
    module_roots: list[tuple[Any, str]] = []
    local_roots: list[tuple[Any, str]] = []
    seen: set[int] = set()
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if not _is_library(name):
            if id(frame.f_globals) not in seen:
                seen.add(id(frame.f_globals))
                module_roots += [(v, k) for k, v in list(frame.f_globals.items()) if not k.startswith("__")]
            if frame.f_locals is not frame.f_globals:
                local_roots += [(v, k) for k, v in list(frame.f_locals.items())]
        frame = frame.f_back
    return module_roots, local_roots


def find(wanted: Callable[[Any], bool]) -> tuple[str, Any] | None:
    """The expression that reaches an object for which `wanted` holds, and the object.

    Containers come before plain variables.

    >>> class Store: pass
    >>> store = Store(); store.d = {"k": [1.5]}
    >>> find(lambda x: x == 1.5)
    ("store.d['k'][0]", 1.5)
    """
    modules, local = _roots()
    for roots in (modules, local):
        plain = None
        queue: deque[tuple[Any, str]] = deque()
        visited: set[int] = set()
        for value, path in roots:
            if isinstance(value, (_ferrax.Array, int, float)):
                if plain is None and _holds(wanted, value):
                    plain = f"the variable {path}", value
                continue
            queue.append((value, path))
        found = _search(queue, visited, wanted)
        if found or plain:
            return found or plain
    return None


def _holds(wanted: Callable[[Any], bool], value: Any) -> bool:
    try:
        return bool(wanted(value))
    except Exception:
        return False


def _search(queue: deque[tuple[Any, str]], visited: set[int], wanted: Callable[[Any], bool]) -> tuple[str, Any] | None:
    while queue and len(visited) < _LIMIT:
        obj, path = queue.popleft()
        if id(obj) in visited or obj is _ferrax or isinstance(obj, types.ModuleType):
            continue
        visited.add(id(obj))
        if isinstance(obj, type) and _is_library(obj.__module__):
            continue
        try:
            for child, child_path in _children(obj, path):
                if _holds(wanted, child):
                    return child_path, child
                if not isinstance(child, _PLAIN) and not isinstance(child, _ferrax.Array):
                    queue.append((child, child_path))
        except Exception:
            continue
    return None


def find_tracer(tracer_id: int) -> str | None:
    """The place that keeps a tracer, by its identity; `None` when it cannot be told."""
    found = find(lambda x: isinstance(x, _ferrax.Tracer) and _ferrax.tracer_id(x) == tracer_id)
    return found and found[0]


def find_trace(trace_id: int) -> str | None:
    """The place that keeps any tracer of a trace, and the line that put it there, where it is known.

    Collects garbage first, so that cycles are no leaks.
    """
    gc.collect()
    found = find(lambda x: isinstance(x, _ferrax.Tracer) and _ferrax.trace_id(x) == trace_id)
    if found is None:
        return None
    place, tracer = found
    line = _leak_watch.storing_line(tracer)
    if line is None:
        return place
    text = linecache.getline(line.file, line.number).strip()
    return f"{place}, stored at {line.file}:{line.number}" + (f"\n    {text}\n" if text else "")
