"""Settings that programs make for themselves: `config.bool_state` and its like.

Their values are those of user contexts, so that jitted functions are traced anew where one changes, whatever
`include_in_jit_key` says. Read next: `../_user_contexts.py`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ferrax._src._flags import truth
from ferrax._user_contexts import UserConfig
from ferrax.config import own_settings

_UNSET = object()
_Hook = Callable[[Any], None] | None


class OwnState(UserConfig):
    """A setting of a program: `config.update(name, value)` changes it, `state(value)` is a context manager.

    Args:
      name: the name; in capitals, the environment's variable that has its first value.
      default: the value where there is no such variable.
      help: what it means.
      parse: gives a value as it is kept, and raises where it cannot be had.
      read: the value of the variable's text.
      update_global_hook: called with each value for all threads.
      update_thread_local_hook: called with each value of one thread; with None where it has none of its own any more.
    """

    def __init__(
        self,
        name: str,
        default: Any,
        help: str,
        parse: Callable[[Any], Any],
        read: Callable[[str], Any] = str,
        *,
        update_global_hook: _Hook = None,
        update_thread_local_hook: _Hook = None,
        include_in_jit_key: bool = False,
        include_in_trace_context: bool = False,
    ) -> None:
        self.name = name.lower()
        text = os.environ.get(self.name.upper())
        super().__init__(parse(default if text is None else read(text)))
        self._parse, self._everywhere, self._here = parse, update_global_hook, update_thread_local_hook
        self.__name__ = self.name.removeprefix("jax_")
        self.__doc__ = f"Context manager of the setting `{self.name}`.\n\n{help}"
        own_settings[self.name] = self
        self._tell(self._everywhere, self.default)

    @staticmethod
    def _tell(hook: _Hook, value: Any) -> None:
        if hook is not None:
            hook(value)

    def __bool__(self) -> bool:
        raise TypeError(f"bool() of the {self.__name__} setting: use `.value` or call it as a context manager")

    def _set(self, value: Any) -> None:
        value = self._parse(value)
        self.set_global(value)
        self._tell(self._everywhere, value)

    def __call__(self, new_val: Any = _UNSET) -> Any:
        if new_val is _UNSET:
            raise TypeError(f"the {self.__name__} context manager needs a value")
        return self._within(self._parse(new_val))

    @contextlib.contextmanager
    def _within(self, value: Any) -> Iterator[None]:
        entered = super().__call__(value)
        entered.__enter__()
        self._tell(self._here, value)
        try:
            yield
        finally:
            entered.__exit__()
            self._tell(self._here, entered.before[0] if entered.before else None)


def _checked(what: str, fits: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """Gives values back that fit."""

    def check(value: Any) -> Any:
        if not fits(value):
            raise ValueError(f"new {what}, got {value} of type {type(value)}.")
        return value

    return check


def _maker(kind: Callable[[Any], Any], read: Callable[[str], Any], doc: str) -> Callable[..., OwnState]:
    """A function that makes settings of one kind."""

    def make(
        name: str,
        default: Any,
        help: str,
        *,
        validator: _Hook = None,
        upgrade: bool = False,
        extra_description: str = "",
        **options: Any,
    ) -> OwnState:
        def parse(value: Any) -> Any:
            value = kind(value)
            OwnState._tell(validator, value)
            return value

        return OwnState(name, default, help + extra_description, parse, read, **options)

    make.__doc__ = doc
    return make


def _typed(kind: Any, name: str) -> Callable[[Any], Any]:
    return _checked(f"config value must be {name}", lambda value: isinstance(value, kind))


bool_state = _maker(bool, truth, "A setting that is yes or no.")
int_state = _maker(_typed(int, "an integer"), int, "A setting that is an integer.")
float_state = _maker(float, float, "A setting that is a number.")
string_state = _maker(_typed(str, "text"), str, "A setting that is text.")
optional_string_state = _maker(_typed((str, type(None)), "None or text"), str, "A setting that is text, or None.")
string_or_object_state = _maker(lambda value: value, str, "A setting that is anything that can be hashed.")


def enum_state(
    name: str, enum_values: Sequence[str], default: str, help: str, *, extra_validator: _Hook = None, **options: Any
) -> OwnState:
    """A setting that is one of some texts."""
    kind = _checked(f"enum value must be in {enum_values}", lambda v: type(v) is str and v in enum_values)
    return _maker(kind, str, "")(name, default, help, validator=extra_validator, **options)


def optional_enum_state(
    name: str, enum_values: Sequence[str], default: str | None, help: str, **options: Any
) -> OwnState:
    """A setting that is one of some texts, or None."""
    kind = _checked(f"enum value must be None or in {enum_values}", lambda v: v is None or v in enum_values)
    return _maker(kind, str, "")(name, default, help, **options)
