"""Programs run from Python, equation by equation, so that a function can take the place of any of them.

An equation applies its operation to other values. Where equations are replaced, those with programs inside are made
anew from their parameters; functions among these (derivative rules) are printed as names, by which
`_named_functions.py` finds them. Read next:
`ferrax/experimental/checkify.py`, which replaces equations.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._ferrax import ClosedJaxpr, JaxprEqn
from ferrax._named_functions import named_function
from ferrax._parameters import own

__all__ = ["Rule", "bind", "evaluate", "parameters", "traced"]

#: What takes the place of an equation: gets it and the values of its operands, and gives its results, or None to have
#: the equation as it is.
Rule = Callable[[JaxprEqn, list[Any]], "Sequence[Any] | None"]


def _found(equation: JaxprEqn, params: dict[str, Any], key: str) -> Any:
    """The function that one of the core's parameters of an equation names."""
    text = str(params[key])
    function = named_function(text)
    if function is None:
        raise NotImplementedError(f"the {key} of {equation.primitive.name} is not known to Python: {text}")
    return function


def evaluate(program: ClosedJaxpr, args: Sequence[Any], rule: Rule | None = None) -> list[Any]:
    """Runs a program, with a function in the place of equations.

    Args:
      program: the program.
      args: a value, traced or not, for each of its arguments; values that the program captured come first.
      rule: what replaces equations.

    Returns:
      The list of results.

    Raises:
      TypeError: the arguments are not the program's.

    >>> import ferrax as jax
    >>> program = jax.make_jaxpr(lambda x: 2.0 * jax.numpy.sin(x))(1.0)
    >>> evaluate(program, [0.0], lambda equation, values: values if equation.primitive.name == "sin" else None)
    [Array(0., dtype=float32, weak_type=True)]
    """
    first = len(program.captured)
    if rule is None:
        return list(program.eval_captured(list(args[:first]), list(args[first:])))
    parameters = [*program.captured_vars, *program.invars]
    if len(args) != len(parameters):
        raise TypeError(f"the program takes {len(parameters)} arguments, got {len(args)}")
    values: dict[Any, Any] = dict(zip(program.constvars, program.consts, strict=True))
    values.update(zip(parameters, args, strict=True))

    def read(atom: Any) -> Any:
        return _ferrax.asarray(atom.val) if isinstance(atom, _ferrax.Literal) else values[atom]

    for equation in program.eqns:
        operands = [read(atom) for atom in equation.invars]
        results = rule(equation, operands)
        if results is None:
            results = bind(equation, operands, rule)
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in program.outvars]


def traced(function: Callable[..., Any], avals: Sequence[Any], asker: str = "make_jaxpr") -> ClosedJaxpr:
    """The program of a function of flat values.

    Args:
      function: gets one value for each type, and returns a sequence of values.
      avals: the types.
      asker: which function needs the program, for errors.

    Returns:
      The program, whose arguments are what it captured and then the function's.

    >>> import ferrax as jax
    >>> len(traced(lambda x: [x + 1], [jax.typeof(1.0)]).eqns)
    1
    """
    return _ferrax.trace_to_jaxpr(function, tuple(avals), None, asker)


def bind(equation: JaxprEqn, values: Sequence[Any], rule: Rule | None = None) -> list[Any]:
    """Applies the operation of an equation to other values.

    Args:
      equation: the equation.
      values: a value for each of its operands.
      rule: what replaces equations of the programs inside of it.

    Returns:
      The list of results.

    Raises:
      NotImplementedError: with a rule, a function among the parameters is not known to Python.
      TypeError: the equation has another number of operands.

    >>> import ferrax as jax
    >>> (equation,) = jax.make_jaxpr(jax.numpy.cumsum)(jax.numpy.arange(3)).eqns[-1:]
    >>> [print(x) for x in bind(equation, [jax.numpy.arange(3)])]
    [0 1 3]
    [None]
    """
    name = equation.primitive.name
    if rule is None or name not in _WITH_PROGRAMS:
        return equation.apply(*values)
    return list(_WITH_PROGRAMS[name](equation, list(values), rule))


# --- parameters


class _Numbers:
    """Dimension numbers: a text's keywords as attributes."""

    def __init__(self, **numbers: Any) -> None:
        self.__dict__.update(numbers)


def _parsed(value: Any) -> Any:
    """A parameter from its printed form: enums by name, dimension numbers as objects."""
    if isinstance(value, _ferrax.OpaqueParameter):
        # the text does not tell the operation, but it tells this parameter
        value = str(value)
    if not isinstance(value, str):
        return value
    try:
        tree = ast.parse(value, mode="eval").body
    except SyntaxError:
        return value
    return _node(tree, value)


def _node(tree: ast.AST, text: str) -> Any:
    from ferrax import lax

    if isinstance(tree, ast.Tuple):
        return tuple(_node(item, text) for item in tree.elts)
    if isinstance(tree, ast.List):
        return [_node(item, text) for item in tree.elts]
    if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
        return getattr(getattr(lax, tree.value.id), tree.attr)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        numbers = {k.arg: _node(k.value, text) for k in tree.keywords if k.arg}
        return getattr(lax, tree.func.id, _Numbers)(**numbers)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_node(tree.operand, text)
    if isinstance(tree, ast.Name):
        return {"nan": np.nan, "inf": np.inf}.get(tree.id, tree.id)
    return tree.value if isinstance(tree, ast.Constant) else text


