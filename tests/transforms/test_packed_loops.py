"""Loops over arrays of 5 to 64 elements: step by step at once, jitted and in JAX."""

import platform

import numpy as np
import pytest

import ferrax
import ferrax.numpy as ferrax_numpy
from tests.recorded import expected


def floats(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def steps(jax, jnp):
    """Name -> a step (its number, x) and x."""
    lax = jax.lax
    x, m = floats(20), floats(8, 8)
    k = np.random.default_rng(3).integers(-25, 25, 20).astype(np.int32)

    def rare(x):
        return jnp.tanh(jnp.exp(-jnp.sin(x))) + jnp.log1p(jnp.abs(x))

    def two(i, x):
        shorter = lambda s: (s[1][::-1] * 0.9, s[0] - 0.1, s[2] + 1)
        a, b, n = lax.while_loop(lambda s: (s[2] < i) & (s[0][3] < 9), shorter, (x, x * x, 0))
        return a + lax.cond(n > 2, lambda b: lax.fori_loop(0, n, lambda j, b: b[::-1] + b[j], b), lambda b: -b, b) * 0.1

    return {
        "element": (lambda i, x: x * 0.5 + x[i * 3 - 7], x),
        "elements": (lambda i, x: x[k + i] * 0.9 + 1, x),
        "filled": (lambda i, x: x.at[k + i].get(mode="fill", fill_value=0.25) * 0.9, x),
        "row": (lambda i, m: m * 0.5 + m[i % 8], m),
        "column": (lambda i, m: m * 0.5 + m[:, i % 8], m),
        "window": (lambda i, m: m * 0.5 + lax.dynamic_slice(m, (i, 9 - i), (2, 3)).sum(), m),
        "set": (lambda i, x: (x * 0.5).at[i * 5 - 9].set(1.5), x),
        "added": (lambda i, x: (x * 0.5).at[k[:5] + i].add(x[:5]), x),
        "replaced": (lambda i, m: lax.dynamic_update_slice(m * 0.5, m[:3, :2], (i, 7 - i)), m),
        "any": (lambda i, x: jnp.where(jnp.any(x > 1.5), x * 0.5, x + 0.3), x),
        "all": (lambda i, x: jnp.where(jnp.all(x > -1.0), x - 1.0, x + 0.4), x),
        "running sum": (lambda i, x: jnp.cumsum(x) * 0.1, x),
        "overflowing sum": (lambda i, x: jnp.minimum(jnp.cumsum(jnp.abs(x) * 1e38) * 1e-37, 2.0), x),
        "running sum from the end": (lambda i, m: lax.cumsum(m, 1, reverse=True) * 0.2, m),
        "running product": (lambda i, x: jnp.cumprod(x + 1) * 0.1, x),
        "running maximum": (lambda i, x: lax.cummax(x) * 0.9 - x, x),
        "place of the largest": (lambda i, x: x.at[jnp.argmax(x)].multiply(-0.5), x),
        "softmax": (lambda i, x: jax.nn.softmax(x) * 3, x),
        "normalized": (lambda i, x: (x - x.mean()) / jnp.sqrt(x.var() + 1e-3) + 0.1, x),
        "product": (lambda i, m: m @ m * 0.2 + jnp.dot(m[0], m[1]), m),
        "rolled": (lambda i, x: jnp.roll(x, 3) * 0.9 + x[::-1] * 0.1, x),
        "integers": (lambda i, n: jnp.cumsum(n[(n + i) % 20]) % 1000, np.arange(20, dtype=np.int32) * 7),
        "while": (lambda i, x: lax.while_loop(lambda x: x[0] < i, lambda x: jnp.roll(x, 1) + 1.5, x * 0.5), x),
        "steps": (lambda i, m: lax.fori_loop(0, 20, lambda j, m: m @ m * 0.1 + m[j % 5] * 0.01 + j, m * 0.1) * 0.02, m),
        "of two": (two, x),
        "rarely": (lambda i, x: lax.cond(i % 3 == 1, rare, lambda x: x * 0.9 + 0.1, x), x),
        "nested": (lambda i, x: lax.cond(x[0] > 0, lambda x: lax.cond(i > 3, rare, jnp.cos, x), jnp.sin, x), x),
    }


@pytest.mark.parametrize("name", steps(ferrax, ferrax_numpy))
def test_loop_is_its_steps(name):
    def run(jax, jnp):
        step, x = steps(jax, jnp)[name]
        return jax.jit(lambda x: jax.lax.fori_loop(0, 9, step, x))(x)

    step, x = steps(ferrax, ferrax_numpy)[name]
    x = ferrax_numpy.asarray(x)
    found = np.asarray(run(ferrax, ferrax_numpy))
    for i in range(9):
        x = ferrax.jit(step)(np.int32(i), x)
    np.testing.assert_array_equal(found, np.asarray(x))
    np.testing.assert_allclose(found, expected(lambda jax: run(jax, jax.numpy)), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("test", ["any", "all"])
def test_condition_of_all_elements(test):
    def run(jax, jnp):
        of = getattr(jnp, test)
        return jax.jit(lambda x: jax.lax.while_loop(lambda x: of(x < 9.0), lambda x: x + 0.37, x))(floats(20))

    np.testing.assert_array_equal(np.asarray(run(ferrax, ferrax_numpy)), expected(lambda jax: run(jax, jax.numpy)))


@pytest.mark.embedded
@pytest.mark.parametrize(
    "name", ["element", "elements", "set", "replaced", "any", "running sum", "softmax", "rarely", "while"]
)
def test_small_arrays_fill_registers(name):
    def text(step, x):
        return ferrax.jit(lambda x: ferrax.lax.fori_loop(0, 9, step, x)).lower(x).as_text("kernels")

    if platform.machine() != "x86_64" or "in registers" not in text(lambda i, x: x * 0.5, np.float32(1)):
        pytest.skip("no machine")
    found = text(*steps(ferrax, ferrax_numpy)[name])
    assert "loop in registers" in found, found
