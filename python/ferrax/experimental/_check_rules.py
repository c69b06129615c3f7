"""Programs run with an error carried along: which operations can fail, and how loops and branches pass the error on.

Read next: `ferrax/_evaluate.py`, which runs programs equation by equation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, dtypes, lax, numpy as jnp
from ferrax._evaluate import bind, evaluate, parameters, traced
from ferrax._ferrax import ClosedJaxpr, JaxprEqn
from ferrax._named_functions import name_function, named_function
from ferrax._parameters import own
from ferrax.config import checks_become_values
from ferrax.experimental._check_errors import (
    DivisionByZeroError,
    Error,
    ErrorEffect,
    FailedCheckError,
    NaNError,
    OOBError,
    one_error,
    padded,
)
from ferrax.extend.core import jaxprs_in_params
from ferrax.lax import elementwise

__all__ = ["run"]

_Wanted = frozenset[Any]

# operations that are checked for NaN: functions of numbers except those that only keep a NaN they get, and others
_QUIET = """abs bitwise_and bitwise_not bitwise_or bitwise_xor ceil clz complex conj eq exp2 floor ge gt imag is_finite
le lt max min mulhi ne neg nextafter polygamma population_count real reciprocal shift_left shift_right_arithmetic
shift_right_logical sign square zeta"""
_OTHERS = """add_any conv_general_dilated cumlogsumexp cummax cummin cumprod cumsum dot_general fft integer_pow lu_solve
pad psum reduce_prod reduce_sum reduce_window_sum scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub"""
_NAN = frozenset(elementwise.__all__).difference(_QUIET.split()).union(_OTHERS.split())
#: What an error calls an operation that JAX has not.
_SHOWN = {"add_any": "add", "lu_solve": "custom_linear_solve"}
_INDEXED = frozenset(["gather", "dynamic_slice", "dynamic_update_slice"])
_OOB = ErrorEffect(OOBError, (((3,), np.dtype("int32")),))


def run(program: ClosedJaxpr, args: Sequence[Any], error: Error, wanted: _Wanted) -> tuple[Error, list[Any]]:
    """Runs a program with checks.

    Args:
      program: the program.
      args: a value for each of its arguments.
      error: what was found before.
      wanted: the kinds of errors to look for.

    Returns:
      Pair of what was found after the program, and the program's results.
    """
    carried = [error]

    def rule(equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
        carried[0], results = _step(equation, values, carried[0], wanted)
        return results

    results = evaluate(program, args, rule)
    return carried[0], results


def _step(equation: JaxprEqn, values: list[Any], error: Error, wanted: _Wanted) -> tuple[Error, Sequence[Any]]:
    """An equation with its checks."""
    name = equation.primitive.name
    mark = _mark_of(equation)
    if mark is not None:
        if FailedCheckError not in wanted:
            return error, []
        return error._merged(Error._of_leaves(values, mark.effects, mark.metadata)), []
    if name in _INSIDE:
        if not _effects(equation, wanted | {FailedCheckError}):
            return error, bind(equation, values)
        return _INSIDE[name](equation, values, padded(error, _effects(equation, wanted)), wanted)
    results = bind(equation, values)
    if OOBError in wanted and (name in _INDEXED or name.startswith("scatter")):
        error = error._merged(_index_error(equation, values))
    if DivisionByZeroError in wanted and name == "div":
        error = error._merged(one_error(jnp.any(values[1] == jnp.zeros_like(values[1])), DivisionByZeroError()))
    if NaNError in wanted and name in _NAN:
        shown = _SHOWN.get(name, name)
        for x in results:
            if dtypes.issubdtype(x.dtype, np.inexact):
                error = error._merged(one_error(jnp.any(jnp.isnan(x)), NaNError(shown)))
    return error, results


def _mark_of(equation: JaxprEqn) -> Any:
    """What a check left in the program, or None for other equations."""
    if equation.primitive.name != "debug_callback":
        return None
    function = named_function(str(equation.params["callback"]))
    return function if hasattr(function, "metadata") else None


# --- which errors a program can have


def _effects(equation: JaxprEqn, wanted: _Wanted) -> frozenset[ErrorEffect]:
    """The kinds of errors that an equation can add."""
    name, found = equation.primitive.name, set()
    mark = _mark_of(equation)
    if mark is not None:
        return frozenset(mark.effects if FailedCheckError in wanted else ())
    if OOBError in wanted and (name in _INDEXED or name.startswith("scatter")):
        found.add(_OOB)
    if DivisionByZeroError in wanted and name == "div":
        found.add(ErrorEffect(DivisionByZeroError, ()))
    if NaNError in wanted and name in _NAN:
        found.add(ErrorEffect(NaNError, ()))
    if name in _INSIDE:
        for program in jaxprs_in_params(equation.params):
            found |= _effects_of(program, wanted)
    return frozenset(found)


def _effects_of(program: Any, wanted: _Wanted) -> frozenset[ErrorEffect]:
    return frozenset().union(*(_effects(equation, wanted) for equation in program.eqns))


# --- indices


def _index_error(equation: JaxprEqn, values: list[Any]) -> Error:
    """Whether an index of a gather, scatter or dynamic slice is outside of its axis, and the first that is."""
    name, operand = equation.primitive.name, values[0]
    if name == "dynamic_slice":
        axes, windows, indices = range(operand.ndim), equation.params["slice_sizes"], values[1:]
    elif name == "dynamic_update_slice":
        axes, windows, indices = range(operand.ndim), values[1].shape, values[2:]
    else:
        numbers = parameters(equation, "dimension_numbers")[0]
        if name == "gather":
            axes, sizes = numbers.start_index_map, equation.params["slice_sizes"]
        else:
            axes, sizes = numbers.scatter_dims_to_operand_dims, _scatter_windows(operand, values[2], numbers)
        windows = [sizes[axis] for axis in axes]
        indices = [values[1][..., i] for i in range(len(axes))]
    if not indices:
        return Error({}, {}, {}, {})
    outside, numbers_of = [], []
    for axis, window, index in zip(axes, windows, indices, strict=True):
        size = operand.shape[axis]
        last = min(size - window, np.iinfo(index.dtype).max)
        outside.append((index < 0) | (index > jnp.asarray(last, index.dtype)))
        row = [index.astype(np.int32), jnp.full(index.shape, axis, np.int32), jnp.full(index.shape, size, np.int32)]
        numbers_of.append(jnp.stack(row, -1))
    flags = jnp.stack(outside, -1).reshape(-1)
    rows = jnp.stack(numbers_of, -2).reshape(-1, 3)
    if not flags.shape[0]:
        return Error({}, {}, {}, {})
    first = lax.dynamic_index_in_dim(rows, jnp.argmax(flags), 0, False)
    return one_error(jnp.any(flags), OOBError(name, tuple(operand.shape), first))


def _scatter_windows(operand: Any, updates: Any, numbers: Any) -> list[int]:
    """The sizes of the windows that a scatter writes, by axis of its operand."""
    missing = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = iter([updates.shape[axis] for axis in numbers.update_window_dims])
    return [1 if axis in missing else next(sizes) for axis in range(operand.ndim)]


# --- operations with programs


class _Carried:
    """An error as leading operands of a program: their number, and what codes mean, which grows as programs run."""

    def __init__(self, error: Error) -> None:
        self.leaves, self.effects = error._leaves()
        self.metadata = dict(error._metadata)
        self.count = len(self.leaves)

    def error(self, leaves: Sequence[Any]) -> Error:
        return Error._of_leaves(leaves[: self.count], self.effects, self.metadata)

    def body(self, program: ClosedJaxpr, wanted: _Wanted, consts: Sequence[Any] = ()) -> Callable[..., list[Any]]:
        """The program as a function of the error and its arguments but the first, which are given."""

        def call(*flat: Any) -> list[Any]:
            error, results = run(program, [*consts, *flat[self.count :]], self.error(flat), wanted)
            return self.flat(error) + results

        return call

    def flat(self, error: Error) -> list[Any]:
        self.metadata.update(error._metadata)
        leaves, effects = error._leaves()
        assert effects == self.effects
        return leaves

    def with_known(self, error: Error, more: Error) -> list[Any]:
        """The values of an error and, of another one, those of the kinds that are carried."""
        for effect in set(more._pred) & set(self.effects):
            error = error._update(effect, more._pred[effect], more._code[effect], more._metadata, more._payload[effect])
        return self.flat(error)

    def traced(self, program: ClosedJaxpr, wanted: _Wanted, asker: str, consts: Sequence[Any] = ()) -> ClosedJaxpr:
        avals = [_ferrax.typeof(x) for x in self.leaves] + list(program.in_avals[len(consts) :])
        return traced(self.body(program, wanted, consts), avals, asker)

    def split(self, results: Sequence[Any]) -> tuple[Error, Sequence[Any]]:
        return self.error(results), results[self.count :]


def _jit(equation: JaxprEqn, values: list[Any], error: Error, wanted: _Wanted) -> tuple[Error, Sequence[Any]]:
    from ferrax._api import jit

    carried = _Carried(error)
    body = carried.body(equation.params["jaxpr"], wanted)
    body.__name__ = str(equation.params["name"])
    return carried.split(jit(body)(*carried.leaves, *values))


def _cond(equation: JaxprEqn, values: list[Any], error: Error, wanted: _Wanted) -> tuple[Error, Sequence[Any]]:
    carried = _Carried(error)
    branches = [carried.traced(branch, wanted, "cond") for branch in equation.params["branches"]]
    return carried.split(_ferrax.bind_cond(branches, values[0], [*carried.leaves, *values[1:]]))


def _scan(equation: JaxprEqn, values: list[Any], error: Error, wanted: _Wanted) -> tuple[Error, Sequence[Any]]:
    p, carried = own(equation.params), _Carried(error)
    n = p["num_consts"]
    body = carried.traced(p["jaxpr"], wanted, "scan", values[:n])
    args = [*carried.leaves, *values[n:]]
    count = carried.count + p["num_carry"]
    return carried.split(_ferrax.bind_scan(body, args, p["length"], count, p["reverse"], p["unroll"], "scan"))


def _while(equation: JaxprEqn, values: list[Any], error: Error, wanted: _Wanted) -> tuple[Error, Sequence[Any]]:
    p = equation.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    test, consts, given = p["cond_jaxpr"], values[:first], values[second:]
    if _effects_of(test, wanted):
        error, _ = run(test, [*consts, *given], error, wanted)
    carried = _Carried(error)

    def holds(*flat: Any) -> list[Any]:
        # its own checks are made before the loop and after each step
        return run(test, [*consts, *flat[carried.count :]], Error({}, {}, {}, {}), frozenset())[1]

    def step(*flat: Any) -> list[Any]:
        after, results = run(
            p["body_jaxpr"], [*values[first:second], *flat[carried.count :]], carried.error(flat), wanted
        )
        if _effects_of(test, wanted):
            after, _ = run(test, [*consts, *results], after, wanted)
        return carried.flat(after) + results

    avals = [_ferrax.typeof(x) for x in (*carried.leaves, *given)]
    programs = traced(holds, avals, "while_loop"), traced(step, avals, "while_loop")
    return carried.split(_ferrax.bind_while(*programs, [*carried.leaves, *given], "while_loop"))


def _remat(equation: JaxprEqn, values: list[Any], error: Error, wanted: _Wanted) -> tuple[Error, Sequence[Any]]:
    from ferrax._checkpoint import _policy

    p, carried = own(equation.params), _Carried(error)
    body = carried.traced(p["jaxpr"], wanted, "checkpoint")
    if p["differentiated"]:
        return carried.split(body.eval(*carried.leaves, *values))
    policy = None if p["policy"] is None else _policy(named_function(p["policy"]).policy)
    return carried.split(_ferrax.bind_remat(body, [*carried.leaves, *values], p["prevent_cse"], policy))


def _custom_vmap(equation: JaxprEqn, values: list[Any], error: Error, wanted: _Wanted) -> tuple[Error, Sequence[Any]]:
    return run(equation.params["call"], values, error, wanted)


def _no_slope(x: Any) -> Any:
    """The derivative of a value that has none."""
    if dtypes.issubdtype(x.dtype, np.inexact):
        return jnp.zeros(x.shape, x.dtype)
    return np.zeros(x.shape, dtypes.float0)


def _rule_run(rule: Callable[..., list[Any]], args: Sequence[Any], wanted: _Wanted) -> tuple[Error, list[Any]]:
    """What a derivative rule's checks find, and its results."""
    with checks_become_values():
        program = traced(rule, [_ferrax.typeof(x) for x in args], "checkify")
    return run(program, [*program.captured, *args], Error({}, {}, {}, {}), wanted)


