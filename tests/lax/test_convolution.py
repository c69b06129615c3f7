"""Convolutions against JAX: every layout, stride, padding, dilation and group, their gradients and their maps."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from tests import draws
from tests.recorded import both, expected

LAYOUTS = {
    1: [None, ("NHC", "HIO", "NHC"), ("NCH", "OIH", "HNC")],
    2: [None, ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NHWC"), ("HWNC", "OHWI", "CNHW")],
    3: [None, ("NHWDC", "HWDIO", "NHWDC")],
}


def case(seed):
    """Shapes of two operands and the options of a convolution."""
    draw = draws.drawing(seed)
    rank = draw(draws.integers(1, 3))
    ints = lambda low, high: [draw(draws.integers(low, high)) for _ in range(rank)]
    groups = draw(draws.sampled_from(["none", "features", "batch"]))
    g = 1 if groups == "none" else draw(draws.integers(2, 3))
    inputs, outputs, batch = draw(draws.integers(1, 3)), draw(draws.integers(1, 3)) * g, draw(draws.integers(1, 2))
    kernel, strides, near, far = ints(1, 3), ints(1, 2), ints(1, 2), ints(1, 2)
    size = [draw(draws.integers(3, 6)) for _ in range(rank)]
    pads = draw(draws.sampled_from(["SAME", "VALID", "SAME_LOWER", "given"]))
    if pads == "given" or near != [1] * rank:
        pads = [(draw(draws.integers(-1, 2)), draw(draws.integers(-1, 2))) for _ in range(rank)]
    layout = draw(draws.sampled_from(LAYOUTS[rank]))
    lhs = (batch * (g if groups == "batch" else 1), inputs * (g if groups == "features" else 1), *size)
    rhs = (outputs, inputs, *kernel)
    specs = lax.conv_dimension_numbers(lhs, rhs, layout)
    place = lambda shape, spec: tuple(shape[list(spec).index(a)] for a in range(rank + 2))
    options = {
        "window_strides": strides, "padding": pads, "lhs_dilation": near, "rhs_dilation": far,
        "dimension_numbers": layout, "feature_group_count": g if groups == "features" else 1,
        "batch_group_count": g if groups == "batch" else 1,
    }  # fmt: skip
    return place(lhs, specs.lhs_spec), place(rhs, specs.rhs_spec), options


def numbers(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def close(a, b, tol=2e-5):
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=tol, atol=tol)


@pytest.mark.parametrize("seed", range(60))
def test_values_gradients_and_maps(seed):
    lhs, rhs, options = case(seed)
    x, w = numbers(lhs, 0), numbers(rhs, 1)
    f = lambda lib: lambda x, w: lib.lax.conv_general_dilated(x, w, **options)
    loss = lambda lib: lambda x, w: (f(lib)(x, w) * lib.numpy.cos(f(lib)(x, w))).sum()
    theirs = expected(lambda jax: f(jax)(x, w))
    close(f(ferrax)(x, w), theirs)
    close(ferrax.jit(f(ferrax))(x, w), theirs)
    wanted = expected(lambda jax: jax.grad(loss(jax), (0, 1))(x, w))
    for a, b in zip(ferrax.grad(loss(ferrax), (0, 1))(x, w), wanted, strict=True):
        close(a, b, 1e-4)
    xs, ws = numbers((3, *lhs), 2), numbers((3, *rhs), 3)
    # Maps are loops; JAX would compile three more convolutions.
    rows = [(x, w) for x in xs], [(x, w) for w in ws], list(zip(xs, ws))
    for axes, pairs in zip(((0, None), (None, 0), (0, 0)), rows):
        args = [y if axis is None else ys for axis, y, ys in zip(axes, (x, w), (xs, ws), strict=True)]
        wanted = expected(lambda jax: jax.numpy.stack([f(jax)(x, w) for x, w in pairs]))
        close(ferrax.vmap(f(ferrax), axes)(*args), wanted)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int8", "complex64"])
def test_dtypes(dtype):
    with ferrax.enable_x64(True):
        values = lambda shape, seed: np.round(numbers(shape, seed) * 4).astype(jnp.dtype(dtype))
        x, w = values((2, 6, 5, 3), 0), values((3, 2, 3, 4), 1)
        f = lambda lib: lib.lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        a, b = both(f)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a).astype(complex), np.asarray(b).astype(complex))


def test_preferred_element_type():
    x, w = np.ones((1, 1, 8), np.int8) * 100, np.ones((1, 1, 3), np.int8) * 100
    f = lambda lib: lib.lax.conv(x, w, (1,), "VALID", preferred_element_type=lib.numpy.int32)
    np.testing.assert_array_equal(*both(f))
    assert f(ferrax).dtype == jnp.int32


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 1)]])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 1)])
def test_conv_transpose(padding, flip, strides):
    x, w = numbers((2, 4, 5, 3), 0), numbers((3, 2, 3, 3), 1)
    for more in ({}, {"rhs_dilation": (2, 1)}, {"use_consistent_padding": True}):
        f = lambda lib, more=more: lib.lax.conv_transpose(x, w, strides, padding, transpose_kernel=flip, **more)
        close(*both(f))


@pytest.mark.parametrize("seed", range(60, 80))
def test_patches_and_local(seed):
    lhs, rhs, options = case(seed)
    options = {k: v for k, v in options.items() if not k.endswith("count")}
    specs = lax.conv_dimension_numbers(lhs, rhs, options["dimension_numbers"])
    window = [rhs[a] for a in specs.rhs_spec[2:]]
    x = numbers(lhs, 0)
    f = lambda lib: lib.lax.conv_general_dilated_patches(x, window, **options)
    ours, patches = both(f)
    close(ours, patches)
    if 0 in patches.shape:
        return
    shape = [0] * len(lhs)
    shape[specs.rhs_spec[0]], shape[specs.rhs_spec[1]] = 2, patches.shape[specs.out_spec[1]]
    for a, b in zip(specs.rhs_spec[2:], specs.out_spec[2:], strict=True):
        shape[a] = patches.shape[b]
    w = numbers(shape, 1)
    g = lambda lib: lib.lax.conv_general_dilated_local(x, w, filter_shape=window, **options)
    close(*both(g), 1e-4)


def test_program_prints_and_reads_back():
    f = lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME")
    text = str(ferrax.make_jaxpr(f)(np.ones((1, 2, 5), np.float32), np.ones((3, 2, 3), np.float32)))
    assert "dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2))" in text
    assert "padding=((1, 1),)" in text


X, W = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: lax.conv_general_dilated(X, W.astype(np.float16), (1, 1), "SAME"), TypeError, "same dtypes"),
        (lambda: lax.conv_general_dilated(X, W[0], (1, 1), "SAME"), TypeError, "ndim to be equal, got 4 and 3"),
        (lambda: lax.conv_general_dilated(X, W, (1,), "VALID"), ValueError, "same number of dimensions"),
        (lambda: lax.conv_general_dilated(X, W, (1, 1), [(0, 0)]), TypeError, "expected 2, got 1"),
        (lambda: lax.conv_general_dilated(X, W, (1, 1), "FOO"), RuntimeError, "FOO"),
        (lambda: lax.conv_general_dilated(X, W, (1, 1), "SAME", lhs_dilation=(2, 1)), ValueError, "conv_transpose"),
        (lambda: lax.conv_general_dilated(X, W, (0, 1), "VALID"), TypeError, "must be positive"),
        (lambda: lax.conv_general_dilated(X, W[:, :1], (1, 1), "SAME"), ValueError, "feature_group_count 1"),
        (
            lambda: lax.conv_general_dilated(jnp.ones((1, 2, 1)), jnp.ones((1, 2, 1)), (1,), [(-1, -1)]),
            ValueError,
            "crops spatial axis 0",
        ),
        (lambda: lax.conv_general_dilated(X, W, (1, 1), "SAME", batch_group_count=3), ValueError, "does not divide 1"),
        (lambda: lax.conv_dimension_numbers(X.shape, W.shape, ("NCHW", "OIHH", "NCHW")), TypeError, "OIHH"),
    ],
)
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("padding", ["SAME", "VALID", "SAME_LOWER", [(1, 2), (0, 3)], [(-1, 0), (0, 0)]])
def test_shapes_of_results(padding):
    """The functions that say a convolution's shape say what it has, and what JAX's say."""
    layout = ("NHWC", "HWIO", "NWHC")
    lhs, rhs, strides = (2, 9, 8, 3), (3, 2, 3, 5), (2, 1)
    want = expected(lambda jax: jax.lax.conv_general_shape_tuple(lhs, rhs, strides, padding, layout))
    assert lax.conv_general_shape_tuple(lhs, rhs, strides, padding, layout) == tuple(map(int, want))
    out = lax.conv_general_dilated(jnp.ones(lhs), jnp.ones(rhs), strides, padding, dimension_numbers=layout)
    assert out.shape == want
    shape = lax.conv_shape_tuple((4, 3, 9, 8), (6, 3, 3, 2), strides, padding, 2)
    assert shape == expected(lambda jax: jax.lax.conv_shape_tuple((4, 3, 9, 8), (6, 3, 3, 2), strides, padding, 2))
    if padding == "SAME_LOWER":
        with pytest.raises(ValueError, match="SAME"):
            lax.conv_transpose_shape_tuple(lhs, rhs, (2, 3), padding, layout)
        return
    want = expected(lambda jax: jax.lax.conv_transpose_shape_tuple(lhs, rhs, (2, 3), padding, layout))
    assert lax.conv_transpose_shape_tuple(lhs, rhs, (2, 3), padding, layout) == tuple(map(int, want))
    out = lax.conv_transpose(jnp.ones(lhs), jnp.ones(rhs), (2, 3), padding, dimension_numbers=layout)
    assert out.shape == want


def test_permutations():
    for numbers in (("NHWC", "HWIO", "NCWH"), ("NCHW", "OIHW", "NCHW")):
        ours, theirs = both(lambda jax: jax.lax.conv_general_permutations(numbers))
        assert ours == theirs
    for wrong in (("NHW", "HWIO", "NHWC"), ("NHHC", "HWIO", "NHWC"), ("NHWC", "HWXIO", "NHWC"), ("NHWC",), None):
        with pytest.raises(TypeError, match="convolution dimension_numbers"):
            lax.conv_general_permutations(wrong)
    with pytest.raises(TypeError, match="explicit pads"):
        lax.conv_shape_tuple((4, 3, 9, 8), (6, 3, 3, 2), (2, 1), [(1, 1)])
    with pytest.raises(ValueError, match="groups"):
        lax.conv_shape_tuple((4, 3, 9, 8), (6, 3, 3, 2), (2, 1), "SAME", 3)
