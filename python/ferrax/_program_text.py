"""How programs are shown by `pretty_print`. Read next: `_members.py`, which asks for this file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ferrax import _ferrax
from ferrax._boundary import shielded


def pretty_print(
    self: Any,
    *,
    source_info: bool = False,
    print_shapes: bool = True,
    custom_pp_eqn_rules: bool = True,
    name_stack: bool = False,
    print_effects: bool = False,
    use_color: bool | None = None,
    width: int | None = None,
) -> str:
    """The program as text.

    Args:
      source_info: whether comments say the place in the user's code that each equation comes from.
      name_stack: whether comments say the scopes that it was asked for in.
      print_effects: must be False.
      print_shapes, custom_pp_eqn_rules: must be True.
      use_color: accepted for compatibility: programs are printed without colors.
      width: must be None: lines are broken as `str` breaks them.

    Raises:
      NotImplementedError: another value was given.
    """
    given: dict[str, Any] = {"print_effects": print_effects, "width": width}
    given |= {"print_shapes": not print_shapes, "custom_pp_eqn_rules": not custom_pp_eqn_rules}
    others = [name for name, other in given.items() if other not in (False, None)]
    if others:
        raise NotImplementedError(f"pretty_print of a program with another {' and '.join(others)} than by default")
    return _commented(self, source_info, name_stack) if source_info or name_stack else str(self)


#: Primitives whose equations are shown in a form of their own, without comments.
_OWN_FORMS = frozenset(["get", "swap", "addupdate"])


def _equations(program: Any) -> Iterator[Any]:
    """The equations of a program in the order of its text."""
    for eqn in program.eqns:
        yield eqn
        if eqn.primitive.name not in _OWN_FORMS:
            for _, value in sorted(eqn.params.items()):
                for inner in value if isinstance(value, (tuple, list)) else [value]:
                    if hasattr(inner, "eqns"):
                        yield from _equations(inner)


def places_of_equations(program: Any, text: str) -> Iterator[tuple[Any, int, int]]:
    """The equations that a program's text shows, with the line (from 0) and the column where each one's name ends."""
    at = 0
    for eqn in _equations(program):
        name = eqn.primitive.name
        if name in _OWN_FORMS:
            continue
        begin = re.compile(rf"{' = ' if eqn.outvars else ' '}{re.escape(name)}(?=[\[ \n]|$)").search(text, at)
        if begin is None:  # it stands in a program whose text is left out
            continue
        at = begin.end()
        yield eqn, text.count("\n", 0, at), at - 1 - text.rfind("\n", 0, at)


def _commented(program: Any, places: bool, scopes: bool) -> str:
    """A program's text, and behind it what is said of the equations of each line."""
    from ferrax.extend.source_info_util import summarize

    text = str(program)
    said: dict[int, list[str]] = {}
    for eqn, line, _ in places_of_equations(program, text):
        comments = said.setdefault(line, [])
        if places and eqn.outvars and (place := summarize(eqn.source_info)):
            comments.append(place)
        if scopes:
            comments.append(f"[{eqn.source_info.name_stack}]")
    lines = text.split("\n")
    width = max(map(len, lines))  # comments stand behind the longest line, whether it has one or not
    for i, comments in said.items():
        shown = [f"{lines[i] if not k else '':<{width}} # {comment}" for k, comment in enumerate(comments)]
        lines[i] = "\n".join(shown) if shown else lines[i]
    return "\n".join(lines)


for _class in (_ferrax.Jaxpr, _ferrax.ClosedJaxpr):
    setattr(_class, "pretty_print", shielded(pretty_print))  # noqa: B010
