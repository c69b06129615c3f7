"""Trees and values in the texts of errors, bounded whatever their size.

`crates/ferrax-python/src/shorten.rs` and `tree/mismatch.rs` beside it write them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ferrax import _ferrax

#: Lines of a kind that an error shows.
LINES = 5


def short(value: Any) -> str:
    """``repr(value)``, or the structure of a tree, in about 80 characters at most."""
    return _ferrax.shorten(value)


def differences(left: Any, right: Any, left_name: str, right_name: str, root: str = "") -> str:
    """A line for each of the first places where two structures differ.

    Args:
      left: a structure.
      right: another one.
      left_name: where the first one is, ``the input carry`` say.
      right_name: where the other one is.
      root: what the root is called; paths follow it.
    """
    lines = _ferrax.tree_differences(left, right, root, left_name, right_name)
    return "".join(f"\n  * {line}" for line in lines)


def first_lines(places: Iterable[int], line: Callable[[int], str]) -> str:
    """A line for each of the first places, and one that counts the others."""
    places = list(places)
    lines = [line(i) for i in places[:LINES]]
    if len(places) > LINES:
        lines.append(f"and {len(places) - LINES} more")
    return "".join(f"\n  * {text}" for text in lines)


def listed(items: Iterable[Any]) -> str:
    """The first items, and how many more there are: ``8, 9, … 3 more``."""
    items = list(items)
    texts = [str(x) for x in items[: 2 * LINES]]
    if len(items) > len(texts):
        texts.append(f"… {len(items) - len(texts)} more")
    return ", ".join(texts)
