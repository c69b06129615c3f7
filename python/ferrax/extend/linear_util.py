"""Functions with transformations in front of them, as libraries write them: `wrap_init` and `transformation2`.

A `WrappedFun` is a function with its names; a transformation makes another one of it. Nothing is cached here: `jit` and
its kin cache by the functions that they are given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, NamedTuple

from ferrax._boundary import expose as _expose
from ferrax.tree_util import keystr, tree_flatten_with_path

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


class InitialResultPaths:
    """Stands for the paths of results of a function that has not returned."""


initial_result_paths = InitialResultPaths()


class DebugInfo(NamedTuple):
    """Names of a traced function and its arguments.

    >>> import ferrax as jax
    >>> jax.api_util.debug_info("jit", lambda x: x, (1.0,), {}).func_name
    '<lambda>'
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None
    result_paths: Any

    @property
    def func_name(self) -> str:
        """The function's name."""
        return self.func_src_info.split(" ")[0]

    @property
    def _place(self) -> tuple[str | None, int | None]:
        _, _, place = self.func_src_info.partition(" at ")
        file, _, line = place.rpartition(":")
        return (file, int(line)) if file and line.isdigit() else (place or None, None)

    @property
    def func_filename(self) -> str | None:
        """The file that the function is in."""
        return self._place[0]

    @property
    def func_lineno(self) -> int | None:
        """The line that the function begins in."""
        return self._place[1]

    def replace_func_name(self, name: str) -> DebugInfo:
        """The names with another one for the function."""
        return self._replace(func_src_info=" ".join([name, *self.func_src_info.split(" ")[1:]]))

    def with_unknown_names(self) -> DebugInfo:
        """The names without those of arguments and results."""
        return self._replace(arg_names=None, result_paths=None)

    def assert_arg_names(self, expected_count: int) -> None:
        """Raises AssertionError where there are names of another number of arguments."""
        if self.arg_names is not None and len(self.arg_names) != expected_count:
            raise AssertionError((expected_count, self))

    def safe_arg_names(self, expected_count: int) -> tuple[str, ...]:
        """The arguments' names, empty where they are not known; AssertionError where there are others."""
        self.assert_arg_names(expected_count)
        return ("",) * expected_count if self.arg_names is None else self.arg_names

    def filter_arg_names(self, keep: Sequence[bool]) -> tuple[str, ...] | None:
        """The names of some of the arguments."""
        if self.arg_names is None:
            return None
        return tuple(compress(self.safe_arg_names(len(keep)), keep))

    def _known_paths(self) -> tuple[str, ...] | None:
        if self.result_paths is not None and not isinstance(self.result_paths, tuple):
            raise AssertionError(self)
        return self.result_paths

    def assert_result_paths(self, expected_count: int) -> None:
        """Raises AssertionError where there are paths of another number of results, or none yet."""
        paths = self._known_paths()
        if paths is not None and len(paths) != expected_count:
            raise AssertionError((expected_count, self))

    def safe_result_paths(self, expected_count: int) -> tuple[str, ...]:
        """The results' paths, empty where they are not known; AssertionError where there are others, or none yet."""
        self.assert_result_paths(expected_count)
        return self._known_paths() or ("",) * expected_count

    def filter_result_paths(self, keep: Sequence[bool]) -> tuple[str, ...] | None:
        """The paths of some of the results."""
        paths = self._known_paths()
        return None if paths is None else tuple(compress(paths, keep))

    def set_result_paths(self, ans: Any) -> DebugInfo:
        """The names with the paths in a result."""
        found, _ = tree_flatten_with_path(ans)
        return self._replace(result_paths=tuple(f"result{keystr(path)}" for path, _ in found))

    def resolve_result_paths(self) -> DebugInfo:
        """The names with the paths that a function was to give after tracing."""
        return self._replace(result_paths=tuple(self.result_paths())) if callable(self.result_paths) else self


def debug_info_of(traced_for: str, function: str, names: Sequence[str] | None) -> DebugInfo:
    """The names of a function that is being traced."""
    return DebugInfo(traced_for, function, None if names is None else tuple(names), initial_result_paths)


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


class _EqualStore(_Store):
    """As `_Store`; a second value must be equal to the first."""

    def store(self, value: Any) -> None:
        if self._value and self._value[0] != value:
            raise StoreException(f"a transformation left {value!r} behind, and {self._value[0]!r} before")
        super().store(value)


