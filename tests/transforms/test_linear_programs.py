"""The linear part of a function as a program, what a pullback keeps, and rules that say how to linearize."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax._src import core
from ferrax._src.ad_checkpoint import saved_residuals
from ferrax._src.interpreters import ad
from ferrax.ad_checkpoint import checkpoint_name
from ferrax.core import eval_jaxpr

POLICIES = {
    "anything": (lambda *_, **__: True, (0, 0)),
    "nothing": (lambda *_, **__: False, (1, 2)),
    "sin": (lambda p, *_, **__: str(p) == "sin", (0, 2)),
    "cos": (lambda p, *_, **__: str(p) == "cos", (1, 0)),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_decides_what_the_linear_program_computes_again(policy):
    decide, counts = POLICIES[policy]
    f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x) ** 2), policy=decide)
    _, linear = jax.linearize(f, 1.0)
    _, pullback = jax.vjp(f, 1.0)
    for program in (linear.func.args[0], pullback.jaxpr):
        text = str(program)
        assert (text.count(" sin "), text.count(" cos ")) == counts


def test_the_linear_program_is_the_linear_function():
    def f(x, n):
        return jnp.sin(x["a"]) * n, x["b"]

    x = {"a": jnp.arange(3.0), "b": jnp.float32(2.0)}
    _, linear = jax.linearize(f, x, 3)
    program = jax.make_jaxpr(lambda t: linear(t, np.zeros((), jax.dtypes.float0)))(x)
    assert [v.aval.shape for v in linear.func.args[0].invars] == [(3,), ()]
    tangents = {"a": jnp.ones(3), "b": jnp.float32(5.0)}
    want = linear(tangents, np.zeros((), jax.dtypes.float0))
    got = eval_jaxpr(program.jaxpr, program.consts, *jax.tree.leaves(tangents))
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_residuals_are_what_the_derivative_reads():
    nothing = lambda *_, **__: False
    ones = jnp.ones((2, 2))
    assert saved_residuals(jax.checkpoint(lambda x: jnp.einsum("ii->i", x), policy=nothing), ones) == []
    assert saved_residuals(jax.checkpoint(lambda x: jnp.zeros_like(x) * x, policy=nothing), ones) == []
    kept = saved_residuals(jax.checkpoint(lambda x: jnp.zeros_like(x) * jnp.sin(x), policy=nothing), ones)
    assert [words for _, words in kept] == ["from the argument x"]

    def named(x):
        y, z = (checkpoint_name(jnp.multiply(2.0, 2.0), name) for name in "yz")
        return x * y * z * jnp.multiply(2.0, 2.0)

    policies = jax.checkpoint_policies
    for names, only, but in (((), 0, 2), (("z",), 1, 1), (("y", "z"), 2, 0)):
        for policy, count in (
            (policies.save_only_these_names(*names), only),
            (policies.save_any_names_but_these(*names), but),
        ):
            assert len(saved_residuals(jax.checkpoint(named, policy=policy), 1.0)) == count


def test_policies_are_asked_of_what_is_inside_of_calls():
    policies = jax.checkpoint_policies
    inner = jax.jit(lambda x: jnp.cos(checkpoint_name(jnp.sin(x), "y")))
    outer = jax.jit(lambda x: inner(x) * x)
    for fun, x in ((inner, 2.0), (outer, 2.0), (jax.jit(jax.vmap(outer)), jnp.arange(1.0, 4.0))):
        want = jax.grad(lambda x: jnp.sum(fun(x)))(x)
        for policy, kept in ((policies.save_only_these_names("y"), 2), (policies.nothing_saveable, 1)):
            wrapped = jax.checkpoint(fun, policy=policy)
            words = [text for _, text in saved_residuals(wrapped, x)]
            assert len(words) == kept and words[0] == "from the argument x"
            np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(wrapped(x)))(x), want, rtol=1e-6)
            np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.sum(wrapped(x))))(x), want, rtol=1e-6)


def test_a_rule_that_linearizes():
    seen = []

    def rule(is_vjp, nonzero, x, y):
        seen.append(list(nonzero))
        return scaled_p.bind(x, y), True, (x, y), lambda kept, a, b: jax.lax.mul(kept[1], ad.instantiate_zeros(a))

    scaled_p = core.Primitive("scaled")
    scaled_p.def_impl(jax.lax.mul)
    scaled_p.def_abstract_eval(lambda x, y: x)
    ad.primitive_linearizations[scaled_p] = rule
    assert jax.grad(lambda x: scaled_p.bind(x, jnp.float32(3.0)))(2.0) == 3.0
    value, tangent = jax.jvp(lambda x: scaled_p.bind(x, jnp.float32(3.0)), (2.0,), (5.0,))
    assert (value, tangent) == (6.0, 15.0) and seen == [[True, False]] * 2


def test_types_of_results_are_a_list_where_there_are_several():
    for several, given in ((False, lambda x: [x]), (True, lambda x: x)):
        primitive = core.Primitive("odd")
        primitive.multiple_results = several
        primitive.def_abstract_eval(given)
        with pytest.raises(ValueError, match=r"odd\.abstract_eval\(\) method should return a tuple or a list iff"):
            jax.make_jaxpr(primitive.bind)(1.0)
