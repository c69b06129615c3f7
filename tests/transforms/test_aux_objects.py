"""What functions give beside their result: objects that are no arrays come back as they are, arrays are traced."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp

THING = object()


def f(x):
    return jnp.sum(x * x), {"kept": THING, "text": "a", "twice": 2 * x, "none": None}


AUX = {
    "grad": lambda x: ferrax.grad(f, has_aux=True)(x)[1],
    "value_and_grad": lambda x: ferrax.value_and_grad(f, has_aux=True)(x)[0][1],
    "vjp": lambda x: ferrax.vjp(f, x, has_aux=True)[2],
    "jvp": lambda x: ferrax.jvp(f, (x,), (x,), has_aux=True)[2],
    "linearize": lambda x: ferrax.linearize(f, x, has_aux=True)[2],
    "twice": lambda x: ferrax.grad(lambda y: (jnp.sum(ferrax.grad(f, has_aux=True)(y)[0]), f(y)[1]), has_aux=True)(x)[
        1
    ],
}


@pytest.mark.parametrize("name", AUX)
def test_objects_come_back_at_their_places(name):
    aux = AUX[name](jnp.array([1.0, 3.0]))
    assert set(aux) == {"kept", "text", "twice", "none"}
    assert aux["kept"] is THING and aux["text"] == "a" and aux["none"] is None
    np.testing.assert_array_equal(aux["twice"], [2.0, 6.0])


@pytest.mark.parametrize("outer", [ferrax.jit, ferrax.vmap, lambda g: ferrax.vmap(ferrax.jit(g))])
def test_they_stay_inside_of_other_transformations(outer):
    def gradient(x):
        grad, aux = ferrax.grad(f, has_aux=True)(x)
        assert aux["kept"] is THING
        return grad + aux["twice"]

    np.testing.assert_array_equal(outer(gradient)(jnp.arange(3.0)), [0.0, 4.0, 8.0])


def test_results_themselves_are_arrays():
    for call in (
        lambda: ferrax.grad(lambda x: THING)(1.0),
        lambda: ferrax.vjp(lambda x: (THING, x), 1.0, has_aux=True),
    ):
        with pytest.raises(TypeError, match="object"):
            call()


def test_linearized_functions_leave_out_what_is_beside_the_result():
    value, linear, aux = ferrax.linearize(f, jnp.array([1.0, 3.0]), has_aux=True)
    assert value == 10.0 and linear(jnp.array([1.0, 1.0])) == 8.0
    nested = ferrax.jit(lambda x: ferrax.linearize(f, x, has_aux=True)[2]["twice"])
    np.testing.assert_array_equal(nested(jnp.array([1.0, 3.0])), aux["twice"])
    slope = ferrax.grad(lambda x: ferrax.linearize(f, x, has_aux=True)[2]["twice"].sum())(jnp.ones(2))
    np.testing.assert_array_equal(slope, [2.0, 2.0])
