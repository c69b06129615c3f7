"""Loops whose steps draw numbers, or compute with few coordinates: the same bits step by step, jitted, and mapped."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax, random


def same(x, y):
    x, y = np.asarray(x), np.asarray(y)
    assert x.dtype == y.dtype and x.shape == y.shape
    assert x.tobytes() == y.tobytes(), np.flatnonzero(x.ravel() != y.ravel())[:5]


def metropolis(x, key):
    a, b = random.split(key)
    y = x + 0.5 * random.normal(a, x.shape)
    return jnp.where(random.uniform(b) < jnp.exp(jnp.sum(x * x) - jnp.sum(y * y)), y, x)


def scanned(x, keys):
    def step(x, key):
        x = metropolis(x, key)
        return x, x

    return lax.scan(step, x, keys)[1]


@pytest.mark.parametrize("shape", [(), (1,), (5,), (40,)])
@pytest.mark.parametrize("steps", [3, 8, 100])
def test_keys_of_steps(shape, steps):
    x, keys = jnp.full(shape, 0.25), random.split(random.key(3), steps)
    found = jax.jit(scanned)(x, keys)
    with jax.disable_jit():
        for k in range(min(steps, 12)):
            x = metropolis(x, keys[k])
            same(x, found[k])


@pytest.mark.parametrize("reverse", [False, True])
def test_key_and_number_of_the_step(reverse):
    key = random.key(7)

    def step(carry, scale):
        i, x = carry
        k = random.fold_in(key, i)
        x = 0.9 * x + scale * random.normal(k, (3,))
        return (i + 2, x), random.bernoulli(k, 0.5)

    scales = jnp.arange(20.0)
    start = (jnp.int32(5), jnp.zeros(3))
    (i, x), seen = jax.jit(lambda s: lax.scan(step, start, s, reverse=reverse))(scales)
    want, flags = start, [None] * 20
    with jax.disable_jit():
        for k in reversed(range(20)) if reverse else range(20):
            want, flags[k] = step(want, scales[k])
    same(i, want[0])
    same(x, want[1])
    same(seen, jnp.stack(flags))


def test_counted_loops():
    key = random.key(1)
    step = lambda i, x: x * 0.5 + random.uniform(random.fold_in(key, i), x.shape)
    found = jax.jit(lambda x: lax.fori_loop(3, 40, step, x))(jnp.ones(4))
    x = jnp.ones(4)
    with jax.disable_jit():
        for i in range(3, 40):
            x = step(i, x)
    same(found, x)


def test_mapped_chains_and_their_slopes():
    x, keys = jnp.linspace(-1, 1, 6).reshape(6, 1), random.split(random.key(9), (6, 30))
    found = jax.jit(jax.vmap(scanned))(x, keys)
    for k in range(6):
        same(found[k], jax.jit(scanned)(x[k], keys[k]))

    def total(scale, keys):
        noise = lambda x, k: (jnp.sin(x) + scale * random.normal(k), x)
        end, seen = lax.scan(noise, 0.0, keys)
        return end + seen.sum()

    slope = jax.jit(jax.grad(total))(0.3, keys[0])
    with jax.disable_jit():
        np.testing.assert_allclose(slope, jax.grad(total)(0.3, keys[0]), rtol=1e-5)


def test_a_carried_key():
    def step(carry, _):
        x, key = carry
        key, one = random.split(key)
        return (metropolis(x, one), key), x

    start = (jnp.zeros(2), random.key(4))
    (x, key), seen = jax.jit(lambda s: lax.scan(step, s, None, length=25))(start)
    want = start
    with jax.disable_jit():
        for k in range(25):
            want, before = step(want, None)
            same(before, seen[k])
    same(x, want[0])
    same(random.key_data(key), random.key_data(want[1]))


def test_loops_over_points():
    origin, along = (
        jnp.array([0.0, 0.0, -3.0]),
        random.normal(random.key(2), (50, 3)) * 0.2 + jnp.array([0.0, 0.0, 1.0]),
    )

    def march(along):
        def step(_, t):
            p = origin + t * along
            return t + jnp.minimum(jnp.linalg.norm(p) - 1, p[1] + 1)

        return lax.fori_loop(0, 12, step, 0.0)

    found = jax.jit(jax.vmap(march))(along)
    with jax.disable_jit():
        same(found, jax.vmap(march)(along))
    for k in range(0, 50, 7):
        same(found[k], jax.jit(march)(along[k]))


@pytest.mark.parametrize("shape", [(7, 9), (64, 40)])
def test_loops_that_are_mapped_twice(shape):
    def escape(a, b):
        inside = lambda s: (s[0] * s[0] + s[1] * s[1] < 4) & (s[2] < 20)
        step = lambda s: (s[0] * s[0] - s[1] * s[1] + a, 2 * s[0] * s[1] + b, s[2] + 1)
        return lax.while_loop(inside, step, (0.0, 0.0, 0))

    a, b = random.uniform(random.key(0), (2, *shape)) * 3 - 1.5
    found = jax.jit(jax.vmap(jax.vmap(escape)))(a, b)
    once = jax.jit(jax.vmap(escape))(a.ravel(), b.ravel())
    for x, y in zip(found, once, strict=True):
        same(x.ravel(), y)
    with jax.disable_jit():
        for k in range(0, a.size, 11):
            for x, y in zip(once, escape(a.ravel()[k], b.ravel()[k]), strict=True):
                same(x[k], jnp.asarray(y, x.dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "complex64"])
def test_one_element_is_its_own_sum(dtype):
    x = jnp.array([[-0.0], [2.0]]).astype(dtype)
    for f in (jnp.sum, jnp.prod) if dtype == "complex64" else (jnp.sum, jnp.prod, jnp.max, jnp.min):
        same(f(x, 1), x[:, 0])
        same(jax.jit(lambda x, f=f: f(x, 1))(x), x[:, 0])
        same(jax.jit(jax.vmap(f))(x), x[:, 0])


def test_a_host_call_of_what_a_step_draws_stays_in_the_loop():
    seen = []

    def step(carry, key):
        x = jax.random.normal(key, (2,))
        jax.debug.callback(lambda v: seen.append(np.asarray(v)), x)
        return carry + x.sum(), x

    keys = jax.random.split(jax.random.key(0), 9)
    total, rows = jax.jit(lambda keys: jax.lax.scan(step, 0.0, keys))(keys)
    jax.effects_barrier()
    np.testing.assert_array_equal(np.sort(np.stack(seen), 0), np.sort(rows, 0))
    np.testing.assert_allclose(total, np.asarray(rows).sum(), rtol=1e-5)


def test_a_condition_of_a_mapped_loop_may_call_the_host():
    seen = []

    def f(x):
        def go(c):
            jax.debug.callback(lambda v: seen.append(float(v)), c)
            return c < 4.0

        return jax.lax.while_loop(go, lambda c: c * 2.0, x)

    x = np.asarray([[1.0, 3.0], [0.5, 5.0]], np.float32)
    got = jax.jit(jax.vmap(jax.vmap(f)))(x)
    jax.effects_barrier()
    np.testing.assert_array_equal(got, [[4.0, 6.0], [4.0, 5.0]])
    assert seen