class WrappedFun:
    """A function, with the transformations in front of it and its names for error texts.

    Args:
      f: the function as the user wrote it.
      f_transformed: what calls run.
      transforms: the transformations, outermost first: pairs of a function and its leading arguments.
      stores: for each of them what it leaves its value in, or None.
      params: pairs of keyword arguments that every call gets, by `f_transformed`.
      in_type: types of the arguments; None where they do not matter.
      debug_info: the names.

    >>> import ferrax as jax
    >>> jax.extend.linear_util.wrap_init(lambda x: x + 1).call_wrapped(1)
    2
    """

    # instances are compared by what they are made of, and kept as keys while they live (`cache`)
    __slots__ = ("__weakref__", "debug_info", "f", "f_transformed", "in_type", "params", "stores", "transforms")

    def __init__(
        self,
        f: Callable[..., Any],
        f_transformed: Callable[..., Any],
        transforms: tuple[Any, ...],
        stores: tuple[Any, ...],
        params: tuple[Any, ...],
        in_type: Any,
        debug_info: Any,
    ):
        self.f, self.f_transformed = f, f_transformed
        self.transforms, self.stores = transforms, stores
        self.params, self.in_type, self.debug_info = params, in_type, debug_info

    @property
    def __name__(self) -> str:
        from ferrax._src.util import fun_name

        return fun_name(self.f, "<unnamed wrapped function>")

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the transformed function."""
        return self.f_transformed(*args, **kwargs)

    def wrap(self, gen: Callable[..., Any], gen_static_args: tuple[Any, ...], out_store: Any) -> WrappedFun:
        """The function with one more transformation.

        Args:
          gen: function `(f, *gen_static_args, *args)`, or `(f, out_store, *gen_static_args, *args)`.
          gen_static_args: its leading arguments.
          out_store: where it leaves a value; None where it leaves none.
        """
        leading = gen_static_args if out_store is None else (out_store, *gen_static_args)
        return WrappedFun(
            self.f,
            functools.partial(gen, self.f_transformed, *leading),
            ((gen, gen_static_args), *self.transforms),
            (out_store, *self.stores),
            self.params,
            None,
            self.debug_info,
        )

    def populate_stores(self, stores: Sequence[Any]) -> None:
        """Copies what the transformations of an equal function left behind."""
        for mine, other in zip(self.stores, stores, strict=True):
            if mine is not None:
                mine.store(other.val)

    def replace_debug_info(self, dbg: Any) -> WrappedFun:
        """The function with other names."""
        return WrappedFun(self.f, self.f_transformed, self.transforms, self.stores, self.params, self.in_type, dbg)

    def with_unknown_names(self) -> WrappedFun:
        """The function without names of arguments and results."""
        return self if self.debug_info is None else self.replace_debug_info(self.debug_info.with_unknown_names())

    def _key(self) -> tuple[Any, ...]:
        return self.f, self.transforms, self.params, self.in_type, self.debug_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        lines = [f"{i}   : {getattr(gen, '__name__', gen)}   {args}" for i, (gen, args) in enumerate(self.transforms)]
        return "\n".join(["Wrapped function:", *lines, f"Core: {self.__name__}", ""])


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
    given = dict(params or {})
    call = functools.partial(f, **given) if given else f
    return WrappedFun(f, call, (), (), tuple(sorted(given.items())), None, debug_info)


def _transformation(transform: Any, gen: Callable[..., Any]) -> Any:
    """A transformation under its function's name, whose arguments are not the function's."""
    functools.update_wrapper(transform, gen)
    del transform.__wrapped__
    return transform


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
        return _transformation(functools.partial(transformation2, gen), gen)
    return fun.wrap(gen, static, None)


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
      use_eq_store: a second call may leave an equal value alone.
      unk_names: the function loses the names of arguments and results.

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
        return _transformation(functools.partial(transformation_with_aux2, gen), gen)
    store = _EqualStore() if use_eq_store else _Store()
    wrapped = fun.wrap(gen, static, store)
    return wrapped.with_unknown_names() if unk_names else wrapped, lambda: store.val


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
    return fun.wrap(functools.partial(_run_generator, gen), static, None)


def _run_generator(gen: Callable[..., Any], f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    steps = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    out = steps.send(f(*inner_args, **inner_kwargs))
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
    store = _Store()

    def call(f: Callable[..., Any], store: _Store, *args: Any, **kwargs: Any) -> Any:
        out, aux = _run_generator(gen, f, *args, **kwargs)
        store.store(aux)
        return out

    return fun.wrap(call, static, store), lambda: store.val


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
