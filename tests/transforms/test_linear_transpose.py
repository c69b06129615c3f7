"""`linear_transpose` of loops with carried values that do not depend on the arguments, and of what is not linear."""

import functools

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax


@pytest.mark.parametrize("mapped", [False, True])
def test_linear_loops_with_counters_are_transposed(mapped):
    """Carried values that do not depend on the arguments are computed forward, and read backward."""

    def steps(t, x):
        return lax.fori_loop(0, 4, lambda i, c: (c[0] * t, c[1] * c[0] + i * x), (1.5, x))[1]

    def transposed(t):
        return ferrax.linear_transpose(functools.partial(steps, t), 1.0)(1.0)[0]

    # the loop is x times a number, which is its own transpose
    points = jnp.array([0.5, 1.0, 2.0])
    wanted = [steps(t, 1.0) for t in points]
    got = ferrax.vmap(transposed)(points) if mapped else [transposed(t) for t in points]
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_linear_loops_that_add_up_their_inputs_are_transposed():
    summed = lambda xs: lax.scan(lambda c, x: ((c[0] + 1, c[1] + c[0] * x), c[0] * x), (2, 0.0), xs)
    (pulled,) = ferrax.linear_transpose(lambda xs: (summed(xs)[0][1], summed(xs)[1]), jnp.ones(3))(
        (1.0, jnp.arange(3.0))
    )
    np.testing.assert_allclose(pulled, [2.0, 6.0, 12.0])


@pytest.mark.parametrize(
    "f", [lambda x: x * x, lambda x: jnp.dot(x, x), lambda x: lax.fori_loop(0, 3, lambda i, c: c * c, x)]
)
def test_products_of_arguments_are_not_transposed(f):
    with pytest.raises(ValueError, match="not linear"):
        ferrax.linear_transpose(f, jnp.float32(2))(jnp.float32(1))
