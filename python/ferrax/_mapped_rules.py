"""Rules of custom derivatives that ask for named axes: they run where the axes of their call are in force.

A program is differentiated where it is used, which may be outside of the `vmap` or `shard_map` that its function was
called in. Operands that are the same along such an axis have lost it by then. Read next: `custom_derivatives.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax, tree_util

__all__ = ["in_axes_of_call"]


def in_axes_of_call(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that runs inside of the named axes that are in force now, whenever it is called.

    Args:
      rule: a function that gives arrays, in lists and tuples.

    Returns:
      The rule; what it gives must be the same along axes that are not in force when it is called.
    """
    axes = _ferrax.named_axes()
    if not axes:
        return rule

    @functools.wraps(rule)
    def run(*args: Any) -> Any:
        have = {name for name, _ in _ferrax.named_axes()}
        missing = [pair for pair in axes if pair[0] not in have]
        return _along(functools.partial(rule, *args), missing) if missing else rule(*args)

    return run


def _along(rule: Callable[[], Any], axes: Sequence[tuple[str, int]]) -> Any:
    """What a rule gives inside of named axes along which nothing varies."""
    if not axes:
        return rule()
    name, size = axes[0]
    structure: Any = None

    def inside(_: Any) -> list[Any]:
        nonlocal structure
        outs, structure = tree_util.tree_flatten(_along(rule, axes[1:]))
        return outs

    pairs = _ferrax.map_flat(inside, [], [], size, name, True)
    if any(at is not None for _, at in pairs):
        raise TypeError(f"a rule of a custom derivative gave what varies along the axis {name!r}; its operands do not")
    return structure.unflatten([x for x, _ in pairs])
