"""What functions do with keys, found before they run: signatures and checks of JAX's `key_reuse._core`."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.errors import KeyReuseError
from ferrax.experimental.key_reuse import _core
from ferrax.experimental.key_reuse._core import (
    Forward,
    KeyReuseSignature,
    Sink,
    Source,
    assert_consumed,
    assert_unconsumed,
    check_key_reuse,
    consume,
    function_type_signature,
)
from ferrax.extend.core import Primitive, primitives as p

KEY = jax.random.key(0)


def key_kept():
    return KEY


def test_signatures_are_sets_of_their_parts():
    assert KeyReuseSignature(Sink(1), Sink(0)) == KeyReuseSignature(Sink(0), Sink(1))
    assert repr(KeyReuseSignature(Forward(1, 0), Source(0), Sink(1), Sink(0))) == (
        "KeyReuseSignature(Sink(0), Sink(1), Source(0), Forward(1, 0))"
    )
    assert [*KeyReuseSignature(Sink(1), Source(2)).sinks] == [Sink(1)]
    assert Sink(0, np.array([True, True])) == Sink(0) != Source(0)
    half = np.array([True, False])
    assert len({Sink(1, half), Sink(1, half.copy()), Sink(1), Sink(1, False)}) == 3
    assert repr(Sink(0, half)) == "Sink(0, [ True False])"
    with pytest.raises(ValueError, match="Sink is immutable"):
        Sink(0).idx = 1


OF_PRIMITIVES = {
    "random_bits": (jax.random.bits, KEY),
    "random_split": (jax.random.split, KEY),
    "random_seed": (jax.random.key, 0),
    "random_wrap": (jax.random.wrap_key_data, np.uint32([0, 0])),
    "broadcast_in_dim": (lambda key: key[None], KEY),
    "squeeze": (jnp.squeeze, KEY[None]),
    "dynamic_update_slice": (lax.dynamic_update_slice, KEY[None], KEY[None], (0,)),
}


@pytest.mark.parametrize("name", OF_PRIMITIVES)
def test_programs_of_one_primitive_have_its_signature(name):
    fun, *args = OF_PRIMITIVES[name]
    assert function_type_signature(fun, *args) == _core.key_reuse_signatures[getattr(p, name + "_p")]


def test_signatures_of_functions():
    assert function_type_signature(lambda k: (k, jax.random.split(k)), KEY) == KeyReuseSignature(
        Sink(0), Source(1), Forward(0, 0)
    )
    of_dict = function_type_signature(lambda c: jax.random.uniform(c["k"]) + c["a"], {"a": 1.0, "k": KEY})
    assert of_dict == KeyReuseSignature(Sink(1))
    held = jax.make_jaxpr(lambda x: jax.random.bits(KEY) * x)(1)
    assert _core.jaxpr_type_signature(held.jaxpr) == _core.jaxpr_type_signature(held) == KeyReuseSignature(Sink(1))
    gamma = function_type_signature(jax.random.gamma, KEY, 1.0)
    assert gamma == KeyReuseSignature(Sink(0)) == _core.key_reuse_signatures[jax.random.random_gamma_p]


def good(k):
    assert_unconsumed(k)
    jax.random.fold_in(k, 2)
    same = jax.jit(lambda k: k)(k)
    assert_unconsumed(same)
    consume(k)
    assert_consumed(k)
    assert_consumed(same)


def halves(ks):
    assert_unconsumed(ks[0])
    assert_consumed(ks, np.array([True, False]))
    assert_unconsumed(ks[1])
    assert_consumed(ks, np.array([True, True]))


def one_branch(k, which):
    lax.cond(which, jax.random.uniform, lambda k: 1.0, k)
    assert_consumed(k)


def test_functions_that_say_what_they_use():
    check_key_reuse(good, KEY)
    check_key_reuse(jax.vmap(good), jax.random.split(KEY))
    check_key_reuse(halves, jax.random.split(KEY))
    check_key_reuse(one_branch, KEY, True)
    for fun, text in (
        (assert_consumed, "Expected key to be consumed"),
        (lambda k: assert_unconsumed(consume(k)), "Expected key to not be consumed"),
    ):
        with pytest.raises(AssertionError, match=text):
            check_key_reuse(fun, KEY)
    with pytest.raises(AssertionError, match=r"Expected .*False.*True.*, got .*True.*False"):
        check_key_reuse(lambda ks: (ks[0], assert_consumed(ks, np.array([False, True]))), jax.random.split(KEY))


BAD = {
    "In jit, argument 0 is already consumed": lambda: jax.random.uniform(KEY) + jax.random.uniform(key_kept()),
    "In random_bits, argument 0 is already consumed": lambda k: jax.random.bits(k) + jax.vmap(jax.random.bits)(k[None]),
    "scan body function leads to key reuse": lambda k: lax.scan(lambda c, _: (c, jax.random.uniform(k)), 0, length=3),
    "while_loop cond function leads to key reuse": lambda k: lax.while_loop(
        lambda c: c[0] < jax.random.uniform(c[1]), lambda c: (c[0] + 1, c[1]), (0, k)
    ),
}


@pytest.mark.parametrize("text", BAD)
def test_functions_that_use_a_key_twice(text):
    fun = BAD[text]
    args = [KEY] * fun.__code__.co_argcount
    if not args:
        text = "already consumed"
    with pytest.raises(KeyReuseError, match=text):
        check_key_reuse(fun, *args)


def test_primitives_of_users():
    unknown = Primitive("made_up")
    unknown.def_impl(lambda x: x)
    unknown.def_abstract_eval(lambda x: x)
    assert function_type_signature(unknown.bind, KEY) == KeyReuseSignature(Sink(0))
    _core.key_reuse_signatures[unknown] = KeyReuseSignature(Forward(0, 0))
    assert function_type_signature(unknown.bind, KEY) == KeyReuseSignature(Forward(0, 0))
    _core.key_reuse_signatures[unknown] = _core.DynamicKeyReuseSignature(lambda eqn: KeyReuseSignature(Source(0)))
    assert function_type_signature(unknown.bind, KEY) == KeyReuseSignature(Source(0))
    with pytest.raises(TypeError, match="Unrecognized key reuse signature"):
        _core.key_reuse_signatures[unknown] = 3
