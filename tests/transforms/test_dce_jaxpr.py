"""`dce_jaxpr` on loops, branches and rematerialized functions."""

import itertools

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.core import eval_jaxpr
from ferrax.interpreters.partial_eval import dce_jaxpr

X = jnp.float32(0.7)


def equations(jaxpr):
    inner = [
        getattr(p, "jaxpr", p)
        for eqn in jaxpr.eqns
        for value in eqn.params.values()
        for p in (value if isinstance(value, tuple) else (value,))
        if hasattr(getattr(p, "jaxpr", p), "eqns")
    ]
    return len(jaxpr.eqns) + sum(map(equations, inner))


def check(f, args, wanted, used, count):
    """The program that is left has so many equations, takes these arguments, and gives the same results."""
    program = jax.make_jaxpr(f)(*args)
    less, takes = dce_jaxpr(program.jaxpr, wanted)
    assert (takes, equations(less)) == (used, count), str(less)
    flat = jax.tree.leaves(args)
    want = [v for v, on in zip(eval_jaxpr(program.jaxpr, program.consts, *flat), wanted, strict=True) if on]
    got = eval_jaxpr(less, program.consts, *[x for x, on in zip(flat, takes, strict=True) if on])
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b)
    if want and any(takes):
        jax.jit(lambda *xs: eval_jaxpr(less, program.consts, *xs))(
            *[x for x, on in zip(flat, takes, strict=True) if on]
        )


def chain(*carries):
    """Each carried value gets the one before it added."""
    step = lambda c, _: ((c[0], *(a + b for a, b in itertools.pairwise(c))), None)
    return lax.scan(step, carries, None, length=3)[0]


@pytest.mark.parametrize(
    "wanted, used, count",
    [
        ([True, True, True, False], [True, True, True, False], 3),
        ([False, False, True, False], [True, True, True, False], 3),
        ([True, True, False, False], [True, True, False, False], 2),
        ([False, False, False, True], [True] * 4, 4),
        ([False] * 4, [False] * 4, 0),
    ],
)
def test_carried_values_that_others_need(wanted, used, count):
    check(chain, (1.0, 2.0, 3.0, 4.0), wanted, used, count)


def test_stacked_values_and_constants_of_a_loop():
    def f(c, xs, ys, k):
        return lax.scan(lambda c, xy: (c * xy[0], (c, xy[1] + k)), c, (xs, ys))

    args = (X, jnp.arange(1.0, 4.0), jnp.arange(3.0), X)
    check(f, args, [True, False, False], [True, True, False, False], 2)
    check(f, args, [False, True, False], [True, True, False, False], 2)
    check(f, args, [False, False, True], [False, False, True, True], 2)


def test_effects_stay():
    def f(x):
        return lax.scan(lambda c, _: (jax.debug.print("{}", c), (c, c + 1))[1], x, None, length=2)

    less, used = dce_jaxpr(jax.make_jaxpr(f)(1.0).jaxpr, [False, False])
    assert used == [True] and equations(less) >= 2


def test_branches():
    sin = jnp.sin
    both = lambda a, b: lambda x, y: lax.cond(x > 0, a, b, x, y)
    straight, one, crossed = (
        (lambda x, y: (sin(x), sin(y))),
        (lambda x, y: (sin(x), sin(x))),
        (lambda x, y: (sin(y), sin(x))),
    )
    other = lambda x, y: (sin(y), sin(y))
    check(both(straight, straight), (X, X), [True, True], [True, True], 7)
    check(both(straight, straight), (X, X), [False, False], [False, False], 0)
    check(both(straight, one), (X, X), [True, False], [True, False], 5)
    check(both(straight, crossed), (X, X), [True, False], [True, True], 5)
    check(both(one, other), (X, X), [True, False], [True, True], 5)


def test_a_rematerialized_function():
    f = jax.checkpoint(lambda x, y: (jnp.sin(x), jnp.cos(y)))
    check(f, (X, X), [False, True], [False, True], 2)


def test_rules_of_what_is_left():
    """A call with rules loses the results that nobody wants, in its program and in its rules."""
    f = jax.custom_jvp(lambda x, y: (jnp.sin(x), x + jnp.cos(y)))
    f.defjvp(lambda p, t: (f(*p), (2.0 * jnp.cos(p[0]) * t[0], 1.5 * t[0] - 0.5 * jnp.sin(p[1]) * t[1])))
    g = jax.custom_vjp(lambda x, y: (jnp.sin(x), x + jnp.cos(y)))
    g.defvjp(
        lambda x, y: (g(x, y), (jnp.cos(x), jnp.sin(y))),
        lambda res, cts: (2.0 * res[0] * cts[0] + 1.5 * cts[1], -0.5 * res[1] * cts[1]),
    )
    x, y = jnp.float32(0.1), jnp.float32(-1.3)
    slopes = (2 * np.cos(0.1), 0.0), (1.5, 0.5 * np.sin(1.3))
    for h in (f, g):
        program = jax.make_jaxpr(h)(x, y).jaxpr
        for i, gone in ((0, "cos"), (1, "sin")):
            less, used = dce_jaxpr(program, [i == 0, i == 1])
            assert used == [True, True]
            assert gone not in str(less.eqns[0].params["call_jaxpr"])
            left = lambda *args, less=less: eval_jaxpr(less, (), *args)[0]
            np.testing.assert_allclose(left(x, y), h(x, y)[i])
            np.testing.assert_allclose(jax.grad(left, (0, 1))(x, y), slopes[i], rtol=1e-6)
            np.testing.assert_allclose(jax.jit(jax.grad(left, (0, 1)))(x, y), slopes[i], rtol=1e-6)
        assert dce_jaxpr(program, [False, False])[0].eqns == []


def test_each_result_has_its_own_constants():
    def outer(a, b, x):
        f = jax.custom_jvp(lambda y: (a * y, b + y))
        f.defjvp(lambda p, t: (f(*p), (t[0], t[0])))
        return f(x)

    program = jax.make_jaxpr(outer)(X, X, X).jaxpr
    values = [jnp.float32(v) for v in (2.0, 5.0, 3.0)]
    for i, want in ((0, 6.0), (1, 8.0)):
        less, used = dce_jaxpr(program, [i == 0, i == 1])
        assert used == [i == 0, i == 1, True]
        assert eval_jaxpr(less, (), *(v for v, on in zip(values, used, strict=True) if on)) == [want]


def test_rules_of_functions_that_close_over_values():
    def outer(c, x):
        f = jax.custom_jvp(lambda y: (c * y, y))
        f.defjvp(lambda p, t: (f(*p), (c * t[0], 3.0 * t[0])))
        return f(x)

    program = jax.make_jaxpr(outer)(X, X).jaxpr
    for i, want in ((0, 0.7 * 2.0), (1, 2.0)):
        less, used = dce_jaxpr(program, [i == 0, i == 1], True)
        assert used == [True, True]
        np.testing.assert_allclose(eval_jaxpr(less, (), X, jnp.float32(2.0))[0], want, rtol=1e-6)
