"""What reverse mode keeps under `checkpoint` inside loops and branches, and that derivatives do not depend on it."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax

POLICIES = jax.checkpoint_policies
X = np.array([0.3, -0.7, 1.1], np.float32)
W = np.linspace(-0.5, 0.5, 9, dtype=np.float32).reshape(3, 3)


def only(*names):
    return lambda primitive, *_, **__: str(primitive) in names


CHOICES = {
    "nothing": POLICIES.nothing_saveable,
    "everything": POLICIES.everything_saveable,
    "dots": POLICIES.checkpoint_dots,
    "names": POLICIES.save_only_these_names("wave"),
    "sines": only("sin"),
    "cosines": only("cos"),
    "products": only("mul", "dot_general"),
}


def counts(f, x):
    """How many sines, cosines and products the linear function at a point computes."""
    text = str(jax.make_jaxpr(jax.linearize(f, x)[1])(jnp.ones_like(x)))
    return tuple(text.count(f" {name}") for name in ("sin ", "cos ", "dot_general"))


def scanned(f, x):
    return lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


def chosen(f, x):
    return lax.cond(x.sum() > -jnp.inf, f, lambda x: x, x)


def sine(steps):
    """A sine whose rule computes it together with the cosine."""
    f = jax.custom_jvp(jnp.sin)

    @f.defjvp
    def rule(primals, tangents):
        y, c = steps(primals[0])
        return y, c * tangents[0]

    return f


@pytest.mark.parametrize(
    ("apply", "twice", "nothing"), [(scanned, (2, 2, 0), (1, 1, 0)), (chosen, (1, 2, 0), (0, 1, 0))]
)
def test_policies_reach_into_loops_and_branches(apply, twice, nothing):
    """As JAX does: what the policy saves inside becomes a residual, the rest is computed again."""
    f = sine(lambda x: jax.jit(lambda: (jnp.sin(x), jnp.cos(x)))())
    kept = lambda policy, g=lambda x: apply(f, x): counts(jax.checkpoint(g, policy=policy), jnp.float32(4.0))
    assert kept(only("cos")) == (0, 0, 0)
    assert kept(only("sin")) == (0, 1, 0)
    assert kept(POLICIES.everything_saveable) == (0, 0, 0)
    assert kept(POLICIES.nothing_saveable) == nothing
    assert kept(POLICIES.nothing_saveable, lambda x: apply(f, apply(f, x))) == twice


def layers(w):
    def f(x):
        for _ in range(3):
            x = jnp.sin(jnp.dot(x, w))
        return x

    return f


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda w: lax.scan(lambda c, _: (layers(w)(c), None), X, None, length=2)[0], (3, 3, 6)),
        (lambda w: lax.cond(X.sum() > 0, layers(w), lambda x: x, X), (2, 3, 5)),
    ],
)
def test_products_are_kept_step_by_step(f, want):
    f = jax.checkpoint(f, policy=POLICIES.checkpoint_dots)
    text = str(jax.vjp(f, W)[1].jaxpr)
    assert tuple(text.count(f" {name}") for name in ("sin ", "cos ", "dot_general")) == want


@pytest.mark.parametrize("name", CHOICES)
def test_one_value_that_is_several_results(name):
    def f(x):
        _, (a, b) = lax.scan(lambda c, _: (jnp.sin(c), (jnp.sin(c), jnp.sin(c))), x, None, length=3)
        c, d, e = lax.cond(x > 0, lambda x: (jnp.sin(x), jnp.sin(x), x), lambda x: (x, x, jnp.cos(x)), x)
        p, q, r = lax.cond(x > 0, lambda x: [jnp.sin(x)] * 2 + [x], lambda x: [jnp.sin(2 * x)] * 2 + [jnp.cos(x)], x)
        return jnp.sum(jnp.cos(a) * b) * jnp.sin(c * d) * e + jnp.sin(p * q * r)

    for x in (0.7, -0.4):
        want = jax.grad(f)(x), jax.grad(jax.grad(f))(x)
        g = jax.checkpoint(f, policy=CHOICES[name])
        np.testing.assert_allclose((jax.grad(g)(x), jax.grad(jax.grad(g))(x)), want, rtol=1e-5)
        np.testing.assert_allclose(jax.jit(jax.grad(g))(x), want[0], rtol=1e-5)


def program(w, x, flags):
    """Loops in branches in loops, forwards and backwards, with constants, rows and calls."""

    def step(carry, row):
        i, y = carry
        z = jax.jit(lambda v: jnp.sin(v) * row)(y)
        z = jax.ad_checkpoint.checkpoint_name(jnp.cos(z @ w), "wave")
        y = lax.cond(flags[i], inner, lambda y, z: y * z, y, z)
        return (i + 1, y), jnp.sin(y).sum()

    def inner(y, z):
        (y, _), ys = lax.scan(lambda c, r: ((jnp.sin(c[0]) * c[1], c[1]), c[0] @ r), (y, z), w[:2], reverse=True)
        return jnp.where(y > 0, y, jnp.cos(y)) + ys.sum()

    (_, y), sums = lax.scan(step, (0, x), w)
    return jnp.sin(y).sum() + lax.switch(1, [jnp.cos, jnp.sin], sums).sum()


@pytest.mark.parametrize("name", CHOICES)
def test_derivatives_are_those_without(name):
    flags = jnp.array([True, False, True])
    f = lambda w, x: program(w, x, flags)
    g = jax.checkpoint(f, policy=CHOICES[name])
    rows = np.stack([X, -X, 2 * X])
    for transform in (
        lambda f: jax.grad(f, (0, 1))(W, X),
        lambda f: jax.jit(jax.grad(f, (0, 1)))(W, X),
        lambda f: jax.vmap(jax.grad(f, 1), (None, 0))(W, rows),
        lambda f: jax.grad(lambda x: jax.vmap(f, (None, 0))(W, x).sum())(rows),
        lambda f: jax.jvp(lambda x: f(W, x), (X,), (X,)),
        lambda f: jax.hessian(f, 1)(W, X),
        lambda f: jax.grad(jax.checkpoint(f))(W, X),
    ):
        got, want = (jax.tree.leaves(transform(h)) for h in (g, f))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
