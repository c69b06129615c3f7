"""Looking inside programs as they run: `print`, `log`, `callback`, `breakpoint`, shardings.

Read next: `_callbacks.py`.
"""

from __future__ import annotations

import builtins
import functools
import logging
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._boundary import expose as _expose
from ferrax._callbacks import debug_callback, debug_print, split_arrays
from ferrax._logging import logger as _logger_of
from ferrax._texts import short
from ferrax.extend.core._effects import DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect
from ferrax.sharding._draw import (
    inspect_array_sharding as inspect_array_sharding,
    visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]

_logger = _logger_of("ferrax.debug")


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Calls a Python function with values of a running program; its result is ignored.

    `callback(ordered=True)(function, *args, **kwargs)` keeps the options apart from the function's arguments.

    Args:
      callback: function of arrays; without it, returns a function that takes it and its arguments.
      *args: values, pytrees of arrays.
      ordered: whether calls keep their order.
      partitioned: means nothing: programs run whole, so that values come whole.
      **kwargs: keyword arguments, likewise.

    Returns:
      `None`; without `callback`, a function `(callback, *args, **kwargs)`.

    >>> import ferrax as jax
    >>> seen = []
    >>> jax.jit(lambda x: jax.debug.callback(lambda v: seen.append(int(v)), x))(3)
    >>> seen
    [3]
    """
    if callback is None:
        if args or kwargs:
            raise TypeError("jax.debug.callback got arguments but no callback")
        return functools.partial(_call_back, ordered)
    if not callable(callback):
        raise TypeError(
            f"first argument to jax.debug.callback must be callable, but got an object of type {type(callback)}"
        )
    debug_callback(callback, *args, ordered=ordered, **kwargs)
    return None


def _call_back(ordered: bool, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Has the program call a function, all of whose keywords are its own."""
    debug_callback(lambda positional, named: function(*positional, **named), args, kwargs, ordered=ordered)


class _Checker(string.Formatter):
    """Checks a format string against its arguments before any program runs."""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [short(x) for i, x in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `jax.debug.print`: [{', '.join(unused)}]")
        named = [k for k in kwargs if k not in used_args]
        if named:
            raise ValueError(
                f"Unused keyword arguments to `jax.debug.print`: {named}. You may be passing an f-string, whose fields "
                "are gone when it gets here: give the format without the f"
            )

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Prints values of a running program.

    `print(ordered=True)("x = {x}", x=x)` keeps the options apart from the values.

    Args:
      fmt: format string as of `str.format`: `"x = {x}"`; without it, returns a function that takes it and the values.
      *args: values for the positional fields.
      ordered: whether prints keep their order.
      partitioned: means nothing: programs run whole, so that values come whole.
      skip_format_check: whether to leave out the check of `fmt` against the arguments.
      _use_logging: whether to log the text instead, as `log` does.
      **kwargs: values for the named fields.

    Returns:
      `None`; without `fmt`, a function `(fmt, *args, **kwargs)`.

    Raises:
      ValueError: an argument is not used by `fmt`.

    >>> import ferrax as jax
    >>> jax.jit(lambda x: jax.debug.print("x = {x}", x=x))(3)
    x = 3
    """
    if fmt is None:
        if args or kwargs:
            raise TypeError("jax.debug.print got values but no format string")
        return functools.partial(_show, ordered, skip_format_check, _use_logging)
    _show(ordered, skip_format_check, _use_logging, fmt, *args, **kwargs)
    return None


def _show(ordered: bool, unchecked: bool, to_log: bool, fmt: str, /, *args: Any, **kwargs: Any) -> None:
    """Has the program format values and print or log the text."""
    if not unchecked:
        _Checker().format(fmt, *args, **kwargs)
    operands, static, tree, whole = split_arrays(args, kwargs)
    options = np.get_printoptions()

    def show(*values: Any) -> None:
        positional, named = whole(map(_ferrax.asarray, values))
        with np.printoptions(**options):
            text = fmt.format(*positional, **named)
        if to_log:
            _logger.info("%s", text)
        else:
            builtins.print(text)

    def printed() -> list[str]:
        fields = bool(fmt) and next(iter(string.Formatter().parse(fmt)))[1] is not None
        record = repr(_logger.makeRecord(_logger.name, logging.INFO, "", 0, "", (), None)) if to_log else "None"
        return [fmt, str(fields), str(tree), record, str(tuple(options.items())), str(tuple(static.items()))]

    debug_print(show, operands, ordered, printed)


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Logs values of a running program: as `print`, but the text goes to the logger `ferrax.debug` at level INFO.

    Args:
      fmt: format string as of `str.format`; without it, returns a function that takes it and the values.
      *args: values for the positional fields.
      ordered: whether texts keep their order.
      partitioned, skip_format_check: as in `print`.
      **kwargs: values for the named fields.

    Returns: as in `print`.

    >>> import ferrax as jax
    >>> jax.jit(lambda x: jax.debug.log("x = {x}", x=x))(3)
    """
    return print(
        fmt,
        *args,
        ordered=ordered,
        partitioned=partitioned,
        skip_format_check=skip_format_check,
        _use_logging=True,
        **kwargs,
    )


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> None:
    """Stops when the program reaches this point, and reads commands from the terminal.

    Values of the run stand for the traced ones in the variables of the functions that were active here. Commands are
    `p` and `pp` (print an expression), `list`, `where`, `args`, `up`, `down`, `continue`, `quit` and `help`.

    Args:
      backend: `"cli"`, the terminal, which is the default.
      filter_frames: whether the library's own frames are left out.
      num_frames: how many frames are kept; all by default.
      ordered: whether stops keep their order.
      token: accepted for compatibility.
      **kwargs: options of the debugger: `stdin` and `stdout`, files that commands come from and answers go to, the
        process' own by default, and `completekey`, the key that completes a command's name (`"tab"`).

    Raises:
      TypeError: the debugger has no such option.
      NotImplementedError: another backend is asked for.

    >>> import ferrax as jax
    >>> jax.jit(lambda x: jax.debug.breakpoint())  # doctest: +ELLIPSIS
    <PjitFunction of <function <lambda> at ...>>
    """
    if backend not in (None, "cli"):
        raise NotImplementedError(f"debug.breakpoint with backend={backend!r} is not implemented; there is 'cli'")
    from ferrax._debugger import stop

    stop(ordered, not filter_frames, num_frames, **kwargs)


_expose(globals())
