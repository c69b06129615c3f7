"""Loops of random bodies against JAX: dtypes, trip counts, conditions, nesting, stacked inputs and outputs."""

import jax as reference
import jax.numpy as reference_numpy
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import ferrax
import ferrax.numpy as ferrax_numpy

OPERATIONS = [
    lambda jnp, x, y: x + y,
    lambda jnp, x, y: x - y * 0.5,
    lambda jnp, x, y: jnp.where(x > y, x, y * 0.25),
    lambda jnp, x, y: jnp.maximum(x, y) * 0.5,
    lambda jnp, x, y: jnp.clip(x, -1.0, y),
    lambda jnp, x, y: jnp.tanh(x) + 0.125 * y,
    lambda jnp, x, y: jnp.sqrt(jnp.abs(x)) - y * y * 0.125,
    lambda jnp, x, y: jnp.where((x > 0) & (y < 1), -x, x / (1 + y * y)),
]


def both(f, *args):
    """The function of (library, numpy) jitted in both libraries: the same structure, nearly the same numbers."""
    got = ferrax.jit(lambda *a: f(ferrax, ferrax_numpy, *a))(*args)
    want = reference.jit(lambda *a: f(reference, reference_numpy, *a))(*args)
    got, want = ferrax.tree.leaves(got), reference.tree.leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        assert g.shape == w.shape
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-4, atol=2e-5)


bodies = st.lists(
    st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6
)


def apply(body, jnp, values):
    values = list(values)
    for op, i, j in body:
        values[i % len(values)] = OPERATIONS[op](jnp, values[i % len(values)], values[j % len(values)]) * 0.5
    return values


@settings(max_examples=60, deadline=None)
@given(
    body=bodies, n=st.sampled_from([None, 1, 3, 8, 16, 21]), trips=st.sampled_from([0, 1, 2, 7, 50]), up=st.booleans()
)
def test_scans_give_what_jax_gives(body, n, trips, up):
    rng = np.random.default_rng(trips)
    shape = () if n is None else (n,)
    x, y = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    xs = rng.normal(size=(trips, *shape)).astype(np.float32)

    def f(lib, jnp, x, y, xs):
        def step(carry, x):
            i, a, b = carry
            a, b, c = apply(body, jnp, (a, b, x))
            return (i + 2, a, b), (c, i % 3 == 0)

        return lib.lax.scan(step, (jnp.int32(1), x, y), xs, reverse=not up)

    both(f, x, y, xs)


@settings(max_examples=60, deadline=None)
@given(body=bodies, n=st.sampled_from([None, 3, 16]), limit=st.integers(-2, 40), traced=st.booleans())
def test_whiles_give_what_jax_gives(body, n, limit, traced):
    rng = np.random.default_rng(7)
    x, y = (rng.normal(size=() if n is None else (n,)).astype(np.float32) for _ in range(2))

    def f(lib, jnp, limit, x, y):
        def cond(s):
            return (s[0] < limit) & (s[1] < 9.5) if traced else s[0] < limit

        return lib.lax.while_loop(cond, lambda s: (s[0] + 1, s[1] + 0.5, *apply(body, jnp, s[2:])), (0, 0.0, x, y))

    both(f, np.int32(limit), x, y)


