"""`device_get`: what becomes a NumPy array, and what stays as it is."""

import numpy as np

from tests.recorded import both


class Held:
    """Something that says what it is as an array."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(2.0)


def test_kinds_of_leaves():
    def kinds(jax):
        leaves = [1, 1.5, "a", np.float32(2), np.ones(2), Held(), jax.ShapeDtypeStruct((2,), np.float32)]
        leaves += [jax.numpy.ones(2), jax.numpy.bfloat16(3)]
        return [type(x).__name__ for x in jax.device_get(leaves)]

    got, wanted = both(kinds)
    assert got == wanted


def test_keys_and_traced_arrays_stay():
    def values(jax):
        key = jax.random.key(3)
        kept = jax.device_get({"key": key})["key"]
        assert kept.dtype == key.dtype
        through = lambda x: jax.device_get((x, 2))[0] * 3
        return (
            jax.random.normal(kept),
            jax.jit(through)(2.0),
            jax.vmap(through)(jax.numpy.arange(3.0)),
            jax.grad(through)(1.0),
            jax.jit(lambda k: jax.random.normal(jax.device_get(k)))(key),
        )

    got, wanted = both(values)
    for g, w in zip(got, wanted, strict=True):
        assert np.array_equal(g, w)
