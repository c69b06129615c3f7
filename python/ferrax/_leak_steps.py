"""What an object keeps, and how Python source reaches it: one step of the search for a leaked tracer.

:func:`steps` gives triples: what is kept, the function that writes the way to it, and that function's argument. Texts
are written for the one way that is shown, never while searching. Every ordinary container has its way; for others the
garbage collector says what they hold, and the text ends with their type.

Read next: ``_leaks.py``, which goes step by step.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import gc
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from ferrax import _ferrax

How = Callable[[str, Any], str]
Step = tuple[Any, How, Any]

#: Types that keep nothing of interest.
PLAIN: frozenset[type] = frozenset(
    [str, bytes, bytearray, int, float, complex, bool, range, type(None), type(...), type(NotImplemented)]
    + [types.CodeType, types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType]
    + [types.GetSetDescriptorType, types.MemberDescriptorType, types.GenericAlias, types.UnionType]
)
#: Whose classes nobody keeps anything in.
_UNTOUCHED = sys.stdlib_module_names | {"ferrax"}
_FIRST = 32
_HEAP_TYPE = 1 << 9
#: Attributes that every class or module has.
_COMMON = frozenset(
    ["__dict__", "__weakref__", "__doc__", "__module__", "__builtins__", "__spec__", "__loader__", "__slots__"]
)


# ---- texts ----------------------------------------------------------------------------------------------------------


def type_name(cls: type) -> str:
    """A class as code would write it: ``map``, ``itertools.chain``."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _key(key: Any) -> str:
    try:
        text = repr(key)
    except Exception:
        text = f"<a key of type {type(key).__name__}>"
    return text if len(text) <= 60 else text[:59] + "…"


def item(path: str, key: Any) -> str:
    return f"{path}[{_key(key)}]"


def element(path: str, index: int) -> str:
    return f"list({path})[{index}]"


def attribute(path: str, name: str) -> str:
    return f"{path}.{name}"


def closure(path: str, name: str) -> str:
    return f"{path}'s closure variable {name}"


def default(path: str, name: str) -> str:
    return f"{path}'s default argument {name}"


def cache(path: str, _: Any) -> str:
    return f"the cache of {path}"


def residuals(path: str, _: Any) -> str:
    return f"the residuals of {path}"


def class_of(path: str, _: Any) -> str:
    return f"type({path})"


def same(path: str, _: Any) -> str:
    return path


def inside(path: str, cls: type) -> str:
    return f"{path} (of type {type_name(cls)})"


def referred(path: str, _: Any) -> str:
    return f"{path}()"


def weak_item(path: str, key: Any) -> str:
    return item(path, key)


def weak_element(path: str, index: int) -> str:
    return element(path, index)


#: Ways after which a text ends.
LAST = frozenset([inside, cache, residuals])
#: Ways over weak references, which keep nothing themselves.
WEAK = frozenset([referred, weak_item, weak_element])
#: Ways that are taken later than others of their length.
LATER: dict[How, int] = {class_of: 1, **dict.fromkeys(WEAK, 8)}


def is_plain(obj: Any, cls: type, seen: set[int]) -> bool:
    """Whether an object of one of the common types keeps nothing of interest, as most do; a look without a step."""
    if cls is types.FunctionType:
        return (
            obj.__closure__ is None
            and obj.__defaults__ is None
            and obj.__kwdefaults__ is None
            and not obj.__dict__
            and id(obj.__globals__) in seen
        )
    if cls is list or cls is tuple:
        return len(obj) <= 2 * _FIRST and PLAIN.issuperset(map(type, obj))
    if cls is dict:
        few = len(obj) <= 2 * _FIRST
        return few and PLAIN.issuperset(map(type, obj.values())) and PLAIN.issuperset(map(type, obj))
    if cls is type:
        return _top_module(obj) in _UNTOUCHED
    if cls is types.BuiltinFunctionType:
        return isinstance(obj.__self__, (types.ModuleType, type(None)))
    return False


def _top_module(cls: type) -> str:
    return cls.__module__.partition(".")[0]


# ---- steps ----------------------------------------------------------------------------------------------------------


def indices(n: int) -> Iterator[int]:
    """The indices of a sequence, those of the newest elements early."""
    if n <= 2 * _FIRST:
        return iter(range(n))
    return chain(range(n - 1, n - 1 - _FIRST, -1), range(n - _FIRST))


def _sequence(obj: Any) -> Iterator[Step]:
    get = next(c for c in (list, tuple, deque) if isinstance(obj, c)).__getitem__
    fields = getattr(type(obj), "_fields", None) if isinstance(obj, tuple) else None
    for i in indices(len(obj)):
        if isinstance(fields, tuple) and i < len(fields):
            yield get(obj, i), attribute, fields[i]
        else:
            yield get(obj, i), item, i


