"""Keys: forms, checks and messages."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax, random

KEY = random.key(0)
RAW = random.PRNGKey(0)


def test_forms():
    assert KEY.shape == () and str(KEY.dtype) == "key<fry>"
    assert RAW.shape == (2,) and RAW.dtype == np.uint32
    assert jnp.issubdtype(KEY.dtype, ferrax.dtypes.prng_key)
    assert not jnp.issubdtype(RAW.dtype, ferrax.dtypes.prng_key)
    assert random.key_impl(KEY) == random.key_impl(RAW) == "threefry2x32"
    assert random.split(KEY).shape == (2,)
    assert random.split(RAW).shape == (2, 2)
    np.testing.assert_array_equal(random.key_data(random.wrap_key_data(RAW)), RAW)
    assert random.clone(KEY).dtype == KEY.dtype
    assert random.clone(RAW).dtype == np.uint32
    assert random.key_dtype() == KEY.dtype
    assert random.key(1, dtype=KEY.dtype).dtype == KEY.dtype


@pytest.mark.parametrize(("dtype", "upper"), [(np.int16, 0), (np.int32, 0), (np.int64, 2**32 - 1)])
def test_seeds_have_as_many_words_as_their_dtype(dtype, upper):
    with ferrax.enable_x64(True):
        for seed in (dtype(-2), np.asarray(dtype(-2)), jnp.asarray(dtype(-2))):
            assert random.PRNGKey(seed).tolist() == [upper, 2**32 - 2]


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: random.uniform(3), TypeError, "expected key_data to have ndim, shape, and dtype"),
        (lambda: random.uniform(None), TypeError, "unexpected PRNG key type"),
        (lambda: random.uniform(jnp.zeros(3, "uint32")), TypeError, r"to end with \(2,\); got shape=\(3,\)"),
        (lambda: random.uniform(jnp.zeros(2)), TypeError, "expected key_data.dtype = uint32; got dtype=float32"),
        (lambda: random.uniform(random.split(KEY, 3)), ValueError, "uniform accepts a single key"),
        (lambda: random.split(random.split(RAW)), ValueError, r"split accepts a single key.*shape \(2, 2\)"),
        (lambda: random.uniform(KEY, dtype=int), ValueError, "dtype argument to `uniform` must be a float dtype"),
        (lambda: random.normal(KEY, dtype=int), ValueError, "`normal` must be a float or complex dtype, got int32"),
        (lambda: random.bits(KEY, (2,), "int32"), ValueError, "must be an unsigned int dtype, got int32"),
        (lambda: random.randint(KEY, (2,), 0, 5, float), TypeError, "randint only accepts integer dtypes, got float32"),
        (lambda: random.bernoulli(KEY, 2), TypeError, "`p` must have a floating dtype, got int32"),
        (lambda: random.uniform(KEY, (2.0,)), TypeError, "Shapes must be 1D sequences of concrete values"),
        (lambda: random.uniform(KEY, (-1,)), TypeError, "nonnegative"),
        (lambda: random.key(3.0), TypeError, "PRNG key seed must be an integer"),
        (lambda: random.key(KEY), TypeError, "key accepts a scalar seed, but was given a PRNG key"),
        (lambda: random.key(jnp.arange(3)), TypeError, "key accepts a scalar seed"),
        (lambda: random.key(3, impl="foo"), ValueError, 'unrecognized PRNG implementation "foo"'),
        (lambda: random.key(3, impl="threefry2x32", dtype=KEY.dtype), ValueError, "Only specify one"),
        (lambda: random.fold_in(KEY, -1), OverflowError, "out of bounds for uint32"),
        (lambda: random.fold_in(KEY, jnp.arange(3)), TypeError, "fold_in accepts a scalar"),
        (lambda: random.split(KEY, 2.0), TypeError, "Shapes must be 1D sequences of concrete values"),
        (lambda: random.choice(KEY, 0), ValueError, "a must be greater than 0"),
        (lambda: random.choice(KEY, 5, (6,), replace=False), ValueError, "larger sample"),
        (lambda: random.choice(KEY, 5, (2,), p=jnp.ones(3)), ValueError, r"p has shape \(3,\)"),
        (lambda: random.permutation(KEY, 5.0), TypeError, "must be an integer or at least 1-dimensional"),
        (lambda: random.permutation(KEY, [1, 2]), TypeError, "requires ndarray or scalar arguments"),
        (lambda: random.permutation(KEY, jnp.arange(3), axis=2), ValueError, "axis 2 is out of bounds"),
        (lambda: random.categorical(KEY, jnp.ones((2, 3)), shape=(3,)), ValueError, "Incompatible shapes"),
        (lambda: random.gumbel(KEY, mode="x"), ValueError, "valid mode"),
        (lambda: random.dirichlet(KEY, 1.0), ValueError, "alpha.ndim >= 1"),
    ],
)
def test_mistakes(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_traced_shape():
    with pytest.raises(ferrax.errors.ConcretizationTypeError, match="Shapes must be 1D sequences"):
        ferrax.jit(lambda n: random.normal(KEY, (n,)))(3)


def test_repr():
    assert repr(KEY) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"


def test_keys_have_no_arithmetic():
    with pytest.raises(TypeError, match="does not accept dtype"):
        KEY + 1
    with pytest.raises(TypeError, match="key_data"):
        np.asarray(KEY)


def test_index_iterate_and_compare():
    keys = random.split(KEY, 3)
    assert [k.shape for k in keys] == [()] * 3
    assert bool(keys[1] == keys[1]) and not bool(keys[0] == keys[1])
    assert jnp.stack([keys[0], keys[2]]).shape == (2,)


def test_keys_are_typed_under_custom_prng():
    assert random.PRNGKey(3).dtype == jnp.uint32
    with ferrax.enable_custom_prng(True):
        assert random.PRNGKey(3) == random.key(3) and random.PRNGKey(3, impl="rbg").dtype != jnp.uint32
    assert random.PRNGKey(3).dtype == jnp.uint32


@pytest.mark.parametrize("value", [0, 7, -1, 1.5])
def test_keys_filled_with_a_number_have_it_in_each_word(value):
    word = np.full(2, value if value >= 0 else 2**32 + value).astype("uint32")
    for keys in (
        jnp.full_like(KEY, value),
        jnp.full((3,), value, KEY.dtype),
        lax.full((2, 3), value, KEY.dtype),
        lax.full_like(random.split(KEY), value, shape=(4,)),
        ferrax.jit(lambda k: jnp.full_like(k, value))(KEY),
    ):
        assert keys.dtype == KEY.dtype
        np.testing.assert_array_equal(random.key_data(keys), np.broadcast_to(word, (*keys.shape, 2)))
    np.testing.assert_array_equal(random.key_data(jnp.ones_like(KEY)), [1, 1])
    np.testing.assert_array_equal(random.key_data(jnp.full_like(KEY, random.key(9))), [0, 9])
