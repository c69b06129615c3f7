"""What JAX's own unit tests of `lax` ask for: arguments that are refused, 4-bit numbers as bits, sizes as integers."""

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax as jax_lax
from jax._src.lax import lax as jax_insides, utils as jax_utils

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._src import config, dtypes
from ferrax._src.lax import lax as insides, utils


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: lax.pad(np.zeros(2), np.zeros(2), [(0, 0, 0)]), ValueError, "padding_value must be a scalar"),
        (lambda: lax.pad(np.zeros(2), 0.0, [(-3, 0, 0)]), ValueError, r"got result shape \(-1,\)"),
        (
            lambda: lax.broadcast_in_dim(np.ones((2, 2)), (2,), (0, 1)),
            TypeError,
            "target broadcast shape must have equal or higher rank",
        ),
        (
            lambda: lax.broadcast_in_dim(np.ones(2), (2, 2), [0, 1]),
            TypeError,
            r"got broadcast_dimensions \(0, 1\) for operand ndim 1",
        ),
        (lambda: lax.squeeze(np.ones((1, 2)), (None,)), TypeError, "cannot be interpreted as an integer"),
        (lambda: lax.abs(lax.iota("int4", 3)), TypeError, "abs does not accept dtype int4."),
        (
            lambda: lax.conv_general_dilated_patches(jnp.ones((1, 9, 9, 2)), (5, 5), (1, 1), padding=(3, 3)),
            ValueError,
            r"padding argument.*, got \(3, 3\)",
        ),
        (
            lambda: ferrax.eval_shape(lambda x: lax.top_k(x, 9), ferrax.ShapeDtypeStruct((2**31 + 1,), jnp.bfloat16)),
            ValueError,
            "top_k returns int32 indices, which will overflow",
        ),
    ],
)
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("number", [2**32, 2**32 + 5, -(2**33) - 1, 2**63 + 7, 2**31])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "uint32", "float32"])
def test_the_lowest_bits_of_integers(number, dtype):
    found, expected = lax.convert_element_type(number, dtype), jax_lax.convert_element_type(number, dtype)
    assert found == np.asarray(expected) and found.dtype == expected.dtype


NARROW = ["int4", "uint4", "int2", "uint2"]
WIDE = ["int8", "uint8", "int16", "float32", "bfloat16", "int32"]


def numpy_dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def bits(x):
    """The bits of an array, the lowest first, along the last axis of each element."""
    dtype = x.dtype
    width = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4}.get(dtype.name, 8 * dtype.itemsize)
    held = x.view(np.dtype(f"u{dtype.itemsize}")) if dtype.itemsize > 1 else x.view(np.uint8)
    return (held[..., None].astype(np.uint64) >> np.arange(width, dtype=np.uint64)) & np.uint64(1)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("narrow", NARROW)
def test_bits_of_numbers_narrower_than_a_byte(narrow, wide, jit):
    cast = lambda dtype: lambda x: lax.bitcast_convert_type(x, numpy_dtype(dtype))
    run = ferrax.jit if jit else lambda f: f
    x = (np.arange(6).reshape(2, 3) * 37 - 90).astype(np.int8).astype(numpy_dtype(wide))
    parts = run(cast(narrow))(x)
    assert parts.dtype == numpy_dtype(narrow) and parts.shape[:-1] == x.shape
    np.testing.assert_array_equal(bits(np.asarray(parts)).reshape(2, 3, -1), bits(x))
    back = run(cast(wide))(parts)
    assert back.shape == x.shape
    np.testing.assert_array_equal(bits(np.asarray(back)), bits(x))
    np.testing.assert_array_equal(bits(np.asarray(ferrax.vmap(cast(narrow), 1, 1)(x))), bits(np.asarray(parts)))


def test_views_of_numbers_narrower_than_a_byte():
    x = np.arange(8, dtype=np.float32)
    nibbles = jnp.asarray(x).view("uint4")
    assert nibbles.shape == (64,) and nibbles.dtype == jnp.uint4
    np.testing.assert_array_equal(nibbles.view("float32"), x)


@pytest.mark.parametrize("size", [10, 2**31 - 1, 2**31, 2**32 - 1, 2**32])
@pytest.mark.parametrize("signed", [False, True])
def test_integers_that_count_an_axis(size, signed):
    for ours, theirs, given in (
        (utils.int_dtype_for_dim, jax_utils.int_dtype_for_dim, size),
        (utils.int_dtype_for_shape, jax_utils.int_dtype_for_shape, (size, 3)),
    ):
        assert ours(given, signed=signed) == theirs(given, signed=signed)


def test_padding_by_name_is_of_pythons_integers():
    shape = np.array((8, 8))
    for low, high in lax.padtype_to_pads(shape, np.array((3, 3)), np.array((2, 2)), "SAME_LOWER"):
        assert (type(low), type(high), low, high) == (int, int, 1, 0)


@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(2, 3, 4), (4, 2, 2)])
def test_deltas(shape, axes):
    found, expected = (m._delta(np.float32, shape, axes) for m in (insides, jax_insides))
    np.testing.assert_array_equal(found, expected)


