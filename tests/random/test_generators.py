"""Generators of random bits besides the default one, and its older streams: JAX's bits, under `vmap` as well.

JAX's answers are recorded, see `words.py`.
"""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax, random
from ferrax.experimental import random as stateful
from ferrax.extend.random import (
    define_prng_impl,
    random_seed,
    rbg_prng_impl,
    seed_with_impl,
    threefry2x32_p,
    threefry_prng_impl,
    unsafe_rbg_prng_impl,
)
from tests.random import words
from tests.recorded import expected

RECORDED = words.recorded()


def same(ours, name, rtol=0):
    """Holds values to JAX's of a name: dtypes, and numbers, which are equal but for `rtol`."""
    theirs = RECORDED[name]
    assert ours.keys() == theirs.keys()
    for key, (dtype, value) in theirs.items():
        assert str(ours[key].dtype) == dtype, key
        np.testing.assert_allclose(np.asarray(ours[key]), np.array(value, dtype), rtol=rtol, err_msg=key)


@pytest.mark.parametrize("impl", words.IMPLS)
def test_words(impl):
    same(words.words(ferrax, impl, 7), f"words {impl}")
    same(words.wide(ferrax, impl), f"wide {impl}")


@pytest.mark.parametrize("impl", ["rbg", "philox4x32"])
def test_samplers(impl):
    same(words.samples(ferrax, impl), f"samples {impl}")
    same(words.floats(ferrax, impl), f"floats {impl}", rtol=3e-6)


def test_older_streams_of_the_default_generator():
    same(words.older(ferrax), "older")


def test_the_setting_chooses_the_generator():
    f = ferrax.jit(lambda: random.key_data(random.key(5)))
    with ferrax.default_prng_impl("rbg"):
        raw = random.PRNGKey(5)
        assert raw.shape == (4,) and f().shape == (4,)
        assert random.key_impl(raw) == random.key_impl(random.key(0)) == "rbg"
        typed = random.wrap_key_data(raw)
        np.testing.assert_array_equal(
            random.uniform(random.split(raw)[1], (3,)), random.uniform(random.split(typed)[1], (3,))
        )
    assert f().shape == (2,)
    with pytest.raises(TypeError, match=r"expected key_data.shape to end with \(2,\); got shape=\(4,\)"):
        random.bits(raw)


def test_keys_are_values():
    key = random.key(0, impl="rbg")
    keys = random.split(key, 4)
    assert jnp.issubdtype(key.dtype, ferrax.dtypes.prng_key) and str(key.dtype) == "key<rbg>"
    assert (keys.shape, keys.ndim, keys.size, len(keys), keys.itemsize) == ((4,), 1, 4, 4, 16)
    assert keys.reshape(2, 2).T.shape == keys.reshape((2, -1)).shape == (2, 2)
    assert (
        keys[1:].shape == (3,)
        and keys[..., None].squeeze(-1).shape == (4,)
        and keys.reshape(2, 2).ravel().shape == (4,)
    )
    assert [bool(x) for x in keys == keys[2]] == [False, False, True, False]
    assert (key == random.wrap_key_data(random.key_data(key), impl="rbg")) and not bool(key != key.copy())
    assert (
        random.key_impl(key) == "rbg" and random.key_dtype("rbg") == key.dtype == random.key(0, dtype=key.dtype).dtype
    )
    np.testing.assert_array_equal(random.key_data(random.clone(key)), random.key_data(key))
    assert repr(key) == "Array((), dtype=key<rbg>) overlaying:\n[0 0 0 0]"
    assert [random.bits(k) for k in keys] == [random.bits(keys[i]) for i in range(4)]
    with pytest.raises(TypeError, match="iteration over a 0-d key array"):
        iter(key)
    for convert in (np.asarray, np.array, lambda x: np.stack([x]), lambda x: np.asarray(x, "uint32")):
        for array in (key, keys):
            with pytest.raises(TypeError, match=r"PRNGKey dtype cannot be converted .* jax\.random\.key_data"):
                convert(array)
    with pytest.raises(TypeError, match="converted to boolean"):
        bool(keys)
    with pytest.raises(ValueError, match="accepts a single key"):
        random.bits(keys)
    with pytest.raises(TypeError, match=r"to end with \(4,\); got shape=\(2,\) for impl=rbg"):
        random.wrap_key_data(jnp.zeros(2, "uint32"), impl="rbg")


def shown(jax, impl):
    """What keys of a generator look like while programs are traced, and the errors of their indices."""
    key, out = jax.random.key(0, impl=impl), []
    keys = jax.random.split(key, 3)
    show = lambda k: (out.append(repr(k)), out.append(str(k)), k)[2]
    jax.jit(show)(key)
    jax.jit(show)(keys)
    jax.vmap(show)(keys)
    jax.jit(jax.vmap(show))(keys.reshape(3, 1))
    for array, index in ((key, 0), (key, (0, 0)), (keys, (0, 0)), (keys, (0, None, slice(None))), (keys, (0, ...))):
        try:
            out.append(array[index].shape)
        except IndexError as error:
            out.append(str(error))
    return out


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg", "threefry2x32"])
def test_keys_are_shown_as_keys(impl):
    assert shown(ferrax, impl) == expected(shown, impl)


