"""Keys that loops carry, split, choose and stack: the bits that JAX has. There they are words in registers."""

import importlib

import numpy as np
import pytest

import ferrax
from tests.recorded import expected


def looped(step, start, length=37):
    return lambda jax: jax.lax.fori_loop(0, length, lambda i, c: step(jax, i, c), start(jax))


def key(jax):
    return jax.random.key(7)


def keys(jax):
    return jax.random.split(key(jax), 6)


def drawing(draw, start):
    """A step that draws under a key, and goes on with another one."""

    def step(jax, _, c):
        k, x = c
        k, one = jax.random.split(k)
        return k, draw(jax, one, x)

    return looped(step, lambda jax: (key(jax), start(importlib.import_module(f"{jax.__name__}.numpy"))))


def shuffled(jax, i, k):
    return (
        k[np.array([3, 1, 0, 2, 5, 4])][::-1].reshape(2, 3).T.reshape(-1).at[i % 6].set(jax.random.split(k[i % 5])[0])
    )


def until(jax):
    def step(c):
        k, one = jax.random.split(c[0])
        return k, jax.random.uniform(one), c[2] + 1

    return jax.lax.while_loop(lambda c: c[1] < 0.95, step, (key(jax), 0.0, 0))


def nested(jax):
    def inner(c):
        k, one = jax.random.split(c[0])
        return k, jax.random.uniform(one), c[2] + 1

    def outer(_, c):
        k, one = jax.random.split(c[0])
        _, y, n = jax.lax.while_loop(lambda c: c[1] < 0.8, inner, (one, 0.0, 0))
        return k, c[1] + y * n

    return jax.lax.fori_loop(0, 50, outer, (key(jax), 0.0))


LOOPS = {
    "until a draw is large": until,
    "loops in a loop": nested,
    "a long one": looped(lambda jax, i, k: jax.random.split(k)[1], key, 200_000),
    "a key chosen": looped(
        lambda jax, i, k: jax.lax.cond(
            jax.random.bernoulli(k), lambda k: jax.random.split(k)[1], lambda k: jax.random.fold_in(k, 3), k
        ),
        key,
    ),
    "one key of several functions": looped(
        lambda jax, i, k: jax.lax.switch(
            i % 3, [lambda k: jax.random.split(k)[1], lambda k: jax.random.fold_in(k, i), lambda k: k], k
        ),
        key,
    ),
    "one of two": looped(
        lambda jax, i, k: jax.lax.select(jax.random.bernoulli(k), *jax.random.split(k)),
        key,
    ),
    "rows of keys": looped(lambda jax, i, k: jax.vmap(lambda k: jax.random.split(k)[0])(k), keys),
    "keys that change places": looped(shuffled, keys),
    "stacked keys": lambda jax: jax.lax.scan(lambda k, _: tuple(jax.random.split(k)), key(jax), None, length=20),
    "keys of steps": lambda jax: jax.lax.scan(
        lambda c, k: (jax.random.split(c)[0], jax.random.uniform(k, (3,)) + jax.random.uniform(c)), key(jax), keys(jax)
    ),
    "words": looped(
        lambda jax, i, d: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(d))[0]) ^ d,
        lambda jax: jax.random.key_data(key(jax)),
    ),
    "bytes": drawing(lambda jax, k, x: x ^ jax.random.bits(k, (5,), "uint8"), lambda jnp: jnp.zeros(5, "uint8")),
    "a matrix": drawing(lambda jax, k, x: x ^ jax.random.bits(k, (3, 7)), lambda jnp: jnp.zeros((3, 7), "uint32")),
    "a vector": drawing(
        lambda jax, k, x: (x + jax.random.uniform(k, x.shape)) * jax.random.uniform(k), lambda jnp: jnp.ones(300)
    ),
    "numbers of a category": drawing(
        lambda jax, k, x: x + jax.random.categorical(k, np.arange(5, dtype=np.float32)), lambda jnp: jnp.int32(0)
    ),
    "places without repetition": drawing(
        lambda jax, k, x: x + jax.random.choice(k, 10, (3,), replace=False), lambda jnp: jnp.zeros(3, int)
    ),
    "an order": drawing(lambda jax, k, x: jax.random.permutation(k, x), lambda jnp: jnp.arange(12)),
}
for n in (1, 2, 3, 4, 5, 8, 16, 17, 33, 100):
    LOOPS[f"{n} keys"] = looped(lambda jax, i, k, n=n: jax.random.split(k, n)[n // 2], key)
    LOOPS[f"{n} numbers"] = drawing(
        lambda jax, k, x, n=n: x + jax.random.uniform(k, (n,)), lambda jnp, n=n: jnp.zeros(n)
    )
    LOOPS[f"{n} integers"] = drawing(
        lambda jax, k, x, n=n: x + jax.random.randint(k, (n,), -5, 1000), lambda jnp, n=n: jnp.zeros(n, int)
    )


def found(jax, name):
    words = lambda x: jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x
    return [np.asarray(words(x)) for x in jax.tree.leaves(jax.jit(lambda: LOOPS[name](jax))())]


@pytest.mark.parametrize("name", LOOPS)
def test_bits(name):
    for got, want in zip(found(ferrax, name), expected(found, name), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
