"""``x.at[index].apply(f)``: entries that are named once, often and very often, and what that costs."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax


def one_by_one(x, index, function):
    """The same by a loop over the updates; those out of bounds are dropped."""
    out = np.array(x)
    for i in np.asarray(index).ravel():
        i = i + len(out) if i < 0 else i
        if 0 <= i < len(out):
            out[i] = function(out[i])
    return out


def named(counts, rng):
    """An index that names entry i as often as `counts` says, in any order."""
    return rng.permutation(np.repeat(np.arange(len(counts)), counts)).astype(np.int32)


COUNTS = {
    "each once": [1] * 50,
    "around the rounds of the whole": [0, 7, 8, 9, 1, 2] * 10,
    "one very often": [3000] + [1] * 60,
    "every power": [*(2**k for k in range(11)), *[0] * 100],
    "many often": [70] * 45 + [0, 1, 2],
    "all of few": [40, 0, 3],
}


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("mode", ["eager", "jit", "vmap"])
def test_every_naming_applies(counts, mode):
    rng = np.random.default_rng(0)
    index = named(counts, rng)
    x = rng.integers(-5, 5, len(counts)).astype(np.int32)
    f = lambda v: v * 3 + 1
    apply = lambda x, i: x.at[i].apply(f)
    with np.errstate(over="ignore"):
        want = one_by_one(x, index, f)
        if mode == "vmap":
            rows, indices = np.stack([x, x + 1]), np.stack([index, index[::-1]])
            got = ferrax.vmap(apply)(rows, indices)
            want = np.stack([want, one_by_one(x + 1, index, f)])
        else:
            got = (ferrax.jit(apply) if mode == "jit" else apply)(jnp.asarray(x), index)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_derivatives(counts):
    index = named(counts, np.random.default_rng(1))
    x = jnp.linspace(0.5, 1.5, len(counts))
    f = lambda v: v * 0.999
    gradient = ferrax.grad(lambda x: x.at[index].apply(f).sum())(x)
    np.testing.assert_allclose(gradient, 0.999 ** np.array(counts), rtol=3e-4)
    tangent = ferrax.jvp(lambda x: x.at[index].apply(f), (x,), (jnp.ones_like(x),))[1]
    np.testing.assert_allclose(tangent, gradient, rtol=1e-6)


def test_slices_rows_and_masks():
    x = np.arange(600.0).reshape(20, 30).astype(np.float32)
    for index in [np.s_[3], np.s_[2:9], np.s_[:, 4], np.s_[[1, 1, -1], [2, 2, 40]], x > 300, np.array([0] * 40)]:
        want = x.copy()
        if isinstance(index, np.ndarray) and index.dtype != bool:
            want[0] *= 2.0**40
        elif isinstance(index, tuple) and isinstance(index[0], list):
            want[1, 2] *= 4
        else:
            want[index] *= 2
        np.testing.assert_array_equal(jnp.asarray(x).at[index].apply(lambda v: v * 2), want)


def test_scatter_apply_counts_its_windows():
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    indices = np.array([[1]] * 50 + [[0]] * 9 + [[2]])
    got = lax.scatter_apply(jnp.ones((40, 2)), indices, lambda v: v * 2, numbers, update_shape=(60, 2))
    np.testing.assert_array_equal(got[:4], [[2.0**9] * 2, [2.0**50] * 2, [2] * 2, [1] * 2])


def test_work_is_that_of_the_updates():
    """A random program took minutes: an entry was named 50,000 times, and each time all 100,000 were gone over."""
    index = np.zeros(100_000, np.int32)
    index[::2] = np.arange(50_000)
    x = jnp.ones(100_000)
    np.testing.assert_array_equal(x.at[index].apply(jnp.negative)[:3], [-1, -1, -1])
    gradient = ferrax.grad(lambda x: x.at[index].apply(jnp.negative).sum())(x)
    np.testing.assert_array_equal(gradient[:3], [-1, -1, -1])
