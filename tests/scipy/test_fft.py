"""`ferrax.scipy.fft` against SciPy: every type and norm, sizes, dtypes, transforms."""

import numpy as np
import pytest
import scipy.fft

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy import fft as ours

TYPES = (1, 2, 3, 4)
NORMS = (None, "backward", "ortho", "forward")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", ["dct", "idct"])
def test_values(x64, type, name):
    for n in (2, 3, 4, 5, 8, 31, *([] if type == 1 else [1])):
        x = numbers(2, n)
        for norm in NORMS:
            want = getattr(scipy.fft, name)(x, type, norm=norm)
            got = getattr(ours, name)(x, type, norm=norm)
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=f"{n} {norm}")


@pytest.mark.parametrize("name", ["dct", "idct"])
def test_sizes_and_axes(name):
    x = numbers(3, 4, 5).astype(np.float32)
    for axis in (0, -1, 1):
        for n in (None, 2, 7):
            want = getattr(scipy.fft, name)(x, n=n, axis=axis)
            np.testing.assert_allclose(getattr(ours, name)(x, n=n, axis=axis), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["dctn", "idctn"])
@pytest.mark.parametrize(
    "s, axes", [(None, None), (None, (0, 2)), ((2,), None), ((6, 2), None), ((3, 7), (2, 0)), (2, None), (None, 1)]
)
def test_several_axes(name, s, axes):
    x = numbers(3, 4, 5).astype(np.float32)
    for norm in (None, "ortho"):
        want = getattr(scipy.fft, name)(x, s=s, axes=axes, norm=norm)
        np.testing.assert_allclose(getattr(ours, name)(x, s=s, axes=axes, norm=norm), want, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "bfloat16", "float32", "complex64"])
def test_dtypes(dtype):
    x = jnp.arange(6).astype(dtype)
    want = scipy.fft.dct(np.asarray(x).astype(np.complex128 if dtype == "complex64" else np.float64))
    got = ours.dct(x)
    assert got.dtype == ("complex64" if dtype == "complex64" else "float32") and not got.weak_type
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours.idct(got), np.asarray(x).astype(got.dtype), rtol=1e-5, atol=1e-5)


def test_dtypes_of_x64(x64):
    for dtype, want in (("float32", "float32"), ("int32", "float32"), ("int64", "float64"), ("complex128",) * 2):
        assert ours.dct(jnp.ones(4, dtype)).dtype == want


def test_complex_parts(x64):
    x = numbers(5) + 1j * numbers(5, seed=1)
    np.testing.assert_allclose(ours.dct(x, 3), scipy.fft.dct(x, 3), rtol=1e-12)


@pytest.mark.parametrize("type", TYPES)
def test_transforms(type):
    x, y = jnp.asarray(numbers(3, 6), jnp.float32), jnp.asarray(numbers(6, seed=1), jnp.float32)
    f = lambda x: ours.dct(x, type, norm="ortho")
    np.testing.assert_allclose(ferrax.vmap(f)(x), f(x), atol=1e-6)
    np.testing.assert_allclose(ferrax.jit(f)(x), f(x), atol=1e-6)
    # the matrix is orthogonal: what pulls back is the inverse
    _, pull = ferrax.vjp(f, y)
    np.testing.assert_allclose(pull(y)[0], ours.idct(y, type, norm="ortho"), atol=1e-5)
    np.testing.assert_allclose(ferrax.jvp(f, (y,), (x[0],))[1], f(x[0]), atol=1e-6)


def test_under_strict_settings():
    with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
        for type in TYPES:
            for x in (jnp.ones((2, 5)), jnp.ones((2, 4), "bfloat16"), jnp.ones((2, 4), "complex64")):
                for norm in ("ortho", "forward"):
                    ours.dctn(x, type, norm=norm), ours.idctn(x, type, norm=norm)


def test_empty_batches():
    assert ours.dct(jnp.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    "error, match, call",
    [
        (NotImplementedError, "types 1 to 4", lambda x: ours.dct(x, 5)),
        (NotImplementedError, "types 1 to 4", lambda x: ours.idctn(x, 0)),
        (ValueError, "norm='foo' is not implemented", lambda x: ours.dct(x, norm="foo")),
        (ValueError, "norm='foo' is not implemented", lambda x: ours.idctn(x, norm="foo")),
        (ValueError, "axis 2 is out of bounds", lambda x: ours.dct(x, axis=2)),
        (ValueError, "at least 1 elements", lambda x: ours.dct(x, n=0)),
        (ValueError, "at least 2 elements", lambda x: ours.dct(x, 1, n=1)),
        (ValueError, "at least 1 elements", lambda x: ours.dct(x[:0], axis=0)),
        (TypeError, "requires ndarray or scalar", lambda x: ours.dct([1.0, 2.0])),
        (ValueError, "out of bounds", lambda x: ours.dct(1.0)),
        (ValueError, "at most x.ndim", lambda x: ours.dctn(x, s=(2, 2, 2))),
        (ValueError, "same length", lambda x: ours.dctn(x, s=(2,), axes=(0, 1))),
        (ValueError, "duplicate", lambda x: ours.dctn(x, axes=(0, 0))),
    ],
)
def test_errors(error, match, call):
    with pytest.raises(error, match=match):
        call(jnp.ones((2, 3)))
