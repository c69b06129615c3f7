"""Functions with transformations in front of them, as libraries write them: `wrap_init` and `transformation2`.

A `WrappedFun` is a function with its names; a transformation makes another one of it. Nothing is cached here: `jit` and
its kin cache by the functions that they are given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ferrax._boundary import expose as _expose

__all__ = [
    "DebugInfo",
    "StoreException",
    "WrappedFun",
    "cache",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]


class DebugInfo(NamedTuple):
    """Names of a traced function and its arguments.

    >>> import ferrax as jax
    >>> jax.api_util.debug_info("jit", lambda x: x, (1.0,), {}).func_name
    '<lambda>'
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: Any = None

    @property
    def func_name(self) -> str:
        """The function's name."""
        return self.func_src_info.split(" at ")[0]

    @property
    def func_filename(self) -> str | None:
        """The file that the function is in."""
        _, _, place = self.func_src_info.partition(" at ")
        return place.rpartition(":")[0] or None

    def safe_arg_names(self, expected: int) -> tuple[str, ...]:
        """The arguments' names, made up where they are not known."""
        if self.arg_names is not None and len(self.arg_names) == expected:
            return self.arg_names
        return tuple(f"args[{i}]" for i in range(expected))


class StoreException(Exception):
    """A value that a transformation leaves behind was asked for before there was one, or set twice.

    >>> import ferrax as jax
    >>> issubclass(jax.extend.linear_util.StoreException, Exception)
    True
    """


class _Store:
    """What a transformation leaves behind: the structure of a result, say. The last call counts."""

    def __init__(self) -> None:
        self._value: list[Any] = []

    def store(self, value: Any) -> None:
        self._value = [value]

    @property
    def val(self) -> Any:
        if not self._value:
            raise StoreException("Store empty")
        return self._value[0]

    def __bool__(self) -> bool:
        return bool(self._value)


