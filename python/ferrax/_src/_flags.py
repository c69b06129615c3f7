"""Settings of test runs, which a module of tests makes for itself and the environment sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any


def truth(text: str) -> bool:
    """Whether a text says yes."""
    if text.lower() in ("1", "true", "yes", "y", "on", "t"):
        return True
    if text.lower() in ("0", "false", "no", "n", "off", "f", ""):
        return False
    raise ValueError(f"invalid truth value {text!r}")


class Flag:
    """A setting whose value is the environment's variable of its name in capitals, or its default.

    Args:
      name: the name.
      kind: function from the variable's text to the value.
      default: the value where there is no such variable.
    """

    def __init__(self, name: str, kind: Callable[[str], Any], default: Any):
        self.name, self.kind, self.default = name, kind, default

    @property
    def value(self) -> Any:
        """What the environment says now."""
        text = os.environ.get(self.name.upper())
        return self.default if text is None else self.kind(text)


def bool_env(varname: str, default: bool) -> bool:
    """A variable of the environment as yes or no."""
    text = os.environ.get(varname)
    return default if text is None else truth(text)


def bool_flag(name: str, default: bool, *args: Any, **kwargs: Any) -> Flag:
    """A setting that is yes or no."""
    return Flag(name, truth, default)


def int_flag(name: str, default: int, *args: Any, **kwargs: Any) -> Flag:
    """A setting that is an integer."""
    return Flag(name, int, default)


def int_env(varname: str, default: int) -> int:
    """A variable of the environment as an integer."""
    return int(os.environ.get(varname, default))


def float_flag(name: str, default: float, *args: Any, **kwargs: Any) -> Flag:
    """A setting that is a number."""
    return Flag(name, float, default)


def string_flag(name: str, default: str, *args: Any, **kwargs: Any) -> Flag:
    """A setting that is text."""
    return Flag(name, str, default)


def enum_flag(name: str, default: str, enum_values: Sequence[str] = (), *args: Any, **kwargs: Any) -> Flag:
    """A setting that is one of some texts."""

    def checked(text: str) -> str:
        if enum_values and text not in enum_values:
            raise ValueError(f"{name} is one of {', '.join(enum_values)}, not {text!r}")
        return text

    return Flag(name, checked, default)
