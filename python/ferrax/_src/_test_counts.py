"""What is traced, lowered and put on devices in a block, counted; each gives a function of no arguments, the count.

A jitted function is traced, lowered and compiled together here, so that the counters of lowerings and compilations
agree: each counts the programs that the block makes of jitted functions, those apart that stand inside of another
program, which count as traced alone. Operations outside of `jit` are never compiled.
Read next: `test_util.py`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

from ferrax._logging import logger as _logger_of
from ferrax.config import config
from ferrax.extend.core import unsafe_am_i_under_a_jit_DO_NOT_USE

_JIT = _logger_of("ferrax.jit")


class _Count:
    """A count that is called, or indexed by 0."""

    def __init__(self) -> None:
        self.value = 0

    def __call__(self) -> int:
        return self.value

    def __getitem__(self, at: int) -> int:
        return (self.value,)[at]


class _Compilations(logging.Filter):
    """Counts what `jax_log_compiles` logs, and lets through what would have been logged."""

    def __init__(self, shown: bool, inner: bool):
        super().__init__()
        self.shown = shown
        self.inner = inner
        self.count = _Count()

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        self.count.value += said.startswith("Compiling ") and (self.inner or not unsafe_am_i_under_a_jit_DO_NOT_USE())
        return self.shown or not said.startswith(("Compiling ", "Finished "))


@contextlib.contextmanager
def _count_programs(inner: bool) -> Iterator[Callable[[], int]]:
    before = config.jax_log_compiles
    counter = _Compilations(before, inner)
    _JIT.addFilter(counter)
    config.update("jax_log_compiles", True)
    try:
        yield counter.count
    finally:
        _JIT.removeFilter(counter)
        config.update("jax_log_compiles", before)


def count_jit_tracing_cache_miss() -> Any:
    """Counts the programs that jitted functions are traced to."""
    return _count_programs(inner=True)


def count_programs() -> Any:
    """Counts the programs of jitted functions that stand in no other."""
    return _count_programs(inner=False)


count_jit_and_pmap_lowerings = count_programs
count_jit_compilation_cache_miss = count_programs
count_pjit_cpp_cache_miss = count_programs
count_compilation_after_persistent_cache_miss = count_programs


@contextlib.contextmanager
def count_aot_jit_cpp_cache_miss() -> Iterator[Callable[[], int]]:
    """Counts calls of compiled functions with arguments of a kind and in places that they have not been called with.

    What they were called with before the block is not known, and counts as new.
    """
    from ferrax import tree_util
    from ferrax.stages import Compiled

    calls, seen, function = _Count(), set(), Compiled.__call__

    def kind(x: Any) -> tuple[Any, ...]:
        return type(x), getattr(x, "dtype", None), getattr(x, "sharding", None)

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        key = (id(self), *(kind(x) for x in tree_util.tree_leaves((args, kwargs))))
        calls.value += key not in seen
        seen.add(key)
        return function(self, *args, **kwargs)

    Compiled.__call__ = counted  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        Compiled.__call__ = function  # type: ignore[method-assign]


@contextlib.contextmanager
def assert_num_jit_and_pmap_compilations(times: int) -> Iterator[None]:
    """Raises unless a block makes so many programs."""
    with count_programs() as count:
        yield
    if count() != times:
        raise AssertionError(f"Expected exactly {times} XLA compilations, but executed {count()}")


@contextlib.contextmanager
def count_primitive_compiles() -> Iterator[Callable[[], int]]:
    """Counts compilations of single operations: there are none that a program could see."""
    yield _Count()


def _counting(module: Any, name: str) -> Any:
    @contextlib.contextmanager
    def count() -> Iterator[Callable[[], int]]:
        """Counts calls of a function."""
        calls, function = _Count(), getattr(module, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            calls.value += 1
            return function(*args, **kwargs)

        setattr(module, name, counted)
        try:
            yield calls
        finally:
            setattr(module, name, function)

    return count


def count_device_put() -> Any:
    """Counts calls of `ferrax.device_put`."""
    import ferrax

    return _counting(ferrax, "device_put")()
