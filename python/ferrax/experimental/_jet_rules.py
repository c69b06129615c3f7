"""How operations pass Taylor series on.

Operations that are linear apply to each coefficient, those linear in two operands give Cauchy products, elementwise
functions have recurrences (`_series.py`), and choices follow the values. What has no rule is differentiated once for
each coefficient along the curve that the operands describe, at a cost that doubles with each. Read next: `jet.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, dtypes, lax, numpy as jnp
from ferrax._evaluate import bind, evaluate, parameters, traced
from ferrax._ferrax import ClosedJaxpr, JaxprEqn, lax as _lax
from ferrax._parameters import own
from ferrax._primitives import built_in
from ferrax.experimental import _series as series
from ferrax.experimental._series import Series

__all__ = ["Jet", "OwnRule", "jet_rules", "run"]


class Jet:
    """A value of a program that has a series."""

    def __init__(self, terms: Sequence[Any]) -> None:
        self.terms = list(terms)


def run(program: ClosedJaxpr, args: Sequence[Any], order: int) -> list[Any]:
    """Runs a program on values of which some are series.

    Args:
      program: the program.
      args: an array or a `Jet` for each argument.
      order: number of coefficients of each series after the value.

    Returns:
      An array or a `Jet` for each result.
    """
    return evaluate(program, args, functools.partial(_step, order))


def _step(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    name = equation.primitive.name
    if not any(isinstance(v, Jet) for v in values):
        return bind(equation, values)
    by_user = jet_rules.get(equation.primitive)
    if by_user is not None and not isinstance(by_user, OwnRule):
        return _by_user(by_user, order, equation, values)
    if name in _PROGRAMS:
        return _PROGRAMS[name](order, equation, values)
    if name in _CONSTANT or not any(dtypes.issubdtype(v.aval.dtype, np.inexact) for v in equation.outvars):
        return bind(equation, [_value(v) for v in values])
    rule = _RULES.get(name, _by_derivatives)
    # a program's operands may be an array and a number, whose products have the array's shape
    return rule(order, equation, values)


class OwnRule:
    """A rule of the library in JAX's form: a function of operands, of lists of coefficients, and of parameters.

    Args:
      primitive: the operation.
    """

    def __init__(self, primitive: Any) -> None:
        self.primitive = primitive

    def __call__(self, primals_in: Sequence[Any], series_in: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        primitive, order = self.primitive, len(series_in[0])
        values = [jnp.asarray(x) for x in primals_in]

        def call(*args: Any) -> Any:
            out = primitive.bind(*args, **primitive.get_bind_params(params))
            return out if primitive.multiple_results else [out]

        program = traced(call, [_ferrax.typeof(x) for x in values], "jet")
        jets = [Jet([x, *terms]) for x, terms in zip(values, series_in, strict=True)]
        outs = run(program, [*program.captured, *jets], order)
        firsts = [_value(v) for v in outs]
        rest = [_terms(v, order)[1:] for v in outs]
        return (firsts, rest) if primitive.multiple_results else (firsts[0], rest[0])


def _by_user(rule: Callable[..., Any], order: int, equation: JaxprEqn, values: list[Any]) -> list[Any]:
    """What a user's rule gives, which may leave out series of zeros."""
    primitive, keys = equation.primitive, list(equation.params)
    read = parameters(equation, *keys) if primitive._ferrax_built_in else list(equation.params.values())
    primals = [_value(v) for v in values]
    series_in = [_terms(v, order)[1:] for v in values]
    first, rest = rule(primals, series_in, **dict(zip(keys, read, strict=True)))
    if not primitive.multiple_results:
        first, rest = [first], [rest]
    elif not isinstance(rest, (list, tuple)):
        rest = [rest] * len(first)
    return [Jet([x, *ts]) if isinstance(ts, (list, tuple)) else x for x, ts in zip(first, rest, strict=True)]


def _value(v: Any) -> Any:
    return v.terms[0] if isinstance(v, Jet) else v


def _terms(v: Any, order: int) -> Series:
    return v.terms if isinstance(v, Jet) else series.constant(v, order)


# --- operations that are linear


