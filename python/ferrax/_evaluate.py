"""Programs run from Python, equation by equation, so that a function can take the place of any of them.

An equation shows its parameters as printed values; `bind` makes the operation anew from them. Functions among the
parameters (derivative rules, callbacks) are printed as names, by which `_named_functions.py` finds them. Read next:
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
from ferrax._ferrax import lax as _lax
from ferrax._named_functions import named_function

__all__ = ["Rule", "bind", "evaluate", "traced"]

#: What takes the place of an equation: gets it and the values of its operands, and gives its results, or None to have
#: the equation as it is.
Rule = Callable[[JaxprEqn, list[Any]], "Sequence[Any] | None"]


def _found(equation: JaxprEqn, key: str) -> Any:
    """The function that a parameter names."""
    text = str(equation.params[key])
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
    if rule is None:
        return list(program.eval(*args))
    if len(args) != len(program.invars):
        raise TypeError(f"the program takes {len(program.invars)} arguments, got {len(args)}")
    values: dict[Any, Any] = dict(zip(program.constvars, program.consts, strict=True))
    values.update(zip(program.invars, args, strict=True))

    def read(atom: Any) -> Any:
        literal = atom.val
        return values[atom] if literal is None else literal

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
      NotImplementedError: a parameter cannot be told from its printed form.

    >>> import ferrax as jax
    >>> (equation,) = jax.make_jaxpr(jax.numpy.cumsum)(jax.numpy.arange(3)).eqns[-1:]
    >>> [print(x) for x in bind(equation, [jax.numpy.arange(3)])]
    [0 1 3]
    [None]
    """
    name = equation.primitive.name
    if name in _WITH_PROGRAMS:
        return list(_WITH_PROGRAMS[name](equation, list(values), rule))
    if name in _PLAIN:
        out = _PLAIN[name](equation, *values)
        return list(out) if isinstance(out, (list, tuple)) else [out]
    raise NotImplementedError(f"the operation {name} cannot be applied from Python")


# --- parameters


class _Numbers:
    """Dimension numbers: a text's keywords as attributes."""

    def __init__(self, **numbers: Any) -> None:
        self.__dict__.update(numbers)


def _parsed(value: Any) -> Any:
    """A parameter from its printed form: enums by name, dimension numbers as objects."""
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


def _get(*keys: str) -> Callable[[JaxprEqn], list[Any]]:
    return lambda equation: [_parsed(equation.params.get(key)) for key in keys]


def _with(function: Callable[..., Any], *keys: str) -> Callable[..., Any]:
    """An operation whose parameters follow its operands."""
    get = _get(*keys)
    return lambda equation, *values: function(*values, *get(equation))


def _of_list(function: Callable[..., Any], *keys: str) -> Callable[..., Any]:
    """An operation of a list of operands."""
    get = _get(*keys)
    return lambda equation, *values: function(list(values), *get(equation))


def _across(name: str) -> Callable[..., Any]:
    return lambda equation, x: _lax.reduce_across(name, x, list(_get("axes")(equation)[0]))


def _axis_name(equation: JaxprEqn) -> str:
    given = equation.params["axis_name"]
    return str(given[0]) if isinstance(given, tuple) else str(given)


def _collective(function: Callable[..., Any], *keys: str) -> Callable[..., Any]:
    get = _get(*keys)
    return lambda equation, *values: function(*values, _axis_name(equation), *get(equation))