def _custom_jvp(equation: JaxprEqn, values: list[Any], error: Error, wanted: _Wanted) -> tuple[Error, Sequence[Any]]:
    """The function with checks; its derivative is the rule's, beside the function's error."""
    p, carried = own(equation.params), _Carried(error)
    rule = named_function(str(p["jvp"]))
    n = len(values) - rule.arity
    body = carried.body(p["call_jaxpr"], wanted, values[:n])

    def jvp(both: Sequence[Any], zero: list[bool]) -> list[Any]:
        half = len(both) // 2
        found = carried.error(body(*both[:half])[: carried.count])
        args = [*both[carried.count : half], *both[half + carried.count :]]
        # a value cannot depend on derivatives, and so neither can an error: the rule's own checks are left out
        _, outs = _rule_run(lambda *args: list(rule(args, zero[carried.count :])), args, frozenset())
        leaves, middle = carried.flat(found), len(outs) // 2
        return [*leaves, *outs[:middle], *map(_no_slope, leaves), *outs[middle:]]

    complaints = _shifted(rule.complaints, carried.count)
    name_function(jvp, "jvp", arity=carried.count + rule.arity, complaints=complaints)
    args = [*carried.leaves, *values[n:]]
    return carried.split(_ferrax.bind_custom_jvp(str(p["name"]), body, jvp, complaints, p["symbolic_zeros"], args))


