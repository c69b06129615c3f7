"""Exponential, sine, cosine, Fresnel's integrals, the dilogarithm, Owen's T: values against mpmath, slopes, edges."""

import jax
import numpy as np
import pytest
import scipy.special
from mpmath import mp

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy import special
from tests.scipy.special_oracle import assert_transforms, distance, slopes

INF, NAN = np.inf, np.nan
POSITIVE = np.concatenate([np.geomspace(1e-12, 700, 60), [0.3725074, 1, 1.5, 2, 4, 6, 8, 11.9, 12.1, 24, 60, 80]])
LINE = np.concatenate([POSITIVE, -POSITIVE])


def owens_integral(h, a):
    return mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [0, a]) / (2 * mp.pi)


CASES = {
    "expi": (special.expi, mp.ei, LINE),
    "exp1": (special.exp1, mp.e1, POSITIVE),
    "si": (lambda x: special.sici(x)[0], mp.si, LINE),
    "fresnel s": (lambda x: special.fresnel(x)[0], mp.fresnels, LINE),
    "fresnel c": (lambda x: special.fresnel(x)[1], mp.fresnelc, LINE),
    "spence": (special.spence, lambda x: mp.re(mp.polylog(2, 1 - x)), POSITIVE),
}


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 0.6), (np.float64, 30)])
@pytest.mark.parametrize("name", CASES)
def test_values(name, dtype, bound):
    function, reference, points = CASES[name]
    assert distance(function, reference, [points], dtype) <= bound


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 0.6), (np.float64, 30)])
def test_values_with_zeros(dtype, bound):
    assert distance(lambda x: special.sici(x)[1], mp.ci, [POSITIVE], dtype, scale=0.01) <= bound


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 0.6), (np.float64, 40)])
def test_expn_values(dtype, bound):
    n, x = (
        v.ravel() for v in np.meshgrid([0, 1, 2, 3, 8, 25, 1000], np.append(np.geomspace(1e-3, 60, 15), [1, 1.5, 1.6]))
    )
    assert distance(special.expn, mp.expint, [n, x], dtype, digits=120) <= bound


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 0.6), (np.float64, 60)])
def test_owens_t_values(dtype, bound):
    h, a = (v.ravel() for v in np.meshgrid([0.0, 1e-3, 0.5, -0.7, 2.0, 5.5], [1e-3, 0.3, -0.99, 1.01, 2.5, -6.0]))
    assert distance(special.owens_t, owens_integral, [h, a], dtype, digits=25) <= bound


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("x", [0.3, 1.3, 9.0])
def test_slopes(name, x):
    function, reference, _ = CASES[name]
    got, wanted = slopes(function, reference, (x,), orders=(1, 2, 3))
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-13)


def test_slope_at_the_pole_of_its_formula():
    with ferrax.enable_x64(True):
        slope = ferrax.grad(special.spence)
        np.testing.assert_allclose([slope(1.0), ferrax.grad(slope)(1.0)], [-1.0, 0.5], rtol=1e-15)
        sine = ferrax.grad(lambda x: special.sici(x)[0])
        np.testing.assert_array_equal([sine(0.0), ferrax.grad(sine)(0.0)], [1.0, 0.0])


@pytest.mark.parametrize("n", [0.0, 1.0, 2.0, 5.0])
def test_expn_slopes(n):
    for x in (0.4, 3.0):
        got, wanted = slopes(lambda x, n=n: special.expn(n, x), lambda x, n=n: mp.expint(n, x), (x,), orders=(1, 2, 3))
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


@pytest.mark.parametrize(("h", "a"), [(0.5, 0.5), (1.0, 2.0), (-0.3, -1.5)])
def test_owens_t_slopes(h, a):
    for position in (0, 1):
        got, wanted = slopes(special.owens_t, owens_integral, (h, a), position, digits=25)
        np.testing.assert_allclose(got, wanted, rtol=1e-8)


