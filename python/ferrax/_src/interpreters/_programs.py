"""Programs from programs: with other orders of arguments, differentiated, mapped, cut into what is known and the rest.

JAX's rules of operations that have programs are written with these functions. What depends on what is read off the
program: a result that depends on a mapped argument is mapped, one that depends on a differentiated one has a tangent.
Read next: `ferrax/interpreters/partial_eval.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._derivatives import jvp, linear_transpose
from ferrax._primitives import UndefinedPrimal, Zero
from ferrax.dtypes import issubdtype
from ferrax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxpr_as_fun
from ferrax.interpreters.ad import instantiate_zeros


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its constants as arguments, in front of the others."""
    return Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns)


def convert_invars_to_constvars(jaxpr: Jaxpr, n: int) -> Jaxpr:
    """The program with its first `n` arguments as constants."""
    if n == 0:
        return jaxpr
    return Jaxpr([*jaxpr.invars[:n], *jaxpr.constvars], jaxpr.invars[n:], jaxpr.outvars, jaxpr.eqns)


def move_binders_to_front(closed_jaxpr: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """The program with some of its arguments in front of the others."""
    jaxpr = closed_jaxpr.jaxpr
    pairs = list(zip(jaxpr.invars, to_move, strict=True))
    invars = [v for v, move in pairs if move] + [v for v, move in pairs if not move]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, invars, jaxpr.outvars, jaxpr.eqns), closed_jaxpr.consts)


def move_binders_to_back(closed_jaxpr: ClosedJaxpr, to_move: Sequence[bool]) -> ClosedJaxpr:
    """The program with some of its arguments behind the others."""
    return move_binders_to_front(closed_jaxpr, [not move for move in to_move])


def _reached(jaxpr: Jaxpr, marked: Sequence[bool]) -> set[Any]:
    """The variables that depend on marked arguments."""
    found = {v for v, on in zip(jaxpr.invars, marked, strict=True) if on}
    for eqn in jaxpr.eqns:
        if any(v in found for v in eqn.invars if not isinstance(v, Literal)):
            found.update(eqn.outvars)
    return found


def _each(value: bool | Sequence[bool], count: int) -> list[bool]:
    return [value] * count if isinstance(value, bool) else list(value)


def _results(jaxpr: Jaxpr, marked: Sequence[bool], instantiate: bool | Sequence[bool]) -> list[bool]:
    """Which results depend on marked arguments, or are to be treated so."""
    reached = _reached(jaxpr, marked)
    on = [not isinstance(v, Literal) and v in reached for v in jaxpr.outvars]
    return [a or b for a, b in zip(on, _each(instantiate, len(on)), strict=True)]


