"""Infinities, numbers without axes, and nothing at all: what functions make of the edges of their domain."""

import numpy as np
import pytest
from scipy import special

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from tests.support import on_xla

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


@pytest.mark.parametrize("ends", [(0, 25, 6), (-1, 1, 6), (0, 10, 101), (-7, 35, 43), (0, 1, 11)])
def test_evenly_spaced_values_are_the_nearest_to_the_exact_ones(ends):
    low, high, n = ends
    exact = (low * (n - 1.0) + (high - low) * np.arange(n, dtype="float64")) / (n - 1)
    # XLA makes a division by a constant a product with its inverse.
    units = 1 if on_xla() else 0
    for found in (jnp.linspace(low, high, n), ferrax.jit(jnp.linspace, static_argnums=2)(1.0 * low, 1.0 * high, n)):
        np.testing.assert_array_max_ulp(np.asarray(found), exact.astype("float32"), units)
    assert jnp.linspace(low, high, n, dtype=int).tolist() == np.floor(exact).astype(int).tolist()


def test_evenly_spaced_values_between_the_largest_numbers():
    for dtype, end in (("float32", 3e38), ("float16", 65504.0), ("bfloat16", 3e38)):
        found = np.asarray(jnp.linspace(jnp.asarray(-end, dtype), jnp.asarray(end, dtype), 5)).astype("float64")
        np.testing.assert_allclose(found, end * np.linspace(-1, 1, 5), rtol=1e-2)
    slopes = ferrax.jacobian(lambda a: jnp.linspace(a, 3e38, 5))(-3e38)
    np.testing.assert_allclose(np.asarray(slopes), np.linspace(1, 0, 5), rtol=1e-6)


@pytest.mark.parametrize("kth", [0, 2, -1, -3])
@pytest.mark.parametrize("axis", [0, 1])
def test_both_sides_of_a_partition(kth, axis):
    x = np.random.default_rng(7).integers(-128, 127, (9, 7)).astype("int8")
    n = x.shape[axis]
    order = np.moveaxis(np.argsort(x, axis, kind="stable"), axis, 0)
    order = np.concatenate([order[: kth % n + 1], np.sort(order[kth % n + 1 :], 0)])
    values = np.moveaxis(np.sort(x, axis), axis, 0)
    values = np.concatenate([values[: kth % n + 1], values[kth % n + 1 :][::-1]])
    for found in both_ways(lambda x: jnp.argpartition(x, kth, axis), x):
        np.testing.assert_array_equal(np.moveaxis(np.asarray(found), axis, 0), order)
    for found in both_ways(lambda x: jnp.partition(x, kth, axis), x):
        np.testing.assert_array_equal(np.moveaxis(np.asarray(found), axis, 0), values)


def test_polynomials_beside_several_polynomials():
    many, few = np.arange(6.0).reshape(3, 2), np.array([10.0])
    for f, sign in ((jnp.polyadd, 1), (jnp.polysub, -1)):
        want = many.copy()
        want[-1:] += sign * few
        np.testing.assert_array_equal(np.asarray(f(many, few)), want)
        np.testing.assert_array_equal(np.asarray(f(few, many)), sign * want)
        with pytest.raises(ValueError, match="fewer dimensions"):
            f(np.ones(4), many)
        with pytest.raises(ValueError, match="Incompatible"):
            f(many, np.ones(3)[:, None].repeat(3, 1))


def test_repeats_of_several_axes_count_in_their_order():
    x = np.arange(6)
    np.testing.assert_array_equal(
        np.asarray(jnp.repeat(x, np.array([[1, 0, 2], [3, 1, 0]]))), np.repeat(x, [1, 0, 2, 3, 1, 0])
    )


def test_flags_are_truth_values():
    x = np.random.default_rng(3).normal(size=(4, 3)).astype("float32")
    assert jnp.linalg.svd(x, 0)[0].shape == jnp.linalg.svd(x, np.bool_(False)).U.shape == (4, 3)
    assert lax.linalg.qr(x, full_matrices=1)[0].shape == (4, 4)
    np.testing.assert_array_equal(lax.cumsum(x, 0, 1), lax.cumsum(x, 0, True))
    np.testing.assert_array_equal(lax.linalg.cholesky(x.T @ x, symmetrize_input=0), jnp.linalg.cholesky(x.T @ x))


def test_axes_of_a_broadcast_operand_in_any_order():
    x = np.arange(6.0, dtype="float32").reshape(2, 3)
    spread = lambda x: lax.broadcast_in_dim(x, (3, 4, 2), (2, 0))
    want = np.broadcast_to(x.T[:, None], (3, 4, 2))
    for found in both_ways(spread, x):
        np.testing.assert_array_equal(np.asarray(found), want)
    rows = ferrax.vmap(spread)(jnp.stack([x, 2 * x]))
    np.testing.assert_array_equal(np.asarray(rows), np.stack([want, 2 * want]))
    np.testing.assert_array_equal(np.asarray(ferrax.grad(lambda x: spread(x).sum())(x)), np.full((2, 3), 4.0))


def test_what_takes_the_place_of_nan_is_replaced_in_its_turn():
    """As in JAX: an infinity in NaN's place becomes what infinities become."""
    x = np.array([NAN, INF, -INF, 1.0], "float32")
    low, high = np.finfo("float32").min, np.finfo("float32").max
    cases = [
        ({"nan": -INF}, [low, high, low, 1]),
        ({"nan": INF, "posinf": 5.0}, [5, 5, low, 1]),
        ({"posinf": -INF, "neginf": 2.0}, [0, 2, 2, 1]),
        ({"posinf": NAN}, [0, NAN, low, 1]),
    ]
    for options, wanted in cases:
        for found in both_ways(lambda x, options=options: jnp.nan_to_num(x, **options), x):
            np.testing.assert_array_equal(np.asarray(found), np.float32(wanted))


def test_numpy_takes_an_array_for_the_sequence_of_its_rows():
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.concatenate(x), np.arange(6.0))
    np.testing.assert_array_equal(np.lexsort(x), [0, 1, 2])


def test_arrays_are_no_dtypes():
    x = jnp.ones(2)
    for f in (lambda: jnp.zeros(2, x), lambda: x.astype(x), lambda: jnp.sum(x, dtype=x), lambda: jnp.asarray(1, x)):
        with pytest.raises(ValueError, match="Passing an array as a dtype argument is no longer supported"):
            f()
    assert jnp.result_type(x, 1) == x.dtype and jnp.finfo(x).bits == 32
    assert not ferrax.grad(jnp.real)(1 + 2j).weak_type and not ferrax.grad(jnp.imag)(1 + 2j).weak_type
