"""Products with masks: where a mask is False there is zero, whatever was there, as in compiled programs of JAX."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

VALUES = np.array([np.inf, np.nan, 1.5, -2.0, -np.inf, -0.0])
MASK = np.array([False, False, True, False, True, True])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64", "complex128"])
def test_a_mask_chooses(dtype):
    with ferrax.enable_x64():
        x, mask = jnp.asarray(VALUES, dtype), jnp.asarray(MASK)
        want = np.where(MASK, np.asarray(x), np.zeros((), dtype))
        for f in (lambda x, m: x * m, lambda x, m: m * x, lambda x, m: x * m * m):
            vjp = lambda x, m, f=f: ferrax.vjp(lambda x: f(x, m), x)[1](x)[0]
            for way in (f, ferrax.jit(f), ferrax.vmap(f), ferrax.jit(ferrax.vmap(f)), vjp, ferrax.jit(vjp)):
                got = np.asarray(way(x, mask))
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(got, want)
        converted = ferrax.jit(lambda x, m: x * m.astype(x.dtype))(x, mask)
        np.testing.assert_array_equal(np.asarray(converted), want)


def test_scalars_and_masks_made_of_comparisons():
    inf, no = jnp.float32(np.inf), jnp.asarray(False)
    assert np.asarray(inf * no) == 0
    assert np.asarray(ferrax.jit(lambda x, m: x * m)(inf, no)) == 0
    x = jnp.asarray(VALUES, "float32")
    got = ferrax.jit(lambda x: x * (x > 0))(x)
    np.testing.assert_array_equal(np.asarray(got), np.where(VALUES > 0, VALUES, 0).astype(np.float32))
    # one number for all, and one mask for all
    np.testing.assert_array_equal(np.asarray(inf * jnp.asarray(MASK)), np.where(MASK, np.inf, 0))
    np.testing.assert_array_equal(
        np.asarray(ferrax.jit(lambda m: 3.0 * m)(MASK)), np.where(MASK, np.float32(3), np.float32(0))
    )


def test_numbers_that_are_spread_over_a_mask():
    x, masks = jnp.asarray(VALUES, "float32"), jnp.asarray(np.stack([MASK, ~MASK, ~MASK]))
    row, column = np.where(masks, VALUES, 0), np.where(masks.T, VALUES[:, None], 0)
    for f, mask, want in (
        (lambda x, m: x * m, masks, row),
        (lambda x, m: x[:, None] * m, masks.T, column),
        (lambda x, m: m * x.reshape(6, 1), masks.T, column),
        (ferrax.vmap(lambda x, m: x * m), masks.T, column),
        (ferrax.vmap(lambda x, m: x * m, (None, 0)), masks, row),
    ):
        for way in (f, ferrax.jit(f)):
            got = np.asarray(way(x, mask))
            np.testing.assert_array_equal(got, want.astype(np.float32))
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_products_of_numbers_stay_products():
    """A mask that is spread, one that was a number before, and bfloat16: as in JAX."""
    x = jnp.asarray(VALUES, "float32")
    for f in (
        lambda x: x * jnp.asarray(MASK)[:1],
        lambda x: lax.mul(x, jnp.where(MASK, 1.0, 0.0)),
        lambda x: x.astype(jnp.bfloat16) * jnp.asarray(MASK),
        lambda x: x * False,
        lambda x: x * jnp.asarray(MASK).astype(np.int32),
        lambda x: x * jnp.asarray(MASK).astype(np.float16),
        lambda x: ferrax.vmap(lambda x: x * jnp.asarray(MASK))(x)[0],
        lambda x: ferrax.vmap(ferrax.vmap(lambda x, m: x * m, (None, 0)), (0, None))(x, MASK)[0],
    ):
        for way in (f, ferrax.jit(f)):
            assert np.isnan(np.asarray(way(x)).astype(np.float32)[0])


def test_strict_numerics_keep_the_product():
    x, mask = jnp.asarray(VALUES, "float32"), jnp.asarray(MASK)
    with ferrax.strict_numerics(True):
        for way in (lambda x, m: x * m, ferrax.jit(lambda x, m: x * m)):
            assert np.isnan(np.asarray(way(x, mask))[:2]).all()


def test_programs_show_the_product():
    text = str(ferrax.make_jaxpr(lambda x, m: x * m)(jnp.ones(3), jnp.ones(3, bool)))
    assert "convert_element_type" in text
    assert " mul " in text
