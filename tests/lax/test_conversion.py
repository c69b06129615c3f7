"""Choices, changes of dtype and values that transformations see through, against JAX."""

import warnings

import numpy as np
import pytest

import ferrax
from ferrax import lax as ours
from ferrax._core import asarray
from tests.recorded import dtype_of, expected
from tests.support import assert_same, on_xla

DTYPES = ["bool", "int8", "int32", "uint8", "uint32", "float32", "bfloat16", "float16", "complex64", "float8_e4m3fn"]


def to_ours(x):
    return asarray(np.asarray(x))


def floats(*values):
    return np.array(values, np.float32)


def theirs(f, *args):
    """JAX's result of a function of `lax` and arrays."""
    return expected(lambda jax: f(jax.lax, *map(jax.numpy.asarray, args)))


def their_gradient(f, *args, argnums=0):
    """The gradient in JAX of the function that one of `lax` gives."""
    return expected(lambda jax: jax.grad(f(jax.lax), argnums)(*args))


@pytest.mark.parametrize("source", DTYPES)
def test_conversions(source):
    x = np.array([0, 1, 2, 5, 100, 3]).astype(dtype_of(source))
    for target in DTYPES:
        if source == "complex64" and target != "complex64":
            continue
        convert = lambda lax, v: lax.convert_element_type(v, dtype_of(target))
        got = convert(ours, to_ours(x))
        assert_same(got, theirs(convert, x))
        assert_same(ferrax.jit(lambda v: convert(ours, v))(to_ours(x)), got)


def test_floats_saturate():
    x = np.array([1e20, -1e20, np.nan, np.inf, -1.9, 300.0], "float32")
    for target in ("int32", "int8", "uint8", "uint32"):
        convert = lambda lax, v: lax.convert_element_type(v, target)
        assert_same(convert(ours, to_ours(x)), theirs(convert, x))


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
@pytest.mark.parametrize("source", ["float64", "complex128"])
def test_doubles_round_once_to_narrow_floats(source, target):
    # all but the largest and those after them: their middles, and what lies next to a middle
    every = np.arange(1, 0x7BFF if target == "float16" else 0x7F7F, 7, np.uint16)
    low = every.view(dtype_of(target)).astype("float64")
    high = (every + 1).astype(np.uint16).view(dtype_of(target)).astype("float64")
    middle, even = (low + high) / 2, np.where(every % 2 == 0, low, high)
    x = np.concatenate([np.nextafter(middle, 0), middle, np.nextafter(middle, np.inf), middle * (1 + 1e-12)])
    want = np.concatenate([low, even, high, high])
    if on_xla():  # its CPU code takes subnormal numbers for zeros
        x, want = (np.where(np.abs(x) < np.finfo("float32").smallest_normal, 0, v) for v in (x, want))
    with ferrax.enable_x64(True):
        for sign in (1, -1):
            operand = ferrax.numpy.asarray((sign * x).astype(source))
            convert = lambda v: (v.real if source == "complex128" else v).astype(target)
            direct = lambda v: ours.convert_element_type(v, target)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for function in (convert, direct, ferrax.jit(convert), ferrax.jit(direct)):
                    np.testing.assert_array_equal(np.asarray(function(operand)).astype("float64"), sign * want)


def test_complex_to_real_takes_the_real_part():
    x = np.array([1 + 2j, 3 - 4j], "complex64")
    with np.testing.suppress_warnings() as quiet:
        quiet.filter(Warning)
        convert = lambda lax, v: lax.convert_element_type(v, "float32")
        assert_same(convert(ours, to_ours(x)), theirs(convert, x))


def test_derivative_of_a_conversion():
    def f(lax):
        narrow = lambda x: lax.convert_element_type(lax.convert_element_type(x, "bfloat16"), "float32")
        return lambda x: lax.reduce_sum(narrow(x) * x, (0,))

    x = floats(1.0, 2.5)
    assert_same(ferrax.grad(f(ours))(to_ours(x)), their_gradient(f, x))
    through_int = lambda lax: lambda x: lax.convert_element_type(lax.convert_element_type(x, "int32"), "float32") * x
    assert_same(ferrax.grad(through_int(ours))(2.5), their_gradient(through_int, 2.5))


@pytest.mark.parametrize(
    "pair", [("float32", "int32"), ("int32", "uint8"), ("uint16", "bfloat16"), ("float32", "int16")]
)
def test_bitcasts(pair):
    source, target = pair
    x = np.arange(6).reshape(2, 3).astype(source)
    cast = lambda lax, v: lax.bitcast_convert_type(v, target)
    got = cast(ours, to_ours(x))
    assert_same(got, theirs(cast, x))
    assert_same(ours.bitcast_convert_type(got, source), x)
    for axis in (0, 1):
        mapped = ferrax.vmap(lambda v: cast(ours, v), in_axes=axis)(to_ours(x))
        assert_same(mapped, expected(lambda jax: jax.vmap(lambda v: cast(jax.lax, v), in_axes=axis)(x)))


