"""Products of operands in block-scaled formats, against the formats' definitions in NumPy."""

import ml_dtypes
import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp

FORMATS = {
    "mxfp8": (32, ml_dtypes.float8_e4m3fn, None),
    "nvfp4": (16, ml_dtypes.float4_e2m1fn, 0.5),
}


def config(mode):
    scale = FORMATS[mode][2]
    return jax.nn.get_scaled_dot_general_config(mode, scale and jnp.full((1,), scale, jnp.float32))


def rounded(x, mode):
    """What an array's last axis becomes in a format."""
    size, dtype, whole = FORMATS[mode]
    whole = np.float32(whole or 1)
    blocks = x.reshape(*x.shape[:-1], -1, size) / whole
    most = np.float32(ml_dtypes.finfo(dtype).max)
    scale = np.abs(blocks).max(-1, keepdims=True) / most
    if mode == "mxfp8":
        scale = np.exp2(np.ceil(np.log2(scale.astype(np.float64)))).astype(np.float32)
    else:
        scale = scale.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    elements = np.clip(blocks / scale, -most, most).astype(dtype).astype(np.float32)
    return (elements * scale * whole).reshape(x.shape)


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("mode", FORMATS)
def test_products_are_those_of_rounded_operands(mode):
    a, b = normal(0, 2, 5, 64), normal(1, 2, 7, 64)
    got = jax.nn.scaled_dot_general(a, b, (((2,), (2,)), ((0,), (0,))), configs=[config(mode)] * 3)
    want = np.einsum("bmk,bnk->bmn", rounded(a, mode), rounded(b, mode))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
    # axes in any order, no batch axis, two of the contracted ones
    c, d = normal(2, 4, 6, 16), normal(3, 16, 4, 3)
    got = jax.jit(
        lambda c, d: jax.nn.scaled_dot_general(c, d, (((0, 2), (1, 0)), ((), ())), configs=[config(mode)] * 3)
    )(c, d)
    rows, columns = c.transpose(1, 0, 2).reshape(6, 64), d.transpose(2, 1, 0).reshape(3, 64)
    np.testing.assert_allclose(got, rounded(rows, mode) @ rounded(columns, mode).T, rtol=1e-5, atol=1e-4)


def test_gradients_are_products_of_operands_that_are_rounded_anew():
    a, b, g = normal(0, 2, 32, 64), normal(1, 2, 96, 64), normal(2, 2, 32, 96)
    configs = [config("mxfp8")] * 3
    _, back = jax.vjp(lambda a, b: jax.nn.scaled_dot_general(a, b, (((2,), (2,)), ((0,), (0,))), configs=configs), a, b)
    for got, x, y in zip(back(jnp.asarray(g)), (g, g.swapaxes(1, 2)), (b, a), strict=True):
        want = np.einsum("bmk,bnk->bmn", rounded(x, "mxfp8"), rounded(y.swapaxes(1, 2).copy(), "mxfp8"))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-3)


def test_gradients_in_four_bits_pass_where_operands_fit():
    a, b = normal(0, 1, 4, 16), normal(1, 1, 4, 16)
    a[0, 0, 0] = 1e5
    configs = [config("nvfp4")] * 3
    of_a, of_b = jax.grad(
        lambda a, b: jax.nn.scaled_dot_general(a, b, (((2,), (2,)), ((0,), (0,))), configs=configs).sum(), (0, 1)
    )(a, b)
    want = np.broadcast_to(b.sum(1, keepdims=True), a.shape).copy()
    want[0, 0, 0] = 0
    np.testing.assert_allclose(of_a, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(of_b, np.broadcast_to(a.sum(1, keepdims=True), b.shape), rtol=1e-5)


@pytest.mark.parametrize("mode", FORMATS)
def test_blocks_of_zeros_are_zeros(mode):
    x = jnp.zeros((1, 2, 64))
    assert not jax.nn.scaled_dot_general(x, x, (((2,), (2,)), ((0,), (0,))), configs=[config(mode)] * 3).any()


def test_what_does_not_fit_is_refused():
    x, dims = jnp.ones((1, 2, 40)), (((2,), (2,)), ((0,), (0,)))
    with pytest.raises(ValueError, match="40 contracted elements do not fill blocks of 32"):
        jax.nn.scaled_dot_general(x, x, dims, configs=[config("mxfp8")] * 3)
    with pytest.raises(TypeError, match="preferred_element_type"):
        jax.nn.scaled_dot_general(x, x, dims, jnp.int32, configs=[config("mxfp8")] * 3)
    with pytest.raises(ValueError, match="Unsupported mode"):
        jax.nn.get_scaled_dot_general_config("int8")
    with pytest.warns(DeprecationWarning, match="Backend selector"):
        jax.nn.scaled_dot_general(x, x, dims, implementation="cudnn")
