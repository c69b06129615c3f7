"""What of a loop or of branches `dce_jaxpr` leaves, where some of their results are not wanted.

Read next: `partial_eval.py`, whose table has these rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrax import _ferrax
from ferrax._ferrax import ClosedJaxpr, Jaxpr, JaxprEqn

__all__ = ["closed", "dce_cond", "dce_scan"]

_Left = tuple[list[bool], JaxprEqn | None]


def closed(jaxpr: Jaxpr, consts: Sequence[Any]) -> ClosedJaxpr:
    """A program with its constants, in the form that equations have it in."""
    program = ClosedJaxpr(jaxpr, list(consts))
    if not consts:
        return program
    return _ferrax.trace_to_jaxpr(lambda *args: list(program.eval(*args)), tuple(program.in_avals), None, "jit")


def _chosen(values: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    return [v for v, on in zip(values, wanted, strict=True) if on]


def _without(program: ClosedJaxpr, wanted: Sequence[bool], stay: Sequence[bool]) -> tuple[ClosedJaxpr, list[bool]]:
    """A program without what is not wanted, and which arguments it takes."""
    from ferrax.interpreters.partial_eval import dce_jaxpr

    inner, used = dce_jaxpr(program.jaxpr, wanted, stay)
    return closed(inner, program.consts), used


def _left(eqn: JaxprEqn, used: list[bool], wanted: Sequence[bool], params: dict[str, Any]) -> _Left:
    from ferrax.extend.core import new_jaxpr_eqn

    invars, outvars = _chosen(eqn.invars, used), _chosen(eqn.outvars, wanted)
    return used, new_jaxpr_eqn(invars, outvars, eqn.primitive, {**eqn.params, **params}, eqn.effects)


def dce_scan(used_outputs: list[bool], eqn: JaxprEqn) -> _Left:
    """A loop keeps the carried values that are wanted, and those from which a step makes one that it keeps."""
    if not (eqn.effects or any(used_outputs)):
        return [False] * len(eqn.invars), None
    consts, carries = eqn.params["num_consts"], eqn.params["num_carry"]
    carried, stacked = list(used_outputs[:carries]), list(used_outputs[carries:])
    rest = len(eqn.invars) - consts - carries
    while True:
        body, used = _without(eqn.params["jaxpr"], carried + stacked, [False] * consts + carried + [False] * rest)
        taken = used[consts : consts + carries]
        if taken == carried:
            break
        carried = taken
    counts = {"num_consts": sum(used[:consts]), "num_carry": sum(carried)}
    # a carried value that another one needs is a result of the loop, which nobody wants
    return _left(eqn, used, carried + stacked, {"jaxpr": body, **counts})


def dce_cond(used_outputs: list[bool], eqn: JaxprEqn) -> _Left:
    """Branches keep the operands that any of them needs."""
    if not (eqn.effects or any(used_outputs)):
        return [False] * len(eqn.invars), None
    branches, none = eqn.params["branches"], [False] * (len(eqn.invars) - 1)
    each = [_without(branch, used_outputs, none)[1] for branch in branches]
    used = [any(ons) for ons in zip(*each, strict=True)]
    less = tuple(_without(branch, used_outputs, used)[0] for branch in branches)
    return _left(eqn, [True, *used], used_outputs, {"branches": less})