@pytest.mark.parametrize("name", ["expi", "exp1", "fresnel", "spence"])
def test_edges(name, x64):
    x = np.array([0.0, -0.0, INF, -INF, NAN, 5e-324])
    wanted = getattr(scipy.special, name)(x)
    if name == "spence":
        wanted[2] = -INF  # SciPy has NaN
    for got, want in zip(np.atleast_2d(getattr(special, name)(x)), np.atleast_2d(wanted), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-15)
        if name != "fresnel":  # odd, which SciPy's S(-0) is not
            np.testing.assert_array_equal(np.signbit(got[:2]), np.signbit(want[:2]))


def test_edges_of_sici():
    si, ci = special.sici(jnp.array([0.0, -0.0, INF, -INF, NAN]))
    np.testing.assert_array_equal(si[:4], np.float32([0, 0, np.pi / 2, -np.pi / 2]))
    assert np.signbit(si[1])
    np.testing.assert_array_equal(ci, np.float32([-INF, -INF, 0, NAN, NAN]))


@pytest.mark.parametrize("x", [-1e-3, -0.5, -3.0, -5.0, -40.0])
def test_cosine_integral_left_of_zero(x, x64):
    np.testing.assert_allclose(special.sici(x), scipy.special.sici(x), rtol=1e-13)
    np.testing.assert_allclose(ferrax.grad(lambda x: special.sici(x)[1])(x), np.cos(x) / x, rtol=1e-13)


@pytest.mark.parametrize(
    ("n", "x", "wanted"),
    [(0, 0.0, INF), (1, 0.0, INF), (2, 0.0, 1.0), (3, INF, 0.0), (2.5, 1.0, NAN), (-1, 1.0, NAN), (1, -1.0, NAN)]
    + [(1, NAN, NAN), (NAN, 1.0, NAN)],
)
def test_edges_of_expn(n, x, wanted):
    np.testing.assert_array_equal(special.expn(n, x), np.float32(wanted))


def test_edges_of_owens_t():
    h = np.array([0.0, 0.0, INF, 1.0, 1.0, NAN, INF, 1e-300])
    a = np.array([INF, 0.0, 1.0, INF, -INF, 1.0, INF, 1e300])
    with ferrax.enable_x64(True):
        np.testing.assert_allclose(special.owens_t(h, a), scipy.special.owens_t(h, a), rtol=1e-14)


def test_transforms():
    x = jnp.array([0.25, 1.0, 5.0, 9.0])
    for function in (special.expi, special.exp1, special.sici, special.fresnel, special.spence):
        assert_transforms(function, x)
    assert_transforms(special.expn, jnp.array([1.0, 2.0, 0.0, 5.0]), x)
    h = jnp.array([1.0, -2.0, 0.0, 0.5])
    np.testing.assert_array_equal(ferrax.vmap(special.owens_t)(h, x), special.owens_t(h, x))
    assert special.owens_t(jnp.bfloat16(1), jnp.float16(1)).dtype == np.float32
    assert special.owens_t(jnp.bfloat16(1), jnp.bfloat16(1)).dtype == np.float32


@pytest.mark.parametrize("name", ["expi", "exp1", "sici", "fresnel", "spence", "dawsn"])
def test_dtypes_and_errors(name):
    function, oracle = getattr(special, name), getattr(jax.scipy.special, name)
    for x in (0.5, np.float32(0.5), np.array([0.5]), np.float32([[0.5, 1.0]])):
        got, want = ferrax.tree.leaves(function(x)), jax.tree.leaves(jax.eval_shape(oracle, x))
        assert [(a.shape, a.dtype, a.weak_type) for a in got] == [(a.shape, a.dtype, a.weak_type) for a in want]
    assert ferrax.tree.leaves(function(2))[0].dtype == np.float32
    with pytest.raises((ValueError, TypeError, NotImplementedError)) as mine:
        function(1j)
    with pytest.raises(mine.type):
        oracle(1j)


def test_operands_of_two(x64):
    for function in (special.expn, special.owens_t):
        got = function(np.float32([[1.0], [2.0]]), np.array([0.5, 1.0, 2.0]))
        assert (got.shape, got.dtype) == ((2, 3), np.float64)
        assert function(1, 2).dtype == np.float64
        with pytest.raises(ValueError, match="complex"):
            function(1.0, 1j)
        with pytest.raises(TypeError, match="list"):
            function([1.0], 1.0)