def _linear(count: int | None = None) -> Callable[..., Any]:
    """An operation that is linear in its first operands together; the others have no series."""

    def rule(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
        n = len(values) if count is None else count
        moving = [_terms(v, order) for v in values[:n]]
        rest = [_value(v) for v in values[n:]]
        outs = [bind(equation, [u[k] for u in moving] + rest) for k in range(order + 1)]
        return [Jet(terms) for terms in zip(*outs, strict=True)]

    return rule


def _select(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    which, cases = _value(values[0]), [_terms(v, order) for v in values[1:]]
    return [Jet([bind(equation, [which, *(u[k] for u in cases)])[0] for k in range(order + 1)])]


def _gather(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    """Entries of the coefficients; those that are filled in have no slope."""
    keys = ("dimension_numbers", "slice_sizes", "unique_indices", "indices_are_sorted", "mode")
    numbers, sizes, unique, ordered, mode = parameters(equation, *keys)
    terms = _terms(values[0], order)
    first = bind(equation, [terms[0], values[1]])[0]
    rest = (_lax.gather(t, values[1], numbers, sizes, unique, ordered, mode, 0) for t in terms[1:])
    return [Jet([first, *rest])]


def _scatter(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    operand, indices, updates = values
    pairs = zip(_terms(operand, order), _terms(updates, order), strict=True)
    return [Jet([bind(equation, [x, indices, u])[0] for x, u in pairs])]


def _bilinear(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    def op(x: Any, y: Any) -> Any:
        return bind(equation, [x, y])[0]

    left, right = values
    if not isinstance(right, Jet):
        return [Jet([op(x, right) for x in left.terms])]
    if not isinstance(left, Jet):
        return [Jet([op(left, y) for y in right.terms])]
    terms = []
    for k in range(order + 1):
        parts = [op(left.terms[j], right.terms[k - j]) for j in range(k + 1)]
        terms.append(functools.reduce(jnp.add, parts))
    return [Jet(terms)]


# --- elementwise functions


def _spread(u: Series, like: Any) -> Series:
    """The series of a scalar operand beside an array."""
    shape = like.aval.shape
    return [x if jnp.shape(x) == shape else jnp.broadcast_to(x, shape) for x in u]


def _unary(function: Callable[[Series, Any], Series]) -> Callable[..., Any]:
    """An elementwise function from its operand's series and its value."""

    def rule(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
        u = _terms(values[0], order)
        return [Jet(function(u, bind(equation, [u[0]])[0]))]

    return rule


def _binary(function: Callable[[Series, Series, Any], Series]) -> Callable[..., Any]:
    def rule(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
        u, w = (_spread(_terms(v, order), equation.outvars[0]) for v in values)
        return [Jet(function(u, w, bind(equation, [_value(v) for v in values])[0]))]

    return rule


def _sum(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    """Sums and differences; a constant only adds to the value."""
    left, right = values
    out = equation.outvars[0]
    name = equation.primitive.name
    if isinstance(left, Jet) and isinstance(right, Jet):
        return _linear()(order, equation, values)
    first = bind(equation, [_value(left), _value(right)])[0]
    moving = left if isinstance(left, Jet) else right
    slopes = _spread(moving.terms, out)[1:]
    return [Jet([first, *((-t for t in slopes) if moving is right and name == "sub" else slopes)])]


def _divide(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    left, right = values
    if not isinstance(right, Jet):
        return [Jet([bind(equation, [t, right])[0] for t in left.terms])]
    return [Jet(series.divide(*(_spread(_terms(v, order), equation.outvars[0]) for v in values)))]


def _power(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    base, exponent = values
    value = bind(equation, [_value(base), _value(exponent)])[0]
    if not isinstance(exponent, Jet):
        return [Jet(series.power(_spread(base.terms, equation.outvars[0]), value, exponent))]
    u = _spread(_terms(base, order), equation.outvars[0])
    logs = series.logarithm(u, lax.log(u[0]))
    return [Jet(series.exponential(series.multiply(logs, _terms(exponent, order)), value))]


def _integer_power(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    return [Jet(series.integer_power(values[0].terms, equation.params["y"]))]


def _one(u: Series) -> Series:
    return series.constant(jnp.ones_like(u[0]), len(u) - 1)


def _slope(of: Callable[[Series], Series]) -> Callable[..., Any]:
    """A function by the series of its derivative."""
    return _unary(lambda u, value: series.from_derivative(u, value, of(u)))


def _inverse_root(u: Series) -> Series:
    return series.power(u, lax.rsqrt(u[0]), -0.5)


def _square(u: Series) -> Series:
    return series.multiply(u, u)


def _bell(u: Series) -> Series:
    """The series of exp(-u**2)."""
    exponent = series.scaled(_square(u), -1.0)
    return series.exponential(exponent, lax.exp(exponent[0]))


def _area_cosine(u: Series) -> Series:
    """The series of 1 / sqrt((u - 1) (u + 1))."""
    return _inverse_root(series.multiply(series.shifted(u, -1.0), series.shifted(u, 1.0)))


def _error_inverse(u: Series, value: Any) -> Series:
    """v = erf_inv(u): v' = u' sqrt(pi) / 2 exp(v**2)."""

    def slope(v: Series) -> Series:
        squares = _square(v)
        return series.scaled(series.exponential(squares, lax.exp(squares[0])), math.sqrt(math.pi) / 2)

    return series.with_slope(u, value, slope)


def _arc(y: Series, x: Series, value: Any) -> Series:
    """v = atan2(y, x): v' = (x y' - y x') / (x**2 + y**2)."""
    scale = series.divide(_one(x), series.add(_square(x), _square(y)))
    first, second = series.multiply(scale, x), series.multiply(scale, y)
    along = series.from_derivative(y, value, first)
    across = series.from_derivative(x, jnp.zeros_like(value), second)
    return series.add(along, across, -1)


def _remainder(u: Series, w: Series, value: Any) -> Series:
    whole = lax.round((u[0] - value) / w[0])
    return [value, *(a - whole * b for a, b in zip(u[1:], w[1:], strict=True))]


def _magnitude(u: Series, value: Any) -> Series:
    if dtypes.issubdtype(u[0].dtype, np.complexfloating):
        squares = series.add(_square([x.real for x in u]), _square([x.imag for x in u]))
        return series.square_root(squares, value)
    sign = lax.sign(u[0])
    return [value, *(sign * t for t in u[1:])]


def _greater(pick: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The larger or smaller of two: the one's slope, and the mean of both where they are equal."""

    def function(u: Series, w: Series, value: Any) -> Series:
        first, same = pick(u[0], w[0]), u[0] == w[0]
        rest = zip(u[1:], w[1:], strict=True)
        return [value, *(jnp.where(same, (a + b) * 0.5, jnp.where(first, a, b)) for a, b in rest)]

    return _binary(function)


def _clamp(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    low, u, high = (_terms(v, order) for v in values)
    value = bind(equation, [low[0], u[0], high[0]])[0]
    below, above = u[0] < low[0], u[0] > high[0]
    inside = (u[0] > low[0]) & (u[0] < high[0])
    zero = jnp.zeros_like(value)
    terms = [value]
    for a, b, c in zip(low[1:], u[1:], high[1:], strict=True):
        terms.append(jnp.where(inside, b, jnp.where(below, a, jnp.where(above, c, zero))))
    return [Jet(terms)]


def _extreme(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    """The largest or smallest along axes: the mean slope of the entries that are."""
    u, axes = values[0].terms, equation.params["axes"]
    value = bind(equation, [u[0]])[0]
    here = u[0] == jnp.expand_dims(value, axes)
    count = jnp.sum(here, axis=axes, dtype=value.dtype)
    zero = jnp.zeros_like(u[0])
    return [Jet([value, *(jnp.sum(jnp.where(here, t, zero), axis=axes) / count for t in u[1:])])]


# --- what has no rule


def _by_derivatives(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    """Derivatives along the curve of the operands' polynomials, one inside of the other."""
    from ferrax._derivatives import jvp

    def along(t: Any) -> list[Any]:
        return bind(equation, [_polynomial(v.terms, t) if isinstance(v, Jet) else v for v in values])

    def slope(f: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
        return lambda t: list(jvp(f, (t,), (jnp.ones_like(t),))[1])

    moving = next(v.terms[0] for v in values if isinstance(v, Jet))
    zero = jnp.zeros((), jnp.real(moving).dtype)
    found: list[list[Any]] = []
    f: Callable[[Any], list[Any]] = along
    for _ in range(order + 1):
        found.append(f(zero))
        f = slope(f)
    outs = []
    for v, *terms in zip(equation.outvars, *found, strict=True):
        if not dtypes.issubdtype(v.aval.dtype, np.inexact):
            outs.append(terms[0])
        else:
            outs.append(Jet([t / series.factorial(k) for k, t in enumerate(terms)]))
    return outs


def _polynomial(terms: Series, t: Any) -> Any:
    out = terms[-1]
    for term in terms[-2::-1]:
        out = out * t.astype(out.dtype) + term
    return out


# --- operations with programs


def _inline(key: str) -> Callable[..., Any]:
    return lambda order, equation, values: run(own(equation.params)[key], values, order)


class _Flat:
    """Values as a flat list: every one that is floating or complex has a series, so that loops keep their types."""

    def __init__(self, order: int, avals: Sequence[Any]) -> None:
        self.order = order
        self.moves = [dtypes.issubdtype(a.dtype, np.inexact) for a in avals]

    def leaves(self, values: Sequence[Any]) -> list[Any]:
        out: list[Any] = []
        for moves, v in zip(self.moves, values, strict=True):
            out += _terms(v, self.order) if moves else [_value(v)]
        return out

    def values(self, leaves: Sequence[Any]) -> list[Any]:
        rest = iter(leaves)
        return [Jet([next(rest) for _ in range(self.order + 1)]) if moves else next(rest) for moves in self.moves]


def _again(program: ClosedJaxpr, order: int, consts: Sequence[Any], asker: str, carry: int = 0) -> ClosedJaxpr:
    """A program of series, the first operands being given; the types of the first results are those of the operands."""
    avals = program.in_avals[len(consts) :]
    given, results = _Flat(order, avals), _Flat(order, program.out_avals)

    def call(*leaves: Any) -> list[Any]:
        outs = results.leaves(run(program, [*consts, *given.values(leaves)], order))
        return [_ferrax.with_weak_type(x, False) for x in outs]

    flat = [_ferrax.typeof(x) for x in _blank(given, avals)]
    return traced(call, flat, asker)


def _blank(flat: _Flat, avals: Sequence[Any]) -> list[Any]:
    out = []
    for moves, a in zip(flat.moves, avals, strict=True):
        out += [_ferrax.ShapedArray(a.shape, a.dtype)] * (flat.order + 1 if moves else 1)
    return out


def _strong(leaves: Sequence[Any]) -> list[Any]:
    return [_ferrax.with_weak_type(jnp.asarray(x), False) for x in leaves]


def _cond(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    branches = equation.params["branches"]
    given, results = _Flat(order, branches[0].in_avals), _Flat(order, branches[0].out_avals)
    programs = [_again(b, order, (), "cond") for b in branches]
    return results.values(_ferrax.bind_cond(programs, _value(values[0]), _strong(given.leaves(values[1:]))))


def _scan(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    p = equation.params
    n, carry, program = p["num_consts"], p["num_carry"], p["jaxpr"]
    body = _again(program, order, values[:n], "scan")
    given, results = _Flat(order, program.in_avals[n:]), _Flat(order, program.out_avals)
    count = sum(order + 1 if moves else 1 for moves in given.moves[:carry])
    leaves = _strong(given.leaves(values[n:]))
    return results.values(_ferrax.bind_scan(body, leaves, p["length"], count, p["reverse"], p["unroll"], "scan"))


def _while(order: int, equation: JaxprEqn, values: list[Any]) -> Sequence[Any]:
    p = equation.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    consts = [_value(v) for v in values[:first]]
    flat = _Flat(order, p["body_jaxpr"].out_avals)

    def holds(*leaves: Any) -> list[Any]:
        return evaluate(p["cond_jaxpr"], [*consts, *(_value(v) for v in flat.values(leaves))])

    body = _again(p["body_jaxpr"], order, values[first:second], "while_loop")
    leaves = _strong(flat.leaves(values[second:]))
    test = traced(holds, [_ferrax.typeof(x) for x in leaves], "while_loop")
    return flat.values(_ferrax.bind_while(test, body, leaves, "while_loop"))


_PROGRAMS: dict[str, Callable[..., Sequence[Any]]] = {
    "cond": _cond,
    "custom_jvp_call": _inline("call_jaxpr"),
    "custom_vjp_call": _inline("call_jaxpr"),
    "jit": _inline("jaxpr"),
    "remat2": _inline("jaxpr"),
    "scan": _scan,
    "while": _while,
}

_CONSTANT = frozenset(["ceil", "floor", "nextafter", "round", "sign", "stop_gradient"])

_LINEAR_TEXT = """add_any all_gather all_to_all broadcast_in_dim complex concatenate conj convert_element_type copy
cumsum fft imag neg optimization_barrier pad pbroadcast ppermute psum real reduce_precision reduce_scatter reduce_sum
reduce_window_sum reshape rev slice split squeeze stack tile transpose unstack name"""

_RULES: dict[str, Callable[..., Sequence[Any]]] = {
    **{name: _linear() for name in _LINEAR_TEXT.split()},
    "abs": _unary(_magnitude),
    "acos": _unary(
        lambda u, v: series.from_derivative(
            u, v, series.scaled(_inverse_root(series.add(_one(u), _square(u), -1)), -1.0)
        )
    ),
    "acosh": _slope(_area_cosine),
    "add": _sum,
    "asin": _slope(lambda u: _inverse_root(series.add(_one(u), _square(u), -1))),
    "asinh": _slope(lambda u: _inverse_root(series.add(_one(u), _square(u)))),
    "atan": _slope(lambda u: series.divide(_one(u), series.add(_one(u), _square(u)))),
    "atan2": _binary(_arc),
    "atanh": _slope(lambda u: series.divide(_one(u), series.add(_one(u), _square(u), -1))),
    "cbrt": _unary(lambda u, v: series.power(u, v, 1.0 / 3.0)),
    "clamp": _clamp,
    "conv_general_dilated": _bilinear,
    "cos": _unary(lambda u, _: series.trigonometric(u)[1]),
    "cosh": _unary(lambda u, _: series.hyperbolic(u)[1]),
    "div": _divide,
    "dot_general": _bilinear,
    "dynamic_slice": _linear(1),
    "dynamic_update_slice": _linear(2),
    "erf": _slope(lambda u: series.scaled(_bell(u), 2.0 / math.sqrt(math.pi))),
    "erf_inv": _unary(_error_inverse),
    "erfc": _slope(lambda u: series.scaled(_bell(u), -2.0 / math.sqrt(math.pi))),
    "exp": _unary(series.exponential),
    "exp2": _unary(lambda u, v: series.exponential(series.scaled(u, math.log(2.0)), v)),
    "expm1": _unary(lambda u, v: [v, *series.exponential(u, lax.exp(u[0]))[1:]]),
    "gather": _gather,
    "integer_pow": _integer_power,
    "log": _unary(series.logarithm),
    "log1p": _unary(lambda u, v: series.logarithm(series.shifted(u, 1.0), v)),
    "logistic": _unary(lambda u, v: series.with_slope(u, v, lambda w: series.multiply(w, series.add(_one(w), w, -1)))),
    "max": _greater(lambda a, b: a > b),
    "min": _greater(lambda a, b: a < b),
    "mul": _bilinear,
    "pow": _power,
    "reduce_max": _extreme,
    "reduce_min": _extreme,
    "rem": _binary(_remainder),
    "rsqrt": _unary(lambda u, v: series.power(u, v, -0.5)),
    "scatter": _scatter,
    "scatter-add": _scatter,
    "scatter-sub": _scatter,
    "select_n": _select,
    "sin": _unary(lambda u, _: series.trigonometric(u)[0]),
    "sinh": _unary(lambda u, _: series.hyperbolic(u)[0]),
    "sqrt": _unary(series.square_root),
    "square": _unary(lambda u, _: _square(u)),
    "sub": _sum,
    "tan": _unary(lambda u, _: series.divide(*series.trigonometric(u))),
    "tanh": _unary(lambda u, v: series.with_slope(u, v, lambda w: series.add(_one(w), _square(w), -1))),
}

_NO_SLOPE = """and bitcast_convert_type eq ge gt is_finite le lt ne not or shift_left shift_right_arithmetic
shift_right_logical xor"""

#: Rules by primitive, in JAX's form. Those of users come before the rules here.
jet_rules: dict[Any, Callable[..., Any]] = {
    built_in(name): OwnRule(built_in(name)) for name in sorted({*_RULES, *_CONSTANT, *_NO_SLOPE.split()})
}
