"""Small functions of lists, functions and axes."""

from __future__ import annotations

import abc
import faulthandler
import functools
import itertools
import math
import operator
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ferrax._ferrax import ClosedJaxpr, Jaxpr
from ferrax._named_functions import name_of
from ferrax.api_util import safe_map as safe_map, same_lengths
from ferrax.config import config

__all__ = [
    "HashableFunction",
    "HashablePartial",
    "OrderedSet",
    "cache",
    "canonicalize_axis",
    "canonicalize_axis_tuple",
    "ceil_of_ratio",
    "clear_all_caches",
    "concatenate",
    "curry",
    "flatten",
    "foreach",
    "fun_name",
    "memoize",
    "merge_lists",
    "multi_weakref_lru_cache",
    "moveaxis",
    "partition_list",
    "safe_map",
    "safe_zip",
    "set_module",
    "split_list",
    "split_list_checked",
    "stable_unique",
    "subs_list",
    "subvals",
    "toposort",
    "tuple_delete",
    "tuple_insert",
    "tuple_update",
    "unflatten",
    "unzip2",
    "unzip3",
    "weakref_cache_key_types",
    "weakref_lru_cache",
    "wrap_name",
    "wraps",
]


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """`zip` as a list, of arguments that must have one length."""
    if not args:
        raise TypeError("safe_zip requires at least 1 argument")
    lists = [list(a) for a in args]
    for i, values in enumerate(lists):
        if len(values) != len(lists[0]):
            raise ValueError(
                f"safe_zip() argument {i} has length {len(values)} but argument 0 has length {len(lists[0])}. "
                f"All lengths: {tuple(map(len, lists))}"
            )
    return list(zip(*lists, strict=True))


def foreach(f: Callable[..., Any], *args: Iterable[Any]) -> None:
    """Calls a function for its effects, as `safe_map` does."""
    for row in same_lengths("foreach()", args):
        f(*row)


