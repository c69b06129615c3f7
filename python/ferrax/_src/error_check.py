"""Errors that programs note while they run, and that are raised when somebody asks.

A thread has a reference with the number of the first error that was noted: `set_error_if` writes it from any program,
`raise_if_error` reads it on the host. Numbers count the places that may note an error, in the order of their traces.
Tests: `tests/surface/test_error_check.py`. Read next: `ferrax._refs`, whose references programs write.
"""

import dataclasses
import json
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ferrax import core, numpy as fnp, tree_util
from ferrax._frames import is_of_library
from ferrax.export import register_pytree_node_serialization
from ferrax.ref import new_ref

__all__ = [
    "JaxValueError",
    "error_checking_context",
    "raise_if_error",
    "set_error_if",
    "unwrap_from_import",
    "wrap_for_export",
]

_NO_ERROR = np.iinfo(np.uint32).max  # the largest number, so that the first error is the smallest one
_INVALID_ERROR_CODE_MSG = "An unknown error occurred: a function that was exported elsewhere gave a number of no error."
_INVALID_ERROR_CODE_TRACEBACK = "Traceback not available for the number of no error."

_Place = tuple[str, str, int]  # file, function, line


class JaxValueError(ValueError):
    """An error that a program noted by `set_error_if`."""


class _ErrorStorage(threading.local):
    def __init__(self) -> None:
        self.ref: Any = None


_error_storage = _ErrorStorage()
_error_list_lock = threading.RLock()
_error_list: list[tuple[str, list[_Place] | str]] = []


def _state() -> Any:
    if _error_storage.ref is None:
        _error_storage.ref = _fresh()
    return _error_storage.ref


def _fresh() -> Any:
    with core.eval_context():
        return new_ref(np.uint32(_NO_ERROR))


class error_checking_context:
    """A context with a state of its own, in which no error has been noted.

    >>> from ferrax._src import error_check
    >>> with error_check.error_checking_context():
    ...     error_check.set_error_if(fnp.array(True), "seen by nobody")
    >>> error_check.raise_if_error()
    """

    def __init__(self) -> None:
        self.old_ref: Any = None

    def __enter__(self) -> "error_checking_context":
        self.old_ref, _error_storage.ref = _error_storage.ref, _fresh()
        return self

    def __exit__(self, *_: object) -> None:
        _error_storage.ref = self.old_ref


def set_error_if(pred: Any, /, msg: str) -> None:
    """Notes an error where any element of a condition holds, unless one is noted already.

    Args:
      pred: a bool array, traced or not.
      msg: the error's text.

    >>> import ferrax as jax
    >>> from ferrax._src import error_check
    >>> @jax.jit
    ... def root(x):
    ...     error_check.set_error_if(x < 0, "negative")
    ...     return x**0.5
    >>> _ = root(-1.0)
    >>> error_check.raise_if_error()
    Traceback (most recent call last):
    ferrax._src.error_check.JaxValueError: negative
    """
    state = _state()
    with _error_list_lock:
        number = np.uint32(len(_error_list))
        _error_list.append((msg, _user_places()))
    _note(state, fnp.any(pred), number)


def _note(state: Any, pred: Any, number: Any) -> None:
    noted = state[...]
    state[...] = fnp.where(fnp.logical_and(noted == np.uint32(_NO_ERROR), pred), number, noted)


def raise_if_error() -> None:
    """Raises the error that was noted first, and forgets it.

    Raises:
      JaxValueError: an error is noted.
      ValueError: it is asked while a function is traced.

    >>> raise_if_error()
    """
    if _error_storage.ref is None:
        return
    number = _error_storage.ref[...]
    if isinstance(number, core.Tracer):
        raise ValueError(
            "raise_if_error() should not be called within a traced context, such as within a jitted function."
        )
    number = int(number)
    if number == _NO_ERROR:
        return
    _error_storage.ref[...] = np.uint32(_NO_ERROR)
    with _error_list_lock:
        known = number < len(_error_list)
        msg, places = _error_list[number] if known else (_INVALID_ERROR_CODE_MSG, _INVALID_ERROR_CODE_TRACEBACK)
    if isinstance(places, str):
        raise JaxValueError(f"{msg}\nThe original traceback is shown below:\n{places}")
    raise JaxValueError(msg).with_traceback(_traceback_at(places))


