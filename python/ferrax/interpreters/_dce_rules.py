"""What of a loop or of branches `dce_jaxpr` leaves, where some of their results are not wanted.

Read next: `partial_eval.py`, whose table has these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax
from ferrax._ferrax import ClosedJaxpr, Jaxpr, JaxprEqn
from ferrax._named_functions import name_function, named_function
from ferrax._parameters import own

__all__ = ["closed", "dce_cond", "dce_custom_jvp", "dce_custom_vjp", "dce_scan"]

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


def _named(function: Any, like: Any, wanted: Sequence[bool]) -> Any:
    """A rule for the results that are wanted, in the place of one for all."""
    places = _chosen(range(len(wanted)), wanted)
    complaints = tuple(lambda i, *types, f=f: f(places[i], *types) for f in getattr(like, "complaints", ()))
    name = like.__name__.split(" at 0x")[0]
    return name_function(function, name, complaints=complaints, arity=getattr(like, "arity", None))


def _bound_again(eqn: JaxprEqn, key: str, wanted: list[bool], bind: Callable[..., Any]) -> _Left:
    """A call with rules that gives what is wanted: bound anew, since programs hold functions as they were bound.

    Args:
      eqn: the call.
      key: the parameter that is a rule which takes the operands.
      wanted: which results are wanted.
      bind: binds a function and operands.
    """
    from ferrax.extend.core import new_jaxpr_eqn

    count = len(eqn.invars)
    consts = count - named_function(str(own(eqn.params)[key])).arity
    body, _ = _without(eqn.params["call_jaxpr"], wanted, [True] * count)
    call = lambda *args: bind(lambda *own: list(body.eval(*args[:consts], *own)), list(args[consts:]))
    program = _ferrax.trace_to_jaxpr(call, tuple(v.aval for v in eqn.invars), None, "jit").jaxpr
    (made,) = program.eqns
    given = dict(zip(program.invars, eqn.invars, strict=True))  # constants that nothing reads any more are left out
    operands = [given[v] for v in made.invars]
    return [True] * count, new_jaxpr_eqn(operands, _chosen(eqn.outvars, wanted), eqn.primitive, made.params)


def dce_custom_jvp(used_outputs: list[bool], eqn: JaxprEqn) -> _Left:
    """A call of a `custom_jvp` function keeps its operands, and the results of its rule that are wanted."""
    p = own(eqn.params)
    jvp = named_function(str(p["jvp"]))
    if jvp is None or all(used_outputs):
        return [True] * len(eqn.invars), eqn
    if not any(used_outputs):
        return [False] * len(eqn.invars), None

    def rule(both: Any, zero: list[bool]) -> list[Any]:
        outs = jvp(both, zero)
        half = len(outs) // 2
        return _chosen(outs[:half], used_outputs) + _chosen(outs[half:], used_outputs)

    less = _named(rule, jvp, used_outputs)
    bind = lambda f, args: _ferrax.bind_custom_jvp(str(p["name"]), f, less, less.complaints, p["symbolic_zeros"], args)
    return _bound_again(eqn, "jvp", used_outputs, bind)


def dce_custom_vjp(used_outputs: list[bool], eqn: JaxprEqn) -> _Left:
    """A call of a `custom_vjp` function keeps its operands; cotangents of what is not wanted are zeros."""
    p = own(eqn.params)
    fwd, bwd = (named_function(str(p[key])) for key in ("fwd", "bwd"))
    if fwd is None or bwd is None or all(used_outputs):
        return [True] * len(eqn.invars), eqn
    if not any(used_outputs):
        return [False] * len(eqn.invars), None
    tangents = [v.aval.to_tangent_aval() for v in eqn.outvars]

    def forward(perturbed: list[bool], *args: Any) -> tuple[list[Any], list[Any]]:
        outs, residuals = fwd(perturbed, *args)
        return _chosen(outs, used_outputs), residuals

    def backward(residuals: list[Any], cotangents: list[Any], zero: list[bool]) -> list[Any]:
        import ferrax.numpy as jnp

        given = iter(zip(cotangents, zero, strict=True))
        pairs = [
            next(given) if on else (jnp.zeros(t.shape, t.dtype), True)
            for on, t in zip(used_outputs, tangents, strict=True)
        ]
        return bwd(residuals, [ct for ct, _ in pairs], [none for _, none in pairs])

    rules = _named(forward, fwd, used_outputs), _named(backward, bwd, used_outputs)
    bind = lambda f, args: _ferrax.bind_custom_vjp(
        str(p["name"]), f, *rules, rules[0].complaints, p["symbolic_zeros"], args
    )
    return _bound_again(eqn, "fwd", used_outputs, bind)