def _mapping(obj: Any) -> Iterator[Step]:
    items: Any = obj.items() if type(obj) is types.MappingProxyType else dict.items(obj)
    if len(obj) > 2 * _FIRST:
        # the newest first; they are seen again later, which changes nothing
        for _, (key, value) in zip(range(_FIRST), reversed(items), strict=False):
            yield value, item, key
    for i, (key, value) in enumerate(items):
        yield value, item, key
        if type(key) not in PLAIN:
            yield key, element, i


def _set(obj: Any) -> Iterator[Step]:
    for i, value in enumerate(obj):
        yield value, element, i


def _names(names: Any) -> Iterator[Step]:
    """The entries of a namespace as attributes."""
    for name, value in list(names.items()):
        if name == "__wrapped__":
            yield value, same, None
        elif isinstance(name, str) and name not in _COMMON:
            yield value, attribute, name


def _members(cls: type) -> list[tuple[str, Any]]:
    """The slots of a class and its bases."""
    own = [c for c in cls.__mro__ if c.__flags__ & _HEAP_TYPE]
    return [(n, m) for c in own for n, m in vars(c).items() if type(m) is types.MemberDescriptorType]


def _attributes(members: list[tuple[str, Any]]) -> Callable[[Any], Iterator[Step]]:
    """The attributes of an object of a class with these slots; no code of the class runs."""

    def of(obj: Any) -> Iterator[Step]:
        with contextlib.suppress(AttributeError):
            names = object.__getattribute__(obj, "__dict__")
            if isinstance(names, dict):
                yield from _names(names)
        for name, member in members:
            with contextlib.suppress(AttributeError):  # an empty slot
                yield member.__get__(obj), attribute, name

    return of


def _instance(cls: type) -> Callable[[Any], Iterator[Step]]:
    """The steps from objects of a class that the table does not have."""
    attributes = _attributes(_members(cls))
    library = _top_module(cls) == "ferrax"
    native = any(not c.__flags__ & _HEAP_TYPE or _is_native(c) for c in cls.__mro__[:-1])

    def of(obj: Any) -> Iterator[Step]:
        yield from attributes(obj)
        if library:
            yield getattr(obj, "__wrapped__", None), same, None
        if native:
            yield from _referents(obj)
        elif not library:
            yield cls, class_of, None

    return of


def _is_native(cls: type) -> bool:
    """Whether an extension module made the class: its objects may keep what is no attribute."""
    return any(type(m) in (types.MethodDescriptorType, types.WrapperDescriptorType) for m in vars(cls).values())


def _referents(obj: Any) -> Iterator[Step]:
    """What the garbage collector knows of: the way of things that have no other."""
    for value in gc.get_referents(obj):
        if not isinstance(value, (type, types.ModuleType)):
            yield value, inside, type(obj)


def _class(obj: type) -> Iterator[Step]:
    if _top_module(obj) not in _UNTOUCHED:
        yield from _names(vars(obj))


def _module(obj: types.ModuleType) -> Iterator[Step]:
    yield from _names(vars(obj))


def _function(obj: types.FunctionType) -> Iterator[Step]:
    for name, cell in zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=False):
        try:
            yield cell.cell_contents, closure, name
        except ValueError:  # an empty cell
            continue
    names = obj.__code__.co_varnames[: obj.__code__.co_argcount]
    values = obj.__defaults__ or ()
    for name, value in zip(names[len(names) - len(values) :], values, strict=False):
        yield value, default, name
    for name, value in (obj.__kwdefaults__ or {}).items():
        yield value, default, name
    yield from _names(vars(obj))
    yield obj.__globals__, attribute, "__globals__"


def _attribute_of(*names: str) -> Callable[[Any], Iterator[Step]]:
    def of(obj: Any) -> Iterator[Step]:
        for name in names:
            value = getattr(obj, name, None)
            if value is not None and not isinstance(value, types.ModuleType):
                yield value, attribute, name

    return of


def _locals(frame: types.FrameType | None, path: str) -> Iterator[Step]:
    if frame is not None:
        for name, value in list(frame.f_locals.items()):
            yield value, attribute, item(path, name)


def _suspended(prefix: str, waits: str) -> Callable[[Any], Iterator[Step]]:
    def of(obj: Any) -> Iterator[Step]:
        yield from _locals(getattr(obj, f"{prefix}_frame"), f"{prefix}_frame.f_locals")
        yield getattr(obj, waits), attribute, waits
        yield from _referents(obj)

    return of


def _frame(obj: types.FrameType) -> Iterator[Step]:
    yield from _locals(obj, "f_locals")


def _cached(obj: Any) -> Iterator[Step]:
    for value in gc.get_referents(obj):
        if value is not obj.__wrapped__:
            yield value, cache, None
    yield from _names(vars(obj))


