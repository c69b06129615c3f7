"""Loops over small arrays and over arrays read and written at an index: one by one, jitted and in JAX."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as ferrax_numpy
from tests.recorded import expected

update_slice = ferrax.lax.dynamic_update_slice


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def oscillator(jnp, y, x):
    k1 = jnp.stack([y[1], -y[0]])
    k2 = jnp.stack([y[1] + 0.01 * k1[1], -(y[0] + 0.01 * k1[0])])
    return y + 0.02 * k2 + 0.001 * x, y


def lorenz(jnp, y, x):
    dy = jnp.array([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - y[2] * 2.5])
    return y + 0.01 * dy, (y[::-1], x)


def turned(jnp, y, x):
    return jnp.concatenate([y[1:], -y[:1]]) * 0.5 + x, jnp.outer(y, y)


def bits(a, b):
    for x, y in zip(ferrax.tree.leaves(a), ferrax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def close(a, b):
    for x, y in zip(ferrax.tree.leaves(a), ferrax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-5)


def one_by_one(step, y, xs, reverse):
    """A scan as a loop of Python over operations that run at once."""
    stacked = []
    for x in xs[::-1] if reverse else xs:
        y, out = step(ferrax_numpy, y, x)
        stacked.append(out)
    if reverse:
        stacked.reverse()
    return y, ferrax.tree.map(lambda *all: ferrax_numpy.stack(all), *stacked)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 9])
@pytest.mark.parametrize(("step", "n"), [(oscillator, 2), (lorenz, 3), (turned, 4)])
def test_states_of_a_few_elements(step, n, length, reverse):
    y, xs = floats(n), floats(length, n, seed=1)

    def make(jax, jnp):
        return jax.jit(lambda y, xs: jax.lax.scan(lambda y, x: step(jnp, y, x), y, xs, reverse=reverse))

    got = make(ferrax, ferrax_numpy)(y, xs)
    close(got, expected(lambda jax: make(jax, jax.numpy)(y, xs)))
    if length > 0:
        bits(got, one_by_one(step, ferrax_numpy.asarray(y), ferrax_numpy.asarray(xs), reverse))


@pytest.mark.parametrize("step", [oscillator, lorenz])
def test_their_gradients_and_maps(step):
    n = 2 if step is oscillator else 3
    y, xs, many = floats(n), floats(5, n, seed=1), floats(4, n, seed=2)

    def make(jax, jnp):
        def loss(y, xs):
            return sum(jnp.sum(x**2) for x in jax.tree.leaves(jax.lax.scan(lambda y, x: step(jnp, y, x), y, xs)))

        gradient = jax.grad(loss, (0, 1))
        return jax.jit(gradient)(y, xs), jax.jit(jax.vmap(gradient, (0, None)))(many, xs)

    close(make(ferrax, ferrax_numpy), expected(lambda jax: make(jax, jax.numpy)))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32", "bool", "float16", "int8"])
def test_arrays_written_at_an_index(dtype):
    x = (10 * floats(30)).astype(np.float32)

    def f(jnp, lax, x):
        x = x.astype(dtype)

        def step(i, b):
            last = b[i - 1]
            return b.at[i].set(~last if dtype == "bool" else (last // 2 + b[2 * i] + 1).astype(dtype))

        return lax(3, 25, step, x), lax(0, 0, step, x)

    jitted = lambda jax: jax.jit(lambda x: f(jax.numpy, jax.lax.fori_loop, x))(x)
    got = jitted(ferrax)
    close(got, expected(jitted))

    def fori(lower, upper, step, b):
        for i in range(lower, upper):
            b = step(ferrax_numpy.int32(i), b)
        return b

    bits(got, f(ferrax_numpy, fori, ferrax_numpy.asarray(x)))


@pytest.mark.parametrize("mode", ["clip", "drop", "fill", "promise_in_bounds", None])
@pytest.mark.parametrize("op", ["set", "add", "multiply", "min"])
def test_indices_outside(mode, op):
    x, indices = floats(6, 3), np.array([-9, -6, -1, 0, 5, 6, 40], np.int32)
    if mode == "promise_in_bounds":
        indices = indices[2:5] % 6

    def make(jax, jnp):
        def step(b, i):
            row = b.at[i].get(mode=None if mode == "drop" else mode)
            b = getattr(b.at[i], op)(row[::-1] + 1, mode=mode)
            b = getattr(b.at[i, i - 1], op)(0.5, mode=mode)
            return b, (row, jax.lax.dynamic_slice(b, (i, i), (2, 2)), b[i, 1])

        return jax.jit(lambda b: jax.lax.scan(step, b, indices))(x)

    close(make(ferrax, ferrax_numpy), expected(lambda jax: make(jax, jax.numpy)))


def test_windows_updates_and_exchanges():
    x, start = floats(7, 4), np.int32(2)

    def make(jax, jnp):
        def step(i, s):
            b, c = s
            window = jax.lax.dynamic_slice(b, (i - 3, i), (1, 4))
            b = jax.lax.dynamic_update_slice(b, 2 * window, (i, 0))
            one, two = c[i], c[6 - i]
            return b, c.at[i].set(two).at[6 - i].set(one)

        return jax.jit(lambda b, n: jax.lax.fori_loop(0, n, step, (b, b[:, 0])))(x, start + 8)

    close(make(ferrax, ferrax_numpy), expected(lambda jax: make(jax, jax.numpy)))


def window_after_window(i, b, n):
    """Each window covers most of the one before."""
    return update_slice(b, b[-n:] + i.astype(b.dtype), (i,))


def shifted(i, b, n):
    """Reads where later steps write."""
    return update_slice(b, ferrax.lax.dynamic_slice(b, (i + 2,), (n,)) + 1, (i,))


def added_on_top(i, b, n):
    return b.at[i + ferrax_numpy.arange(n)].add(b[:n])


def backwards(i, b, n):
    return update_slice(b, 2 * ferrax.lax.dynamic_slice(b, (8 - i,), (n,)), (9 - i,))


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "int64", "int8", "float16"])
@pytest.mark.parametrize("n", [2, 7, 8, 9, 15, 16, 17, 20, 33, 46])
@pytest.mark.parametrize("step", [window_after_window, shifted, added_on_top, backwards])
def test_windows_that_overlap_from_step_to_step(step, n, dtype):
    """However many registers a window takes, a step sees what those before it left."""
    with ferrax.enable_x64(dtype.endswith("64")):
        b = ferrax_numpy.asarray((10 * floats(n + 30)).astype(dtype))
        want = b
        for i in range(9):
            want = step(ferrax_numpy.int32(i), want, n)
        bits(ferrax.jit(lambda b: ferrax.lax.fori_loop(0, 9, lambda i, b: step(i, b, n), b))(b), want)


@pytest.mark.parametrize("rows", [(6,), (3, 4)])
@pytest.mark.parametrize(("n", "start"), [(33, 0), (33, 1), (16, 0), (16, 17)])
def test_rows_and_parts_of_rows(rows, n, start):
    """Rows never share elements; parts of them that begin anywhere do."""
    b = ferrax_numpy.asarray(floats(*rows, 33))
    places = [(i, i + 1)[: len(rows)] for i in (0, 2, 1, 1)]

    def step(b, place, shift):
        at = (*place, ferrax_numpy.int32(start) + shift)
        sizes = (1,) * len(rows) + (n,)
        row = ferrax.lax.dynamic_slice(b, (*[p - 1 for p in place], ferrax_numpy.int32(0)), sizes)
        return update_slice(b, 0.5 * row + 1, at)

    steps = [ferrax_numpy.asarray(column) for column in zip(*places)]
    shifts = ferrax_numpy.asarray([0, 0, 3, 1] if start else [0, 0, 0, 0])
    want = b
    for *place, shift in zip(*steps, shifts):
        want = step(want, place, shift)
    looped = lambda b: ferrax.lax.scan(lambda b, x: (step(b, x[:-1], x[-1]), None), b, (*steps, shifts))[0]
    bits(ferrax.jit(looped)(b), want)


def test_sieve_and_branches_that_write():
    def make(jax, jnp):
        def sieve(n):
            def strike(i, prime):
                return jax.lax.cond(
                    prime[i],
                    lambda p: jax.lax.fori_loop(2, n // i + 1, lambda k, p: p.at[k * i].set(False), p),
                    lambda p: p,
                    prime,
                )

            return jax.lax.fori_loop(2, 20, strike, jnp.ones(100, bool).at[:2].set(False))

        def sort(x):
            def step(k, x):
                i = k % 9
                later = lambda x: x.at[i].set(x[i + 1]).at[i + 1].set(x[i])
                return jax.lax.cond(x[i] > x[i + 1], later, lambda x: x, x)

            return jax.lax.fori_loop(0, 100, step, x)

        def choose(x):
            def step(c, k):
                x, v = c
                cases = [lambda x: (x.at[k].add(1.0), x[0]), lambda x: (x, x[k]), lambda x: (x.at[0].set(2.0), -x[1])]
                x, v = jax.lax.switch(k - 1, cases, x)
                return (x, v), v

            return jax.lax.scan(step, (x, x[0]), jnp.arange(6))

        x = floats(10)
        return (
            jax.jit(sieve, static_argnums=0)(99),
            jax.jit(sort)(x),
            jax.jit(choose)(x),
            jax.jit(jax.vmap(sort))(floats(3, 10)),
        )

    close(make(ferrax, ferrax_numpy), expected(lambda jax: make(jax, jax.numpy)))


def test_gradients_through_writes():
    x = floats(12)

    def make(jax, jnp):
        def loss(x):
            y = jax.lax.fori_loop(1, 12, lambda i, b: b.at[i].set(b[i - 1] * 0.5 + b[i] ** 2), x)
            return jnp.sum(y * jnp.arange(12))

        return jax.jit(jax.grad(loss))(x), jax.jit(jax.vmap(jax.grad(loss)))(floats(3, 12))

    close(make(ferrax, ferrax_numpy), expected(lambda jax: make(jax, jax.numpy)))


def test_counters_at_the_ends_of_their_range():
    def make(jax, jnp):
        last = np.int32(2**31 - 1)

        def up(n):
            return jax.lax.while_loop(lambda s: s[0] < last, lambda s: (s[0] + 1, s[1] + (s[0] < 0)), (n, 0))

        def down(x):
            return jax.lax.scan(lambda i, x: (i - 1, (x[i], i % 4, i // 4)), 3, jnp.stack([x] * 9))

        wrapped = jax.lax.fori_loop(0, 5, lambda i, s: s + (last - 1 + i) % 8, 0)
        return jax.jit(up)(last - 4), jax.jit(down)(floats(4)), wrapped

    close(make(ferrax, ferrax_numpy), expected(lambda jax: make(jax, jax.numpy)))


@pytest.mark.embedded
def test_costly_operations_leave_the_loop():
    a, b = floats(4, 4) + 5 * np.eye(4, dtype=np.float32), floats(4)

    def solve(jax, jnp):
        return jax.lax.scan(lambda b, _: (jnp.linalg.solve(a, b), b), b, None, length=7)

    close(
        ferrax.jit(lambda: solve(ferrax, ferrax_numpy))(),
        expected(lambda jax: jax.jit(lambda: solve(jax, jax.numpy))()),
    )
    text = ferrax.jit(lambda b: solve(ferrax, ferrax_numpy)).lower(b).as_text("kernels")
    before, inside = text.split("part 0:")
    assert "Lu)" in before
    assert "Lu)" not in inside


def test_small_programs_run_in_registers():
    if "kernel[" not in ferrax.jit(ferrax.nn.softmax).lower(floats(64, 300)).as_text("kernels"):
        pytest.skip("no machine")
    jax, jnp = ferrax, ferrax_numpy
    programs = [
        (lambda y: jax.lax.scan(lambda y, _: oscillator(jnp, y, 0.0), y, None, length=9), floats(2)),
        (lambda x: jax.lax.fori_loop(0, 9, lambda i, b: b.at[i].set(b[i - 1] * 0.5 + 1), x), floats(50)),
        (
            lambda x: jax.lax.scan(
                lambda c, i: (jax.lax.cond(i % 2 == 0, lambda c: c * 2, lambda c: c + 1, c), c), x, jnp.arange(9)
            ),
            np.float32(1),
        ),
        (lambda x: jax.lax.fori_loop(0, 9, lambda i, b: b.at[i % 3].add(b[i % 2] * 0.5), x), floats(3, 16)),
    ]
    for f, x in programs:
        assert "loop in registers" in jax.jit(f).lower(x).as_text("kernels")
