"""Methods that are wrapped where their class is defined: what wraps a function binds to instances, as functions do."""

import functools

import pytest

import ferrax as jax
import ferrax.numpy as jnp
from tests.recorded import both

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


FUNCTIONS = """
jit jax.vmap lax.add lax.scan lax.cond nn.softmax nn.relu nn.gelu nn.silu numpy.sin numpy.sum numpy.add
numpy.where numpy.clip numpy.array numpy.ones numpy.linalg.inv numpy.linalg.norm random.normal random.split
tree.map device_put custom_jvp custom_vjp custom_batching.custom_vmap pure_callback debug.print numpy.multiply
numpy.vectorize numpy.concatenate
"""


@pytest.mark.parametrize("name", FUNCTIONS.split())
def test_public_functions_as_attributes_of_classes_bind_as_in_jax(name):
    def binds(jax):
        found = jax
        for part in name.removeprefix("jax.").split("."):
            found = getattr(found, part)
        found = found(lambda *args: len(args)) if name.split(".")[-1].startswith(("custom", "vec", "vmap")) else found
        holder = type("Holder", (), {"attribute": found})()
        return holder.attribute is not found

    ours, theirs = both(binds)
    assert ours == theirs


def test_activations_are_called_without_the_instance():
    class Layer:
        activation = jax.nn.relu

        def __call__(self, x):
            return self.activation(x)

    assert Layer()(-1.0) == 0.0
