"""Choices, changes of dtype and values that transformations see through, against JAX."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax as theirs

import ferrax
from ferrax import lax as ours
from ferrax._core import asarray
from tests.support import assert_same

DTYPES = ["bool", "int8", "int32", "uint8", "uint32", "float32", "bfloat16", "float16", "complex64", "float8_e4m3fn"]


def to_ours(x):
    return asarray(np.asarray(x))


@pytest.mark.parametrize("source", DTYPES)
def test_conversions(source):
    x = jnp.asarray([0, 1, 2, 5, 100, 3]).astype(source)
    for target in DTYPES:
        if source == "complex64" and target != "complex64":
            continue
        got = ours.convert_element_type(to_ours(x), jnp.dtype(target))
        assert_same(got, theirs.convert_element_type(x, target))
        assert_same(ferrax.jit(lambda v: ours.convert_element_type(v, jnp.dtype(target)))(to_ours(x)), got)


def test_floats_saturate():
    x = np.array([1e20, -1e20, np.nan, np.inf, -1.9, 300.0], "float32")
    for target in ("int32", "int8", "uint8", "uint32"):
        assert_same(ours.convert_element_type(to_ours(x), target), theirs.convert_element_type(jnp.asarray(x), target))


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
@pytest.mark.parametrize("source", ["float64", "complex128"])
def test_doubles_round_once_to_narrow_floats(source, target):
    # all but the largest and those after them: their middles, and what lies next to a middle
    every = np.arange(1, 0x7BFF if target == "float16" else 0x7F7F, 7, np.uint16)
    low = every.view(jnp.dtype(target)).astype("float64")
    high = (every + 1).astype(np.uint16).view(jnp.dtype(target)).astype("float64")
    middle, even = (low + high) / 2, np.where(every % 2 == 0, low, high)
    x = np.concatenate([np.nextafter(middle, 0), middle, np.nextafter(middle, np.inf), middle * (1 + 1e-12)])
    want = np.concatenate([low, even, high, high])
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
        assert_same(
            ours.convert_element_type(to_ours(x), "float32"), theirs.convert_element_type(jnp.asarray(x), "float32")
        )


def test_derivative_of_a_conversion():
    def f(lax):
        narrow = lambda x: lax.convert_element_type(lax.convert_element_type(x, "bfloat16"), "float32")
        return lambda x: lax.reduce_sum(narrow(x) * x, (0,))

    x = jnp.asarray([1.0, 2.5])
    assert_same(ferrax.grad(f(ours))(to_ours(x)), jax.grad(f(theirs))(x))
    through_int = lambda lax: lambda x: lax.convert_element_type(lax.convert_element_type(x, "int32"), "float32") * x
    assert_same(ferrax.grad(through_int(ours))(2.5), jax.grad(through_int(theirs))(2.5))


@pytest.mark.parametrize(
    "pair", [("float32", "int32"), ("int32", "uint8"), ("uint16", "bfloat16"), ("float32", "int16")]
)
def test_bitcasts(pair):
    source, target = pair
    x = jnp.arange(6).reshape(2, 3).astype(source)
    got = ours.bitcast_convert_type(to_ours(x), target)
    assert_same(got, theirs.bitcast_convert_type(x, target))
    assert_same(ours.bitcast_convert_type(got, source), x)
    for axis in (0, 1):
        mapped = ferrax.vmap(lambda v: ours.bitcast_convert_type(v, target), in_axes=axis)(to_ours(x))
        assert_same(mapped, jax.vmap(lambda v: theirs.bitcast_convert_type(v, target), in_axes=axis)(x))


def test_reduce_precision():
    x = jnp.asarray([1.2345678, 1e30, -1e-30, 65519.0, 0.0, np.inf, np.nan])
    for bits in ((5, 10), (8, 7), (4, 3), (8, 23), (3, 0)):
        assert_same(ours.reduce_precision(to_ours(x), *bits), theirs.reduce_precision(x, *bits))


def test_choices():
    x, y, z = jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray([4.0, 5.0, 6.0]), jnp.asarray([7.0, 8.0, 9.0])
    mask, index = jnp.asarray([True, False, True]), jnp.asarray([-1, 1, 5])
    mine = [to_ours(v) for v in (x, y, z, mask, index)]
    assert_same(ours.select(mine[3], mine[0], mine[1]), theirs.select(mask, x, y))
    assert_same(ours.select(True, mine[0], mine[1]), theirs.select(True, x, y))
    assert_same(ours.select_n(mine[4], *mine[:3]), theirs.select_n(index, x, y, z))
    assert_same(ours.clamp(mine[1], mine[0], mine[2]), theirs.clamp(y, x, z))
    assert_same(ours.clamp(1.5, mine[0], 2.5), theirs.clamp(1.5, x, 2.5))

    def f(lax, m, i):
        mixed = lambda a, b, c: lax.select(m, a * b, c) + lax.clamp(a, b, c) + lax.select_n(i, a, b, c)
        return lambda a, b, c: lax.reduce_sum(mixed(a, b, c), (0,))

    want = jax.grad(f(theirs, mask, index), argnums=(0, 1, 2))(x, y, z)
    got = ferrax.grad(f(ours, mine[3], mine[4]), argnums=(0, 1, 2))(*mine[:3])
    for a, b in zip(got, want):
        assert_same(a, b)


def test_select_under_vmap():
    x, y = jnp.arange(6.0).reshape(2, 3), jnp.ones(3)
    mask = jnp.asarray([True, False])
    for axes in ((0, 0, None), (0, None, None), (None, 0, None)):
        args = (mask if axes[0] is not None else mask[0], x if axes[1] is not None else x[0], y)
        want = jax.vmap(theirs.select, in_axes=axes)(*args)
        assert_same(ferrax.vmap(ours.select, in_axes=axes)(*map(to_ours, args)), want)


def test_rounding():
    x = jnp.asarray([0.5, 1.5, 2.5, -0.5, -1.5, 0.4, -0.0])
    for method in (0, 1):
        got = ours.round(to_ours(x), ours.RoundingMethod(method))
        assert_same(got, theirs.round(x, theirs.RoundingMethod(method)))


def test_integer_powers():
    for n in (-3, -1, 0, 1, 2, 3, 7):
        x = jnp.asarray([0.5, -2.0, 3.0])
        assert_same(ours.integer_pow(to_ours(x), n), theirs.integer_pow(x, n), rtol=1e-6)
        f = lambda lax: lambda v: lax.reduce_sum(lax.integer_pow(v, n), (0,))
        assert_same(ferrax.grad(f(ours))(to_ours(x)), jax.grad(f(theirs))(x), rtol=1e-6)
    assert_same(ours.integer_pow(to_ours(jnp.asarray([3, -2])), 3), theirs.integer_pow(jnp.asarray([3, -2]), 3))


def test_stop_gradient():
    f = lambda lax: lambda x: x * lax.stop_gradient(x)
    assert_same(ferrax.grad(f(ours))(3.0), jax.grad(f(theirs))(3.0))
    tree = ours.stop_gradient({"a": asarray(np.ones(2, "float32")), "b": None})
    assert tree["b"] is None
    assert_same(tree["a"], jnp.ones(2))
    assert_same(ferrax.vmap(lambda x: ours.stop_gradient(x) * x)(to_ours(jnp.arange(3.0))), jnp.arange(3.0) ** 2)


def test_optimization_barrier():
    f = lambda lax: lambda x: sum(lax.optimization_barrier((x, x * 2.0)))
    assert_same(ferrax.jit(f(ours))(3.0), jax.jit(f(theirs))(3.0))
    assert_same(ferrax.grad(f(ours))(3.0), jax.grad(f(theirs))(3.0))


def test_widths_of_products():
    x = np.ones((2,), "float32")
    got = ours.mul(to_ours(x), to_ours(np.arange(2, dtype="int32")), out_dtype="bfloat16")
    assert_same(got, theirs.mul(jnp.asarray(x), jnp.arange(2), out_dtype="bfloat16"))