def _custom_vjp(equation: JaxprEqn, values: list[Any], error: Error, wanted: _Wanted) -> tuple[Error, Sequence[Any]]:
    """The function with checks; its derivative is the rules', beside the function's error."""
    p, carried = own(equation.params), _Carried(error)
    fwd, bwd = named_function(str(p["fwd"])), named_function(str(p["bwd"]))
    n = len(values) - fwd.arity
    body = carried.body(p["call_jaxpr"], wanted, values[:n])

    def forward(perturbed: list[bool], *flat: Any) -> tuple[list[Any], list[Any]]:
        found, counts = carried.error(body(*flat)[: carried.count]), []

        def both(*args: Any) -> list[Any]:
            outs, residuals = fwd(perturbed[carried.count :], *args)
            counts.append(len(outs))
            return [*outs, *residuals]

        more, outs = _rule_run(both, flat[carried.count :], wanted)
        return [*carried.with_known(found, more), *outs[: counts[-1]]], outs[counts[-1] :]

    def backward(residuals: list[Any], cotangents: list[Any], zero: list[bool]) -> list[Any]:
        with checks_become_values(False):
            return [None] * carried.count + list(bwd(residuals, cotangents[carried.count :], zero[carried.count :]))

    complaints = _shifted(fwd.complaints, carried.count)
    name_function(forward, "fwd", arity=carried.count + fwd.arity, complaints=complaints)
    name_function(backward, "bwd")
    args = [*carried.leaves, *values[n:]]
    return carried.split(
        _ferrax.bind_custom_vjp(str(p["name"]), body, forward, backward, complaints, p["symbolic_zeros"], args)
    )


def _shifted(complaints: Any, count: int) -> Any:
    """Functions that make errors of rules, told the place of a leaf without the leading ones."""
    wrong_value, wrong_derivative = complaints
    return (
        lambda i, *texts: wrong_value(i - count, *texts),
        lambda i, *texts: wrong_derivative(i - count, *texts),
    )


_INSIDE: dict[str, Callable[[JaxprEqn, list[Any], Error, _Wanted], tuple[Error, Sequence[Any]]]] = {
    "cond": _cond,
    "custom_jvp_call": _custom_jvp,
    "custom_vjp_call": _custom_vjp,
    "custom_vmap_call": _custom_vmap,
    "jit": _jit,
    "remat2": _remat,
    "scan": _scan,
    "while": _while,
}
