"""Parameters of calls with derivative rules, and of linear solves, by JAX's names: rules are functions.

The core's own parameters go with them, for whoever binds the operation again. Read next: `_parameters.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ferrax import _ferrax
from ferrax._named_functions import named_function
from ferrax.extend.linear_util import WrappedFun

__all__ = ["LinearSolve", "RuleFunction", "of_custom_jvp", "of_custom_vjp", "of_linear_solve"]


class RuleFunction(WrappedFun):
    """A rule as a parameter of an equation, with the parameters that the core has in its place."""

    __slots__ = ("core",)

    def __init__(self, f: Callable[..., Any], core: dict[str, Any]):
        super().__init__(f, f, (), (), (), None, None)
        self.core = core

    def __repr__(self) -> str:
        return ", ".join(map(str, self.core.values()))


class LinearSolve(NamedTuple):
    """What there is of each of the programs of a linear solve."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any


def _traced(fun: Callable[..., Any], avals: Sequence[Any]) -> Any:
    return _ferrax.trace_to_jaxpr(fun, tuple(avals), None, "custom_rule")


def _given(avals: Sequence[Any], zeros: Sequence[bool]) -> list[Any]:
    """Types of the tangents of values that have any."""
    return [aval.to_tangent_aval() for aval, zero in zip(avals, zeros, strict=True) if not zero]


def of_custom_jvp(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a function with a rule for tangents.

    `jvp_jaxpr_fun.call_wrapped` takes, for each operand that is no constant, whether its tangent is zero, and gives an
    open program of primals and the other tangents, its constants, and which tangents of results are zero: none.
    """
    call, rule = params["call_jaxpr"], named_function(str(params["jvp"]))
    consts = 0 if rule is None else len(call.in_avals) - rule.arity
    avals = call.in_avals[consts:]

    def jvp(*zeros: bool) -> tuple[Any, Any, list[bool]]:
        from ferrax._primitives import zeros_of

        def run(*values: Any) -> list[Any]:
            rest = iter(values[len(avals) :])
            primals = list(values[: len(avals)])
            dots = [zeros_of(a.to_tangent_aval()) if z else next(rest) for a, z in zip(avals, zeros, strict=True)]
            if rule is not None:
                return list(rule([*primals, *dots], list(zeros) if params["symbolic_zeros"] else []))
            from ferrax import jvp as derivative

            outs, changes = derivative(call.eval, primals, dots)
            return [*outs, *changes]

        program = _traced(run, [*avals, *_given(avals, zeros)])
        return program.jaxpr, program.consts, [False] * len(call.out_avals)

    return {
        "call_jaxpr": call,
        "jvp_jaxpr_fun": RuleFunction(jvp, {"jvp": params["jvp"], "name": params["name"]}),
        "num_consts": consts,
        "symbolic_zeros": params["symbolic_zeros"],
    }


def of_custom_vjp(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a function with rules for cotangents.

    `fwd_jaxpr_thunk.call_wrapped` takes, for each operand that is no constant, whether it is differentiated, and gives
    an open program of the operands whose results are residuals and then results, and its constants; `bwd.call_wrapped`
    takes residuals and cotangents. `out_trees` tells the structures of both, as lists.
    """
    call = params["call_jaxpr"]
    fwd, bwd = (named_function(str(params[key])) for key in ("fwd", "bwd"))
    if fwd is None or bwd is None:  # rules of Rust
        return params
    consts = len(call.in_avals) - fwd.arity
    avals, count = call.in_avals[consts:], len(call.out_avals)
    core = {key: params[key] for key in ("fwd", "bwd", "name")}

    def forward(*nonzeros: bool) -> tuple[Any, Any]:
        def run(*values: Any) -> list[Any]:
            outs, residuals = fwd(list(nonzeros), *values)
            return [*residuals, *outs]

        program = _traced(run, avals)
        return program.jaxpr, program.consts

    def backward(*values: Any) -> list[Any]:
        from ferrax._primitives import Zero

        pulled = bwd(list(values[: len(values) - count]), list(values[len(values) - count :]), [])
        return [Zero(a.to_tangent_aval()) if ct is None else ct for a, ct in zip(avals, pulled, strict=True)]

    def out_trees() -> tuple[Any, Any, list[Any]]:
        from ferrax.tree_util import tree_structure

        residuals = len(forward(*[True] * len(avals))[0].outvars) - count
        return tree_structure([0] * count), tree_structure([0] * residuals), [None] * residuals

    return {
        "bwd": RuleFunction(backward, core),
        "call_jaxpr": call,
        "fwd_jaxpr_thunk": RuleFunction(forward, core),
        "num_consts": consts,
        "out_trees": out_trees,
        "symbolic_zeros": params["symbolic_zeros"],
    }


def of_linear_solve(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a linear solve: its programs, and the numbers of their constants, side by side."""
    return {
        "const_lengths": LinearSolve(*params["const_lengths"]),
        "jaxprs": LinearSolve(*(params[key] for key in LinearSolve._fields)),
    }