def _first_axis(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(equation: JaxprEqn, x: Any) -> Any:
        axes, dtype = _get("axes", "index_dtype")(equation)
        return function(x, axes[0], dtype)

    return call


def _scatter(kind: str) -> Callable[..., Any]:
    get = _get("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
    return lambda equation, *values: _lax.scatter(kind, *values, *get(equation))


def _window(kind: str) -> Callable[..., Any]:
    get = _get("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
    return lambda equation, x: _lax.reduce_window_monoid(x, kind, *get(equation))


def _broadcast(equation: JaxprEqn, x: Any) -> Any:
    return _lax.broadcast_in_dim(x, equation.outvars[0].aval.shape, equation.params.get("broadcast_dimensions", ()))


def _dynamic_slice(equation: JaxprEqn, x: Any, *starts: Any) -> Any:
    return _lax.dynamic_slice(x, starts, equation.params["slice_sizes"], False)


def _dynamic_update(equation: JaxprEqn, x: Any, update: Any, *starts: Any) -> Any:
    return _lax.dynamic_update_slice(x, update, starts, False)


def _schur(equation: JaxprEqn, x: Any) -> Any:
    return _lax.schur(x, equation.params["compute_schur_vectors"])


def _fft(equation: JaxprEqn, x: Any) -> Any:
    return _lax.fft(x, *_get("fft_type", "fft_lengths")(equation))


def _callback(kind: str) -> Callable[..., Any]:
    def call(equation: JaxprEqn, *values: Any) -> Any:
        chosen = "ordered" if kind == "io" and equation.params.get("ordered") else kind
        results = [v.aval for v in equation.outvars]
        method = equation.params["vmap_method"]
        return _ferrax.bind_callback(_found(equation, "callback"), results, chosen, method, list(values))

    return call


def _random(function: Callable[..., Any], *keys: str) -> Callable[..., Any]:
    return _with(function, *keys)


# names of primitives that are functions of their operands alone under another name, or the same
_RENAMED = {
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "not": "bitwise_not",
    "add_any": "add",
}
_SAME = """abs acos acosh add and add_any asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz complex
conj copy cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igammac imag is_finite le lgamma
log log1p logistic lt max min mul mulhi ne neg nextafter not or polygamma population_count pow real rem rsqrt select_n
shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square sub tan tanh xor zeta cholesky
cholesky_update hessenberg householder_product lu stop_gradient tridiagonal_solve random_clone random_fold_in
random_unwrap threefry2x32 """


def _plain_table() -> dict[str, Callable[..., Any]]:
    table: dict[str, Callable[..., Any]] = {}
    for name in _SAME.split():
        table[name] = _with(getattr(_lax, _RENAMED.get(name, name)))
    for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor"):
        table[name] = _with(getattr(_lax, name), "axes")
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        table[name] = _with(getattr(_lax, name), "axis", "reverse")
    for name in ("add", "sub", "mul", "min", "max"):
        table[f"scatter-{name}"] = _scatter(name)
    for name in ("psum", "pmax", "pmin"):
        table[name] = _across(name)
    for name in ("sum", "max", "min"):
        table[f"reduce_window_{name}"] = _window(name)
    return table


_PLAIN: dict[str, Callable[..., Any]] = _plain_table() | {
    "all_gather": _collective(_lax.all_gather, "all_gather_dimension", "tiled"),
    "all_to_all": _collective(_lax.all_to_all, "split_axis", "concat_axis", "tiled"),
    "argmax": _first_axis(_lax.argmax),
    "argmin": _first_axis(_lax.argmin),
    "axis_index": _collective(_lax.axis_index),
    "bitcast_convert_type": _with(_lax.bitcast_convert_type, "new_dtype"),
    "broadcast_in_dim": _broadcast,
    "concatenate": _of_list(_lax.concatenate, "dimension"),
    "conv_general_dilated": _with(
        _lax.conv_general_dilated,
        "window_strides",
        "padding",
        "lhs_dilation",
        "rhs_dilation",
        "dimension_numbers",
        "feature_group_count",
        "batch_group_count",
        "precision",
        "preferred_element_type",
    ),
    "convert_element_type": _with(_lax.convert, "new_dtype", "weak_type"),
    "debug_callback": _callback("debug"),
    "dot_general": _with(_lax.dot_general, "dimension_numbers", "precision", "preferred_element_type"),
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update,
    "eig": _with(_lax.eig, "compute_left_eigenvectors", "compute_right_eigenvectors"),
    "eigh": _with(_lax.eigh, "lower", "sort_eigenvalues"),
    "fft": _fft,
    "gather": _with(
        _lax.gather,
        "dimension_numbers",
        "slice_sizes",
        "unique_indices",
        "indices_are_sorted",
        "mode",
        "fill_value",
    ),
    "integer_pow": _with(_lax.integer_pow, "y"),
    "io_callback": _callback("io"),
    "iota": _with(_lax.broadcasted_iota, "dtype", "shape", "dimension"),
    "lu_pivots_to_permutation": _with(_lax.lu_pivots_to_permutation, "permutation_size"),
    "lu_solve": _with(_lax.lu_solve, "transpose_a", "conjugate_a"),
    "name": lambda equation, x: _lax.checkpoint_name(x, str(equation.params["name"])),
    "optimization_barrier": _of_list(_lax.optimization_barrier),
    "ormqr": _with(_lax.ormqr, "left", "transpose"),
    "pad": _with(_lax.pad, "padding_config"),
    "pbroadcast": _collective(_lax.pbroadcast, "source"),
    "ppermute": _collective(_lax.ppermute, "perm"),
    "pure_callback": _callback("pure"),
    "qr": _with(_lax.qr, "full_matrices", "pivoting"),
    "random_bits": _with(_lax.random_bits, "bit_width", "shape"),
    "random_seed": _with(_lax.random_seed),
    "random_split": _with(_lax.random_split, "shape"),
    "random_wrap": _with(_lax.random_wrap),
    "reduce_precision": _with(_lax.reduce_precision, "exponent_bits", "mantissa_bits"),
    "reduce_scatter": _collective(_lax.reduce_scatter, "scatter_dimension", "tiled"),
    "reshape": _with(_lax.reshape, "new_sizes"),
    "rev": _with(_lax.rev, "dimensions"),
    "round": _with(_lax.round, "rounding_method"),
    "scatter": _scatter("set"),
    "schur": _schur,
    "slice": _with(_lax.slice, "start_indices", "limit_indices", "strides"),
    "sort": _of_list(_lax.sort, "dimension", "is_stable", "num_keys"),
    "split": _with(_lax.split, "sizes", "axis"),
    "squeeze": _with(_lax.squeeze, "dimensions"),
    "stack": _of_list(_lax.stack, "axis"),
    "svd": _with(_lax.svd, "full_matrices", "compute_uv"),
    "tile": _with(_lax.tile, "reps"),
    "top_k": _with(_lax.top_k, "k", "axis"),
    "transpose": _with(_lax.transpose, "permutation"),
    "triangular_solve": _with(
        _lax.triangular_solve, "left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"
    ),
    "tridiagonal": _with(_lax.tridiagonal, "lower"),
    "unstack": _with(_lax.unstack, "axis"),
}


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

    p = equation.params
    body = _again(p["jaxpr"], (), rule, "checkpoint")
    policy = None if p["policy"] is None else _policy(_found(equation, "policy").policy)
    if p["differentiated"]:
        return body.eval(*body.captured, *values)
    return _ferrax.bind_remat(body, values, p["prevent_cse"], policy)


def _custom_jvp(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    p, jvp = equation.params, _found(equation, "jvp")
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
    p, fwd, bwd = equation.params, _found(equation, "fwd"), _found(equation, "bwd")
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
    vmap_rule = _found(equation, "rule")
    first = len(values) - vmap_rule.arity
    call = _again(equation.params["call"], values[:first], rule, "custom_vmap")
    return _ferrax.bind_custom_vmap(call, str(equation.params["name"]), vmap_rule, values[first:])


def _linear_solve(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    p, programs, first = equation.params, [], 0
    for name, n in zip(("matvec", "vecmat", "solve", "transpose_solve"), p["const_lengths"], strict=True):
        consts, first = values[first : first + n], first + n
        programs.append(p[name] and _again(p[name], consts, rule, "custom_linear_solve"))
    matvec, vecmat, solve, transpose_solve = programs
    return _ferrax.bind_linear_solve(matvec, vecmat, solve, transpose_solve, values[first:])


def _reduce(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    p, n = equation.params, len(values) // 2
    return _lax.reduce(values[:n], values[n:], p["jaxpr"], p["dimensions"])


def _reduce_window(equation: JaxprEqn, values: list[Any], rule: Rule | None) -> Any:
    n = len(values) // 2
    where = _get("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")(equation)
    return _lax.reduce_window(values[:n], values[n:], equation.params["jaxpr"], *where)


_WITH_PROGRAMS: dict[str, Callable[[JaxprEqn, list[Any], Rule | None], Any]] = {
    "cond": _cond,
    "custom_jvp_call": _custom_jvp,
    "custom_linear_solve": _linear_solve,
    "custom_vjp_call": _custom_vjp,
    "custom_vmap_call": _custom_vmap,
    "jit": _jit,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "remat2": _remat,
    "scan": _scan,
    "while": _while,
}