class WrappedFun:
    """A function, with its names for error texts.

    Args:
      f: the function as the user wrote it.
      f_transformed: what calls run.
      params: keyword arguments that every call gets.
      debug_info: the names.

    >>> import ferrax as jax
    >>> jax.extend.linear_util.wrap_init(lambda x: x + 1).call_wrapped(1)
    2
    """

    def __init__(
        self, f: Callable[..., Any], f_transformed: Callable[..., Any], params: Any = (), debug_info: Any = None
    ):
        self.f = f
        self.f_transformed = f_transformed
        self.params = tuple(dict(params).items())
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the transformed function."""
        return self.f_transformed(*args, **dict(self.params), **kwargs)

    def with_unknown_names(self) -> WrappedFun:
        """The function without names of arguments."""
        return self

    def _wrapped(self, f_transformed: Callable[..., Any]) -> WrappedFun:
        return WrappedFun(self.f, f_transformed, (), self.debug_info)


def wrap_init(f: Callable[..., Any], params: Any = None, *, debug_info: Any = None) -> WrappedFun:
    """A function ready for transformations.

    Args:
      f: the function.
      params: keyword arguments for every call, a dict.
      debug_info: its names, of `ferrax.api_util.debug_info`.

    Returns:
      A `WrappedFun`.

    >>> import ferrax as jax
    >>> jax.extend.linear_util.wrap_init(lambda x, k: x + k, {"k": 3}).call_wrapped(1)
    4
    """
    return WrappedFun(f, f, params or (), debug_info)


def transformation2(gen: Callable[..., Any], fun: WrappedFun | None = None, *static: Any) -> Any:
    """A transformation of wrapped functions.

    Args:
      gen: function `(f, *static, *args)` that calls `f`.
      fun: a wrapped function; None to get the transformation itself, as a decorator does.
      *static: leading arguments of `gen`.

    Returns:
      The wrapped function.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> @lu.transformation2
    ... def scaled(f, factor, x):
    ...     return factor * f(x)
    >>> scaled(lu.wrap_init(lambda x: x + 1), 10).call_wrapped(1)
    20
    """
    if fun is None:
        return functools.update_wrapper(functools.partial(transformation2, gen), gen)
    inner = fun
    return inner._wrapped(lambda *args, **kwargs: gen(inner.call_wrapped, *static, *args, **kwargs))


def transformation_with_aux2(
    gen: Callable[..., Any],
    fun: WrappedFun | None = None,
    *static: Any,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> Any:
    """As `transformation2`, of a function that leaves a value behind.

    Args:
      gen: function `(f, store, *static, *args)` that calls `f` and `store.store(value)`.
      fun: a wrapped function; None to get the transformation itself.
      *static: leading arguments of `gen`.
      use_eq_store: accepted for compatibility.
      unk_names: accepted for compatibility.

    Returns:
      The wrapped function, and a function that gives the value of the last call.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> @lu.transformation_with_aux2
    ... def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> f, count = counted(lu.wrap_init(lambda x, y: x + y))
    >>> f.call_wrapped(1, 2), count()
    (3, 2)
    """
    if fun is None:
        return functools.update_wrapper(functools.partial(transformation_with_aux2, gen), gen)
    inner, store = fun, _Store()
    wrapped = inner._wrapped(lambda *args, **kwargs: gen(inner.call_wrapped, store, *static, *args, **kwargs))
    return wrapped, lambda: store.val


def transformation(gen: Callable[..., Any], fun: WrappedFun | None = None, *static: Any) -> Any:
    """As `transformation2`, of a generator that yields `(args, kwargs)`, gets the results, and yields its own.

    Args:
      gen: generator function `(*static, *args)`.
      fun: a wrapped function; None to get the transformation itself.
      *static: leading arguments of `gen`.

    Returns:
      The wrapped function.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> @lu.transformation
    ... def negated(x):
    ...     out = yield (x,), {}
    ...     yield -out
    >>> negated(lu.wrap_init(lambda x: x + 1)).call_wrapped(1)
    -2
    """
    if fun is None:
        return functools.update_wrapper(functools.partial(transformation, gen), gen)
    inner = fun

    def call(*args: Any, **kwargs: Any) -> Any:
        return _run_generator(gen(*static, *args, **kwargs), inner)

    return inner._wrapped(call)


def _run_generator(steps: Any, inner: WrappedFun) -> Any:
    args, kwargs = next(steps)
    out = steps.send(inner.call_wrapped(*args, **kwargs))
    steps.close()
    return out


def transformation_with_aux(gen: Callable[..., Any], fun: WrappedFun | None = None, *static: Any) -> Any:
    """As `transformation`, of a generator that yields its results and a value that it leaves behind.

    Args: as in `transformation`.

    Returns:
      The wrapped function, and a function that gives the value of the last call.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> @lu.transformation_with_aux
    ... def first(*args):
    ...     out = yield args, {}
    ...     yield out[0], len(out)
    >>> f, count = first(lu.wrap_init(lambda x: [x, x]))
    >>> f.call_wrapped(7), count()
    (7, 2)
    """
    if fun is None:
        return functools.update_wrapper(functools.partial(transformation_with_aux, gen), gen)
    inner, store = fun, _Store()

    def call(*args: Any, **kwargs: Any) -> Any:
        out, aux = _run_generator(gen(*static, *args, **kwargs), inner)
        store.store(aux)
        return out

    return inner._wrapped(call), lambda: store.val


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """The one of two values that is there.

    Args:
      aux1: function that gives a value or raises `StoreException`.
      aux2: another one.

    Returns:
      `(True, first value)` or `(False, second value)`.

    Raises:
      StoreException: neither or both are there.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> def empty():
    ...     raise lu.StoreException
    >>> lu.merge_linear_aux(empty, lambda: 5)
    (False, 5)
    """
    found: list[tuple[bool, Any]] = []
    for is_first, aux in ((True, aux1), (False, aux2)):
        try:
            found.append((is_first, aux()))
        except StoreException:
            continue
    if len(found) != 1:
        raise StoreException("neither store occupied" if not found else "both stores occupied")
    return found[0]


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """Remembers the results of a function of a wrapped function, while the wrapped function lives.

    Args:
      call: function `(fun, *args)`; the arguments are hashable.
      explain: accepted for compatibility.

    Returns:
      The function with a memory; `cache_clear()` empties it.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> named = lu.cache(lambda fun, n: (fun.__name__, n))
    >>> f = lu.wrap_init(abs)
    >>> named(f, 2) is named(f, 2)
    True
    """
    import weakref

    known: Any = weakref.WeakKeyDictionary()

    def cached(fun: WrappedFun, *args: Any) -> Any:
        rows = known.setdefault(fun, {})
        if args not in rows:
            rows[args] = call(fun, *args)
        return rows[args]

    cached.cache_clear = known.clear  # type: ignore[attr-defined]
    return cached


_expose(globals())