def jvp_jaxpr(
    jaxpr: ClosedJaxpr, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program of the forward derivative.

    Args:
      jaxpr: the program.
      nonzeros: which arguments have tangents.
      instantiate: which results have tangents though they are zero; one for all, or one each.

    Returns:
      A program of the arguments and their tangents for the results and theirs; which results have tangents.
    """
    asked = _each(instantiate, len(jaxpr.out_avals))
    inexact = [issubdtype(a.dtype, np.inexact) for a in jaxpr.out_avals]
    reached = _results(jaxpr.jaxpr, nonzeros, False)
    on = [(a and b) or c for a, b, c in zip(reached, inexact, asked, strict=True)]
    run = jaxpr_as_fun(jaxpr)
    moving = [i for i, some in enumerate(nonzeros) if some]

    def derivative(*values: Any) -> list[Any]:
        primals, tangents = list(values[: len(nonzeros)]), values[len(nonzeros) :]

        def of_moving(*active: Any) -> list[Any]:
            full = list(primals)
            for i, value in zip(moving, active, strict=True):
                full[i] = value
            return list(run(*full))

        outs, dots = jvp(of_moving, tuple(primals[i] for i in moving), tuple(tangents))
        return [*outs, *(t for t, some in zip(dots, on, strict=True) if some)]

    types = [*jaxpr.in_avals, *(jaxpr.in_avals[i].to_tangent_aval() for i in moving)]
    return _ferrax.trace_to_jaxpr(derivative, tuple(types), None, "jvp"), on


def batch_jaxpr(
    closed_jaxpr: ClosedJaxpr, axis_data: Any, in_batched: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program of rows, their axis in front.

    Args:
      closed_jaxpr: the program of one row.
      axis_data: the mapped axis.
      in_batched: which arguments have it.
      instantiate: which results have it though all rows are alike; one for all, or one each.

    Returns:
      The program, and which results have the axis.
    """
    from ferrax._api import vmap
    from ferrax._shape_dtype import ShapeDtypeStruct

    on = _results(closed_jaxpr.jaxpr, in_batched, instantiate)
    axes, out_axes = [0 if b else None for b in in_batched], [0 if b else None for b in on]
    name = {} if axis_data.name is None else {"axis_name": axis_data.name}
    run = jaxpr_as_fun(closed_jaxpr)
    mapped = vmap(lambda *args: list(run(*args)), tuple(axes), out_axes, axis_size=axis_data.size, **name)
    types = [
        ShapeDtypeStruct((axis_data.size, *a.shape), a.dtype, weak_type=a.weak_type) if b else a
        for a, b in zip(closed_jaxpr.in_avals, in_batched, strict=True)
    ]
    return _ferrax.trace_to_jaxpr(mapped, tuple(types), None, "vmap"), on


def partial_eval_jaxpr_nounits(
    jaxpr: ClosedJaxpr, unknowns: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[Any]]:
    """Cuts a program into what depends on known arguments alone, and the rest.

    Args:
      jaxpr: the program.
      unknowns: which arguments are not known.
      instantiate: which results are left to the rest though they are known; one for all, or one each.

    Returns:
      `(known, unknown, out_unknowns, types)`: a program of the known arguments for the known results and what the
      rest needs, of these types; a program of that and of the unknown arguments for the other results; which these are.
    """
    inner = jaxpr.jaxpr
    late = _reached(inner, unknowns)
    known_eqns: list[JaxprEqn] = []
    late_eqns: list[JaxprEqn] = []
    for eqn in inner.eqns:
        waits = any(v in late for v in eqn.invars if not isinstance(v, Literal))
        (late_eqns if waits else known_eqns).append(eqn)
    asked = _each(instantiate, len(inner.outvars))
    waiting = [(not isinstance(v, Literal) and v in late) or on for v, on in zip(inner.outvars, asked, strict=True)]
    late_outs = [v for v, on in zip(inner.outvars, waiting, strict=True) if on]
    read = dict.fromkeys(v for eqn in late_eqns for v in eqn.invars if not isinstance(v, Literal))
    read.update(dict.fromkeys(v for v in late_outs if not isinstance(v, Literal)))
    constants = set(inner.constvars)
    residuals = [v for v in read if v not in late and v not in constants]
    pairs = list(zip(inner.invars, unknowns, strict=True))
    known_outs = [v for v, on in zip(inner.outvars, waiting, strict=True) if not on]
    known = Jaxpr(inner.constvars, [v for v, on in pairs if not on], [*known_outs, *residuals], known_eqns)
    rest = Jaxpr(inner.constvars, [*residuals, *(v for v, on in pairs if on)], late_outs, late_eqns)
    consts, types = jaxpr.consts, [v.aval for v in residuals]
    return ClosedJaxpr(known, consts), ClosedJaxpr(rest, consts), waiting, types


def backward_pass(jaxpr: Jaxpr, transform_stack: bool, consts: Any, primals_in: Any, cts_in: Any) -> list[Any]:
    """The cotangents of the linear arguments of a program, which are `UndefinedPrimal`; zeros for the others."""
    del transform_stack
    linear = [i for i, x in enumerate(primals_in) if isinstance(x, UndefinedPrimal)]
    run = jaxpr_as_fun(ClosedJaxpr(jaxpr, list(consts)))

    def of_linear(*active: Any) -> list[Any]:
        full = list(primals_in)
        for i, value in zip(linear, active, strict=True):
            full[i] = value
        return list(run(*full))

    types = [primals_in[i].aval for i in linear]
    found = iter(linear_transpose(of_linear, *types)([instantiate_zeros(ct) for ct in cts_in]))
    zeros = [Zero(_ferrax.typeof(x).to_ct_aval()) if i not in linear else None for i, x in enumerate(primals_in)]
    return [next(found) if zero is None else zero for zero in zeros]