@settings(max_examples=60, deadline=None)
@given(
    bodies=st.tuples(bodies, bodies, bodies),
    n=st.sampled_from([None, 1, 3, 8, 21]),
    trips=st.sampled_from([0, 1, 17, 40]),
    limit=st.integers(0, 5),
    deep=st.booleans(),
)
def test_inner_loops_give_what_jax_gives(bodies, n, trips, limit, deep):
    rng = np.random.default_rng(limit)
    shape = () if n is None else (n,)
    x, y, z = (rng.normal(size=shape).astype(np.float32) for _ in range(3))

    def f(lib, jnp, limit, x, y, z):
        lax = lib.lax

        def inner(i, s):
            again = lambda s: apply(bodies[1], jnp, s) if not deep else lax.fori_loop(0, i % 3, step, tuple(s))
            step = lambda _, s: tuple(apply(bodies[1], jnp, s))
            # what changes places, what is read and stays, and a condition on data
            go = lambda s: (s[0] < limit) & (jnp.sum(s[2]) < 40)
            return lax.while_loop(go, lambda s: (s[0] + 1, s[2], *again((s[1] + z, *s[3:]))), (i % 4, *s))[1:]

        def outer(i, s):
            a, b, c = lax.fori_loop(0, trips, lambda j, s: tuple(apply(bodies[0], jnp, (*s[:2], s[2] + 0.01 * j))), s)
            a, b, c = inner(i, (a, b, c))
            return tuple(apply(bodies[2], jnp, (b, a, c)))

        return lax.fori_loop(0, 5, outer, (x, y, z))

    both(f, np.int32(limit), x, y, z)


def test_nested_loops_with_conditions_that_depend_on_data():
    def f(lib, jnp, n):
        def collatz(start):
            def step(s):
                return jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1

            return lib.lax.while_loop(lambda s: s[0] > 1, step, (start, 0))[1]

        longest = lib.lax.fori_loop(1, n, lambda i, best: jnp.maximum(best, collatz(i)), 0)
        total = lib.lax.fori_loop(0, n, lambda i, t: lib.lax.fori_loop(0, i, lambda j, t: t + i * j, t), 0)
        return longest, total, lib.lax.scan(lambda c, x: (c + collatz(x), collatz(x)), 0, jnp.arange(1, 20))

    both(f, np.int32(200))


@pytest.mark.parametrize(
    "dtype", ["float32", "int32", "uint32", "bool", "float64", "int64", "float16", "bfloat16", "int8"]
)
def test_carries_of_every_dtype(dtype):
    def f(lib, jnp, x):
        x = x.astype(dtype)

        def step(i, s):
            a, b = s
            return (a ^ b, ~a) if dtype == "bool" else (b, (a + b * 2).astype(dtype))

        return lib.lax.fori_loop(0, 9, step, (x, x))

    both(f, np.arange(5, dtype=np.float32))
    both(f, np.float32(1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((4,), 0), ((5, 4), 1), ((5, 4), 0), ((3, 20), 1), ((20, 3), 0), ((2, 3, 4), 1)]
)
def test_places_and_running_sums_along_an_axis(shape, axis, dtype):
    """What rows of mapped searches do: bit for bit as the same steps one by one, equal numbers and NaN among them."""
    rng = np.random.default_rng(len(shape) + axis)
    with ferrax.enable_x64():
        x = ferrax_numpy.asarray(rng.integers(-3, 4, shape), dtype)
        if dtype != "int32":
            x = x.at[(0,) * len(shape)].set(np.nan)

        def step(i, carry):
            x, best, least, sums, products = carry
            best = best + ferrax_numpy.argmax(x, axis) * (i + 1)
            least = least + ferrax_numpy.argmin(x, axis) * (i + 1)
            sums = ferrax_numpy.cumsum(x, axis) + sums
            products = ferrax_numpy.cumprod(x, axis) - products
            return ferrax_numpy.roll(x, 1, axis) + 1, best, least, sums, products

        zeros = ferrax_numpy.zeros_like(ferrax_numpy.argmax(x, axis))
        start = want = x, zeros, zeros, ferrax_numpy.zeros_like(x), ferrax_numpy.zeros_like(x)
        for i in range(5):
            want = step(i, want)
        got = ferrax.jit(lambda *carry: ferrax.lax.fori_loop(0, 5, step, carry))(*start)
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype
            np.testing.assert_array_equal(np.asarray(g), np.asarray(w))


def test_a_long_loop_keeps_its_memory():
    resource = pytest.importorskip("resource")

    def f(v):
        return ferrax.lax.fori_loop(0, 200_000, lambda i, v: ferrax_numpy.sin(v) + 0.1, v)

    f = ferrax.jit(f)
    f(np.ones(9, np.float32))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5):
        f(np.ones(9, np.float32))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096
