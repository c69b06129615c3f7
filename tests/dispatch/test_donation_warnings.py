"""Which donations are warned of: those that no result has the type for, whatever the plan makes of the others."""

import warnings

import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax


def put(i, collection, value):
    return lax.cond(i >= 0, lambda x: x.at[i].set(value), lambda x: x, collection)


@pytest.mark.parametrize("shape", [(4,), (4, 1), (2,), (3, 2)])
@pytest.mark.parametrize("dtype", [jnp.int32, jnp.float32])
def test_a_result_of_the_type_is_enough(shape, dtype):
    f = ferrax.jit(put, donate_argnums=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = f(1, jnp.zeros(shape, dtype), jnp.ones(shape[1:], dtype))
    assert made[1].sum() == made.sum() == made[1].size


def test_a_type_that_no_result_has_is_warned_of():
    for f in (lambda x: x.sum(), lambda x: x.sum()[None]):
        with pytest.warns(UserWarning, match=r"not usable: float32\[4\]\."):
            ferrax.jit(f, donate_argnums=0)(jnp.ones(4))
