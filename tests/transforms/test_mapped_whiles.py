"""`while` loops that go on while a condition holds for any element: whose elements then stay, or move on."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

SIZES = [1, 2, 7, 8, 9, 64, 65, 1000, 5003]


def root(a):
    """Newton's iteration; NaN where there is no root, after as many steps as are allowed."""

    def step(state):
        x, k, _ = state
        return 0.5 * (x + a / x), k + 1, jnp.abs(x * x - a)

    return lax.while_loop(lambda s: ~(s[2] < 1e-3) & (s[1] < 60), step, (a, 0, jnp.inf + 0 * a))


def collatz(n):
    def step(state):
        n, k = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

    return lax.while_loop(lambda s: s[0] > 1, step, (n, 0))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_those_alone(size, dtype):
    with ferrax.enable_x64(dtype == "float64"):
        a = np.random.default_rng(size).uniform(0.1, 1e4, size).astype(dtype)
        a[size // 2 :: 5] = -2.0
        a[size // 3 :: 7] = np.nan
        together = ferrax.jit(ferrax.vmap(root))(a)
        alone = ferrax.jit(root)
        for i in {0, size // 3, size // 2, size - 1, *range(0, size, 97)}:
            for got, want in zip(together, alone(a[i]), strict=True):
                np.testing.assert_array_equal(np.asarray(got)[i], np.asarray(want))


@pytest.mark.parametrize("size", SIZES)
def test_integers(size):
    got, steps = ferrax.jit(ferrax.vmap(collatz))(jnp.arange(1, size + 1))
    assert (np.asarray(got) == 1).all()
    want = []
    for n in range(1, size + 1):
        k = 0
        while n > 1:
            n, k = (n // 2 if n % 2 == 0 else 3 * n + 1), k + 1
        want.append(k)
    assert np.asarray(steps).tolist() == want


@pytest.mark.parametrize("size", SIZES)
def test_elements_that_move_on_after_their_own_condition(size):
    x = np.arange(size, dtype=np.float32)
    start = jnp.asarray(x)
    got = ferrax.jit(lambda x: lax.while_loop(lambda x: jnp.any(x < 10), lambda x: x + 3, x))(start)
    np.testing.assert_array_equal(got, x + 12)
    # one of two that stays, and the other that counts the steps of all
    pair = lambda x: lax.while_loop(
        lambda s: jnp.any(s[0] < 10), lambda s: (jnp.where(s[0] < 10, s[0] + 3, s[0]), s[1] + 1), (x, 0 * x)
    )
    stays, count = ferrax.jit(pair)(start)
    np.testing.assert_array_equal(stays, np.where(x < 10, x + 3 * np.ceil((10 - x) / 3), x))
    np.testing.assert_array_equal(count, np.full(size, 4))


def test_two_conditions():
    # an element stays where another condition than the loop's holds
    x = np.arange(300, dtype=np.float32)
    step = lambda x: jnp.where(x < 20, x + 1, x)
    got = ferrax.jit(lambda x: lax.while_loop(lambda x: jnp.any(x < 10), step, x))(jnp.asarray(x))
    np.testing.assert_array_equal(got, np.where(x < 10, x + 10, np.where(x < 20, np.minimum(x + 10, 20), x)))


def test_slopes():
    a = jnp.linspace(0.5, 9.0, 200)
    values, slopes = ferrax.jit(lambda a: ferrax.jvp(lambda a: ferrax.vmap(root)(a)[0], (a,), (jnp.ones_like(a),)))(a)
    np.testing.assert_allclose(slopes, 0.5 / np.sqrt(np.asarray(a)), rtol=1e-3)
    np.testing.assert_allclose(values, np.sqrt(np.asarray(a)), rtol=1e-5)
