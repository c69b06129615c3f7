"""Positions of arguments that are given more than once."""

from __future__ import annotations

import pytest

import ferrax as jax
import ferrax.numpy as jnp

TWICE = [(0, 0), (0, -2), (-1, -1), (1, 1, 0), (0, 0, 1, 1), (0, -1, 1, -2)]


@pytest.mark.parametrize("numbers", TWICE, ids=str)
def test_static_positions_may_repeat(numbers):
    seen = []

    def f(x, y):
        seen.append((type(x), type(y)))
        return x * 1, y * 1

    static = {n % 2 for n in numbers}
    jitted = jax.jit(f, static_argnums=numbers)
    assert jitted(3, 4) == (3, 4) and jitted(3, 4) == (3, 4)
    assert [t is int for t in seen[0]] == [i in static for i in range(2)]
    assert len(seen) == 1
    dynamic = [jnp.int32(v) for i, v in enumerate((3, 4)) if i not in static]
    assert jax.jit(f, static_argnums=numbers).lower(3, 4).compile()(*dynamic) == (3, 4)
    assert len(jax.make_jaxpr(f, static_argnums=numbers)(3, 4).jaxpr.invars) == 2 - len(static)


@pytest.mark.parametrize("transform", [jax.grad, jax.value_and_grad, jax.jacfwd, jax.jacrev, jax.hessian])
@pytest.mark.parametrize("numbers", TWICE, ids=str)
def test_an_argument_is_differentiated_once(transform, numbers):
    with pytest.raises(TypeError, match="more than once"):
        transform(lambda x, y: x * y, argnums=numbers)(2.0, 3.0)
    got = transform(lambda x, y: x * y, argnums=(1, -2))(2.0, 3.0)
    assert len(got) == 2


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacfwd", "jacrev", "hessian"])
@pytest.mark.parametrize("numbers", [-3, (0, -3), 2, (2, 0)], ids=str)
def test_positions_out_of_range(name, numbers):
    import jax as real

    def refused(of):
        with pytest.raises((TypeError, ValueError)) as found:
            getattr(of, name)(lambda x, y: x * y, argnums=numbers)(2.0, 3.0)
        return type(found.value), str(found.value)

    (ours, text), (theirs, wanted) = refused(jax), refused(real)
    assert ours is theirs and text.startswith(wanted.rstrip("."))


def test_one_position_that_is_not_differentiated():
    f = jax.custom_jvp(lambda n, x: x * n, nondiff_argnums=0)
    f.defjvp(lambda n, primals, tangents: (f(n, *primals), 2 * tangents[0]))
    assert jax.jvp(lambda x: f(3, x), (1.0,), (1.0,)) == (3.0, 2.0)
    g = jax.custom_vjp(lambda n, x: x * n, nondiff_argnums=0)
    g.defvjp(lambda n, x: (g(n, x), None), lambda n, _, ct: (5 * ct,))
    assert jax.grad(lambda x: g(3, x))(1.0) == 5.0
