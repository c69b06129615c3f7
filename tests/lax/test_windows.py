"""Pooling and filters of real sizes, against JAX: layouts, dtypes, ragged sizes and gradients."""

import jax
import numpy as np
import pytest
from jax import lax as theirs, numpy as theirnp

import ferrax
import ferrax.numpy as jnp
from ferrax import lax as ours


def numbers(shape, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-9, 9, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


# Shape, window, strides, padding.
POOLS = {
    "channels last": ((3, 14, 15, 16), (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    "ragged channels": ((2, 13, 12, 19), (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
    "overlapping": ((2, 12, 12, 70), (1, 3, 3, 1), (1, 1, 1, 1), "SAME"),
    "three channels": ((2, 12, 13, 3), (1, 2, 3, 1), (1, 2, 1, 1), "VALID"),
    "channels first": ((2, 5, 14, 15), (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
    "a long row": ((10_007,), (5,), (1,), "SAME"),
    "steps in a row": ((10_007,), (4,), (2,), "VALID"),
    "wide windows": ((300, 4), (100, 1), (1, 1), "SAME"),
    "rows and columns": ((200, 211), (7, 3), (1, 1), "SAME"),
}


@pytest.mark.parametrize("name", POOLS)
def test_pooling(name):
    shape, window, strides, padding = POOLS[name]
    # Long sums of halves are inexact in both.
    for dtype in ("float32", "int32", *(["bfloat16"] if np.prod(window) < 50 else [])):
        x = theirnp.asarray(numbers(shape)).astype(dtype) if dtype == "bfloat16" else numbers(shape, dtype)
        zero, least = np.asarray(0, x.dtype)[()], np.asarray(-np.inf if dtype != "int32" else -(2**31), x.dtype)[()]
        for f, exact in (
            (lambda lax, x: lax.reduce_window(x, least, lax.max, window, strides, padding), True),
            (lambda lax, x: lax.reduce_window(x, zero, lax.add, window, strides, padding), dtype == "int32"),
        ):
            want = np.asarray(f(theirs, theirnp.asarray(x)), np.float64)
            eager = f(ours, jnp.asarray(np.asarray(x)))
            jitted = ferrax.jit(lambda x, f=f: f(ours, x))(jnp.asarray(np.asarray(x)))
            tolerance = 0 if exact else 0.1 if dtype == "bfloat16" else 2e-5
            np.testing.assert_allclose(np.asarray(eager, np.float64), want, rtol=tolerance, atol=tolerance)
            np.testing.assert_array_equal(np.asarray(eager, np.float64), np.asarray(jitted, np.float64))


@pytest.mark.parametrize("name", POOLS)
def test_gradients_of_pooling(name):
    shape, window, strides, padding = POOLS[name]
    x = numbers(shape)

    def loss(lax, x):
        y = lax.reduce_window(x, np.float32(0), lax.add, window, strides, padding)
        return (y * y).sum()

    want = jax.grad(lambda x: loss(theirs, x))(x)
    for transform in (ferrax.grad, lambda f: ferrax.jit(ferrax.grad(f))):
        got = transform(lambda x: loss(ours, x))(jnp.asarray(x))
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-3)
    second = ferrax.jvp(ferrax.grad(lambda x: loss(ours, x)), (jnp.asarray(x),), (jnp.asarray(x),))[1]
    np.testing.assert_allclose(np.asarray(second), np.asarray(want), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32", "float16"])
@pytest.mark.parametrize("n, m", [(1, 1), (5, 9), (1000, 3), (1001, 64), (700, 600), (33, 1)])
def test_filters(dtype, n, m):
    x, w = numbers((n,), dtype), numbers((m,), dtype, 1)
    for name in ("convolve", "correlate"):
        for mode in ("full", "same", "valid"):
            want = np.asarray(getattr(theirnp, name)(x, w, mode=mode))
            f = lambda x, w, name=name, mode=mode: getattr(jnp, name)(x, w, mode=mode)
            eager, jitted = f(x, w), ferrax.jit(f)(x, w)
            assert eager.dtype == want.dtype
            tolerance = 2e-2 if dtype == "float16" else 1e-4
            np.testing.assert_allclose(
                np.asarray(eager), want, rtol=tolerance, atol=tolerance * max(1, min(n, m) ** 0.5)
            )
            np.testing.assert_array_equal(np.asarray(eager), np.asarray(jitted))


def test_filters_have_gradients_and_maps():
    x, w = numbers((3, 400)), numbers((3, 31), seed=1)
    loss = lambda lib: lambda x, w: (lib.convolve(x, w) ** 2).sum()
    for x1, w1 in zip(x, w, strict=True):
        want = jax.grad(loss(theirnp), (0, 1))(x1, w1)
        for got, wanted in zip(ferrax.grad(loss(jnp), (0, 1))(x1, w1), want, strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-3, atol=2e-3)
    mapped = ferrax.vmap(jnp.convolve)(x, w)
    np.testing.assert_allclose(np.asarray(mapped), np.asarray(jax.vmap(theirnp.convolve)(x, w)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "shape, kernel", [((60, 61), (3, 3)), ((33, 7), (5, 1)), ((9, 200), (1, 9)), ((40, 40), (20, 21))]
)
def test_filters_of_images(shape, kernel):
    for dtype in ("float32", "bfloat16"):
        x, w = numbers((2, *shape, 1)), numbers((*kernel, 1, 1), seed=1)
        for strides in ((1, 1), (2, 1), (1, 2)):
            f = lambda lib, x, w, strides=strides: lib.lax.conv_general_dilated(
                x.astype(dtype), w.astype(dtype), strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            want = np.asarray(f(jax, theirnp.asarray(x), theirnp.asarray(w)), np.float64)
            got = ferrax.jit(lambda x, w: f(ferrax, x, w))(jnp.asarray(x), jnp.asarray(w))
            tolerance = 0.1 if dtype == "bfloat16" else 1e-4
            np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("strides", [(0, 0), (-1, 1)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_strides_that_are_not_positive(strides, padding):
    x, kernel = jnp.ones((1, 1, 4, 4)), jnp.ones((1, 1, 2, 2))
    with pytest.raises((TypeError, ValueError), match="strides"):
        ours.conv(x, kernel, strides, padding)
    with pytest.raises((TypeError, ValueError), match="strides"):
        ours.reduce_window(x, 0.0, ours.add, (1, 1, 2, 2), (1, 1, *strides), padding)
    with pytest.raises((TypeError, ValueError), match="strides"):
        ours.reduce_window_shape_tuple((4, 4), (2, 2), strides, [(0, 0), (0, 0)])


@pytest.mark.parametrize("operation", ["add", "max", "min", "mul"])
@pytest.mark.parametrize("shape, window", [((1, 2, 1), (2, 2, 3)), ((3, 0), (2, 1)), ((4,), (5,))])
def test_no_window_fits(shape, window, operation):
    """Windows larger than the operand: results are empty, slopes are zero."""
    one = {"add": 0.0, "max": -np.inf, "min": np.inf, "mul": 1.0}[operation]
    x = numbers(shape)

    def pooled(lax):
        return lambda x: lax.reduce_window(x, one, getattr(lax, operation), window, (1,) * len(shape), "VALID")

    f = pooled(ours)
    assert f(x).shape == ferrax.jit(f)(x).shape == ferrax.vmap(f)(x[None]).shape[1:] == pooled(theirs)(x).shape
    for jitted in (lambda g: g, ferrax.jit):
        slope = jitted(ferrax.grad(lambda x: f(x).sum()))(x)
        assert slope.shape == shape and not slope.any()
        assert ferrax.jacfwd(f)(x).shape == (*f(x).shape, *shape)


def test_windows_wider_than_memory_are_out_of_memory():
    x, window = np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 2, 2), np.float32)
    for dilation in ((2**62, 4), (4, 2**62), (2**40, 2**40)):
        for wrap in (lambda f: f, ferrax.jit):
            with pytest.raises(MemoryError):
                result = wrap(
                    lambda x, by=dilation: ours.conv_general_dilated(x, window, (1, 1), "SAME", rhs_dilation=by)
                )(x)
                result.block_until_ready()  # on engines that compute later
