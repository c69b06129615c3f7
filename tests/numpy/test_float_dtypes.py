"""Which float integers become: float32, and the default float where they have 64 bits."""

import ml_dtypes
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp

INTEGERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
ONE = [
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "cos", "cosh", "deg2rad", "exp", "exp2",
    "expm1", "i0", "log", "log10", "log1p", "log2", "rad2deg", "reciprocal", "sin", "sinc", "sinh", "sqrt", "tan",
    "tanh", "mean", "median", "std", "var", "nanmean", "nanmedian", "nanstd", "nanvar", "average", "modf",
    "corrcoef", "cov", "linalg.norm", "linalg.inv", "linalg.det", "linalg.qr", "linalg.svd",
]  # fmt: skip
TWO = ["arctan2", "copysign", "hypot", "logaddexp", "logaddexp2", "nextafter", "true_divide", "float_power"]
# With an exponent or divisor that is a Python number.
NUMBERS = ["true_divide", "arctan2", "hypot"]


def wanted(dtype):
    return "float64" if dtype in ("int64", "uint64") else "float32"


def function(name):
    out = jnp
    for part in name.split("."):
        out = getattr(out, part)
    return out


def dtypes_of(result):
    return {str(x.dtype) for x in ferrax.tree.leaves(tuple(result) if hasattr(result, "_fields") else result)}


@pytest.fixture(autouse=True)
def wide():
    with ferrax.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_array(name, dtype):
    x = jnp.asarray(np.eye(3).astype(dtype))
    assert dtypes_of(function(name)(x)) == {wanted(dtype)}
    assert dtypes_of(ferrax.eval_shape(function(name), x)) == {wanted(dtype)}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arrays(name, dtype):
    x = jnp.ones(3, dtype)
    assert dtypes_of(function(name)(x, x)) == {wanted(dtype)}
    assert str((x / x).dtype) == wanted(dtype)


@pytest.mark.parametrize("dtype", INTEGERS[1:])
@pytest.mark.parametrize("name", NUMBERS)
def test_python_numbers_beside_them(name, dtype):
    x = jnp.ones(3, dtype)
    assert str(function(name)(x, 2).dtype) == wanted(dtype)
    assert str(function(name)(x, 2.5).dtype) == "float64"


@pytest.mark.parametrize("dtype", INTEGERS)
def test_those_that_ask_for_the_default_float_or_integer(dtype):
    x = jnp.asarray(np.eye(3).astype(dtype))
    for name in ("rint", "angle", "linalg.vector_norm"):
        assert str(function(name)(x).dtype) == "float64"
    assert str(jnp.linalg.matrix_rank(x).dtype) == str(jnp.linalg.lstsq(x, x)[2].dtype) == "int64"
    assert str(jnp.cumulative_sum(x, axis=0).dtype) == ("uint64" if dtype.startswith("u") else "int64")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_with_python_numbers_of_their_own(dtype):
    x = jnp.ones(3, dtype)
    for function in (ferrax.nn.gelu, ferrax.nn.standardize, ferrax.nn.logsumexp, jnp.trapezoid):
        assert str(function(x).dtype) == wanted(dtype)
    assert str(jnp.logspace(x[0], x[1], 3).dtype) == wanted(dtype)
    power = jnp.linalg.matrix_power(jnp.asarray(np.array([[1, 1], [0, 1]]).astype(dtype)), 3)
    assert str(power.dtype) == dtype


def test_python_integers_are_of_64_bits():
    assert str(jnp.sin(1).dtype) == "float64"
    assert str(jnp.sin(np.int32(1)).dtype) == "float32"
    assert str((jnp.ones(3, dtype=bool) / 2).dtype) == "float64"


@pytest.mark.parametrize("dtype", [*INTEGERS, "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "hfft", "ihfft", "irfft", "fft2", "rfftn"])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_transforms(norm, name, dtype):
    x = jnp.ones((4, 4), getattr(ml_dtypes, dtype, None) or dtype)
    double = dtype in ("int64", "uint64", "float64")
    real = name in ("hfft", "irfft")
    expected = ("float64" if double else "float32") if real else ("complex128" if double else "complex64")
    assert str(getattr(jnp.fft, name)(x, norm=norm).dtype) == expected


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
def test_places_in_a_sorted_vector_are_int32(method):
    for side in ("left", "right"):
        found = jnp.searchsorted(jnp.array([1, 3, 5], "int32"), jnp.array([0, 3, 9]), side=side, method=method)
        assert str(found.dtype) == "int32"
        np.testing.assert_array_equal(np.asarray(found), np.searchsorted([1, 3, 5], [0, 3, 9], side=side))
    for n, shape in ((0, (2, 3)), (4, (0,)), (0, (0, 2))):
        found = jnp.searchsorted(jnp.zeros(n), jnp.ones(shape), method=method)
        assert str(found.dtype) == "int32" and found.shape == shape and not found.any()


@pytest.mark.parametrize("dtype", INTEGERS[1:])
def test_integers_divided_in_place_become_floats(dtype):
    x = jnp.asarray(np.array([5, 7, 9]).astype(dtype))
    for program in (lambda x: x.at[0].divide(2), lambda x: x.at[jnp.array([0])].divide(2)):
        for found in (program(x), ferrax.jit(program)(x)):
            assert str(found.dtype) == wanted(dtype)
            np.testing.assert_array_equal(np.asarray(found), [2.5, 7, 9])
    assert str(x.at[0].multiply(2).dtype) == str(x.at[0].power(2).dtype) == dtype
    np.testing.assert_array_equal(np.asarray(x.at[1].power(2)), [5, 49, 9])
