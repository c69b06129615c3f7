"""Arguments of jitted functions that are types without values: those that ask for the type alone take them."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp

TYPE = jax.ShapeDtypeStruct((3,), jnp.float32)
X = jnp.arange(1.0, 4.0)


def scaled(x, like):
    return {"out": x * len(like["a"].shape) + like["a"].size}


def test_functions_take_types_whose_values_they_do_not_read():
    f = jax.jit(scaled)
    calls = {
        "call": lambda: f(X, {"a": TYPE}),
        "named": lambda: f(X, like={"a": TYPE}),
        "inlined": lambda: jax.jit(scaled, inline=True)(X, {"a": TYPE}),
        "in a program": lambda: jax.jit(lambda x: f(x, {"a": TYPE}))(X),
        "mapped": lambda: jax.vmap(lambda x: f(x, {"a": TYPE}))(X),
        "with a captured value": lambda: jax.jit(lambda y: jax.jit(lambda x, s: scaled(x * y, s))(X, {"a": TYPE}))(1.0),
        "static": lambda: jax.jit(lambda x, n, s: scaled(x, s), static_argnums=1)(X, 3, {"a": TYPE}),
    }
    for name, call in calls.items():
        for _ in range(2):
            np.testing.assert_array_equal(call()["out"], X + 3, err_msg=name)
    np.testing.assert_array_equal(jax.grad(lambda x: f(x, {"a": TYPE})["out"].sum())(X), jnp.ones(3))
    np.testing.assert_array_equal(f(X, {"a": X})["out"], X + 3)
    assert len(jax.make_jaxpr(lambda x: f(x, {"a": TYPE}))(X).eqns[0].invars) == 1


@pytest.mark.parametrize("f", [lambda x, s: x + s, lambda x, s: s, lambda s, x: jnp.sin(s) * x])
def test_functions_that_read_values_refuse_types(f):
    text = r"Argument 's' of shape float32\[3\] of type <class '.*ShapeDtypeStruct'> is not a valid JAX type"
    for call in (lambda x: jax.jit(f)(x=x, s=TYPE), jax.jit(lambda x: jax.jit(f)(x=x, s=TYPE))):
        with pytest.raises(TypeError, match=text):
            call(X)
