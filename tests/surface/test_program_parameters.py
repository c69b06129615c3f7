"""Parameters of equations as JAX has them: rules as functions, programs side by side, names of axes; bound again."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from tests.recorded import both


def rules(jax):
    @jax.custom_jvp
    def times(x, y):
        return x * y

    def tangent(primals, tangents):
        given = [0.0 if type(t).__name__ == "SymbolicZero" else t for t in tangents]
        return times(*primals), 3 * given[0] + primals[0] * given[1]

    times.defjvp(tangent, symbolic_zeros=True)

    @jax.custom_vjp
    def product(x, y):
        return x * y

    product.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, ct: (kept[1] * ct * 7, None))
    return times, product


def first(jax, fun, *args):
    return jax.make_jaxpr(fun)(*args).eqns[0]


def solve(jax, b):
    return jax.lax.custom_linear_solve(lambda x: 2 * x, b, lambda _, b: b / 2, symmetric=True)


CALLS = {
    "custom_jvp": lambda jax: first(jax, rules(jax)[0], 1.0, 2.0),
    "custom_vjp": lambda jax: first(jax, rules(jax)[1], 1.0, 2.0),
    "linear solve": lambda jax: first(jax, lambda b: solve(jax, b), 1.0),
    "checkpoint": lambda jax: first(jax, jax.checkpoint(lambda x: jax.numpy.sin(x)), 1.0),
    "qr": lambda jax: first(jax, lambda x: jax.lax.linalg.qr(x), np.eye(2, dtype=np.float32)),
    "axis": lambda jax: jax.make_jaxpr(lambda: jax.lax.axis_index("i"), axis_env=[("i", 2)])().eqns[0],
    "pure_callback": lambda jax: first(
        jax, lambda x: jax.pure_callback(abs, (jax.ShapeDtypeStruct((2, 3), np.int32),), x), 1.0
    ),
}
KINDS = ("Jaxpr", "ClosedJaxpr", "NoneType", "bool", "int", "str")


@pytest.mark.parametrize("name", CALLS)
def test_names_and_kinds(name):
    def asked(jax):
        params = sorted(CALLS[name](jax).params.items())
        return [(key, type(v).__name__ if type(v).__name__ in KINDS else "another") for key, v in params]

    ours, theirs = both(asked)
    assert ours == theirs


def test_types_of_results_of_the_host():
    (aval,) = CALLS["pure_callback"](jax).params["result_avals"]
    assert (aval.shape, aval.dtype) == ((2, 3), np.int32)


@pytest.mark.parametrize("zeros", [(False, False), (False, True), (True, False)])
def test_rules_for_tangents_are_programs(zeros):
    def asked(jax):
        rule = CALLS["custom_jvp"](jax).params["jvp_jaxpr_fun"]
        program, consts, zero = rule.call_wrapped(*zeros)
        tangents = [t for t, none in zip((1.0, 10.0), zeros, strict=True) if not none]
        outs = jax.core.eval_jaxpr(program, consts, 2.0, 5.0, *tangents)
        return [float(x) for x in outs], list(zero)

    ours, theirs = both(asked)
    assert ours == theirs


def test_rules_for_cotangents_are_functions():
    params = CALLS["custom_vjp"](jax).params
    program, consts = params["fwd_jaxpr_thunk"].call_wrapped(True, False)
    *kept, out = jax.core.eval_jaxpr(program, consts, 2.0, 5.0)
    assert [float(x) for x in (*kept, out)] == [2.0, 5.0, 10.0]
    by_x, by_y = params["bwd"].call_wrapped(*kept, 1.0)
    assert float(by_x) == 35.0 and by_y.aval.shape == ()
    outs, residuals, _ = params["out_trees"]()
    assert (outs.num_leaves, residuals.num_leaves) == (1, 2)


@pytest.mark.parametrize("name", ["custom_jvp", "custom_vjp", "linear solve", "checkpoint"])
def test_they_are_bound_again(name):
    equation = CALLS[name](jax)
    args = (2.0, 5.0)[: len(equation.invars)]
    want = {"custom_jvp": 10.0, "custom_vjp": 10.0, "linear solve": 1.0, "checkpoint": float(jnp.sin(2.0))}[name]
    slope = {"custom_jvp": 3.0, "custom_vjp": 35.0, "linear solve": 0.5, "checkpoint": float(jnp.cos(2.0))}[name]
    for params in (equation.params, equation.primitive.get_bind_params(equation.params)):
        call = lambda *xs, params=params: equation.primitive.bind(*xs, **params)[0]
        assert float(call(*args)) == want and float(jax.jit(call)(*args)) == want
        np.testing.assert_allclose(jax.grad(call)(*args), slope, rtol=1e-6)
    again = equation.replace(params=equation.params)
    assert again.primitive is equation.primitive and sorted(again.params) == sorted(equation.params)


def test_modes_print_and_are_bound_as_enumerations():
    assert repr(lax.GatherScatterMode.CLIP) == "<GatherScatterMode.CLIP: 1>"
    x = jnp.arange(3.0)
    equation = jax.make_jaxpr(lambda x: x.at[1].set(7.0, mode="clip"))(x).eqns[-1]
    assert equation.params["mode"] is lax.GatherScatterMode.CLIP
    out = equation.primitive.bind(x, np.array([5], np.int32), np.float32(7), **equation.params)
    np.testing.assert_array_equal(out, [0, 1, 7])