def unzip2(xys: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first and the second elements of pairs; two empty tuples for none."""
    pairs = list(xys)
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def unzip3(xyzs: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """The same of triples."""
    triples = list(xyzs)
    return tuple(t[0] for t in triples), tuple(t[1] for t in triples), tuple(t[2] for t in triples)


def subvals(lst: Sequence[Any], replace: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """The sequence with the elements at some positions replaced."""
    values = list(lst)
    for i, value in replace:
        values[i] = value
    return tuple(values)


def subs_list(subs: Sequence[int | None], src: Sequence[Any], base: Sequence[Any]) -> list[Any]:
    """Elements of `base` where `subs` has None, and those of `src` at its positions elsewhere.

    Elements of `base` are taken in order, as many as there are `None`s.
    """
    rest = iter(base)
    values = [src[i] if i is not None else next(rest) for i in subs]
    if next(rest, rest) is not rest:
        raise AssertionError("subs_list has elements of base left over")
    return values


def split_list(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Parts of the lengths `ns`, and the rest as one more."""
    rest = iter(args)
    return [*(list(itertools.islice(rest, n)) for n in ns), list(rest)]


def split_list_checked(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Parts of the lengths `ns`, which must add up to the whole."""
    if sum(ns) != len(args) or any(n < 0 for n in ns):
        raise AssertionError(f"parts of lengths {list(ns)} do not make {len(args)} elements")
    return split_list(args, ns)[:-1]


def partition_list(bs: Sequence[bool], l: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Elements where `bs` is false, and those where it is true."""
    if len(bs) != len(l):
        raise AssertionError(f"partition_list has {len(bs)} flags for {len(l)} elements")
    pairs = list(zip(bs, l, strict=True))
    return [x for b, x in pairs if not b], [x for b, x in pairs if b]


def merge_lists(bs: Sequence[bool], l0: Sequence[Any], l1: Sequence[Any]) -> list[Any]:
    """The inverse of `partition_list`."""
    if len(l0) + len(l1) != len(bs) or sum(map(bool, bs)) != len(l1):
        raise AssertionError(f"merge_lists has {len(bs)} flags for {len(l0)} and {len(l1)} elements")
    sides = iter(l0), iter(l1)
    return [next(sides[bool(b)]) for b in bs]


def concatenate(xs: Iterable[Sequence[Any]]) -> list[Any]:
    """The elements of sequences, one after the other."""
    return list(itertools.chain.from_iterable(xs))


flatten = concatenate


def unflatten(xs: Iterable[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Parts of the lengths `ns`, which must take up all elements."""
    rest = iter(xs)
    parts = [list(itertools.islice(rest, n)) for n in ns]
    if next(rest, rest) is not rest:
        raise AssertionError("unflatten has elements left over")
    return parts


def curry(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f(x, y)` as `f(x)(y)`: a call keeps its arguments, the next one adds its own."""
    return functools.wraps(f)(functools.partial(functools.partial, f))


def _settings() -> tuple[Any, ...]:
    """The settings of this thread: results of traces depend on some of them."""
    return tuple(config.values.values())


def cache(max_size: int | None = 4096, trace_context_in_key: bool | Callable[[], Any] = True) -> Callable[..., Any]:
    """A decorator that keeps results by arguments and, by default, by the settings that traces depend on."""
    context = (trace_context_in_key if callable(trace_context_in_key) else _settings) if trace_context_in_key else tuple

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.lru_cache(max_size)
        def kept(context: Any, *args: Any, **kwargs: Any) -> Any:
            return f(*args, **kwargs)

        @functools.wraps(f)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return kept(context(), *args, **kwargs)

        wrapper.cache_clear, wrapper.cache_info = kept.cache_clear, kept.cache_info  # type: ignore[attr-defined]
        return wrapper

    return decorate


memoize = cache(max_size=None)


def clear_all_caches() -> None:
    """Forgets all programs."""
    from ferrax import clear_caches

    clear_caches()


def weakref_lru_cache(
    f: Any = None,
    *,
    maxsize: int | None = 2048,
    trace_context_in_key: bool = True,
    explain: Callable[..., Any] | None = None,
) -> Any:
    """`cache` that does not keep its first argument alive: what belongs to it goes when it goes.

    Where the setting `jax_explain_cache_misses` is on, `explain` is called before a result is computed, with the list
    of keys that there are, the last used first, `(reference, context, arguments, keywords)` each, and the arguments.
    """
    if f is None:
        return lambda g: _WeakCache(g, maxsize, trace_context_in_key, explain)
    return _WeakCache(f, maxsize, trace_context_in_key, explain)


class WeakrefLRUCacheInfo(NamedTuple):
    """How often results were kept, and how many are; None for as many as there is room for."""

    hits: int
    misses: int
    maxsize: int | None
    currsize: int

    def __repr__(self) -> str:
        return f"WeakrefLRUCache({', '.join(f'{name}={value}' for name, value in self._asdict().items())})"


class _WeakCache:
    """A function with results that are kept by its arguments, the first of which is not kept alive."""

    def __init__(self, f: Callable[..., Any], maxsize: int | None, context: bool, explain: Callable[..., Any] | None):
        functools.update_wrapper(self, f)
        self._f, self._maxsize, self._explain = f, maxsize, explain
        self._context = _settings if context else lambda: None
        self._rows: OrderedDict[Any, tuple[Any, Any]] = OrderedDict()
        self._lock = threading.RLock()
        self._hits = self._misses = 0

    def __call__(self, first: Any, *args: Any, **kwargs: Any) -> Any:
        reference, context = weakref.ref(first, self._forget), self._context()
        key = (reference, context, args, tuple(sorted(kwargs.items())))
        return self._result(key, (reference, context, args, kwargs), (first, *args), kwargs)

    def _result(self, key: Any, shown: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result that is kept by a key, or a new one, kept with what is shown of it."""
        with self._lock:
            if key in self._rows:
                self._rows.move_to_end(key)
                self._hits += 1
                return self._rows[key][1]
            self._misses += 1
            known = [shown for shown, _ in reversed(self._rows.values())]
        if self._explain is not None and config.values["jax_explain_cache_misses"]:
            self._explain(known, *args, **kwargs)
        result = self._f(*args, **kwargs)
        with self._lock:
            self._rows[key] = (shown, result)
            while self._maxsize is not None and len(self._rows) > self._maxsize:
                self._rows.popitem(last=False)
        return result

    def _forget(self, reference: Any) -> None:
        with self._lock:
            for key in [key for key in self._rows if key[0] is reference]:
                del self._rows[key]

    def evict_weakref(self, first: Any) -> None:
        """Forgets the results for a first argument."""
        with self._lock:
            for key in [key for key in self._rows if key[0]() == first]:
                del self._rows[key]

    def cache_clear(self) -> None:
        """Forgets all results."""
        with self._lock:
            self._rows.clear()
            self._hits = self._misses = 0

    def cache_info(self) -> WeakrefLRUCacheInfo:
        """How often results were kept."""
        return WeakrefLRUCacheInfo(self._hits, self._misses, self._maxsize, len(self._rows))

    def cache_keys(self) -> list[Any]:
        """What results are kept by: a weak reference to the first argument, settings, and the other arguments."""
        with self._lock:
            return list(self._rows)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


#: Classes of arguments that `multi_weakref_lru_cache` does not keep alive.
weakref_cache_key_types: set[type] = {Jaxpr, ClosedJaxpr}


def multi_weakref_lru_cache(
    call: Callable[..., Any], *, maxsize: int | None = 2048, trace_context_in_key: bool = True
) -> Any:
    """`cache` that does not keep arguments of the classes in `weakref_cache_key_types` alive, in tuples and dicts too.

    What belongs to one of them goes when it goes.
    """
    return _MultiWeakCache(call, maxsize, trace_context_in_key, None)


_DICT = object()  # tells a dict's items from a set


class _MultiWeakCache(_WeakCache):
    """A function with results that are kept by its arguments, some of which are not kept alive."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        references: list[Any] = []
        key = (self._context(), self._weak(args, references), self._weak(kwargs, references))
        return self._result(key, references, args, kwargs)

    def _weak(self, value: Any, references: list[Any]) -> Any:
        """The value with weak references in place of what is not kept alive, which `references` gets, too."""
        if type(value) in weakref_cache_key_types:
            references.append(weakref.ref(value, self._forget))
            return references[-1]
        if type(value) is tuple:
            return tuple(self._weak(v, references) for v in value)
        if type(value) is dict:
            return _DICT, frozenset((k, self._weak(v, references)) for k, v in value.items())
        return value

    def _forget(self, reference: Any) -> None:
        with self._lock:
            for key in [key for key, (references, _) in self._rows.items() if any(r is reference for r in references)]:
                del self._rows[key]


def toposort(nodes: Iterable[Any]) -> list[Any]:
    """What leads to some nodes, by their `parents`: every node once, after its parents.

    Raises:
      ValueError: nodes lead to themselves.
    """
    done: dict[int, Any] = {}
    open_: set[int] = set()
    stack = [(node, False) for node in reversed(list(nodes))]
    while stack:
        node, seen = stack.pop()
        if seen:
            open_.discard(id(node))
            done[id(node)] = node
        elif id(node) in open_:
            raise ValueError(f"{node!r} leads to itself")
        elif id(node) not in done:
            open_.add(id(node))
            stack.append((node, True))
            stack.extend((parent, False) for parent in node.parents if id(parent) not in done)
    return list(done.values())


def wrap_name(transform_name: str, name: str) -> str:
    """The name of a transformed function."""
    return f"{transform_name}({name})"


def fun_name(fun: Any, default_name: str = "<unnamed function>") -> str:
    """A function's own name, also through `functools.partial`."""
    return name_of(fun, default_name)


def fun_qual_name(fun: Any) -> str:
    """A function's name with those of what it is defined in, also through `functools.partial`."""
    return getattr(fun, "__qualname__", None) or (
        fun_qual_name(fun.func) if isinstance(fun, functools.partial) else fun_name(fun)
    )


def canonicalize_axis(axis: Any, num_dims: int) -> int:
    """An axis of an array of `num_dims` axes, counted from the front."""
    axis = operator.index(axis)
    if not -num_dims <= axis < num_dims:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {num_dims}")
    return axis % num_dims


def canonicalize_axis_tuple(axis: Any, ndim: int, allow_duplicate: bool = False) -> tuple[int, ...]:
    """Axes counted from the front: all for None, one for a number."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(canonicalize_axis(a, ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if not allow_duplicate and len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis: {axes}")
    return axes


def moveaxis(x: Any, src: int | Sequence[int], dst: int | Sequence[int]) -> Any:
    """`jnp.moveaxis`, which leaves a scalar alone where the axes are equal."""
    import ferrax.numpy as jnp

    return x if src == dst else jnp.moveaxis(x, src, dst)


def ceil_of_ratio(x: int, y: int) -> int:
    """How many parts of `y` cover `x`."""
    return -(-x // y)


def wraps(wrapped: Any, namestr: str | None = None, docstr: str | None = None, **kwargs: Any) -> Callable[[Any], Any]:
    """`functools.wraps` with a name and a docstring in which `{fun}` and `{doc}` stand for the wrapped one's."""

    def decorate(fun: Any) -> Any:
        name, doc = fun_name(wrapped), getattr(wrapped, "__doc__", "") or ""
        functools.update_wrapper(fun, wrapped)
        fun.__name__ = namestr.format(fun=name) if namestr else name
        fun.__doc__ = docstr.format(fun=name, doc=doc, **kwargs) if docstr else doc
        return fun

    return decorate


def tuple_insert(t: tuple[Any, ...], idx: int, val: Any) -> tuple[Any, ...]:
    """The tuple with one more element at a position."""
    if not 0 <= idx <= len(t):
        raise AssertionError((idx, len(t)))
    return *t[:idx], val, *t[idx:]


def tuple_delete(t: tuple[Any, ...], idx: int) -> tuple[Any, ...]:
    """The tuple without the element at a position."""
    if not 0 <= idx < len(t):
        raise AssertionError((idx, len(t)))
    return *t[:idx], *t[idx + 1 :]


def tuple_update(t: tuple[Any, ...], idx: int, val: Any) -> tuple[Any, ...]:
    """The tuple with another element at a position."""
    if not 0 <= idx < len(t):
        raise AssertionError((idx, len(t)))
    return *t[:idx], val, *t[idx + 1 :]


def stable_unique(it: Iterable[Any]) -> Iterable[Any]:
    """Every element once, in the order of first sight."""
    return dict.fromkeys(it).keys()


class OrderedSet:
    """A set that remembers the order in which elements came."""

    def __init__(self, iterable: Iterable[Any] = ()) -> None:
        self._elements = dict.fromkeys(iterable)

    def add(self, element: Any) -> None:
        """Adds an element."""
        self._elements[element] = None

    def update(self, elements: Iterable[Any]) -> None:
        """Adds elements."""
        self._elements.update(dict.fromkeys(elements))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __contains__(self, element: Any) -> bool:
        return element in self._elements


class HashableFunction:
    """A function that is equal to another one of the same code and the same closure."""

    def __init__(self, f: Callable[..., Any], closure: Any) -> None:
        self.f, self.closure = f, closure

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HashableFunction):
            return False
        return getattr(self.f, "__code__", self.f) == getattr(other.f, "__code__", other.f) and bool(
            self.closure == other.closure
        )

    def __hash__(self) -> int:
        return hash((getattr(self.f, "__code__", self.f), self.closure))

    def __repr__(self) -> str:
        return f"<hashable {fun_name(self.f)} with closure={self.closure}>"


class HashablePartial:
    """A `functools.partial` that is equal to another one of the same code and the same arguments."""

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **{**self.kwargs, **kwargs})

    def _key(self) -> tuple[Any, ...]:
        return getattr(self.f, "__code__", self.f), self.args, tuple(sorted(self.kwargs.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashablePartial) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def set_module(module: str) -> Callable[[Any], Any]:
    """A decorator that says in which module a function or class is offered."""

    def decorate(func: Any) -> Any:
        func.__module__ = module
        return func

    return decorate


def install_failure_signal_handler() -> None:
    """Prints Python's stacks when the process dies of a signal."""
    faulthandler.enable()


class Mutex:
    """A lock that several readers hold at once, or one writer."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._readers = 0
        self._written = False

    def reader_lock(self) -> None:
        """Waits until no writer holds it."""
        with self._state:
            self._state.wait_for(lambda: not self._written)
            self._readers += 1

    def reader_unlock(self) -> None:
        """Gives up a reader's hold."""
        with self._state:
            self._readers -= 1
            self._state.notify_all()

    def writer_lock(self) -> None:
        """Waits until nobody holds it."""
        with self._state:
            self._state.wait_for(lambda: not self._written and not self._readers)
            self._written = True

    def writer_unlock(self) -> None:
        """Gives up the writer's hold."""
        with self._state:
            self._written = False
            self._state.notify_all()

    def assert_reader_held(self) -> None:
        """Raises unless a reader holds it."""
        assert self._readers, "no reader holds the lock"


class HashableWrapper:
    """A value that is hashed, and compared, as itself where it can be hashed, and by its identity where it cannot."""

    def __init__(self, x: Any):
        self.x = x
        try:
            self.hash: int | None = hash(x)
        except TypeError:
            self.hash = None

    def __hash__(self) -> int:
        return id(self.x) if self.hash is None else self.hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HashableWrapper):
            return False
        return self.x is other.x if self.hash is None else bool(self.x == other.x)


class StrictABCMeta(abc.ABCMeta):
    """The class of abstract classes whose subclasses are their real ones alone."""

    def register(cls, subclass: Any) -> Any:
        """Raises NotImplementedError."""
        raise NotImplementedError(f"{cls} does not support virtual subclasses")

    __instancecheck__ = type.__instancecheck__  # type: ignore[assignment]
    __subclasscheck__ = type.__subclasscheck__  # type: ignore[assignment]


class StrictABC(metaclass=StrictABCMeta):
    """An abstract class whose subclasses are its real ones alone."""

    __slots__ = ()


def pprint_bytes(num_bytes: float) -> str:
    """A number of bytes with two digits behind the point, in powers of 1000."""
    units = "B", "KB", "MB", "GB", "TB"
    if num_bytes <= 0:
        return "0.00B"
    power = min(int(math.log(num_bytes, 1000)) if num_bytes >= 1 else 0, len(units) - 1)
    return f"{num_bytes / 1000**power:.2f}{units[power]}"
