"""Infinities, numbers without axes, and nothing at all: what functions make of the edges of their domain."""

import numpy as np
import pytest
from scipy import special

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

INF, NAN = np.inf, np.nan


def both_ways(program, *args):
    args = [jnp.asarray(x) for x in args]
    yield program(*args)
    yield ferrax.jit(program)(*args)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_modf(dtype):
    x = np.array([INF, -INF, NAN, 2.5, -2.5, 0.0, 3.0])
    for part, whole in both_ways(jnp.modf, jnp.asarray(x, dtype)):
        np.testing.assert_array_equal(np.asarray(part).astype("float32"), [NAN, NAN, NAN, 0.5, -0.5, 0, 0])
        np.testing.assert_array_equal(np.asarray(whole).astype("float32"), [INF, -INF, NAN, 2, -2, 0, 3])


def test_i0_and_its_slope():
    x = np.array([0.0, 1.0, -3.0, 20.0, 80.0, -80.0, 1e30, -1e30], "float32")
    values, slopes = special.i0(x.astype("float64")), special.i1(x.astype("float64"))
    for found in both_ways(jnp.i0, x):
        np.testing.assert_allclose(np.asarray(found), values, rtol=2e-5)
    for found in both_ways(ferrax.vmap(ferrax.grad(jnp.i0)), x):
        np.testing.assert_allclose(np.asarray(found), slopes, rtol=5e-5)


def test_slope_of_sinc_far_from_zero():
    x = np.array([1e20, -1e30, 1e-20, 0.0], "float32")
    for found in both_ways(ferrax.vmap(ferrax.grad(jnp.sinc)), x):
        assert np.all(np.abs(np.asarray(found)) < 1e-18)


@pytest.mark.parametrize("name", ["median", "nanmedian", "quantile", "nanquantile", "percentile"])
def test_quantiles_of_a_number(name):
    """A number keeps an axis of size one, as in JAX."""
    more = () if name.endswith("median") else (0.5,)
    function = getattr(jnp, name)
    assert function(jnp.float32(3), *more).shape == ()
    kept = function(jnp.float32(3), *more, keepdims=True)
    assert kept.shape == (1,)
    assert kept.tolist() == [3.0]
    if more:
        assert function(jnp.float32(3), jnp.array([0.2, 0.5]), keepdims=True).shape == (2, 1)


@pytest.mark.parametrize("batch_size", [None, 0, 1, 2, 3, 5, 9])
def test_map_in_batches_of_nothing(batch_size):
    for rows, inner in ((5, 0), (0, 3), (0, 0), (5, 3)):
        x = np.arange(rows * inner, dtype="float32").reshape(rows, inner)
        program = lambda x: lax.map(lambda r: (r[:0], r * 2, r.sum()), x, batch_size=batch_size)
        for none, double, total in both_ways(program, x):
            assert none.shape == (rows, 0)
            np.testing.assert_array_equal(np.asarray(double), 2 * x)
            np.testing.assert_array_equal(np.asarray(total), x.sum(1))


def test_map_in_batches_of_less_than_nothing():
    with pytest.raises(ValueError, match=r"batch_size of at least 1, got -2"):
        lax.map(lambda x: x, jnp.arange(4), batch_size=-2)


OPERATIONS = {
    "scatter": lambda x, u: u,
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
}


@pytest.mark.parametrize("dtype", ["float32", "int8", "int32"])
@pytest.mark.parametrize("batch", [(), (0,), (1,), (2,), (3,), (3, 2), (0, 2)])
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_scatter_of_index_vectors_without_components(name, batch, dtype):
    """Each of them names the window at the origin, and each of the updates counts."""
    for shape, window in (((3,), (3,)), ((4, 2), (2, 1)), ((1,), (1,))):
        x = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1, dtype)
        updates = (np.arange(np.prod(batch + window, dtype=int)).reshape(batch + window) % 3 + 1).astype(dtype)
        wanted, corner = x.copy(), tuple(slice(0, n) for n in window)
        for row in updates.reshape(-1, *window):
            wanted[corner] = OPERATIONS[name](wanted[corner], row)
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=tuple(range(len(batch), len(batch) + len(window))),
            inserted_window_dims=(),
            scatter_dims_to_operand_dims=(),
        )
        program = lambda x, i, u: getattr(lax, name)(x, i, u, numbers)
        for found in both_ways(program, x, np.zeros((*batch, 0), "int32"), updates):
            np.testing.assert_array_equal(np.asarray(found), wanted)
        looped = lambda x, i, u: lax.fori_loop(0, 1, lambda _, c: program(c, i, u), x)
        for found in both_ways(looped, x, np.zeros((*batch, 0), "int32"), updates):
            np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "bool"])
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "max", "min"])
def test_reductions_take_in_the_initial_value(name, dtype):
    rng = np.random.default_rng(0)
    ufunc = {"max": np.maximum, "min": np.minimum}.get(name) or getattr(np, name)
    for shape, axes in (((3,), (0,)), ((40, 7), (1,)), ((40, 70), (0,)), ((5, 600), (0, 1))):
        x = rng.integers(0, 100, shape).astype(dtype)
        for initial in (np.zeros((), dtype), np.ones((), dtype), np.array(-1).astype(dtype)):
            wanted = ufunc(ufunc.reduce(x, axis=axes), initial)
            program = lambda x, i: lax.reduce(x, i, getattr(lax, name), axes)
            for found in both_ways(program, x, initial):
                assert found.dtype == dtype
                np.testing.assert_array_equal(np.asarray(found), wanted)


def test_largest_complex_number_with_an_initial_value():
    z = np.array([1 + 2j, 3 - 1j, 3 + 4j, 2 + 5j], "complex64")
    for initial, wanted in ((2, 3 + 4j), (3 + 9j, 3 + 9j), (4, 4), (-5, 3 + 4j)):
        for found in both_ways(lambda z, i=initial: jnp.max(z, initial=i), z):
            assert complex(found) == wanted
    for found in both_ways(lambda z: jnp.min(z, initial=1 + 1j), z):
        assert complex(found) == 1 + 1j
    for found in both_ways(lambda z: jnp.max(z, initial=5, where=np.zeros(4, bool)), z):
        assert complex(found) == 5