def _exception(obj: BaseException) -> Iterator[Step]:
    names = ["args", "__cause__", "__context__", "__traceback__"]
    for cls, name in ((BaseExceptionGroup, "exceptions"), (StopIteration, "value"), (AttributeError, "obj")):
        if isinstance(obj, cls):
            names.append(name)
    yield from _attribute_of(*names)(obj)
    yield from _names(vars(obj))


def _array(obj: np.ndarray[Any, Any]) -> Iterator[Step]:
    if obj.dtype.names is not None:
        for name in obj.dtype.names:
            if obj.dtype[name].hasobject:
                yield obj[name], item, name
    elif obj.dtype.hasobject:
        for i in indices(obj.size):
            at = _Index((i,) if obj.ndim == 1 else map(int, np.unravel_index(i, obj.shape)))
            yield obj[at], item, at


def _record(obj: np.void) -> Iterator[Step]:
    for name in obj.dtype.names or ():
        yield obj[name], item, name


class _Index(tuple[int, ...]):
    """An index as it stands between brackets: ``1, 2``."""

    def __repr__(self) -> str:
        return ", ".join(map(str, self)) if self else "()"


def _variable(obj: contextvars.ContextVar[Any]) -> Iterator[Step]:
    try:
        yield obj.get(), attribute, "get()"
    except LookupError:
        return


def _context(obj: contextvars.Context) -> Iterator[Step]:
    for var, value in obj.items():
        yield value, item, _Name(var.name)


class _Name(str):
    def __repr__(self) -> str:
        return str(self)


def _token(obj: Any) -> Iterator[Step]:
    yield obj.old_value, attribute, "old_value"


def _thread_local(obj: threading.local) -> Iterator[Step]:
    yield from _names(obj.__dict__)
    yield from _referents(obj)


def _weak_keys(obj: Any) -> Iterator[Step]:
    for ref, value in list(obj.data.items()):
        yield value, item, ref()


def _weak_values(obj: Any) -> Iterator[Step]:
    for key, ref in list(obj.data.items()):
        yield ref(), weak_item, key


def _weak_set(obj: Any) -> Iterator[Step]:
    for i, ref in enumerate(list(obj.data)):
        yield ref(), weak_element, i


def _reference(obj: Any) -> Iterator[Step]:
    yield obj(), referred, None


def _cell(obj: types.CellType) -> Iterator[Step]:
    try:
        yield obj.cell_contents, attribute, "cell_contents"
    except ValueError:
        return


def _future(obj: Any) -> Iterator[Step]:
    coroutine = getattr(obj, "get_coro", None)
    if coroutine is not None:
        yield coroutine(), attribute, "get_coro()"
    if obj.done() and not obj.cancelled() and obj._exception is None:
        yield obj.result(), attribute, "result()"
    yield from _referents(obj)


def _linear(obj: Any) -> Iterator[Step]:
    for value in obj._tracers():
        yield value, residuals, None


#: The first row whose class an object is of.
_TABLE: tuple[tuple[Any, Callable[[Any], Iterator[Step]]], ...] = (
    (dict, _mapping),
    (types.MappingProxyType, _mapping),
    ((list, tuple, deque), _sequence),
    ((set, frozenset), _set),
    (type, _class),
    (types.ModuleType, _module),
    (types.FunctionType, _function),
    ((types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType), _attribute_of("__self__")),
    ((staticmethod, classmethod), _attribute_of("__func__")),
    (property, _attribute_of("fget", "fset", "fdel")),
    (slice, _attribute_of("start", "stop", "step")),
    (types.GeneratorType, _suspended("gi", "gi_yieldfrom")),
    (types.CoroutineType, _suspended("cr", "cr_await")),
    (types.AsyncGeneratorType, _suspended("ag", "ag_await")),
    (types.FrameType, _frame),
    (types.TracebackType, _attribute_of("tb_frame", "tb_next")),
    (types.CellType, _cell),
    (functools._lru_cache_wrapper, _cached),
    (functools.partial, _attribute_of("func", "args", "keywords")),
    (BaseException, _exception),
    (np.ndarray, _array),
    (np.void, _record),
    (contextvars.ContextVar, _variable),
    (contextvars.Context, _context),
    (contextvars.Token, _token),
    (threading.local, _thread_local),
    (weakref.WeakKeyDictionary, _weak_keys),
    (weakref.WeakValueDictionary, _weak_values),
    (weakref.WeakSet, _weak_set),
    (weakref.ReferenceType, _reference),
    ((_ferrax.VJP, _ferrax.LinearizedFunction), _linear),
)


def stepper(cls: type) -> Callable[[Any], Iterator[Step]]:
    """The steps from objects of a class; those of subclasses have attributes, too."""
    for base, step in _TABLE:
        if issubclass(cls, base):
            if not cls.__flags__ & _HEAP_TYPE or issubclass(cls, type):
                return step
            attributes = _attributes(_members(cls))
            return lambda obj: chain(step(obj), attributes(obj))
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and issubclass(cls, asyncio.Future):
        return _future
    return _instance(cls)
