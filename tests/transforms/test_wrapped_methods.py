"""Methods that are wrapped where their class is defined: what wraps a function binds to instances, as functions do."""

import functools

import pytest

import ferrax as jax
import ferrax.numpy as jnp

WRAPPERS = {
    "checkpoint": (functools.partial(jax.checkpoint, static_argnums=0), 12.0),
    "grad": (functools.partial(jax.grad, argnums=1), 12.0),
    "hessian": (functools.partial(jax.hessian, argnums=1), 6.0),
    "jacfwd": (functools.partial(jax.jacfwd, argnums=1), 12.0),
    "jacrev": (functools.partial(jax.jacrev, argnums=1), 12.0),
    "jit": (functools.partial(jax.jit, static_argnums=0), 12.0),
    "named_call": (jax.named_call, 12.0),
    "vectorize": (functools.partial(jnp.vectorize, excluded=(0,)), 12.0),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrapped_methods_bind(name):
    wrap, wanted = WRAPPERS[name]

    class Scaled:
        scale = 3.0

        @wrap
        def square(self, x):
            return self.scale * x * x

    one = Scaled()
    assert one.square.__self__ is one
    assert one.square(2.0) == wanted
    assert Scaled.square(one, 2.0) == wanted


def test_programs_and_initializers_bind():
    class Model:
        draw = jax.nn.initializers.zeros

        @jax.make_jaxpr
        def program(this, x):
            return x + 1

    assert len(Model.program(1.0, 2.0).eqns) == 1
    assert Model().program.__self__.__class__ is Model
    assert Model.draw(jax.random.key(0), (2,)).shape == (2,)