def test_keys_go_through_transformations():
    key = random.key(0, impl="unsafe_rbg")

    def step(key, _):
        key, own = random.split(key)
        return key, random.uniform(own)

    last, drawn = ferrax.jit(lambda k: lax.scan(step, k, None, length=3))(key)
    want = []
    for _ in range(3):
        key, own = random.split(key)
        want.append(random.uniform(own))
    np.testing.assert_array_equal(drawn, want)
    assert bool(last == key)
    slope = ferrax.grad(lambda x: (x * random.normal(key, (3,))).sum())(2.0)
    np.testing.assert_allclose(slope, random.normal(key, (3,)).sum(), rtol=1e-6)


def test_rng_bit_generator_under_vmap():
    same(words.generated(ferrax), "generated")


def test_a_generator_of_ones_own():
    impl = define_prng_impl(
        key_shape=(1,),
        seed=lambda seed: jnp.full((1,), 10 * seed, "uint32"),
        split=lambda key, shape: (key + jnp.arange(np.prod(shape), dtype="uint32")).reshape(*shape, 1),
        random_bits=lambda key, width, shape: jnp.full(shape, key[0]).astype(f"uint{width}"),
        fold_in=lambda key, data: key ^ data,
        name="mine",
        tag="my",
    )
    key = random.key(3, impl=impl)
    assert str(key.dtype) == "key<my>" and random.key_impl(key) is impl
    np.testing.assert_array_equal(random.key_data(random.split(key, (2, 2)))[..., 0], [[30, 31], [32, 33]])
    np.testing.assert_array_equal(
        ferrax.vmap(lambda k: random.bits(k, (2,), "uint8"))(random.split(key, 2)), [[30, 30], [31, 31]]
    )
    np.testing.assert_array_equal(random.key_data(random.fold_in(key, 1)), [31])
    np.testing.assert_array_equal(random.key_data(random_seed(jnp.arange(3), impl))[:, 0], [0, 10, 20])
    assert random.uniform(key, (3,)).shape == (3,)


def test_generators_by_object():
    for impl, name in (
        (threefry_prng_impl, "threefry2x32"),
        (rbg_prng_impl, "rbg"),
        (unsafe_rbg_prng_impl, "unsafe_rbg"),
    ):
        key = seed_with_impl(impl, 7)
        assert random.key_impl(key) == name
        np.testing.assert_array_equal(random.key_data(key), random.PRNGKey(7, impl=name))
        np.testing.assert_array_equal(impl.split(random.key_data(key), (2,)), random.key_data(random.split(key)))
        np.testing.assert_array_equal(impl.fold_in(random.key_data(key), 5), random.key_data(random.fold_in(key, 5)))
        np.testing.assert_array_equal(
            impl.random_bits(random.key_data(key), 16, (2,)), random.bits(key, (2,), "uint16")
        )
    assert threefry2x32_p.name == "threefry2x32"
    with pytest.raises(TypeError, match="must be an integer"):
        random_seed(1.5, rbg_prng_impl)
    with pytest.raises(ValueError, match=r'unrecognized PRNG implementation "x". Did you mean one of: "philox2x32"'):
        random.key(0, impl="x")


def test_generators_with_a_state():
    same(words.draws(ferrax, stateful), "draws", rtol=1e-6)


def test_a_state_moves_on_under_jit():
    rng, same_rng = stateful.stateful_rng(42), stateful.stateful_rng(42)
    drawn = ferrax.jit(rng.uniform)
    assert [drawn(), drawn()] == [same_rng.uniform(), same_rng.uniform()]
    assert ferrax.jit(lambda g: g.random())(rng) == same_rng.random() and rng.random() == same_rng.random()
    assert stateful.stateful_rng().key().shape == ()
    with pytest.raises(TypeError, match="needs an explicit seed"):
        ferrax.jit(lambda: stateful.stateful_rng().random())()


def test_split_states_draw_under_vmap_alone():
    parts = stateful.stateful_rng(42).split(3)
    draws = [parts.key, parts.random, parts.uniform, parts.normal, lambda: parts.integers(3), lambda: parts.split(2)]
    for draw in (*draws, lambda: parts.spawn(2)):
        with pytest.raises(ValueError, match="cannot operate on split stateful generator"):
            draw()
    assert len(set(ferrax.vmap(lambda g: g.uniform())(parts).tolist())) == 3


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg", "threefry2x32"])
def test_shapes_of_samples_that_no_memory_holds(impl):
    with ferrax.enable_checks(False):
        made = ferrax.eval_shape(lambda seed: random.normal(random.key(seed, impl=impl), (10**12,)), 0)
    assert made.shape == (10**12,) and made.dtype == np.float32
