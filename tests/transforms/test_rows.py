"""Programs over many rows give what each row gives alone, whatever its length."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp

FUNCTIONS = {
    "var": jnp.var,
    "std": jnp.std,
    "softmax": lambda x: jax.nn.softmax(x * 1.0),
    "logsumexp": jax.nn.logsumexp,
}


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "bfloat16"])
@pytest.mark.parametrize("length", [16, 33, 64, 100, 128, 192, 256, 512, 520])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_are_what_each_gives_alone(function, length, dtype):
    """A number that a row is reduced to meets each of its elements, and they are reduced again."""
    f = FUNCTIONS[function]
    for rows in (2, 9, 64):
        x = jnp.asarray(np.arange(rows * length).reshape(rows, length) % 7 + 1).astype(dtype)
        together = np.asarray(jax.jit(jax.vmap(f))(x)).astype("float64")
        alone = np.stack([np.asarray(f(row)) for row in x]).astype("float64")
        np.testing.assert_allclose(together, alone, rtol=2e-2 if dtype == "bfloat16" else 1e-5, atol=1e-6)


@pytest.mark.parametrize("reduce", [jnp.all, jnp.any, jnp.sum, jnp.max])
@pytest.mark.parametrize("length", [8, 16, 32, 64, 128])
@pytest.mark.parametrize("dtype", ["int32", "float32", "int64", "float64"])
def test_rows_of_what_another_kernel_made(dtype, length, reduce):
    """Flags are made of wide numbers as one row of all, and reduced by rows in a kernel of their own."""
    for rows in (2, 4, 8):
        with jax.enable_x64(True):
            x = jnp.asarray(np.arange(rows * length).reshape(rows, length) % 5).astype(dtype)
            got = jax.jit(lambda x: (reduce(x != 0, axis=1), reduce(x.astype(bool), axis=0), x[:, length:]))(x)
            want = (reduce(x != 0, axis=1), reduce(x.astype(bool), axis=0))
            np.testing.assert_array_equal(got[0], want[0])
            np.testing.assert_array_equal(got[1], want[1])
