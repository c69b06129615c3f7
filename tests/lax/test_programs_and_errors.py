"""Programs print as JAX prints them, and mistakes raise what JAX raises."""

import jax
import numpy as np
import pytest
from jax import lax as theirs

import ferrax
from ferrax import lax as ours

X = np.ones((2, 3), "float32")
I = np.ones((2, 3), "int32")

PROGRAMS = {
    "unary": lambda lax: lambda x: lax.sin(lax.exp(lax.neg(x))),
    "literals": lambda lax: lambda x: lax.add(lax.mul(x, 2.0), 1.5),
    "stretching": lambda lax: lambda x: lax.add(x, lax.expand_dims(lax.reduce_sum(x, (0,)), (0,))),
    "compare and select": lambda lax: lambda x: lax.select(lax.gt(x, 0.0), x, lax.neg(x)),
    "integer_pow": lambda lax: lambda x: lax.integer_pow(x, 3),
    "round": lambda lax: lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "conversions": lambda lax: lambda x: lax.bitcast_convert_type(lax.convert_element_type(x, "bfloat16"), "uint16"),
    "reduce_precision": lambda lax: lambda x: lax.reduce_precision(x, 5, 10),
    "complex": lambda lax: lambda x: lax.real(lax.conj(lax.complex(x, x))),
    "shapes": lambda lax: lambda x: lax.rev(lax.squeeze(lax.expand_dims(lax.transpose(x, (1, 0)), (1,)), (1,)), (0,)),
    "reshape": lambda lax: lambda x: lax.reshape(x, (6,)),
    "tile": lambda lax: lambda x: lax.tile(x, (2, 1)),
    "stack": lambda lax: lambda x: lax.stack(lax.unstack(x, 1), 0),
    "iota": lambda lax: lambda x: lax.add(lax.broadcasted_iota("float32", (2, 3), 1), x),
    "broadcast": lambda lax: lambda x: lax.broadcast_in_dim(x, (4, 2, 3), (1, 2)),
    "full": lambda lax: lambda x: lax.add(x, lax.full((2, 3), 1.0)),
    "reductions": lambda lax: lambda x: lax.reduce_max(lax.reduce_prod(x, (1,)), (0,)),
    "reduce_sum": lambda lax: lambda x: lax.reduce_sum(x, (0, 1)),
    "argmax": lambda lax: lambda x: lax.argmax(x, 0, "int32"),
    "cumulative": lambda lax: lambda x: lax.cumsum(lax.cummax(x, 1, reverse=True)),
    "clamp": lambda lax: lambda x: lax.clamp(0.0, x, 1.0),
    "stop_gradient": lambda lax: lambda x: lax.stop_gradient(x),
    "barrier": lambda lax: lambda x: lax.optimization_barrier((x, x)),
    "window": lambda lax: lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
    "rem and pow": lambda lax: lambda x: lax.rem(lax.pow(x, 2), lax.atan2(x, x)),
}

