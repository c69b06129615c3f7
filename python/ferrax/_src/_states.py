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
from ferrax.config import NO_VALUE, own_settings

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
      unsaid: the value of a context manager that is given none.

    Raises:
      Exception: there is a setting of the name, or the default is none of its values (a TypeError).
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
        unsaid: Any = _UNSET,
    ) -> None:
        self.name = name.lower()
        if self.name in own_settings:
            raise Exception(f"Config option {self.name} already defined")
        text = os.environ.get(self.name.upper())
        super().__init__(parse(default if text is None else read(text)))
        self._unsaid = unsaid
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
        raise TypeError(
            "bool() not supported for instances of type 'State' (did you mean to use 'State.value' instead?)"
        )

    def _set(self, value: Any) -> None:
        value = self._parse(value)
        self.set_global(value)
        self._tell(self._everywhere, value)

    def __call__(self, new_val: Any = _UNSET) -> Any:
        value = self._unsaid if new_val is _UNSET else new_val
        if value is _UNSET:
            raise TypeError(NO_VALUE.format(self.__name__))
        return self._within(self._parse(value))

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


def _checked(what: str, fits: Callable[[Any], bool], error: type[Exception] = ValueError) -> Callable[[Any], Any]:
    """Gives values back that fit."""

    def check(value: Any) -> Any:
        if not fits(value):
            raise error(f"new {what}, got {value} of type {type(value)}.")
        return value

    return check


def _maker(
    kind: Callable[[Any], Any], read: Callable[[str], Any], doc: str, first: Any = object, **made: Any
) -> Callable[..., OwnState]:
    """A function that makes settings of one kind, whose defaults are of a class, or of one of several."""
    classes = first if isinstance(first, tuple) else (first,)
    named = " or ".join("None" if c is type(None) else c.__name__ for c in classes)

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

        if not isinstance(default, classes):
            raise TypeError(f"Default value must be of type {named}, got {default} of type {type(default).__name__}")
        return OwnState(name, default, help + extra_description, parse, read, **made, **options)

    make.__doc__ = doc
    return make


_integer = _checked("int config value must be None or of type int", lambda v: isinstance(v, int))
_text = _checked("string config value must be of type str", lambda v: isinstance(v, str), TypeError)
_text_or_none = _checked("string config value must be None or of type str", lambda v: v is None or isinstance(v, str))

bool_state = _maker(bool, truth, "A setting that is yes or no.", bool, unsaid=True)
int_state = _maker(_integer, int, "A setting that is an integer.", int)
float_state = _maker(float, float, "A setting that is a number.", (float, int))
string_state = _maker(_text, str, "A setting that is text.", str)
optional_string_state = _maker(_text_or_none, str, "A setting that is text, or None.", (str, type(None)))
string_or_object_state = _maker(lambda value: value, str, "A setting that is anything that can be hashed.")


def enum_state(
    name: str, enum_values: Sequence[str], default: str, help: str, *, extra_validator: _Hook = None, **options: Any
) -> OwnState:
    """A setting that is one of some texts."""
    kind = _checked(f"enum value must be in {enum_values}", lambda v: type(v) is str and v in enum_values)
    return _maker(kind, str, "", str)(name, default, help, validator=extra_validator, **options)


def optional_enum_state(
    name: str, enum_values: Sequence[str], default: str | None, help: str, **options: Any
) -> OwnState:
    """A setting that is one of some texts, or None."""
    kind = _checked(f"enum value must be None or in {enum_values}", lambda v: v is None or v in enum_values)
    return _maker(kind, str, "", (str, type(None)))(name, default, help, **options)
