"""Keys and their parts: data, generators and the primitives of keys, as JAX's own tests and libraries read them."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax._src import random as private_random
from ferrax._src.random import prng
from ferrax._src.test_util import count_aot_jit_cpp_cache_miss
from tests.recorded import both


@pytest.mark.parametrize("name", prng.prngs)
def test_keys_know_their_data_and_generator(name):
    impl = prng.prngs[name]
    with jax.default_prng_impl(name):
        assert private_random.default_prng_impl() is impl
        key = jax.random.key(42)
    keys = jax.random.split(key, (2, 3))
    assert key._impl is keys[0]._impl is impl
    assert keys._base_array.shape == (2, 3, *impl.key_shape)
    np.testing.assert_array_equal(keys._base_array, jax.random.key_data(keys))
    again = prng.random_wrap(keys._base_array, impl=impl)
    assert again.dtype == keys.dtype and (prng.random_unwrap(again) == keys._base_array).all()


def test_data_of_deleted_keys_are_deleted():
    keys = jax.random.split(jax.random.key(0), 4)
    assert not keys._base_array.is_deleted()
    keys.delete()
    assert keys._base_array.is_deleted()


def drawn(jax, prng_of):
    prng = prng_of(jax)
    keys = jax.random.split(jax.random.key(7), 3)
    folded = prng.random_fold_in(keys, np.arange(3, dtype=np.uint32))
    return [
        prng.random_bits(keys, bit_width=32, shape=(2,)),
        prng.random_bits(keys[0], bit_width=8, shape=(5,)),
        jax.random.key_data(folded),
        jax.vmap(lambda data: jax.random.key_data(prng.random_wrap(data, impl=keys._impl)), in_axes=1)(
            np.arange(6, dtype=np.uint32).reshape(2, 3)
        ),
    ]


def prng_of(jax):
    return jax._src.random.prng


def test_primitives_of_keys():
    ours, theirs = both(drawn, prng_of)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    for call in (prng.random_unwrap, lambda x: prng.random_bits(x, 32, ()), lambda x: prng.random_fold_in(x, 1)):
        for made in (call, jax.jit(call), jax.vmap(call)):
            with pytest.raises(TypeError, match=r"takes key array operand, got keys\.dtype=uint32"):
                made(jnp.arange(12, dtype=np.uint32).reshape(6, 2))


def test_new_kinds_of_calls_of_compiled_functions_are_counted():
    key = jax.random.key(0)
    compiled = jax.jit(jax.random.normal).lower(key).compile()
    with count_aot_jit_cpp_cache_miss() as count:
        compiled(key)
        compiled(key)
    assert count() == 1
