"""A row for every primitive: a program that binds it, on JAX and on ferrax, with the operands to try.

`case(draw, dtype)` of a row draws what is static and the operands, and gives `(program, operands)`; the program takes
the module (`jax` or `ferrax`) first. Read next: `test_rows.py`, which runs the rows, and `programs_of_rows.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests import draws

ROWS: dict[str, "Row"] = {}

FLOATS = ("float32", "bfloat16", "float16")
COMPLEX = ("complex64",)
SIGNED = ("int32", "int8")
UNSIGNED = ("uint32", "uint8")
INTEGERS = SIGNED + UNSIGNED
BOOL = ("bool",)
RTOL = {"float32": 1e-5, "bfloat16": 3e-2, "float16": 4e-3, "complex64": 4e-5}


@dataclass(frozen=True)
class Row:
    """How one primitive is tried.

    Args:
        case: draws a program and its operands.
        dtypes: the dtypes it is tried with.
        slopes: whether derivatives are compared with JAX's and with finite differences.
        rtol: relative tolerance of results by dtype, where it is not the usual one.
        batched: whether `vmap` over the operands is compared with a loop.
        seed: the first seed of its draws.
    """

    case: Callable[..., Any]
    dtypes: tuple[str, ...]
    slopes: bool = False
    rtol: float | None = None
    batched: bool = True
    seed: int = 0


def numbers(draw, shape, dtype, domain="any"):
    """Numbers of a dtype within a domain, from a seed that is drawn."""
    rng = np.random.default_rng(draw(draws.integers(0, 2**16)))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return rng.integers(0 if dtype[0] == "u" else -40, 41, shape).astype(dtype)
    low, high = {"any": (-3, 3), "unit": (-0.9, 0.9), "positive": (0.2, 4), "above1": (1.2, 5)}[domain]
    x = rng.uniform(low, high, shape)
    if dtype.startswith("complex"):
        return (x + 1j * rng.uniform(0.1, 2, shape)).astype(dtype)
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


# Few shapes: JAX compiles each anew.
SHAPES = draws.sampled_from([(), (3,), (2, 3), (0, 2), (1, 3), (2, 1, 3)])
FULL = draws.sampled_from([(3,), (2, 3), (4, 1), (2, 3, 2)])


def row(name, dtypes, slopes=False, **kwargs):
    """Adds the decorated case as the row of a primitive."""

    def add(case):
        assert name not in ROWS, name
        ROWS[name] = Row(case, dtypes, slopes, **kwargs)
        return case

    return add


# ---- elementwise -----------------------------------------------------------------------------------------------------


def unary(name, dtypes, domain="any", slopes=True, function=None, **kwargs):
    def case(draw, dtype):
        call = lambda jax, x: getattr(jax.lax, function or name)(x)
        return call, [numbers(draw, draw(SHAPES), dtype, domain)]

    ROWS[name] = Row(case, dtypes, slopes, **kwargs)


for _name in ("exp", "exp2", "expm1", "tanh", "logistic", "sin", "cos", "tan", "sinh", "cosh", "asinh", "atan"):
    unary(_name, FLOATS + COMPLEX)
for _name in ("log", "log1p", "sqrt", "rsqrt"):
    unary(_name, FLOATS + COMPLEX, "positive")
for _name in ("asin", "acos", "atanh"):
    unary(_name, FLOATS + COMPLEX, "unit")
unary("acosh", FLOATS + COMPLEX, "above1")
unary("cbrt", FLOATS, "positive")
for _name in ("neg", "square"):
    unary(_name, FLOATS + COMPLEX + INTEGERS)
unary("abs", FLOATS + COMPLEX + SIGNED, "positive")
unary("sign", FLOATS + COMPLEX + INTEGERS, "positive")
for _name in ("floor", "ceil", "round"):
    unary(_name, FLOATS, slopes=False)
unary("is_finite", FLOATS, slopes=False)
unary("erf", FLOATS)
unary("erfc", FLOATS)
unary("erf_inv", FLOATS, "unit")
unary("lgamma", FLOATS, "above1", rtol=3e-5)
unary("digamma", FLOATS[:1], "above1", slopes=False, rtol=3e-5)
unary("bessel_i0e", FLOATS[:1], rtol=3e-5)
unary("bessel_i1e", FLOATS[:1], rtol=3e-5)
unary("real", COMPLEX, slopes=False)
unary("imag", COMPLEX, slopes=False)
unary("conj", COMPLEX)
unary("not", INTEGERS + BOOL, slopes=False, function="bitwise_not")
unary("population_count", INTEGERS, slopes=False)
unary("clz", INTEGERS, slopes=False)
unary("stop_gradient", FLOATS + INTEGERS, slopes=False)


@row("integer_pow", FLOATS + COMPLEX + SIGNED, slopes=True)
def _(draw, dtype):
    y = draw(draws.integers(0 if dtype.startswith("int") else -3, 4))
    return lambda jax, x: jax.lax.integer_pow(x, y), [numbers(draw, draw(SHAPES), dtype, "positive")]


@row("reduce_precision", FLOATS)
def _(draw, dtype):
    e, m = draw(draws.sampled_from([(5, 10), (8, 7), (4, 3)]))
    return lambda jax, x: jax.lax.reduce_precision(x, e, m), [numbers(draw, draw(SHAPES), dtype)]


@row("convert_element_type", FLOATS + INTEGERS + BOOL)
def _(draw, dtype):
    to = draw(draws.sampled_from(["float32", "bfloat16", "int32", "uint8", "bool", "complex64"]))
    if to == dtype:
        to = "uint32" if dtype == "int32" else "int32"
    return lambda jax, x: jax.lax.convert_element_type(x, to), [numbers(draw, draw(SHAPES), dtype, "positive")]


@row("bitcast_convert_type", ("float32", "bfloat16", "int32", "uint8"))
def _(draw, dtype):
    same = {"float32": "int32", "bfloat16": "uint16", "int32": "float32", "uint8": "int8"}[dtype]
    to = draw(draws.sampled_from([same, {"float32": "uint8", "int32": "uint16"}.get(dtype, same)]))
    return lambda jax, x: jax.lax.bitcast_convert_type(x, to), [numbers(draw, draw(SHAPES), dtype, "positive")]


def binary(name, dtypes, domain="any", slopes=False, function=None, **kwargs):
    def case(draw, dtype):
        shape = draw(SHAPES)
        args = [numbers(draw, shape, dtype, domain), numbers(draw, shape, dtype, domain)]
        return (lambda jax, x, y: getattr(jax.lax, function or name)(x, y)), args

    ROWS[name] = Row(case, dtypes, slopes, **kwargs)


for _name in ("add", "sub", "mul"):
    binary(_name, FLOATS + COMPLEX + INTEGERS, slopes=True)
binary("div", FLOATS + COMPLEX + INTEGERS, "positive", slopes=True)
binary("rem", FLOATS + INTEGERS, "positive")
for _name in ("max", "min"):
    binary(_name, FLOATS + INTEGERS + BOOL, slopes=True)
binary("pow", FLOATS + COMPLEX, "positive", slopes=True)
binary("atan2", FLOATS, "positive", slopes=True)
binary("nextafter", FLOATS[:1])
binary("complex", FLOATS[:1], slopes=False)
for _name, _function in (("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor")):
    binary(_name, INTEGERS + BOOL, function=_function)
for _name in ("shift_left", "shift_right_arithmetic", "shift_right_logical", "mulhi"):
    binary(_name, INTEGERS)
for _name in ("eq", "ne"):
    binary(_name, FLOATS + COMPLEX + INTEGERS + BOOL)
for _name in ("lt", "le", "gt", "ge"):
    binary(_name, FLOATS + INTEGERS + BOOL)
for _name in ("igamma", "igammac"):
    binary(_name, FLOATS[:1], "positive", rtol=1e-4)
binary("zeta", FLOATS[:1], "above1", rtol=1e-4)


@row("polygamma", FLOATS[:1], rtol=1e-4)
def _(draw, dtype):
    shape = draw(SHAPES)
    order = np.full(shape, draw(draws.integers(1, 3)), dtype)
    return lambda jax, x: jax.lax.polygamma(order, x), [numbers(draw, shape, dtype, "positive")]


@row("select_n", FLOATS + COMPLEX + INTEGERS + BOOL, slopes=True)
def _(draw, dtype):
    shape = draw(FULL)
    which = numbers(draw, draw(draws.sampled_from([shape, ()])), "bool")
    return (
        lambda jax, x, y: jax.lax.select_n(which, x, y),
        [numbers(draw, shape, dtype), numbers(draw, shape, dtype)],
    )


@row("clamp", FLOATS + INTEGERS, slopes=True)
def _(draw, dtype):
    shape = draw(FULL)
    bound = lambda jax, v, x: jax.numpy.asarray(v, x.dtype)
    return (
        lambda jax, x: jax.lax.clamp(bound(jax, 1, x), x, bound(jax, 2, x)),
        [numbers(draw, shape, dtype)],
    )


# ---- shapes ----------------------------------------------------------------------------------------------------------

ANY = FLOATS[:2] + COMPLEX + ("int32", "uint8") + BOOL


def axes_of(draw, shape, least=0):
    """A set of axes, in order."""
    return tuple(sorted(draw(draws.subsets(range(len(shape)), least))))


@row("broadcast_in_dim", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(FULL)
    out = tuple(4 if d == 1 else d for d in shape)
    lead = draw(draws.sampled_from([(), (2,)])) if 1 in shape else (2,)
    dims = tuple(range(len(lead), len(lead) + len(shape)))
    return lambda jax, x: jax.lax.broadcast_in_dim(x, lead + out, dims), [numbers(draw, shape, dtype)]


@row("reshape", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(draws.sampled_from([(6,), (2, 3), (3, 2, 1), (1, 6), (6, 1, 1)]))
    old = draw(draws.sampled_from([(6,), (2, 3), (3, 1, 2)]))
    if old == shape:
        shape = (1, *shape)
    return lambda jax, x: jax.lax.reshape(x, shape), [numbers(draw, old, dtype)]


@row("squeeze", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(draws.sampled_from([(1, 3), (2, 1, 3), (1, 1)]))
    axes = draw(draws.sampled_from([tuple(i for i, d in enumerate(shape) if d == 1), (shape.index(1),)]))
    return lambda jax, x: jax.lax.squeeze(x, axes), [numbers(draw, shape, dtype)]


@row("transpose", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(draws.sampled_from([(2, 3), (2, 3, 4), (4, 1, 2)]))
    order = draw(draws.filtered(draws.subsets(range(len(shape)), len(shape)), lambda p: p != sorted(p)))
    return lambda jax, x: jax.lax.transpose(x, tuple(order)), [numbers(draw, shape, dtype)]


@row("rev", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(FULL)
    axes = axes_of(draw, shape, 1)
    return lambda jax, x: jax.lax.rev(x, axes), [numbers(draw, shape, dtype)]


@row("concatenate", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(FULL)
    axis = draw(draws.integers(0, len(shape) - 1))
    other = shape[:axis] + (draw(draws.sampled_from([0, 1, 2])),) + shape[axis + 1 :]
    return (
        lambda jax, x, y: jax.lax.concatenate([x, y], axis),
        [numbers(draw, shape, dtype), numbers(draw, other, dtype)],
    )


@row("pad", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(FULL)
    sides = [draw(draws.tuples(draws.integers(-1, 2), draws.integers(-1, 2), draws.integers(0, 2))) for _ in shape]
    sides[0] = (1, 0, 1)
    config = [
        (max(low, 0), high, inner) if d == 1 else (low, high, inner) for d, (low, high, inner) in zip(shape, sides)
    ]
    config = [
        (low, max(high, 0), inner) if d == 1 else (low, high, inner) for d, (low, high, inner) in zip(shape, config)
    ]
    return (
        lambda jax, x, value: jax.lax.pad(x, value, config),
        [numbers(draw, shape, dtype), numbers(draw, (), dtype)],
    )


@row("slice", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(draws.sampled_from([(5,), (4, 3)]))
    starts = [draw(draws.integers(0, d - 1)) for d in shape]
    starts[0] = max(starts[0], 1)
    limits = [draw(draws.integers(s, d)) for s, d in zip(starts, shape)]
    strides = [draw(draws.integers(1, 3)) for _ in shape]
    return lambda jax, x: jax.lax.slice(x, starts, limits, strides), [numbers(draw, shape, dtype)]


@row("tile", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(FULL)
    reps = (2,) + tuple(draw(draws.integers(1, 2)) for _ in shape[1:])
    return lambda jax, x: jax.lax.tile(x, reps), [numbers(draw, shape, dtype)]


@row("stack", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(FULL)
    axis = draw(draws.integers(0, len(shape)))
    args = [numbers(draw, shape, dtype), numbers(draw, shape, dtype)]
    return lambda jax, x, y: jax.lax.stack([x, y], axis), args


@row("unstack", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(FULL)
    axis = draw(draws.integers(0, len(shape) - 1))
    return lambda jax, x: tuple(jax.lax.unstack(x, axis)), [numbers(draw, shape, dtype)]


@row("split", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(draws.sampled_from([(4,), (2, 4)]))
    sizes = draw(draws.sampled_from([(1, 3), (2, 2), (0, 4)]))
    return lambda jax, x: tuple(jax.lax.split(x, sizes, len(shape) - 1)), [numbers(draw, shape, dtype)]


@row("iota", ("float32", "int32", "uint8", "bfloat16"), batched=False)
def _(draw, dtype):
    shape = draw(FULL)
    axis = draw(draws.integers(0, len(shape) - 1))
    return lambda jax: jax.lax.broadcasted_iota(dtype, shape, axis), []


@row("copy", ANY, slopes=True)
def _(draw, dtype):
    return lambda jax, x: jax.numpy.copy(x), [numbers(draw, draw(SHAPES), dtype)]


@row("dynamic_slice", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(draws.sampled_from([(5,), (4, 3)]))
    sizes = [draw(draws.integers(1, d)) for d in shape]
    at = [np.int32(draw(draws.integers(-2, d + 1))) for d in shape]
    return lambda jax, x, *at: jax.lax.dynamic_slice(x, at, sizes), [numbers(draw, shape, dtype), *at]


@row("dynamic_update_slice", ANY, slopes=True)
def _(draw, dtype):
    shape = draw(draws.sampled_from([(5,), (4, 3)]))
    sizes = [draw(draws.integers(1, d)) for d in shape]
    at = [np.int32(draw(draws.integers(-2, d + 1))) for d in shape]
    args = [numbers(draw, shape, dtype), numbers(draw, sizes, dtype), *at]
    return lambda jax, x, update, *at: jax.lax.dynamic_update_slice(x, update, at), args


@row("optimization_barrier", ANY, slopes=True)
def _(draw, dtype):
    return lambda jax, x: jax.lax.optimization_barrier(x), [numbers(draw, draw(SHAPES), dtype)]


# ---- reductions ------------------------------------------------------------------------------------------------------


def reduction(name, dtypes, slopes=False, **kwargs):
    def case(draw, dtype):
        shape = draw(FULL)
        axes = axes_of(draw, shape, 1)
        return (lambda jax, x: getattr(jax.lax, name)(x, axes)), [numbers(draw, shape, dtype, "positive")]

    ROWS[name] = Row(case, dtypes, slopes, **kwargs)


reduction("reduce_sum", FLOATS + COMPLEX + INTEGERS, slopes=True, seed=8)
reduction("reduce_prod", FLOATS + COMPLEX + INTEGERS, slopes=True)
for _name in ("reduce_max", "reduce_min"):
    reduction(_name, FLOATS + INTEGERS + BOOL, slopes=True)
for _name in ("reduce_and", "reduce_or", "reduce_xor"):
    reduction(_name, INTEGERS + BOOL)


def index_of(name):
    def case(draw, dtype):
        shape = draw(FULL)
        axis = draw(draws.integers(0, len(shape) - 1))
        return (lambda jax, x: getattr(jax.lax, name)(x, axis, "int32")), [numbers(draw, shape, dtype)]

    ROWS[name] = Row(case, FLOATS + INTEGERS + BOOL)


index_of("argmax")
index_of("argmin")


def cumulative(name, dtypes):
    def case(draw, dtype):
        shape = draw(FULL)
        axis, reverse = draw(draws.integers(0, len(shape) - 1)), draw(draws.booleans())
        return (lambda jax, x: getattr(jax.lax, name)(x, axis, reverse)), [numbers(draw, shape, dtype, "positive")]

    ROWS[name] = Row(case, dtypes, slopes=True)


for _name in ("cumsum", "cumprod"):
    cumulative(_name, FLOATS + COMPLEX + INTEGERS)
for _name in ("cummax", "cummin"):
    cumulative(_name, FLOATS + INTEGERS)
cumulative("cumlogsumexp", FLOATS)


@row("reduce", ("float32", "int32"))
def _(draw, dtype):
    # No axis of one element: JAX leaves the initial value out there.
    shape = draw(draws.sampled_from([(3,), (2, 3), (2, 3, 2)]))
    axes = axes_of(draw, shape, 1)
    init = np.asarray(2, dtype)[()]
    combine = lambda jax: (
        lambda a, b: jax.lax.add(jax.lax.max(a, b), jax.lax.mul(jax.lax.min(a, b), np.asarray(0, dtype)[()]))
    )
    return lambda jax, x: jax.lax.reduce(x, init, combine(jax), axes), [numbers(draw, shape, dtype)]


def window(name, init, function, dtypes, slopes):
    def case(draw, dtype):
        shape = draw(draws.sampled_from([(5,), (4, 5)]))
        size = tuple(draw(draws.integers(1, 3)) for _ in shape)
        strides = tuple(draw(draws.integers(1, 2)) for _ in shape)
        padding = draw(draws.sampled_from(["VALID", "SAME", "SAME_LOWER"]))
        x = numbers(draw, shape, dtype)
        first = x.dtype.type(init)
        return (
            lambda jax, x: jax.lax.reduce_window(x, first, function(jax), size, strides, padding),
            [x],
        )

    ROWS[name] = Row(case, dtypes, slopes)


window("reduce_window_sum", 0, lambda jax: jax.lax.add, ("float32", "int32", "bfloat16"), True)
window("reduce_window_max", -np.inf, lambda jax: jax.lax.max, ("float32", "bfloat16"), True)
window("reduce_window_min", np.inf, lambda jax: jax.lax.min, ("float32", "bfloat16"), True)
window("reduce_window", 1, lambda jax: lambda a, b: jax.lax.add(a, b), ("float32", "int32"), False)


# ---- gathers, products, sorting --------------------------------------------------------------------------------------


@row("gather", ANY, slopes=True)
def _(draw, dtype):
    mode = draw(draws.sampled_from(["clip", "fill"]))
    x = numbers(draw, draw(draws.sampled_from([(5,), (4, 3)])), dtype)
    at = np.asarray([draw(draws.integers(-6, 6)) for _ in range(3)], "int32")
    return lambda jax, x, at: jax.numpy.asarray(x).at[at].get(mode=mode), [x, at]


@row("scatter", FLOATS[:2] + ("int32", "complex64"), slopes=True)
def _(draw, dtype):
    update = draw(draws.sampled_from(["add", "mul", "min", "max", "set"] if dtype != "complex64" else ["add", "set"]))
    x = numbers(draw, draw(draws.sampled_from([(5,), (4, 3)])), dtype, "positive")
    # Distinct indices: which of two overwrites wins is nobody's promise.
    distinct = lambda at: len({i % len(x) for i in at}) == len(at)
    at = np.asarray(draw(draws.filtered(draws.subsets(range(-1, 7), 2, 3), distinct)), "int32")
    values = numbers(draw, (len(at), *x.shape[1:]), dtype, "positive")
    call = lambda jax, x, values, at: getattr(jax.numpy.asarray(x).at[at], "multiply" if update == "mul" else update)(
        values, mode="drop"
    )
    return call, [x, values, at]


@row("dot_general", FLOATS + COMPLEX + ("int32", "uint8"), slopes=True, rtol=2e-5)
def _(draw, dtype):
    (x, y), numbers_ = draw(
        draws.sampled_from(
            [
                (((3,), (3,)), (((0,), (0,)), ((), ()))),
                (((2, 3), (3,)), (((1,), (0,)), ((), ()))),
                (((2, 3), (3, 4)), (((1,), (0,)), ((), ()))),
                (((3, 2), (4, 3)), (((0,), (1,)), ((), ()))),
                (((2, 3, 4), (2, 4, 1)), (((2,), (1,)), ((0,), (0,)))),
                (((3, 4), (3, 4)), (((0, 1), (0, 1)), ((), ()))),
                (((2,), (3,)), (((), ()), ((), ()))),
            ]
        )
    )
    return (
        lambda jax, a, b: jax.lax.dot_general(a, b, numbers_),
        [numbers(draw, x, dtype), numbers(draw, y, dtype)],
    )


@row("conv_general_dilated", FLOATS + COMPLEX + ("int32", "uint8"), slopes=True, rtol=2e-5)
def _(draw, dtype):
    layout = draw(draws.sampled_from([None, ("NHC", "HIO", "NHC")]))
    groups = draw(draws.sampled_from([(1, 1), (2, 1), (1, 2)]))
    pads = [(draw(draws.integers(-1, 1)), draw(draws.integers(0, 2)))]
    options = {
        "window_strides": [draw(draws.integers(1, 2))], "padding": pads, "lhs_dilation": [draw(draws.integers(1, 2))],
        "rhs_dilation": [draw(draws.integers(1, 2))], "dimension_numbers": layout, "feature_group_count": groups[0],
        "batch_group_count": groups[1],
    }  # fmt: skip
    lhs, rhs = (2 * groups[1], 2 * groups[0], 4), (2, 2, 2)
    if layout:
        lhs, rhs = (lhs[0], lhs[2], lhs[1]), (rhs[2], rhs[1], rhs[0])
    return (
        lambda jax, a, b: jax.lax.conv_general_dilated(a, b, **options),
        [numbers(draw, lhs, dtype), numbers(draw, rhs, dtype)],
    )


@row("sort", FLOATS + INTEGERS + BOOL, slopes=True)
def _(draw, dtype):
    shape = draw(FULL)
    axis = draw(draws.integers(0, len(shape) - 1))
    count = draw(draws.sampled_from([1, 2]))
    args = [numbers(draw, shape, dtype)] + [np.arange(np.prod(shape)).reshape(shape).astype("float32")] * (count - 1)
    return (lambda jax, *xs: jax.lax.sort(xs, dimension=axis, num_keys=1)), args


@row("top_k", FLOATS + SIGNED)
def _(draw, dtype):
    shape = draw(draws.sampled_from([(5,), (2, 4)]))
    k = draw(draws.integers(0, shape[-1]))
    return lambda jax, x: tuple(jax.lax.top_k(x, k)), [numbers(draw, shape, dtype)]
