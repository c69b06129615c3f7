"""`exp` beside numbers that are far from it: an element's bits are those that it has alone."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp

FAR = {
    "float32": [-np.inf, -1e30, -104, -103.97, -103.2, -88, -87.3, -87, 87, 88.72, 89, np.inf, np.nan, 0, -0.0, 1.5],
    "float64": [-np.inf, -1e300, -746, -745.2, -745, -709, -708, 708, 709.7, 710, np.inf, np.nan, 0, -0.0, 1.5],
}


@pytest.mark.parametrize("dtype", FAR)
def test_far_exponents(dtype):
    with jax.enable_x64(True):
        values = np.array(FAR[dtype], dtype)
        alone = np.array([np.asarray(jnp.exp(jnp.asarray(x))) for x in values], dtype)
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(alone, np.exp(values), rtol=1e-6)
        draws = np.random.default_rng(0)
        for length in (5, 16, 33, 64, 100, 1000):
            for _ in range(20):
                chosen = draws.integers(0, len(values), length)
                for f in (jnp.exp, jax.jit(lambda x: jnp.exp(x + 0))):
                    np.testing.assert_array_equal(f(jnp.asarray(values[chosen])), alone[chosen])