def test_diagonals():
    for name in ("_eye", "_tri"):
        found, expected = (getattr(m, name)(np.int8, (3, 4), 1) for m in (insides, jax_insides))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("example", [1, 1.0, True, 1j, np.int8(3), np.float32(2)])
def test_numbers_like_an_example(example):
    found, expected = insides._const(example, 0), jax_insides._const(example, 0)
    assert isinstance(found, type(example)) is isinstance(example, (int, float, complex)) and found == expected
    assert dtypes.dtype(found) == dtypes.dtype(example)


def test_64_bit_dtypes_are_allowed_by_member():
    assert config.explicit_x64_dtypes.value == config.ExplicitX64Mode.WARN
    with config.explicit_x64_dtypes("allow"):
        assert config.explicit_x64_dtypes.value == config.ExplicitX64Mode.ALLOW
        assert jnp.array(1, dtype="int64").dtype == np.dtype("int64")


@pytest.mark.parametrize("value", [1, 1.0, 1j, True, np.int8(1), np.float32(1), np.uint16(1), int, float])
def test_types_of_promotion(value):
    from jax._src import dtypes as jax_dtypes

    found, expected = (m._jax_type(*m._dtype_and_weaktype(value)) for m in (dtypes, jax_dtypes))
    assert found == expected
    if not isinstance(value, type):
        assert dtypes.coerce_to_array(value).dtype == jax_dtypes.coerce_to_array(value).dtype


def test_dtypes_too_wide_are_narrowed_with_a_warning():
    with pytest.warns(UserWarning, match="int64"):
        assert dtypes.dtype("int64") == np.dtype("int32")
    with pytest.raises(ValueError, match="dtype must be specified"):
        dtypes.check_and_canonicalize_user_dtype(None)


@pytest.mark.parametrize("recall", [0.5, 0.95, 0.99, 1.0])
@pytest.mark.parametrize("whole", [-1, 6000, 100000])
@pytest.mark.parametrize("shape", [(3000,), (2, 3000), (2, 300), (2, 100)])
def test_parts_of_an_approximate_search_have_jaxs_sizes(recall, whole, shape):
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    options = dict(recall_target=recall, reduction_input_size_override=whole, aggregate_to_topk=False)
    for name in ("approx_max_k", "approx_min_k"):
        for a, b in zip(getattr(lax, name)(x, 10, **options), getattr(jax_lax, name)(x, 10, **options)):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("k", [0, -1])
def test_an_approximate_search_finds_something(k):
    with pytest.raises(ValueError, match=f"k must be positive, got {k}"):
        lax.approx_max_k(np.ones(3), k)


@pytest.mark.parametrize(
    "options", [{"recall_target": 0.0}, {"recall_target": 2.0}, {"reduction_input_size_override": 2}]
)
def test_options_of_an_approximate_search_are_checked(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        lax.approx_max_k(np.ones(3), 1, **options)


def test_windows_are_reduced_to_the_structure_of_the_operands():
    with pytest.raises(ValueError, match="reduce_window output must have the same tree structure as the operands"):
        lax.reduce_window(np.ones(1), 0.0, lambda x, y: [x + y], (1,), (1,), "VALID")


def test_an_index_of_a_scatter_names_each_axis_once():
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(0,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(1, 1)
    )
    with pytest.raises(TypeError, match="scatter_dims_to_operand_dims in scatter op must not repeat"):
        lax.scatter(np.zeros((3, 4)), np.zeros(2, "int32"), np.ones(2), numbers)


@pytest.mark.parametrize("init", [0.0, 0.5])
@pytest.mark.parametrize("padding", ["VALID", ((0, 1), (1, 1))])
@pytest.mark.parametrize("dilations", [((1, 1), (1, 1)), ((2, 1), (1, 2))])
@pytest.mark.parametrize("function", [lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a + 2 * b])
def test_derivatives_of_windows_are_of_the_values_given(function, dilations, padding, init):
    x, t = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    values = []
    for module in (ferrax, jax):
        args = (np.float32(init), function, (2, 2), (1, 1), padding, *dilations)
        f = lambda x, module=module, args=args: module.lax.reduce_window(x, *args)
        y, dy = module.jvp(f, (x,), (t,))
        np.testing.assert_array_equal(y, f(x))
        values.append((y, dy))
    for got, want in zip(*values):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "init"), [("min", 7), ("max", -8), ("add", 0), ("bitwise_and", -1)])
def test_windows_of_narrow_integers(name, init):
    x = jnp.asarray(np.arange(6).reshape(2, 3) - 3, "int4")
    got = ferrax.lax.reduce_window(x, jnp.asarray(init, "int4"), getattr(ferrax.lax, name), (2, 2), (1, 1), "VALID")
    want = ferrax.lax.reduce_window(
        x.astype("int8"), np.int8(init), getattr(ferrax.lax, name), (2, 2), (1, 1), "VALID"
    ).astype("int4")
    assert got.dtype == "int4" and np.array_equal(got, want)
