"""`ferrax.scipy.integrate`, `interpolate` and `cluster.vq` against SciPy."""

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy.cluster.vq import vq
from ferrax.scipy.integrate import trapezoid
from ferrax.scipy.interpolate import RegularGridInterpolator

nan = np.nan


def test_trapezoid(x64):
    y, x = np.arange(12.0).reshape(3, 4) ** 2, np.array([0.0, 1, 1.5, 4])
    for args, keywords in [((y,), {}), ((y, x), {}), ((y,), {"dx": 0.3, "axis": 0}), ((y, y + 1), {"axis": 1})]:
        np.testing.assert_allclose(trapezoid(*args, **keywords), scipy.integrate.trapezoid(*args, **keywords))
    with pytest.raises(TypeError, match="ndarray or scalar"):
        trapezoid([1, 2, 3])


GRIDS = {
    1: ((np.array([0.0, 1, 3, 3.5]),), ()),
    2: ((np.array([1.0, 2, 3]), np.array([4.0, 5, 6.5, 9])), ()),
    3: ((np.array([0.0, 1]), np.array([0.0, 2, 3]), np.array([-1.0, 0, 1])), ()),
    "vectors": ((np.array([1.0, 2, 3]), np.array([4.0, 5])), (2, 3)),
}


@pytest.mark.parametrize("fill", [nan, None, -7.0])
@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("case", GRIDS)
def test_interpolation(case, method, fill, x64):
    grid, value_shape = GRIDS[case]
    generator = np.random.default_rng(0)
    values = generator.normal(size=(*map(len, grid), *value_shape))
    low, high = np.array([g[0] for g in grid]), np.array([g[-1] for g in grid])
    x = generator.uniform(low - 0.5, high + 0.5, (4, 5, len(grid)))
    x[0, 0] = low
    x[0, 1] = high
    x[0, 2, 0] = nan
    theirs = scipy.interpolate.RegularGridInterpolator(grid, values, method, bounds_error=False, fill_value=fill)
    mine = RegularGridInterpolator(grid, values, method, fill_value=fill)
    wanted = theirs(x)
    np.testing.assert_allclose(mine(x), wanted, rtol=1e-12)
    np.testing.assert_allclose(ferrax.jit(mine)(x), wanted, rtol=1e-12)
    np.testing.assert_allclose(mine(tuple(x[..., i] for i in range(len(grid)))), wanted, rtol=1e-12)
    np.testing.assert_allclose(ferrax.vmap(lambda p: mine(p)[0])(x[1]), wanted[1], rtol=1e-12)


def test_interpolation_is_differentiable(x64):
    (first, second), _ = GRIDS[2]
    values = np.random.default_rng(1).normal(size=(3, 4))
    x = np.array([[1.3, 4.2], [2.9, 8.0], [0.0, 5.0]])

    def total(grid, values, x):
        return jnp.nansum(RegularGridInterpolator((grid, second), values)(x) ** 2)

    slopes = ferrax.grad(total, (0, 1, 2))(first, values, x)
    for i, slope in enumerate(slopes):
        wanted = np.zeros(slope.shape)
        for place in np.ndindex(*slope.shape):
            arguments = [np.array(v) for v in (first, values, x)]
            ends = []
            for step in (1e-6, -1e-6):
                arguments[i][place] = np.array((first, values, x)[i])[place] + step
                ends.append(float(total(*arguments)))
            wanted[place] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(slope, wanted, rtol=1e-6, atol=1e-8)


