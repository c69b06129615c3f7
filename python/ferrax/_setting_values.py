"""Values of settings that are texts or numbers: what is none is an error that says so. Read next: `config.py`."""

import operator
import os
from typing import Any


def check_text(name: str, value: Any, optional: bool) -> None:
    """Errors unless a value is a text or a path, or None where a setting is optional."""
    if isinstance(value, (str, os.PathLike)) or (value is None and optional):
        return
    kind, error = ("None or of type", ValueError) if optional else ("of type", TypeError)
    raise error(f"new string config value must be {kind} str, got {value!r} of type {type(value)} for {name}.")


def number(name: str, value: Any, kind: type) -> Any:
    """A value as an integer, or as a float where `kind` is `float`; ValueError for what is no such number."""
    try:
        return value if kind is float and isinstance(value, float) else operator.index(value)
    except TypeError:
        word = kind.__name__
        got = f"got {value!r} of type {type(value)} for {name}."
        raise ValueError(f"new {word} config value must be of type {word}, {got}") from None