def test_reduce_precision():
    x = floats(1.2345678, 1e30, -1e-30, 65519.0, 0.0, np.inf, np.nan)
    for bits in ((5, 10), (8, 7), (4, 3), (8, 23), (3, 0)):
        assert_same(ours.reduce_precision(to_ours(x), *bits), theirs(lambda lax, x: lax.reduce_precision(x, *bits), x))


def test_choices():
    x, y, z = floats(1.0, 2.0, 3.0), floats(4.0, 5.0, 6.0), floats(7.0, 8.0, 9.0)
    mask, index = np.array([True, False, True]), np.array([-1, 1, 5], np.int32)
    args = (x, y, z, mask, index)
    mine = [to_ours(v) for v in args]
    for choice in (
        lambda lax, x, y, z, mask, index: lax.select(mask, x, y),
        lambda lax, x, y, z, mask, index: lax.select(True, x, y),
        lambda lax, x, y, z, mask, index: lax.select_n(index, x, y, z),
        lambda lax, x, y, z, mask, index: lax.clamp(y, x, z),
        lambda lax, x, y, z, mask, index: lax.clamp(1.5, x, 2.5),
    ):
        assert_same(choice(ours, *mine), theirs(choice, *args))

    def f(lax, m, i):
        mixed = lambda a, b, c: lax.select(m, a * b, c) + lax.clamp(a, b, c) + lax.select_n(i, a, b, c)
        return lambda a, b, c: lax.reduce_sum(mixed(a, b, c), (0,))

    want = their_gradient(lambda lax: f(lax, mask, index), x, y, z, argnums=(0, 1, 2))
    got = ferrax.grad(f(ours, mine[3], mine[4]), argnums=(0, 1, 2))(*mine[:3])
    for a, b in zip(got, want):
        assert_same(a, b)


def test_select_under_vmap():
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
    mask = np.array([True, False])
    for axes in ((0, 0, None), (0, None, None), (None, 0, None)):
        args = (mask if axes[0] is not None else mask[0], x if axes[1] is not None else x[0], y)
        want = expected(lambda jax: jax.vmap(jax.lax.select, in_axes=axes)(*args))
        assert_same(ferrax.vmap(ours.select, in_axes=axes)(*map(to_ours, args)), want)


def test_rounding():
    x = floats(0.5, 1.5, 2.5, -0.5, -1.5, 0.4, -0.0)
    for method in (0, 1):
        rounded = lambda lax, x: lax.round(x, lax.RoundingMethod(method))
        assert_same(rounded(ours, to_ours(x)), theirs(rounded, x))


def test_integer_powers():
    for n in (-3, -1, 0, 1, 2, 3, 7):
        x = floats(0.5, -2.0, 3.0)
        assert_same(ours.integer_pow(to_ours(x), n), theirs(lambda lax, x: lax.integer_pow(x, n), x), rtol=1e-6)
        f = lambda lax: lambda v: lax.reduce_sum(lax.integer_pow(v, n), (0,))
        assert_same(ferrax.grad(f(ours))(to_ours(x)), their_gradient(f, x), rtol=1e-6)
    x = np.array([3, -2], np.int32)
    assert_same(ours.integer_pow(to_ours(x), 3), theirs(lambda lax, x: lax.integer_pow(x, 3), x))


def test_stop_gradient():
    f = lambda lax: lambda x: x * lax.stop_gradient(x)
    assert_same(ferrax.grad(f(ours))(3.0), their_gradient(f, 3.0))
    tree = ours.stop_gradient({"a": asarray(np.ones(2, "float32")), "b": None})
    assert tree["b"] is None
    assert_same(tree["a"], np.ones(2, np.float32))
    assert_same(ferrax.vmap(lambda x: ours.stop_gradient(x) * x)(to_ours(floats(0, 1, 2))), floats(0, 1, 4))


def test_optimization_barrier():
    f = lambda lax: lambda x: sum(lax.optimization_barrier((x, x * 2.0)))
    assert_same(ferrax.jit(f(ours))(3.0), expected(lambda jax: jax.jit(f(jax.lax))(3.0)))
    assert_same(ferrax.grad(f(ours))(3.0), their_gradient(f, 3.0))


def test_widths_of_products():
    args = np.ones(2, np.float32), np.arange(2, dtype=np.int32)
    product = lambda lax, x, y: lax.mul(x, y, out_dtype="bfloat16")
    assert_same(product(ours, *map(to_ours, args)), theirs(product, *args))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int64"])
def test_cases_beyond_the_last_are_the_last(dtype):
    with ferrax.enable_x64(True):
        which = np.array([0, 1, 2, 3, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
        cases = [np.full(6, float(i)) for i in range(3)]
        for select in (ours.select_n, ferrax.jit(ours.select_n)):
            assert select(which, *cases).tolist() == [0, 1, 2, 2, 2, 0]
