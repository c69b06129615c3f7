"""Bessel functions, Legendre functions and spherical harmonics: values against mpmath and SciPy, slopes, errors."""

import jax
import numpy as np
import pytest
import scipy.special
from mpmath import mp

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy import special
from tests.scipy.special_oracle import assert_transforms, distance

ORDERS = [0, 1, 2, 7, 40]
POINTS = np.concatenate([np.geomspace(1e-6, 1e5, 25), np.linspace(-60, 60, 50), [8.0, 0.0]])


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 0.6), (np.float64, 60)])
@pytest.mark.parametrize("order", ORDERS)
def test_bessel_values(order, dtype, bound):
    """In ulp of the functions' amplitude where they oscillate."""
    slow, fast = (POINTS[np.abs(POINTS) <= max(order, 1)], POINTS[np.abs(POINTS) > max(order, 1)])

    def function(z):
        return special.bessel_jn(z, v=order)[order]

    assert distance(function, lambda z: mp.besselj(order, z), [slow], dtype) <= bound
    for z in fast:
        scale = np.sqrt(2 / np.pi / np.abs(z))
        assert distance(function, lambda z: mp.besselj(order, z), [[z]], dtype, scale=scale) <= bound


def test_bessel_slopes(x64):
    z = 2.5
    first = ferrax.jacobian(lambda z: special.bessel_jn(z, v=3))
    np.testing.assert_allclose(first(z), [scipy.special.jvp(k, z) for k in range(4)], rtol=1e-13)
    np.testing.assert_allclose(ferrax.jacobian(first)(z), [scipy.special.jvp(k, z, 2) for k in range(4)], rtol=1e-12)
    np.testing.assert_allclose(
        ferrax.jacobian(lambda z: special.bessel_jn(z, v=0))(z)[0], -scipy.special.j1(z), rtol=1e-13
    )


def test_bessel_edges_and_errors():
    got = special.bessel_jn(jnp.array([0.0, -0.0, np.inf, -np.inf, np.nan]), v=3)
    np.testing.assert_array_equal(got[0], np.float32([1, 1, 0, 0, np.nan]))
    np.testing.assert_array_equal(got[1:], np.float32([[0, 0, 0, 0, np.nan]] * 3))
    assert special.bessel_jn(jnp.bfloat16(1.0), v=1).dtype == jnp.bfloat16
    assert special.bessel_jn(np.float32([[1.0, 2.0]]), v=1, n_iter=5).shape == (2, 1, 2)
    with pytest.raises(TypeError, match="complex"):
        special.bessel_jn(1j, v=1)
    with pytest.raises(ValueError, match="v >= 0"):
        special.bessel_jn(1.0, v=-1)
    with pytest.raises(TypeError):
        special.bessel_jn(1.0, v=1.5)


def test_bessel_agrees_with_jax():
    z = np.linspace(-12, 12, 5, dtype=np.float32) + np.float32(0.5)
    np.testing.assert_allclose(special.bessel_jn(z, v=2), jax.scipy.special.bessel_jn(z, v=2, n_iter=20), atol=5e-5)


@pytest.mark.parametrize("top", [0, 1, 2, 9])
def test_legendre_values(top, x64):
    z = np.linspace(-0.99, 0.99, 9)
    values, slopes = special.lpmn(top, top, z)
    normalized = special.lpmn_values(top, top, z, True)
    assert values.shape == slopes.shape == normalized.shape == (top + 1, top + 1, 9)
    for m in range(top + 1):
        for n in range(top + 1):
            wanted, wanted_slopes = scipy.special.assoc_legendre_p(n, m, z, diff_n=1) if m <= n else np.zeros((2, 9))
            scale = np.abs(wanted).max() + 1e-300
            np.testing.assert_allclose(values[m, n], wanted, atol=1e-14 * scale)
            np.testing.assert_allclose(slopes[m, n], wanted_slopes, atol=1e-14 * np.abs(wanted_slopes).max() + 1e-300)
            harmonic = scipy.special.sph_harm_y(n, m, np.arccos(z), 0).real if m <= n else np.zeros(9)
            np.testing.assert_allclose(normalized[m, n], harmonic, atol=1e-14)
    np.testing.assert_array_equal(special.lpmn_values(top, top, z, False), values)


def test_legendre_slopes_and_ends(x64):
    z = jnp.array([0.3, -0.6])
    by_derivative = ferrax.jvp(lambda z: special.lpmn_values(5, 5, z, False), (z,), (jnp.ones(2),))[1]
    np.testing.assert_allclose(by_derivative, special.lpmn(5, 5, z)[1], atol=1e-11)
    ends = np.asarray(special.lpmn(3, 3, jnp.array([1.0]))[1][:, :, 0])
    np.testing.assert_allclose(
        ends, [[0, 1, 3, 6], [0, np.inf, np.inf, np.inf], [0, 0, -6, -30], [0, 0, 0, 0]], rtol=1e-15
    )