def test_interpolation_dtypes():
    grid, values = (np.array([1, 2, 3]), np.array([4, 5, 6])), np.arange(9).reshape(3, 3)
    made = RegularGridInterpolator(grid, values)
    assert (made.method, made.bounds_error) == ("linear", False) and np.isnan(made.fill_value)
    assert [g.dtype for g in made.grid] == [jnp.int32] * 2 and made.values.dtype == jnp.float32
    assert made(np.array([[1.5, 4.5]])).dtype == jnp.float32
    np.testing.assert_array_equal(made(np.array([[2, 5], [9, 9]])), [4, nan])
    np.testing.assert_array_equal(made(np.array([1.5, 4.5])), [2.0])
    assert RegularGridInterpolator(grid, values * 1j)(np.array([[1.5, 4.5]])).dtype == jnp.complex64
    assert np.isnan(RegularGridInterpolator((np.ones(1),), np.ones(1))(np.ones(1))).all()
    with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
        strict = RegularGridInterpolator(tuple(jnp.float32(g) for g in grid), jnp.float32(values))
        np.testing.assert_array_equal(strict(jnp.array([[1.5, 4.5]])), [2.0])


def test_interpolation_errors():
    grid, values = (np.array([1.0, 2, 3]), np.array([4.0, 5, 6])), np.zeros((3, 3))
    make = RegularGridInterpolator
    for call, error, text in [
        (lambda: make(grid, values, "cubic"), ValueError, "not defined"),
        (lambda: make(grid, values)(np.ones((1, 2)), "cubic"), ValueError, "not defined"),
        (lambda: make(grid, values, bounds_error=True), NotImplementedError, "bounds_error"),
        (lambda: make(grid, values, fill_value=1j), ValueError, "compatible"),
        (lambda: make(grid, values[:2]), ValueError, "3 points and 2 values"),
        (lambda: make((*grid, grid[1]), values), ValueError, "3 point arrays"),
        (lambda: make((grid[0][::-1], grid[1]), values), ValueError, "ascending"),
        (lambda: make((grid[0][None], grid[1]), values), ValueError, "a vector"),
        (lambda: make(([1.0, 2, 3], grid[1]), values), TypeError, "ndarray or scalar"),
        (lambda: make(grid, values.tolist()), TypeError, "ndarray or scalar"),
        (lambda: make(grid, values)([1.5, 4.5]), TypeError, "ndarray or scalar"),
        (lambda: make(grid, values)(np.ones(3)), TypeError, "2 dimensions"),
        (lambda: make(grid, values)(np.ones((4, 3))), ValueError, "dimension 3"),
        (lambda: make(grid, values)(1.5), IndexError, "one axis"),
    ]:
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("d", [None, 1, 3])
def test_vq(d, x64):
    generator = np.random.default_rng(0)
    obs, codes = (generator.normal(size=(n,) if d is None else (n, d)) for n in (20, 6))
    got, wanted = vq(obs, codes), scipy.cluster.vq.vq(obs, codes)
    np.testing.assert_array_equal(got[0], wanted[0])
    np.testing.assert_allclose(got[1], wanted[1], rtol=1e-12)
    np.testing.assert_allclose(ferrax.jit(vq)(obs, codes)[1], wanted[1], rtol=1e-12)


def test_vq_ties_dtypes_slopes():
    codes, distances = vq(np.array([[1, 2]]), np.array([[1, 3], [1, 1]]))
    assert (int(codes[0]), float(distances[0])) == (0, 1) and distances.dtype == jnp.float32
    slope = ferrax.grad(lambda obs: vq(obs, np.array([[0.0, 0.0], [5, 5]]))[1].sum())(np.array([[0.0, 0.0], [3, 4]]))
    np.testing.assert_allclose(slope, [[0, 0], np.array([-2, -1]) / np.sqrt(5)], rtol=1e-6)
    np.testing.assert_allclose(vq(np.array([[1, 2j]]), np.array([[1.0, 1]]))[1], [np.sqrt(5)], rtol=1e-6)
    assert np.isnan(vq(np.array([nan]), np.ones(1))[1]).all()


@pytest.mark.parametrize(
    ("obs", "codes", "error"),
    [
        (np.ones(2), np.ones((1, 2)), ValueError),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), ValueError),
        (3.0, 3.0, ValueError),
        (np.ones((1, 2)), np.ones((1, 3)), ValueError),
        ([[1.0]], [[1.0]], TypeError),
    ],
)
def test_vq_errors(obs, codes, error):
    with pytest.raises(error, match="vq"):
        vq(obs, codes)
