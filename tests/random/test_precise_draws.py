"""Draws whose precision is asked for: Gumbel's tails, binomials of the dtype of their probability, what is refused."""

import jax
import numpy as np
import pytest
from jax._src.random.core import _safe_int_to_float as jax_share

import ferrax
from ferrax import random
from ferrax._src.random.core import _safe_int_to_float as share


def both(name, *args, **kwargs):
    return (np.asarray(getattr(m, name)(m.key(3), *args, **kwargs)) for m in (random, jax.random))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_highest_precision_of_gumbel(dtype):
    found, expected = both("gumbel", (500,), dtype, mode="highest")
    np.testing.assert_allclose(
        found.astype("f"), expected.astype("f"), rtol={"float32": 1e-6}.get(dtype, 2e-2), atol=1e-6
    )


def test_categories_and_choices_take_a_precision():
    logits = np.log(np.array([[0.5, 0.5], [0.1, 0.9]], "float32"))
    np.testing.assert_array_equal(*both("categorical", logits, axis=1, shape=(50, 2), mode="highest"))
    p = np.arange(10, dtype="float32") / 45
    np.testing.assert_array_equal(*both("choice", 10, (4,), False, p, mode="highest"))
    with pytest.raises(ValueError, match="valid mode for gumbel"):
        random.gumbel(random.key(0), mode="higher")


def test_a_setting_chooses_the_precision_of_gumbel():
    key, setting = random.key(5), "jax_high_dynamic_range_gumbel"
    low, high = (np.asarray(random.gumbel(key, (9,), mode=mode)) for mode in ("low", "high"))
    draw = ferrax.jit(lambda k: random.gumbel(k, (9,)))
    np.testing.assert_array_equal(draw(key), low)
    ferrax.config.update(setting, True)
    try:
        np.testing.assert_array_equal(random.gumbel(key, (9,)), high)
        np.testing.assert_array_equal(draw(key), high)
    finally:
        ferrax.config.update(setting, False)
    assert not np.array_equal(low, high)


@pytest.mark.parametrize("shift", range(40))
def test_shares_of_words_keep_their_digits(shift):
    number = ((1 << 24) - 1) << shift
    words = np.array([number >> 32, number & 0xFFFFFFFF], np.uint32)
    assert int(float(np.ldexp(np.float32(share(words, np.float32)), 64))) == number
    assert share(words, np.float32) == np.asarray(jax_share(words, np.float32))


def test_shares_of_other_words_are_refused():
    with pytest.raises(RuntimeError, match="only works for u32 -> f32"):
        share(np.zeros(2, np.int32), np.float32)
    assert share(np.zeros(2, np.uint32), np.float32) > 0


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("n", "p"), [(13, 0.3), (500, 0.5), (500, np.float16(0.9)), (np.float16(99), np.float16(0.5))])
def test_binomials_are_drawn_as_precisely_as_their_probability(n, p, dtype):
    np.testing.assert_array_equal(*both("binomial", n, p, (40,), dtype))


@pytest.mark.parametrize("replace", [False, True])
def test_shapes_of_choices_are_sequences(replace):
    with pytest.raises(TypeError, match="must be a sequence, got 2"):
        random.choice(random.key(0), 5, 2, replace=replace)


def test_slopes_of_keys_are_none():
    slope = ferrax.grad(lambda k: 1.0, allow_int=True)(random.key(0))
    assert slope.dtype == ferrax.dtypes.float0 and slope.shape == ()
    with pytest.raises(TypeError, match="grad requires real- or complex-valued inputs"):
        ferrax.grad(lambda k: 1.0)(random.key(0))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize(("n", "m"), [(3, 4), (4, 3)])
def test_wide_orthogonal_matrices_are_those_of_jax(n, m, dtype):
    found, expected = both("orthogonal", n, (2,), dtype, m)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_binomials_of_a_narrow_probability_end():
    p = ferrax.numpy.ones((3,), "float8_e4m3fn")
    np.testing.assert_array_equal(random.binomial(random.key(0), 1.0, p), np.ones(3))
