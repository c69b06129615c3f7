"""How programs are shown by `pretty_print`. Read next: `_members.py`, which asks for this file."""

from __future__ import annotations

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
      source_info, name_stack, print_effects: must be False: the text has no comments.
      print_shapes, custom_pp_eqn_rules: must be True.
      use_color: accepted for compatibility: programs are printed without colors.
      width: must be None: lines are broken as `str` breaks them.

    Raises:
      NotImplementedError: another value was given.
    """
    given = {"source_info": source_info, "name_stack": name_stack, "print_effects": print_effects, "width": width}
    given |= {"print_shapes": not print_shapes, "custom_pp_eqn_rules": not custom_pp_eqn_rules}
    others = [name for name, other in given.items() if other not in (False, None)]
    if others:
        raise NotImplementedError(f"pretty_print of a program with another {' and '.join(others)} than by default")
    return str(self)


for _class in (_ferrax.Jaxpr, _ferrax.ClosedJaxpr):
    setattr(_class, "pretty_print", shielded(pretty_print, method=True))  # noqa: B010
