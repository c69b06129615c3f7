"""Rows of `vmap` that choose branches: no derivative goes through a branch that a row has not chosen."""

import numpy as np
import pytest

from tests.recorded import both


def gradients(jax, name):
    jnp, lax = jax.numpy, jax.lax
    x = np.array([-1.0, 0.0, 0.5, 4.0], np.float32)
    programs = {
        "root": lambda v: lax.cond(v < 0.25, lambda _: 0.5, lambda _: jnp.sqrt(v), ()),
        "quotient": lambda v: lax.cond(v == 0, lambda u: u, lambda u: 1 / u, v),
        "switch": lambda v: lax.switch(jnp.int32(v), [lambda u: u * 2, jnp.log, lambda u: u, lambda u: u**2], v),
        "two operands": lambda v: lax.cond(v > 0, lambda a, b: a**b, lambda a, b: a * b, v, v),
        "with a name": lambda v: lax.cond(v > 0, lambda u: jnp.log(u) + lax.psum(1, "i"), lambda u: u, v),
    }
    f = lambda v: jax.vmap(programs[name], axis_name="i")(v).sum()
    ones = np.ones_like(x)
    second = jax.jvp(jax.grad(f), (x,), (ones,))[1]
    return [f(x), jax.grad(f)(x), jax.jit(jax.grad(f))(x), second]


@pytest.mark.parametrize("name", ["root", "quotient", "switch", "two operands", "with a name"])
def test_gradients_of_branches_that_rows_choose(name):
    ours, theirs = both(gradients, name)
    for a, b in zip(ours, theirs, strict=True):
        assert np.isfinite(np.asarray(a)).all()
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def messages(jax, name):
    lax, jnp = jax.lax, jax.numpy
    zero = jnp.zeros((), jnp.int32)
    calls = {
        "carries": lambda: lax.scan(
            lambda c, _: ((c[0] * 1.5, jnp.ones((1, 1)), c[2]), None), (zero, zero, zero), None, length=1
        ),
        "structures": lambda: lax.scan(
            lambda c, _: (({"a": 1, "b": 2},) * 2, None), ({"a": zero},) * 2, None, length=1
        ),
        "unroll": lambda: jax.jit(lambda n: lax.scan(lambda c, x: (c, x), 0.0, np.ones(3), unroll=n))(True),
        "branches": lambda: lax.cond(True, lambda: jnp.zeros(2), lambda: jnp.zeros(3, jnp.int32)),
    }
    try:
        calls[name]()
    except Exception as error:
        text = str(error).replace(__file__, "this file")
        parts = text.split("\n\n")
        return type(error).__name__, parts[1] if len(parts) > 2 else text.split(", got")[0]
    raise AssertionError("no error")


@pytest.mark.parametrize("name", ["carries", "structures", "unroll", "branches"])
def test_errors_of_loops_say_all_that_differs(name):
    ours, theirs = both(messages, name)
    assert ours[0] == theirs[0]
    for line in ours[1].split("\n"):
        assert line.strip(" ;.") in theirs[1], (ours, theirs)
