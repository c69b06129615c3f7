"""The order of complex numbers where NaN and infinities are among them: `max`, `min` and `clamp`."""

import jax
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

RNG = np.random.RandomState(0)
Z = (RNG.randn(3, 4) + 1j * RNG.randn(3, 4)).astype(np.complex64)


def same(ours, theirs, rtol=1e-5):
    for a, b in zip(ferrax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-6)


C = np.array([1 + 2j, np.nan, np.inf, 1 + 5j, complex(0, np.nan), complex(1, np.inf), -np.inf], np.complex64)
PAIRS = [np.broadcast_to(a, (7, 7)).copy() for a in (C[:, None], C[None, :])]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_order_of_complex_numbers_with_nan(name, dtype):
    with jax.enable_x64(True), ferrax.enable_x64(True):
        args = [x.astype(dtype) for x in PAIRS]
        ours, theirs = getattr(lax, name), getattr(jax.lax, name)
        same([ours(*args), ferrax.jit(ours)(*args)], [theirs(*args), jax.jit(theirs)(*args)])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_clamped(dtype):
    with jax.enable_x64(True), ferrax.enable_x64(True):
        low, high = np.asarray(-0.25 + 1j, dtype), np.asarray(1.5 + 3j, dtype)
        for x in (C.astype(dtype), Z.ravel().astype(dtype)):
            for bounds in ((low, high), (np.full(x.shape, low), np.full(x.shape, high))):
                ours, theirs = lax.clamp, jax.lax.clamp
                args = bounds[0], x, bounds[1]
                want = theirs(*args)
                same([ours(*args), ferrax.jit(ours)(*args)], [want, want])
        stacked = np.stack([x, -x])
        same(
            ferrax.vmap(lax.clamp, (None, 0, None))(low, stacked, high),
            jax.vmap(jax.lax.clamp, (None, 0, None))(low, stacked, high),
        )


def test_bounds_of_the_same_real_part():
    """XLA looks at real parts alone."""
    low, high = np.complex64(1 + 1j), np.complex64(1 + 3j)
    x = np.array([1, 1 + 2j, 1 + 5j, 0.5 + 9j, 2], np.complex64)
    want = [low, 1 + 2j, high, low, high]
    assert lax.clamp(low, x, high).tolist() == ferrax.jit(lax.clamp)(low, x, high).tolist() == want


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 17, 100])
def test_reductions_and_scatters_of_nan_keep_the_order_of_pairs(length):
    """The later one is the result where neither is beyond the other: what a fold of `max` and `min` gives."""
    values = [complex(np.nan, -0.75), 5 + 3j, complex(1, np.nan), 5 - 1j, -np.inf + 0j]
    for seed in range(20):
        x = np.random.RandomState(seed).choice(np.array(values, np.complex64), length)
        for pair, update in ((lax.max, "max"), (lax.min, "min")):
            start = x[0]
            for value in x[1:]:
                start = np.asarray(pair(start, value))
            y = jnp.zeros(3, jnp.complex64).at[1].set(x[0])
            updated = getattr(y.at[jnp.full(length - 1, 1)], update)(x[1:])[1]
            np.testing.assert_array_equal(updated, start)
            found = np.asarray(getattr(jnp, update)(x))
            assert found in x or (np.isnan(found) and np.isnan(x).any()), (x, found)
