"""Convolutions against JAX: every layout, stride, padding, dilation and group, their gradients and their maps."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

LAYOUTS = {
    1: [None, ("NHC", "HIO", "NHC"), ("NCH", "OIH", "HNC")],
    2: [None, ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NHWC"), ("HWNC", "OHWI", "CNHW")],
    3: [None, ("NHWDC", "HWDIO", "NHWDC")],
}


@st.composite
def cases(draw):
    rank = draw(st.integers(1, 3))
    ints = lambda low, high: [draw(st.integers(low, high)) for _ in range(rank)]
    groups = draw(st.sampled_from(["none", "features", "batch"]))
    g = 1 if groups == "none" else draw(st.integers(2, 3))
    inputs, outputs, batch = draw(st.integers(1, 3)), draw(st.integers(1, 3)) * g, draw(st.integers(1, 2))
    kernel, strides, near, far = ints(1, 3), ints(1, 2), ints(1, 2), ints(1, 2)
    size = [draw(st.integers(3, 6)) for _ in range(rank)]
    pads = draw(st.sampled_from(["SAME", "VALID", "SAME_LOWER", "given"]))
    if pads == "given" or near != [1] * rank:
        pads = [(draw(st.integers(-1, 2)), draw(st.integers(-1, 2))) for _ in range(rank)]
    layout = draw(st.sampled_from(LAYOUTS[rank]))
    lhs = (batch * (g if groups == "batch" else 1), inputs * (g if groups == "features" else 1), *size)
    rhs = (outputs, inputs, *kernel)
    specs = jax.lax.conv_dimension_numbers(lhs, rhs, layout)
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


@settings(max_examples=30, deadline=None)
@given(cases())
def test_values_gradients_and_maps(case):
    lhs, rhs, options = case
    x, w = numbers(lhs, 0), numbers(rhs, 1)
    f = lambda lib: lambda x, w: lib.lax.conv_general_dilated(x, w, **options)
    loss = lambda lib: lambda x, w: (f(lib)(x, w) * lib.numpy.cos(f(lib)(x, w))).sum()
    theirs = f(jax)(x, w)
    close(f(ferrax)(x, w), theirs)
    close(ferrax.jit(f(ferrax))(x, w), theirs)
    for a, b in zip(ferrax.grad(loss(ferrax), (0, 1))(x, w), jax.grad(loss(jax), (0, 1))(x, w), strict=True):
        close(a, b, 1e-4)
    xs, ws = numbers((3, *lhs), 2), numbers((3, *rhs), 3)
    # Maps are loops; JAX would compile three more convolutions.
    for axes, pairs in (((0, None), [(x, w) for x in xs]), ((None, 0), [(x, w) for w in ws]), ((0, 0), zip(xs, ws))):
        args = [y if axis is None else ys for axis, y, ys in zip(axes, (x, w), (xs, ws), strict=True)]
        close(ferrax.vmap(f(ferrax), axes)(*args), np.stack([f(jax)(x, w) for x, w in pairs]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int8", "complex64"])
def test_dtypes(dtype):
    with jax.enable_x64(True), ferrax.enable_x64(True):
        values = lambda shape, seed: np.round(numbers(shape, seed) * 4).astype(jnp.dtype(dtype))
        x, w = values((2, 6, 5, 3), 0), values((3, 2, 3, 4), 1)
        f = lambda lib: lib.lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        a, b = f(ferrax), f(jax)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a).astype(complex), np.asarray(b).astype(complex))


def test_preferred_element_type():
    x, w = np.ones((1, 1, 8), np.int8) * 100, np.ones((1, 1, 3), np.int8) * 100
    f = lambda lib: lib.lax.conv(x, w, (1,), "VALID", preferred_element_type=lib.numpy.int32)
    np.testing.assert_array_equal(f(ferrax), f(jax))
    assert f(ferrax).dtype == jnp.int32


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 1)]])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 1)])
def test_conv_transpose(padding, flip, strides):
    x, w = numbers((2, 4, 5, 3), 0), numbers((3, 2, 3, 3), 1)
    for more in ({}, {"rhs_dilation": (2, 1)}, {"use_consistent_padding": True}):
        f = lambda lib, more=more: lib.lax.conv_transpose(x, w, strides, padding, transpose_kernel=flip, **more)
        close(f(ferrax), f(jax))


@settings(max_examples=20, deadline=None)
@given(cases())
def test_patches_and_local(case):
    lhs, rhs, options = case
    options = {k: v for k, v in options.items() if not k.endswith("count")}
    specs = jax.lax.conv_dimension_numbers(lhs, rhs, options["dimension_numbers"])
    window = [rhs[a] for a in specs.rhs_spec[2:]]
    x = numbers(lhs, 0)
    f = lambda lib: lib.lax.conv_general_dilated_patches(x, window, **options)
    patches = f(jax)
    close(f(ferrax), patches)
    if 0 in patches.shape:
        return
    shape = [0] * len(lhs)
    shape[specs.rhs_spec[0]], shape[specs.rhs_spec[1]] = 2, patches.shape[specs.out_spec[1]]
    for a, b in zip(specs.rhs_spec[2:], specs.out_spec[2:], strict=True):
        shape[a] = patches.shape[b]
    w = numbers(shape, 1)
    g = lambda lib: lib.lax.conv_general_dilated_local(x, w, filter_shape=window, **options)
    close(g(ferrax), g(jax), 1e-4)


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
        (lambda: lax.conv_general_dilated(X, W[:, :1], (1, 1), "SAME"), ValueError, "but 2 // 1 != 1"),
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
    want = jax.lax.conv_general_shape_tuple(lhs, rhs, strides, padding, layout)
    assert lax.conv_general_shape_tuple(lhs, rhs, strides, padding, layout) == tuple(map(int, want))
    out = lax.conv_general_dilated(jnp.ones(lhs), jnp.ones(rhs), strides, padding, dimension_numbers=layout)
    assert out.shape == want
    shape = lax.conv_shape_tuple((4, 3, 9, 8), (6, 3, 3, 2), strides, padding, 2)
    assert shape == jax.lax.conv_shape_tuple((4, 3, 9, 8), (6, 3, 3, 2), strides, padding, 2)
    if padding == "SAME_LOWER":
        with pytest.raises(ValueError, match="SAME"):
            lax.conv_transpose_shape_tuple(lhs, rhs, (2, 3), padding, layout)
        return
    want = jax.lax.conv_transpose_shape_tuple(lhs, rhs, (2, 3), padding, layout)
    assert lax.conv_transpose_shape_tuple(lhs, rhs, (2, 3), padding, layout) == tuple(map(int, want))
    out = lax.conv_transpose(jnp.ones(lhs), jnp.ones(rhs), (2, 3), padding, dimension_numbers=layout)
    assert out.shape == want


def test_permutations():
    for numbers in (("NHWC", "HWIO", "NCWH"), ("NCHW", "OIHW", "NCHW")):
        assert lax.conv_general_permutations(numbers) == jax.lax.conv_general_permutations(numbers)
    for wrong in (("NHW", "HWIO", "NHWC"), ("NHHC", "HWIO", "NHWC"), ("NHWC", "HWXIO", "NHWC"), ("NHWC",), None):
        with pytest.raises(TypeError, match="convolution dimension_numbers"):
            lax.conv_general_permutations(wrong)
    with pytest.raises(TypeError, match="explicit pads"):
        lax.conv_shape_tuple((4, 3, 9, 8), (6, 3, 3, 2), (2, 1), [(1, 1)])
    with pytest.raises(ValueError, match="groups"):
        lax.conv_shape_tuple((4, 3, 9, 8), (6, 3, 3, 2), (2, 1), "SAME", 3)
