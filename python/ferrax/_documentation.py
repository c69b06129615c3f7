"""Docstrings that share what they say: arguments that several functions take are described once.

A docstring may say of some arguments, or of whole sections, that they are as in another function of its module:

    Args:
      a: real array.
      n, axis, norm: as in `fft`.

    Returns, Raises: as in `fft`.

`completed` puts the other function's text there, so that `help` shows all of it; `_boundary.py` does this for every
public function. The source says where to look. The function that is named has the text itself, never by reference.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["completed"]

#: What every reference has, to tell docstrings without one quickly.
_MARK = ": as in `"
_SECTIONS = ("Args", "Returns", "Raises")
_REFERENCE = r"( *)(\w+(?:, \w+)*): as in `([\w.]+)`\."


def completed(text: str | None, module: ModuleType) -> str | None:
    """A docstring with the text that it refers to.

    Args:
      text: the docstring.
      module: where the names of other functions are looked up.

    Returns:
      The docstring without references; the same one if it has none.

    >>> import ferrax.numpy.fft
    >>> print(completed("Args:\\n  a: real array.\\n  n, axis: as in `fft`.", ferrax.numpy.fft))
    Args:
      a: real array.
      n: size along the axis, which is cut or padded with zeros to it; None for the array's.
      axis: the axis.
    """
    if text is None or _MARK not in text:
        return text
    lines = []
    for line in text.split("\n"):
        found = re.fullmatch(_REFERENCE, line) if _MARK in line else None
        lines += [line] if found is None else _referred(found[1], found[2], found[3], module)
    return "\n".join(lines)


def _referred(indent: str, names: str, function: str, module: ModuleType) -> list[str]:
    """The lines that a reference stands for: sections with blank lines between them, or arguments."""
    other: Any = functools.reduce(getattr, function.split("."), module)
    sections, arguments = _described(other.__doc__)
    out: list[str] = []
    for name in names.split(", "):
        if name in _SECTIONS:
            out += ["", *sections[name]] if out else sections[name]
        else:
            # an argument stands two columns further in than its section
            out += [line[2:] for line in arguments[name]]
    return [indent + line if line else line for line in out]


@functools.lru_cache(maxsize=16)  # functions that refer to the same one stand together
def _described(text: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The sections of a docstring, and its arguments."""
    sections = _parts(_plain(text), lambda line: line[:-1] if line[:-1] in _SECTIONS else None)
    return sections, _parts(sections["Args"][1:], lambda line: line[2 : line.index(":")] if line[2:3] != " " else None)


def _plain(text: str) -> list[str]:
    """The lines of a docstring without the indentation that all but its first have."""
    first, *others = text.split("\n")
    width = min((len(line) - len(line.lstrip()) for line in others if line.strip()), default=0)
    return [first, *(line[width:] for line in others)]


def _parts(lines: list[str], heading: Callable[[str], Any]) -> dict[str, list[str]]:
    """Lines by the heading that they stand under, up to a blank one."""
    parts: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        name = heading(line) if line else None
        if name is not None:
            current = parts[name] = []
        elif not line:
            current = None
        if current is not None:
            current.append(line)
    return parts
