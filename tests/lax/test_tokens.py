"""`dce_sink` and tokens."""

import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax


@pytest.mark.embedded
def test_sunk_values_are_computed():
    def f(x):
        assert lax.dce_sink({"a": jnp.sin(x), "b": 3}) is None
        return x * 3

    kernels = lambda f: str(ferrax.jit(f).lower(1.0).as_text("kernels"))
    assert "Sin" in kernels(f) and "Sin" not in kernels(lambda x: (jnp.sin(x), x * 3)[1])
    assert f(2.0) == ferrax.jit(f)(2.0) == 6 and ferrax.grad(f)(1.0) == 3
    assert ferrax.vmap(f)(jnp.ones(2)).tolist() == [3, 3]


def test_tokens():
    tokens = lax.create_token(), lax.create_token(3)
    assert lax.after_all(*tokens).shape == tokens[0].shape == (0,)
    assert ferrax.jit(lambda x: (lax.create_token(x), x)[1])(2.0) == 2
