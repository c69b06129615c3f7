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