def test_legendre_errors():
    z = jnp.array([0.5])
    for function, rest in ((special.lpmn, ()), (special.lpmn_values, (True,))):
        with pytest.raises(NotImplementedError, match="m != n"):
            function(1, 2, z, *rest)
        with pytest.raises(ValueError, match="1D"):
            function(2, 2, z[None], *rest)
        with pytest.raises(TypeError, match="floats"):
            function(2, 2, jnp.array([1]), *rest)
    assert special.lpmn_values(1, 1, z.astype(jnp.bfloat16), True).dtype == jnp.bfloat16


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 3e-7), (np.float64, 1e-13)])
def test_harmonics(dtype, tolerance):
    generator = np.random.default_rng(0)
    n = generator.integers(0, 40, 60)
    m = generator.integers(-n, n + 1)
    theta, phi = (generator.uniform(0, end, 60).astype(dtype) for end in (np.pi, 2 * np.pi))
    with ferrax.enable_x64(dtype == np.float64):
        got = special.sph_harm_y(n, m, theta, phi)
    assert got.dtype == np.result_type(dtype, np.complex64)
    wanted = scipy.special.sph_harm_y(n, m, theta.astype(np.float64), phi.astype(np.float64))
    np.testing.assert_allclose(got, wanted, atol=tolerance)


def test_harmonics_shapes_and_degrees():
    n, m = jnp.array([[2], [1]]), jnp.array([1, -1, 0])
    got = special.sph_harm_y(n, m, 0.3, 0.4)
    assert (got.shape, got.dtype) == ((2, 3), np.complex64)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_array_equal(special.sph_harm_y(n[i, 0], m[j], 0.3, 0.4), got[i, j])
    one = jnp.array([1])
    np.testing.assert_array_equal(
        special.sph_harm_y(jnp.array([5]), one, one, one, n_max=3), special.sph_harm_y(jnp.array([3]), one, one, one)
    )
    np.testing.assert_array_equal(special.sph_harm_y(one, jnp.array([2]), one, one), [0])
    jitted = ferrax.jit(lambda n: special.sph_harm_y(n, one, one, one, n_max=4))
    np.testing.assert_array_equal(jitted(one), special.sph_harm_y(one, one, one, one))
    theirs = jax.scipy.special.sph_harm_y(np.array([2]), np.array([-1]), np.float32([0.3]), np.float32([0.4]))
    np.testing.assert_allclose(special.sph_harm_y(np.array([2]), np.array([-1]), [0.3], [0.4]), theirs, rtol=1e-5)


def test_harmonics_slopes(x64):
    def part(theta, phi):
        return special.sph_harm_y(np.array(4), np.array(-3), theta, phi, n_max=4).imag

    h = 1e-6
    for theta in (0.4, 2.0):
        got = ferrax.grad(part, (0, 1))(theta, 0.7)
        wanted = (
            (part(theta + h, 0.7) - part(theta - h, 0.7)) / (2 * h),
            (part(theta, 0.7 + h) - part(theta, 0.7 - h)) / (2 * h),
        )
        np.testing.assert_allclose(got, wanted, rtol=1e-8)
    # At the pole, where the sine has a kink.
    pole = ferrax.grad(lambda t: special.sph_harm_y(np.array(3), np.array(1), t, 0.0, n_max=3).real)(0.0)
    np.testing.assert_allclose(pole, scipy.special.sph_harm_y(3, 1, 1e-7, 0.0).real / 1e-7, rtol=1e-6)


def test_harmonics_errors():
    one = jnp.array([1])
    with pytest.raises(NotImplementedError, match="diff_n"):
        special.sph_harm_y(one, one, one, one, diff_n=1)
    with pytest.raises(TypeError, match="integers"):
        special.sph_harm_y(one * 1.0, one, one, one)
    with pytest.raises(ferrax.errors.ConcretizationTypeError):
        ferrax.jit(special.sph_harm_y)(one, one, one, one)


def test_transforms():
    assert_transforms(lambda z: special.bessel_jn(z, v=0)[0], jnp.array([0.5, 3.0, 20.0]))
    z = jnp.array([0.5, 3.0, 20.0])
    np.testing.assert_array_equal(ferrax.vmap(lambda z: special.bessel_jn(z, v=4))(z), special.bessel_jn(z, v=4).T)