DERIVATIVES = ["sin", "exp", "log", "sqrt", "tanh", "logistic", "square", "abs", "rsqrt", "tan", "log1p", "expm1"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    got = ferrax.make_jaxpr(PROGRAMS[name](ours))(X)
    assert str(got) == str(jax.make_jaxpr(PROGRAMS[name](theirs))(X))


@pytest.mark.parametrize("name", DERIVATIVES)
def test_programs_of_derivatives(name):
    got = ferrax.make_jaxpr(lambda x, t: ferrax.jvp(getattr(ours, name), (x,), (t,)))(X, X)
    want = jax.make_jaxpr(lambda x, t: jax.jvp(getattr(theirs, name), (x,), (t,)))(X, X)
    assert str(got) == str(want)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_prod"])
def test_programs_of_reduction_derivatives(name):
    got = ferrax.make_jaxpr(lambda x, t: ferrax.jvp(lambda v: getattr(ours, name)(v, (0,)), (x,), (t,)))(X, X)
    want = jax.make_jaxpr(lambda x, t: jax.jvp(lambda v: getattr(theirs, name)(v, (0,)), (x,), (t,)))(X, X)
    assert str(got) == str(want)


ERRORS = {
    "dtype": lambda lax: lax.sin(I),
    "dtype at a position": lambda lax: lax.add(I > 0, I > 0),
    "bool": lambda lax: lax.neg(I > 0),
    "integers only": lambda lax: lax.population_count(X),
    "shapes": lambda lax: lax.add(X, np.ones((2, 4), "float32")),
    "ranks": lambda lax: lax.add(X, np.ones(3, "float32")),
    "dtypes differ": lambda lax: lax.add(X, I),
    "literal of another dtype": lambda lax: lax.add(X, 1),
    "max of dtypes": lambda lax: lax.max(X, I),
    "comparison": lambda lax: lax.lt(X, I),
    "negative power of integers": lambda lax: lax.integer_pow(I, -2),
    "pow of integers": lambda lax: lax.pow(I, I),
    "clamp": lambda lax: lax.clamp(np.zeros(3, "float32"), X, 1.0),
    "clamp dtypes": lambda lax: lax.clamp(0, X, 1),
    "select which": lambda lax: lax.select(X, X, X),
    "select cases": lambda lax: lax.select(X > 0, X, np.float32(0)),
    "select by bool": lambda lax: lax.select_n(X > 0, X, X, X),
    "select nothing": lambda lax: lax.select_n(X > 0),
    "reshape": lambda lax: lax.reshape(X, (-1,)),
    "squeeze": lambda lax: lax.squeeze(X, (0,)),
    "squeeze twice": lambda lax: lax.squeeze(X[None], (0, 0)),
    "expand_dims": lambda lax: lax.expand_dims(X, (0, 0)),
    "rev twice": lambda lax: lax.rev(X, (0, 0)),
    "rev negative": lambda lax: lax.rev(X, (-1,)),
    "rev beyond": lambda lax: lax.rev(X, (5,)),
    "transpose": lambda lax: lax.transpose(X, (0,)),
    "broadcast_in_dim": lambda lax: lax.broadcast_in_dim(X, (3, 2, 3), (1,)),
    "broadcast_shapes": lambda lax: lax.broadcast_shapes((2,), (3,)),
    "collapse": lambda lax: lax.collapse(X, 2, 1),
    "tile": lambda lax: lax.tile(X, (2,)),
    "stack": lambda lax: lax.stack([X, np.float32(1)]),
    "full": lambda lax: lax.full((2, 3), X),
    "iota": lambda lax: lax.iota("float32", -1),
    "iota axis": lambda lax: lax.broadcasted_iota("int32", (2, 2), 5),
    "iota dtype": lambda lax: lax.iota("bool", 3),
    "reduce axes": lambda lax: lax.reduce_sum(X, (-1,)),
    "reduce axes twice": lambda lax: lax.reduce_max(X, (0, 0)),
    "logical": lambda lax: lax.reduce_and(X, (0,)),
    "argmax axis": lambda lax: lax.argmax(X, -1, "int32"),
    "argmax of nothing": lambda lax: lax.argmax(np.ones((0, 2), "float32"), 0, "int32"),
    "argmax dtype": lambda lax: lax.argmax(X, 0, "float32"),
    "cumsum axis": lambda lax: lax.cumsum(X, 5),
    "cumsum negative axis": lambda lax: lax.cumsum(X, -1),
    "cumsum of bool": lambda lax: lax.cumsum(X > 0),
    "reduce_precision": lambda lax: lax.reduce_precision(X, 0, 3),
    "round": lambda lax: lax.round(X, 2),
    "window": lambda lax: lax.reduce_window(X, 0.0, lax.add, (1, 2, 3)),
    "not an array": lambda lax: lax.sin("a"),
    "no argument": lambda lax: lax.sin(),
    "too many arguments": lambda lax: lax.sin(X, X),
    "missing argument": lambda lax: lax.add(X),
    "complex of integers": lambda lax: lax.complex(1, 2),
    "no dtype": lambda lax: lax.convert_element_type(X, None),
}


def raised(f, lax):
    with pytest.raises(Exception) as info:
        f(lax)
    return info.value


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    got, want = raised(ERRORS[name], ours), raised(ERRORS[name], theirs)
    assert isinstance(got, [c for c in type(want).__mro__ if c.__module__ == "builtins"][0])
    assert str(got).strip() == str(want).strip()


@pytest.mark.parametrize("groups", [{"feature_group_count": 0}, {"batch_group_count": 0}, {"feature_group_count": -1}])
@pytest.mark.parametrize("mapped", ["none", "operand", "kernel", "both"])
def test_convolutions_of_no_groups_under_vmap(groups, mapped):
    x, w = np.zeros((1, 2, 4, 4), "float32"), np.zeros((2, 2, 3, 3), "float32")

    def conv(x, w):
        return ours.conv_general_dilated(x, w, (1, 1), "SAME", **groups)

    axes = {"none": None, "operand": (0, None), "kernel": (None, 0), "both": (0, 0)}[mapped]
    with pytest.raises((ValueError, OverflowError, TypeError)) as caught:
        if axes is None:
            conv(x, w)
        else:
            rows = [a if d is None else np.stack([a] * 3) for a, d in zip((x, w), axes, strict=True)]
            ferrax.vmap(conv, in_axes=axes)(*rows)
    assert not isinstance(caught.value, ferrax.errors.InternalError)


def test_empty_updates_of_scalars():
    with pytest.raises(ValueError, match="broadcast"):
        ferrax.ops.index_add(1.0, Ellipsis, np.zeros(0, "float32"))
    assert ferrax.ops.index_add(1.0, Ellipsis, 2.0) == 3.0


def test_loops_that_only_count():
    last = 2**31 - 1
    assert ours.fori_loop(0, last, lambda i, x: x, 5) == 5
    assert ours.fori_loop(0, last, lambda i, x: x + 3, 1) == (1 + 3 * last + 2**31) % 2**32 - 2**31
    assert ferrax.jit(lambda x: ours.fori_loop(-(2**31), -1, lambda i, x: (x[0] + 1, x[1]), (x, x)))(0) == (last, 0)
    assert ours.fori_loop(3, 3, lambda i, x: x + 1, 7) == 7
    for loops in (ours, theirs):
        with pytest.raises(OverflowError):
            loops.fori_loop(-(2**31), 3, lambda i, x: x, 0)