@dataclasses.dataclass(frozen=True, slots=True)
class _ErrorClass:
    """What an exported function gives besides its results: the error it notes, and those that it may note."""

    error_code: Any
    error_list: list[tuple[str, str]]


tree_util.register_dataclass(_ErrorClass, data_fields=("error_code",), meta_fields=("error_list",))
register_pytree_node_serialization(
    _ErrorClass,
    serialized_name="jax._src.error_check._ErrorClass",
    serialize_auxdata=lambda x: json.dumps(x, ensure_ascii=False).encode(),
    deserialize_auxdata=lambda x: tuple(json.loads(bytes(x).decode())),
)


def wrap_for_export(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose errors are values, as its export needs them.

    Args:
      f: a function that notes errors.

    Returns:
      A function of the same arguments, whose results `unwrap_from_import` takes apart.

    >>> from ferrax._src import error_check
    >>> f = error_check.wrap_for_export(lambda x: error_check.set_error_if(x < 0, "negative"))
    >>> error_check.unwrap_from_import(f)(fnp.array(-1))
    >>> error_check.raise_if_error()
    Traceback (most recent call last):
    ferrax._src.error_check.JaxValueError: negative
    The original traceback is shown below:
    ...
    """

    def inner(*args: Any, **kwargs: Any) -> tuple[Any, _ErrorClass]:
        global _error_list
        with _error_list_lock:
            old_ref, old_list = _error_storage.ref, _error_list
            _error_storage.ref, _error_list = new_ref(np.uint32(_NO_ERROR)), []
            try:
                out = f(*args, **kwargs)
                code, noted = _error_storage.ref[...], _error_list
            finally:
                _error_storage.ref, _error_list = old_ref, old_list
        return out, _ErrorClass(code, [(msg, _as_text(places)) for msg, places in noted])

    return inner


def unwrap_from_import(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function that `wrap_for_export` took: what it notes is noted here.

    Args:
      f: such a function, exported and read again, or not.

    >>> from ferrax._src import error_check
    >>> int(error_check.unwrap_from_import(error_check.wrap_for_export(abs))(fnp.array(-3)))
    3
    """
    state = _state()

    def inner(*args: Any, **kwargs: Any) -> Any:
        out, found = f(*args, **kwargs)
        with _error_list_lock:
            before = np.uint32(len(_error_list))
            _error_list.extend((msg, places) for msg, places in found.error_list)
        _note(state, found.error_code != np.uint32(_NO_ERROR), found.error_code + before)
        return out

    return inner


def _user_places() -> list[_Place]:
    """The user's lines that lead here, the outermost first; frames are not kept, since they hold values."""
    places: list[_Place] = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_of_library(code.co_filename):
            places.append((code.co_filename, code.co_name, frame.f_lineno))
        frame = frame.f_back
    return places[::-1]


def _as_text(places: list[_Place] | str) -> str:
    if isinstance(places, str):
        return places
    lines = [traceback.FrameSummary(file, line, name) for file, name, line in places]
    return "".join(traceback.format_list(lines)).rstrip("\n")


def _traceback_at(places: Iterable[_Place]) -> types.TracebackType | None:
    """A traceback that shows these lines."""
    shown = None
    for file, name, line in reversed(list(places)):
        code = compile("\n" * (line - 1) + "raise StopIteration", file, "exec").replace(co_name=name, co_qualname=name)
        try:
            exec(code, {})
        except StopIteration as error:
            here = error.__traceback__ and error.__traceback__.tb_next
            assert here is not None
            shown = types.TracebackType(shown, here.tb_frame, here.tb_lasti, here.tb_lineno)
    return shown
