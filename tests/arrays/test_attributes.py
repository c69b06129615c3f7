"""Attributes that users set on arrays, as on JAX's: they belong to the object, and to nothing that is made of it."""

import copy
import gc
import pickle
import weakref

import pytest

import ferrax
import ferrax.numpy as jnp

ARRAYS = {
    "of numbers": lambda: jnp.arange(3.0),
    "of an operation": lambda: jnp.arange(3.0) + 1,
    "of jit": lambda: ferrax.jit(lambda: jnp.ones(3))(),
    "of keys": lambda: ferrax.random.split(ferrax.random.key(0)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_they_are_kept_with_the_object(name):
    x = ARRAYS[name]()
    with pytest.raises(AttributeError):
        x.mask
    assert "mask" not in vars(x)
    x.mask = "a mask"
    assert x.mask == getattr(x, "mask") == "a mask"  # noqa: B009
    assert vars(x)["mask"] == "a mask"
    del x.mask
    assert not hasattr(x, "mask")


@pytest.mark.parametrize("name", ARRAYS)
def test_copies_and_results_have_none(name):
    x = ARRAYS[name]()
    x.mask = 1
    made = [x.copy(), copy.copy(x), copy.deepcopy(x), x[:1], ferrax.jit(lambda x: x[::-1])(x)]
    made += [] if name == "of keys" else [x + 1, pickle.loads(pickle.dumps(x))]
    assert not any(hasattr(y, "mask") for y in made)


def test_properties_of_arrays_cannot_be_set():
    x = jnp.ones(2)
    for name in ("shape", "dtype", "at", "T", "aval", "sharding"):
        with pytest.raises(AttributeError):
            setattr(x, name, 1)
    x.sum = 3  # a method is no property: as in JAX
    assert x.sum == 3 and jnp.ones(2).sum() == 2


def test_traced_values_take_none():
    def f(x):
        x.mask = 1
        return x

    for call in (ferrax.jit(f), ferrax.vmap(f), ferrax.grad(lambda x: f(x).sum())):
        with pytest.raises(AttributeError, match="'mask'"):
            call(jnp.ones(2))


def test_arrays_in_their_own_attributes_are_collected():
    x = jnp.arange(3)
    x.me = [x]
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_objects_without_attributes_have_no_dictionary():
    assert gc.get_referents(jnp.arange(3.0) + 1) == [type(jnp.ones(()))]
