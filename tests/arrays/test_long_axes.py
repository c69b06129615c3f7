"""Arrays without elements may have other axes that are longer than sizes can be multiplied."""

import pytest

import ferrax as jax
import ferrax.numpy as jnp

LONG = 2**40

OPERATIONS = {
    "cumsum": lambda x: jnp.cumsum(x, axis=1),
    "sort": lambda x: jnp.sort(x, axis=2),
    "argmax": lambda x: jnp.argmax(x, axis=2),
    "sum": lambda x: jnp.sum(x, axis=1),
    "pad": lambda x: jnp.pad(x, ((0, 0), (1, 2), (0, 0))),
    "roll": lambda x: jnp.roll(x, 1, axis=1),
    "gradient": lambda x: jnp.gradient(x, axis=1),
    "transpose": lambda x: jnp.transpose(x, (2, 0, 1)),
    "slice": lambda x: x[:, 1:, ::2],
    "concatenate": lambda x: jnp.concatenate([x, x], axis=1),
    "vmap": lambda x: jax.vmap(jnp.average, in_axes=1)(x[:, :3]),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_empty_arrays_with_long_axes(name):
    x = jnp.zeros((0, LONG, LONG), jnp.float32)
    function = OPERATIONS[name]
    eager = jax.tree.map(jnp.shape, function(x))
    assert eager == jax.tree.map(lambda a: a.shape, jax.eval_shape(function, x))
    assert eager == jax.tree.map(jnp.shape, jax.jit(function)(x))


def test_reshaping_to_more_elements_than_numbers_count():
    with pytest.raises(TypeError, match="reshape"):
        jnp.reshape(jnp.arange(8), (LONG, LONG))
    with pytest.raises(TypeError, match="reshape"):
        jnp.arange(8).reshape(LONG, LONG)