def parameters(equation: JaxprEqn, *keys: str) -> list[Any]:
    """Parameters of an equation as Python's values: enums, dimension numbers as objects with their names.

    Args:
      equation: the equation.
      *keys: names of parameters.

    Returns:
      The list of values; None for a name that the equation does not have.

    >>> import ferrax as jax
    >>> (equation,) = jax.make_jaxpr(lambda x: jax.lax.reduce_sum(x, (0,)))(jax.numpy.ones(3)).eqns
    >>> parameters(equation, "axes")
    [(0,)]
    """
    return [_parsed(equation.params.get(key)) for key in keys]


# --- operations with programs


def _run(program: ClosedJaxpr, rule: Rule | None) -> Callable[..., list[Any]]:
    return lambda *values: evaluate(program, values, rule)


def _avals(program: ClosedJaxpr, first: int = 0) -> list[Any]:
    return list(program.in_avals[first:])


def _again(program: ClosedJaxpr, consts: Sequence[Any], rule: Rule | None, asker: str) -> ClosedJaxpr:
    """A program traced again, its leading arguments being given values."""
    return traced(lambda *args: evaluate(program, [*consts, *args], rule), _avals(program, len(consts)), asker)


def _jit(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    from ferrax._api import jit

    run = _run(equation.params["jaxpr"], rule)
    run.__name__ = str(equation.params["name"])
    return jit(run)(*values)


def _cond(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    branches = [_again(branch, (), rule, "cond") for branch in equation.params["branches"]]
    return _ferrax.bind_cond(branches, values[0], values[1:])


def _while(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    p = equation.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    test = _again(p["cond_jaxpr"], values[:first], rule, "while_loop")
    body = _again(p["body_jaxpr"], values[first:second], rule, "while_loop")
    return _ferrax.bind_while(test, body, values[second:], "while_loop")


def _scan(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    p = equation.params
    n = p["num_consts"]
    body = _again(p["jaxpr"], values[:n], rule, "scan")
    return _ferrax.bind_scan(body, values[n:], p["length"], p["num_carry"], p["reverse"], p["unroll"], "scan")


def _remat(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    from ferrax._checkpoint import _policy

    p = own(equation.params)
    body = _again(p["jaxpr"], (), rule, "checkpoint")
    policy = None if p["policy"] is None else _policy(_found(equation, p, "policy").policy)
    if p["differentiated"]:
        return body.eval(*values)
    return _ferrax.bind_remat(body, values, p["prevent_cse"], policy)


def _custom_jvp(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    p = own(equation.params)
    jvp = _found(equation, p, "jvp")
    consts = values[: len(values) - jvp.arity]
    fun = _run(p["call_jaxpr"], rule)
    return _ferrax.bind_custom_jvp(
        str(p["name"]),
        functools.partial(fun, *consts),
        jvp,
        jvp.complaints,
        p["symbolic_zeros"],
        values[len(consts) :],
    )


def _custom_vjp(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    p = own(equation.params)
    fwd, bwd = _found(equation, p, "fwd"), _found(equation, p, "bwd")
    consts = values[: len(values) - fwd.arity]
    fun = _run(p["call_jaxpr"], rule)
    return _ferrax.bind_custom_vjp(
        str(p["name"]),
        functools.partial(fun, *consts),
        fwd,
        bwd,
        fwd.complaints,
        p["symbolic_zeros"],
        values[len(consts) :],
    )


def _custom_vmap(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    vmap_rule = _found(equation, equation.params, "rule")
    first = len(values) - vmap_rule.arity
    call = _again(equation.params["call"], values[:first], rule, "custom_vmap")
    return _ferrax.bind_custom_vmap(call, str(equation.params["name"]), vmap_rule, values[first:])


def _linear_solve(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    p, parts, first = own(equation.params), {}, 0
    for name, n in zip(("matvec", "vecmat", "solve", "transpose_solve"), p["const_lengths"], strict=True):
        parts[name], first = values[first : first + n], first + n
    again = lambda name: p[name] and _again(p[name], parts[name], rule, "custom_linear_solve")
    matvec, solve, transpose_solve = (again(name) for name in ("matvec", "solve", "transpose_solve"))
    # a symmetric matrix's product is one program that is there twice
    pairs = zip(parts["matvec"], parts["vecmat"], strict=False)
    symmetric = p["matvec"] == p["vecmat"] and all(one is other for one, other in pairs)
    vecmat = matvec if symmetric else again("vecmat")
    return _ferrax.bind_linear_solve(matvec, vecmat, solve, transpose_solve, values[first:])


_WITH_PROGRAMS: dict[str, Callable[[JaxprEqn, list[Any], Rule | None], Any]] = {
    "cond": _cond,
    "custom_jvp_call": _custom_jvp,
    "custom_linear_solve": _linear_solve,
    "custom_vjp_call": _custom_vjp,
    "custom_vmap_call": _custom_vmap,
    "jit": _jit,
    "remat2": _remat,
    "scan": _scan,
    "while": _while,
}
