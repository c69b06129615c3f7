"""Checks inside of programs, as values: `checkify` turns a function with checks into one that also returns an error.

A check in a function under `checkify` leaves a mark in its program: an effect that names an error. The program is then
run equation by equation with an error carried along; marks and operations that can fail (NaN, division by zero, indices
outside of an axis) add to it, and loops and branches get it as an operand. Read next: `_check_rules.py`, which has the
operations, and `_check_errors.py`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from ferrax import _ferrax, lax, numpy as jnp, tree_util
from ferrax._boundary import expose as _expose
from ferrax._core import Array, is_tracer
from ferrax._named_functions import name_function
from ferrax.config import _override, checks_become_values, have_checks_become_values
from ferrax.custom_batching import custom_vmap
from ferrax.experimental._check_errors import (
    DivisionByZeroError,
    Error,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
    NaNError,
    OOBError,
    init_error,
    one_error,
)

__all__ = [
    "Error",
    "ErrorCategory",
    "JaxRuntimeError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]

Out = TypeVar("Out")
#: A kind of error that `checkify` looks for.
ErrorCategory = type[JaxException]

user_checks: frozenset[ErrorCategory] = frozenset({FailedCheckError})
nan_checks: frozenset[ErrorCategory] = frozenset({NaNError})
index_checks: frozenset[ErrorCategory] = frozenset({OOBError})
div_checks: frozenset[ErrorCategory] = frozenset({DivisionByZeroError})
float_checks: frozenset[ErrorCategory] = nan_checks | div_checks
automatic_checks: frozenset[ErrorCategory] = float_checks | index_checks
all_checks: frozenset[ErrorCategory] = automatic_checks | user_checks


def checkify(f: Callable[..., Out], errors: frozenset[ErrorCategory] = user_checks) -> Callable[..., tuple[Error, Out]]:
    """A function that also returns the first error that checks find in it.

    Args:
      f: a function of pytrees of arrays; it may use `jit`, loops, branches, `vmap` and derivatives.
      errors: which errors to look for: `user_checks`, `nan_checks`, `div_checks`, `index_checks`, or a union of them.

    Returns:
      A function that returns a pair of an `Error` and the result; it may be transformed in its turn.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "x is {x}", x=x)
    ...     return jnp.log(x)
    >>> error, y = jax.jit(checkify.checkify(f))(-1.0)
    >>> error.get()
    'x is -1.0 (`check` failed)'
    """
    if not callable(f):
        raise TypeError(f"Expected a callable value, got {f}")
    wanted = frozenset(errors)

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Out]:
        from ferrax.experimental._check_rules import run

        program, operands = _program(f, args, kwargs, OOBError in wanted)
        error, out = run(program, operands, init_error, wanted)
        return error, program.out_tree.unflatten(out)

    return checked


@contextlib.contextmanager
def _known_indices_looked_up() -> Iterator[None]:
    """Where an index that is known is outside of its axis, the program has the operation that looks it up."""
    before = _ferrax.lax.look_up_known_indices(True)
    try:
        with _override("jax_check_static_indices", True):
            yield
    finally:
        _ferrax.lax.look_up_known_indices(before)


def _program(f: Callable[..., Any], args: Any, kwargs: Any, index_errors: bool) -> tuple[Any, list[Any]]:
    """The program of a function on its arguments, with marks for checks, and the program's operands."""
    with checks_become_values(), _known_indices_looked_up() if index_errors else contextlib.nullcontext():
        program = _ferrax.trace_to_jaxpr(lambda: f(*args, **kwargs), (), None, "checkify")
        return program, list(program.captured)


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Checks a condition: in a function under `checkify` a value, elsewhere an exception.

    Args:
      pred: bool scalar, what should hold.
      msg: text of the error, with places for arguments as in `str.format`.
      *fmt_args: pytrees of arrays for the text.
      debug: whether the check does nothing outside of `checkify`.
      **fmt_kwargs: pytrees of arrays for the text, by name.

    Raises:
      JaxRuntimeError: the condition does not hold, outside of `checkify` and of traces.
      ValueError: the check is traced by `jit` or a loop outside of `checkify`.
      TypeError: the condition is not a bool scalar, or an argument is not made of arrays.

    >>> from ferrax.experimental import checkify
    >>> import ferrax.numpy as jnp
    >>> try:
    ...     checkify.check(False, "x is {x}", x=jnp.array(3))
    ... except checkify.JaxRuntimeError as error:
    ...     print(error)
    x is 3 (`check` failed)
    """
    scalar = isinstance(pred, (bool, np.bool_)) or (
        isinstance(pred, (Array, np.ndarray)) and pred.shape == () and pred.dtype == np.dtype(bool)
    )
    if not scalar:
        raise TypeError(f"check takes a scalar pred as argument, got {pred}")
    for x in tree_util.tree_leaves((fmt_args, fmt_kwargs)):
        if not isinstance(x, (Array, np.ndarray)):
            raise TypeError(
                f"Formatting arguments to checkify.check need to be PyTrees of arrays, but got {x!r} of type {type(x)}."
            )
    failed = jnp.logical_not(pred)
    _check_error(one_error(failed, FailedCheckError(msg, fmt_args, fmt_kwargs)), debug)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Checks a condition in functions under `checkify`, and does nothing elsewhere.

    Args:
      pred: bool scalar, what should hold.
      msg: text of the error, with places for arguments as in `str.format`.
      *fmt_args: pytrees of arrays for the text.
      **fmt_kwargs: pytrees of arrays for the text, by name.

    Raises:
      TypeError: the condition is not a bool scalar, or an argument is not made of arrays.

    >>> from ferrax.experimental import checkify
    >>> checkify.debug_check(False, "only under checkify")
    >>> checkify.checkify(lambda: checkify.debug_check(False, "here"))()[0].get()
    'here (`check` failed)'
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises an error when there is one; in a function under `checkify` a check of it.

    Args:
      error: what a function under `checkify` returned.

    Raises:
      JaxRuntimeError: there is an error, outside of `checkify` and of traces.
      ValueError: the error is traced by `jit` or a loop outside of `checkify`.

    >>> from ferrax.experimental import checkify
    >>> error, _ = checkify.checkify(lambda: checkify.check(False, "no"))()
    >>> try:
    ...     checkify.check_error(error)
    ... except checkify.JaxRuntimeError as error:
    ...     print(error)
    no (`check` failed)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error, got {error!r} of type {type(error)}.")
    _check_error(error, False)


def _check_error(error: Error, debug: bool) -> None:
    if not error._pred:
        return
    for _ in range(max(np.ndim(p) for p in error._pred.values())):
        error = _last_failed(error)
    values = have_checks_become_values()
    if debug and not values:
        return
    error = tree_util.tree_map(lax.stop_gradient, error)
    if values or any(is_tracer(x) for x in tree_util.tree_leaves(error)):
        _mark(error, values or not _ferrax.is_eager())
        return
    exception = error.get_exception()
    if exception is not None:
        raise JaxRuntimeError(str(exception)) from exception


def _last_failed(error: Error) -> Error:
    """The error of the last row that has one, over the leading axis of an error of rows."""
    pred, code, payload = {}, {}, {}
    for effect, rows in error._pred.items():
        if np.ndim(rows) == 0:
            pred[effect], code[effect], payload[effect] = rows, error._code[effect], error._payload[effect]
            continue
        rows = jnp.asarray(rows)
        at = rows.shape[0] - 1 - jnp.argmax(jnp.flip(rows.reshape(rows.shape[0], -1).any(1)))
        pred[effect], code[effect] = rows.any(0), jnp.asarray(error._code[effect])[at]
        payload[effect] = [jnp.asarray(x)[at] for x in error._payload[effect]]
    return Error(pred, code, error._metadata, payload)


def _mark(error: Error, staged: bool) -> None:
    """Puts an error into the program that is traced: an effect, which `vmap` turns into one for all rows.

    Under `vmap` outside of a trace the rows are there, and are checked at once.
    """
    leaves, effects = error._leaves()
    metadata = error._metadata

    def check_(*leaves: Any) -> tuple[()]:
        if staged:
            name_function(not_functionalized, "check", effects=effects, metadata=metadata)
            _ferrax.bind_callback(not_functionalized, [], "debug", "sequential", list(leaves))
        return ()

    def not_functionalized(*_: Any) -> list[Any]:
        if have_checks_become_values():
            raise NotImplementedError("a check is inside of an operation that checkify does not look into")
        raise ValueError(
            "Cannot abstractly evaluate a checkify.check which was not functionalized. This probably means you "
            "tried to stage (jit/scan/pmap/...) a `check` without functionalizing it through `checkify.checkify`."
        )

    marked = custom_vmap(check_)

    @marked.def_vmap
    def rule(size: int, batched: Any, *leaves: Any) -> tuple[tuple[()], tuple[()]]:
        rows = [x if b else jnp.broadcast_to(x, (size, *x.shape)) for x, b in zip(leaves, batched, strict=True)]
        _check_error(Error._of_leaves(rows, effects, metadata), False)
        return (), ()

    marked(*(jnp.asarray(x) for x in leaves))


_expose(globals())
