"""Slopes of `scatter_mul` and `.at[].multiply` where several updates reach one element.

JAX has these only with `unique_indices=True`. The reference multiplies the updates in one after the other, each call
with windows that do not overlap.
"""

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

RNG = np.random.default_rng(5)
#: Shape of the operand, an index, and the shape of the updates.
CASES = {
    "no repetition": ((4,), np.array([2, 0, 3]), (3,)),
    "all the same": ((4,), np.array([1, 1, 1, 1, 1]), (5,)),
    "pairs": ((5,), np.array([3, 0, 3, 0, 2, 3, -5]), (7,)),
    "outside": ((3,), np.array([0, 7, 7, 2, 0, -9, 7]), (7,)),
    "rows": ((4, 3), np.array([1, 3, 1, 1]), (4, 3)),
    "two axes of indices": ((6, 2), np.array([[0, 5, 0], [5, 5, 1]]), (2, 3, 2)),
    "many": ((7,), RNG.integers(0, 7, 100), (100,)),
    "one": ((3,), np.array([1]), (1,)),
    "none": ((3,), np.zeros(0, int), (0,)),
    "nowhere": ((1, 0), np.array([-2, 0, 2]), (3, 0)),
}


def one_by_one(x, index, updates):
    """JAX's program with a call for each index, of which none repeats."""
    for place in np.ndindex(index.shape):
        x = x.at[index[place]].multiply(updates[place], unique_indices=True, mode="drop")
    return x


def weighted(array):
    return (array * np.cos(np.arange(array.size).reshape(array.shape)) + array * array).sum()


def drawn(name, zeros):
    shape, index, of_updates = CASES[name]
    x, updates = (RNG.uniform(0.5, 1.5, s).astype("float32") for s in (shape, of_updates))
    if zeros and updates.size:
        updates.reshape(-1)[:: 2 if updates.size < 50 else 17] = 0
    return x, index, updates


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("name", list(CASES))
def test_gradients(name, zeros):
    x, index, updates = drawn(name, zeros)
    ours = lambda a, u: weighted(a.at[index].multiply(u, mode="drop"))
    wanted = jax.grad(lambda a, u: weighted(one_by_one(a, index, u)), (0, 1))(x, updates)
    for gradient in (ferrax.grad(ours, (0, 1)), ferrax.jit(ferrax.grad(ours, (0, 1)))):
        for found, want in zip(gradient(jnp.asarray(x), jnp.asarray(updates)), wanted):
            np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-6)
    primals, tangents = (jnp.asarray(x), jnp.asarray(updates)), (jnp.asarray(x * 0), jnp.asarray(updates + 1))
    _, slope = ferrax.jvp(ours, primals, tangents)
    np.testing.assert_allclose(slope, (np.asarray(wanted[1]) * (updates + 1)).sum(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("name", ["all the same", "pairs", "outside", "rows"])
def test_second_derivatives(name, zeros):
    x, index, updates = drawn(name, zeros)
    ours = ferrax.hessian(lambda u: weighted(jnp.asarray(x).at[index].multiply(u, mode="drop")))(jnp.asarray(updates))
    wanted = jax.hessian(lambda u: weighted(one_by_one(jax_numpy.asarray(x), index, u)))(updates)
    np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mapped", [(0, 0, 0), (None, 0, 0), (0, None, 0), (None, None, 0), (None, 0, None)])
def test_rows_of_a_vmap(mapped):
    x = RNG.uniform(0.5, 1.5, (3, 4)).astype("float32")
    index = RNG.integers(0, 4, (3, 6))
    updates = RNG.uniform(0.5, 1.5, (3, 6)).astype("float32")
    args = [a if axis == 0 else a[0] for a, axis in zip((x, index, updates), mapped)]
    gradient = ferrax.grad(lambda u, a, i: weighted(a.at[i].multiply(u)))
    swapped = lambda a, i, u: gradient(u, a, i)
    found = ferrax.jit(ferrax.vmap(swapped, mapped))(*map(jnp.asarray, args))
    through = ferrax.grad(
        lambda u, a, i: ferrax.vmap(lambda a, i, u: weighted(a.at[i].multiply(u)), mapped)(a, i, u).sum()
    )(*(jnp.asarray(args[k]) for k in (2, 0, 1)))
    rows = []
    for k in range(3):
        a, i, u = (arg[k] if axis == 0 else arg for arg, axis in zip(args, mapped))
        rows.append(jax.grad(lambda u: weighted(one_by_one(jax_numpy.asarray(a), i, u)))(u))
    np.testing.assert_allclose(found, rows, rtol=2e-5)
    np.testing.assert_allclose(through, rows if mapped[2] == 0 else np.sum(rows, 0), rtol=2e-5)


def test_windows_that_overlap():
    """Windows of two elements that begin at each index; one that does not fit is dropped."""
    x = RNG.uniform(0.5, 1.5, 5).astype("float32")
    updates = RNG.uniform(0.5, 1.5, (4, 2)).astype("float32")
    starts = np.array([[0], [1], [4], [1]])
    numbers = lax.ScatterDimensionNumbers((1,), (), (0,))
    ours = ferrax.grad(lambda u: weighted(lax.scatter_mul(jnp.asarray(x), starts, u, numbers)))(jnp.asarray(updates))

    def reference(u):
        a = jax_numpy.asarray(x)
        for (start,), row in zip(starts[[0, 1, 3]], (0, 1, 3)):
            a = a.at[np.array([start, start + 1])].multiply(u[row], unique_indices=True)
        return weighted(a)

    np.testing.assert_allclose(ours, jax.grad(reference)(updates), rtol=2e-5)


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_modes(mode):
    """Where an index outside goes, another slope goes: the reference is a product of one-hot rows."""
    x, updates = RNG.uniform(0.5, 1.5, 3), RNG.uniform(0.5, 1.5, 6)
    index = np.array([0, 5, 2, -1, 4, 0])
    there = np.where(index < 0, index + 3, index)
    there = {"clip": np.clip(there, 0, 2), "fill": there}[mode]
    chosen = there[:, None] == np.arange(3)
    reference = lambda u: weighted(x * jax_numpy.where(chosen, u[:, None], 1).prod(0))
    ours = ferrax.grad(lambda u: weighted(jnp.asarray(x, "float32").at[index].multiply(u, mode=mode)))
    wanted = jax.grad(reference)(updates.astype("float32"))
    np.testing.assert_allclose(ours(jnp.asarray(updates, "float32")), wanted, rtol=2e-5)


def test_infinite_updates_that_are_dropped_leave_no_trace():
    updates = jnp.array([2.0, jnp.inf, jnp.nan, 3.0])
    index = np.array([0, 9, 9, 0])
    slopes = ferrax.grad(lambda u: jnp.ones(2).at[index].multiply(u, mode="drop").sum())(updates)
    np.testing.assert_array_equal(slopes, [3, 0, 0, 2])


def test_complex_numbers():
    x, turns, index = RNG.normal(size=2) + 1j, RNG.normal(size=5).astype("float32"), np.array([0, 1, 0, 0, 1])
    x = x.astype("complex64")
    ours = ferrax.grad(lambda t: jnp.real(jnp.asarray(x).at[index].multiply(t + 1j * t * t)).sum())
    wanted = jax.grad(lambda t: jax_numpy.real(one_by_one(jax_numpy.asarray(x), index, t + 1j * t * t)).sum())(turns)
    np.testing.assert_allclose(ours(jnp.asarray(turns)), wanted, rtol=1e-4)
