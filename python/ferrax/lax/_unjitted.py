"""Control flow under `disable_jit`: Python runs the loops and chooses the branches, so that bodies see their values.

A body may print, stop in a debugger or ask `if` of what it is given. Its results are taken as they are: what a loop
checks of the types of its carry it checks when it is traced. What depends on a value that is not there (under `jit`'s
kin, or `vmap` over a condition) is traced as always. Read next: `control_flow.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax, tree_util


def wanted() -> bool:
    """Whether `disable_jit` holds."""
    return _ferrax.flag("disable_jit")


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, rows: Sequence[Any], tree: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    """The steps of a scan, one after the other; there is at least one."""
    from ferrax.lax.shape import stack

    ys: list[Any] = []
    for i in range(length)[:: -1 if reverse else 1]:
        carry, y = f(carry, tree.unflatten([x[i] for x in rows]))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, tree_util.tree_map(lambda *parts: stack([_ferrax.asarray(p) for p in parts]), *ys)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], value: Any) -> tuple[Any] | None:
    """The last value of a loop, as a tuple of it; None where its condition is not known."""
    value = tree_util.tree_map(_ferrax.asarray, value)
    while True:
        holds = cond_fun(value)
        if isinstance(holds, _ferrax.Tracer):
            try:
                holds = bool(holds)
            except _ferrax.TracerBoolConversionError:
                return None
        if not holds:
            return (value,)
        value = body_fun(value)
