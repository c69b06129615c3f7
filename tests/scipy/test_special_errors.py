"""Relatives of the error function: erfcx, Dawson's integral and Faddeeva's function against mpmath; slopes, edges."""

import jax
import numpy as np
import pytest
import scipy.special
from mpmath import mp, mpc

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy import special
from tests.scipy.special_oracle import assert_transforms, distance, slopes, ulps

INF, NAN = np.inf, np.nan
SIZES = np.concatenate([np.geomspace(1e-10, 1e4, 50), [0, 3, 6, 26.6, 27, 1e300]])


def erfcx(x):
    if x > 1e4:
        return (1 - 1 / (2 * x * x)) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def dawson(x):
    if abs(x) > 1e4:
        return (1 + 1 / (2 * x * x)) / (2 * x)
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def faddeeva(z):
    return mp.exp(-z * z) * mp.erfc(-1j * z)


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 0.6), (np.float64, 10)])
def test_real_values(dtype, bound):
    line = np.concatenate([SIZES, -SIZES[SIZES < 26]])
    assert distance(special.erfcx, erfcx, [np.minimum(line, 1e30)], dtype) <= bound
    assert distance(special.dawsn, dawson, [np.clip(np.concatenate([SIZES, -SIZES]), -1e30, 1e30)], dtype) <= bound


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 0.6), (np.float64, 100)])
def test_complex_values(dtype, bound):
    x, y = np.meshgrid(
        [-60, -12, -6.5, -3, -0.1, 0, 1e-7, 0.3, 1, 2.2, 5.9, 7, 49, 300], [0, 1e-9, 0.2, 1, 5, 6.2, 55, -0.4, -3]
    )
    z = (x.astype(dtype) + 1j * y.astype(dtype)).ravel()
    with ferrax.enable_x64(dtype == np.float64), mp.workdps(60):
        got = special.wofz(jnp.asarray(z))
        wanted = [faddeeva(mpc(complex(v))) for v in z]
        assert got.dtype == z.dtype
        assert ulps(np.real(got), [w.real for w in wanted], dtype) <= bound
        assert ulps(np.imag(got), [w.imag for w in wanted], dtype) <= bound
        rotated = special.erfcx(jnp.asarray(-1j * z))
        np.testing.assert_array_equal(rotated, got)


def test_large_arguments_of_wofz(x64):
    z = np.array([1e10 + 1e10j, -1e200 + 1e-200j, 1e-300 + 1e300j, 1e8 + 0j])
    wanted = [complex(1j / (mp.sqrt(mp.pi) * mpc(complex(v)))) for v in z]
    got = np.asarray(special.wofz(z))
    np.testing.assert_allclose(got.imag, np.imag(wanted), rtol=1e-15)
    np.testing.assert_allclose(got.real[:3], np.real(wanted)[:3], rtol=1e-15)
    assert got.real[3] == 0


@pytest.mark.parametrize("x", [-2.0, 0.0, 0.7, 2.9, 4.0, 30.0])
def test_slopes(x):
    for function, reference in ((special.erfcx, erfcx), (special.dawsn, dawson)):
        got, wanted = slopes(function, reference, (x,), orders=(1, 2), digits=60)
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("z", [1 + 1j, -2 + 0.3j, 0.5 - 0.7j, 60 + 1j, 3 + 0j])
def test_complex_slopes(z, x64):
    first = ferrax.grad(special.wofz, holomorphic=True)
    with mp.workdps(60):
        wanted = [complex(mp.diff(faddeeva, mpc(z), k)) for k in (1, 2)]
    np.testing.assert_allclose(first(z), wanted[0], rtol=1e-11)
    np.testing.assert_allclose(ferrax.grad(first, holomorphic=True)(z), wanted[1], rtol=1e-7)


def test_edges(x64):
    x = np.array([0.0, -0.0, INF, -INF, NAN, -30.0, 5e-324])
    for name in ("erfcx", "dawsn"):
        got, wanted = np.asarray(getattr(special, name)(x)), getattr(scipy.special, name)(x)
        np.testing.assert_allclose(got, wanted, rtol=2e-15)
        np.testing.assert_array_equal(np.signbit(got[:2]), np.signbit(wanted[:2]))
    z = np.array([complex(*p) for p in ((INF, 0), (-INF, 1), (0, INF), (0, -INF), (NAN, 0), (0, -27), (INF, INF))])
    np.testing.assert_allclose(special.wofz(z), scipy.special.wofz(z), rtol=1e-13)


def test_transforms_and_dtypes():
    x = jnp.array([0.25, -1.0, 5.0, 30.0])
    for function in (special.erfcx, special.dawsn):
        assert_transforms(function, jnp.array([0.25, -1.0, 5.0, 30.0]))
    np.testing.assert_array_equal(ferrax.jit(special.wofz)(x + 1j), ferrax.vmap(special.wofz)(x + 1j))
    for name, operand in (("wofz", 0.5), ("wofz", jnp.bfloat16(0.5)), ("erfcx", 2), ("erfcx", 1 + 1j), ("wofz", 1)):
        got = getattr(special, name)(operand)
        want = getattr(jax.scipy.special, name)(np.float32(0.5))
        assert (got.weak_type, got.shape) == (want.weak_type, want.shape)
    assert special.wofz(jnp.bfloat16(0.5)).dtype == np.complex64
    assert special.erfcx(1 + 1j).dtype == np.complex64
    with pytest.raises(ValueError, match="complex"):
        special.dawsn(1j)
