"""Results that are of full type though the operands are weak, as JAX has them; and indices that are no integers."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from tests.recorded import expected


def weakly(jax, number):
    return jax.jit(lambda: jax.lax.broadcast_in_dim(number, (2, 3), ()))()


CASES = {
    "dynamic_update_slice": lambda jax: jax.lax.dynamic_update_slice(weakly(jax, 1.5), weakly(jax, 2.5)[:1], (0, 0)),
    "dynamic_update_slice_in_dim": lambda jax: jax.lax.dynamic_update_slice_in_dim(
        weakly(jax, 1.5), weakly(jax, 2.5)[:1], 0, 0
    ),
    "dynamic_update_index_in_dim": lambda jax: jax.lax.dynamic_update_index_in_dim(
        weakly(jax, 1.5), weakly(jax, 2.5)[0], 0, 0
    ),
    "dynamic_slice": lambda jax: jax.lax.dynamic_slice(weakly(jax, 1.5), (0, 0), (1, 1)),
    "reduce_and": lambda jax: jax.lax.reduce_and(weakly(jax, 6), (0,)),
    "reduce_or": lambda jax: jax.lax.reduce_or(weakly(jax, 6), (0,)),
    "reduce_xor": lambda jax: jax.lax.reduce_xor(weakly(jax, 6), (0,)),
    "reduce_sum": lambda jax: jax.lax.reduce_sum(weakly(jax, 6), (0,)),
    "reduce from a full value": lambda jax: jax.lax.reduce(weakly(jax, 1.5), np.float32(0), jax.lax.add, (0,)),
    "reduce from a number": lambda jax: jax.lax.reduce(weakly(jax, 1.5), 0.0, jax.lax.add, (0,)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_weak_types(name, jitted):
    compute = lambda jax: jax.jit(lambda: CASES[name](jax))() if jitted else CASES[name](jax)
    want, got = expected(compute), compute(ferrax)
    assert (got.dtype, got.weak_type) == (want.dtype, want.weak_type)
    np.testing.assert_array_equal(np.asarray(got), want)


def test_indices_are_integers():
    x, at = jnp.ones((2, 3)), jnp.ones((1, 1))
    with pytest.raises(ValueError, match="integer"):
        lax.gather(x, at, lax.GatherDimensionNumbers((0,), (0,), (0,)), (1, 3))
    with pytest.raises(ValueError, match="integer"):
        lax.scatter(x, at, x[:1], lax.ScatterDimensionNumbers((1,), (0,), (0,)))


def test_code_without_a_module_is_warned():
    f = eval("lambda x: lax.convert_element_type(x, 'float32')", {"lax": lax, "__builtins__": {}})
    with pytest.warns(Warning, match="[Cc]omplex"):
        f(jnp.ones(2, "complex64"))
