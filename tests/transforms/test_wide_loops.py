"""Loops over numbers of 8 bytes, which run in registers where the machine has handlers for them, against JAX."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as ferrax_numpy
from tests.recorded import both

STEPS = 53
UNIT = np.linspace(0, 1, 10)

# Functions of a library and its numpy that give a function to jit, and its arguments.
LOOPS = {
    "logistic map": (
        lambda j, n: lambda v: j.lax.fori_loop(0, STEPS, lambda i, v: 3.3 * v * (1 - v), v),
        np.float64(0.3),
    ),
    "counter in a vector": (
        lambda j, n: lambda v: j.lax.fori_loop(0, STEPS, lambda i, v: n.sin(v) + 0.1 * i, v),
        np.linspace(0, 1, 11),
    ),
    "condition of two": (
        lambda j, n: (
            lambda v: j.lax.while_loop(
                lambda s: (s[1] < 40) & (s[0] < 30.0), lambda s: (s[0] * 1.1 + 0.5, s[1] + 3), (v, 0)
            )
        ),
        np.float64(0.3),
    ),
    "integers that wrap": (
        lambda j, n: lambda v: j.lax.fori_loop(0, STEPS, lambda i, v: v * 6364136223846793005 + 1442695040888963407, v),
        np.int64(3),
    ),
    "elements of a small array": (
        lambda j, n: (
            lambda y: j.lax.scan(
                lambda y, t: (y + 0.01 * n.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1]]), y + t),
                y,
                n.arange(STEPS) * 1e-3,
            )
        ),
        np.array([1.0, 0.5, 0.25]),
    ),
    "remainder as index": (
        lambda j, n: lambda v, a: j.lax.fori_loop(0, STEPS, lambda i, v: v * 0.5 + a[i % 7], v),
        np.float64(0.3),
        UNIT,
    ),
    "quotient as index": (
        lambda j, n: lambda v, a: j.lax.fori_loop(3, STEPS, lambda i, v: v * 0.5 + a[(i * 5) // 9 % 10], v),
        np.float64(0.3),
        UNIT,
    ),
    "updates at an index": (
        lambda j, n: lambda v: j.lax.fori_loop(0, STEPS, lambda i, v: v.at[i % 5].add(1.5 * i), v),
        np.zeros(6),
    ),
    "a choice of two": (
        lambda j, n: (
            lambda v: j.lax.fori_loop(
                0, STEPS, lambda i, v: j.lax.cond(v > 0.5, lambda v: v * 0.7, lambda v: v * 1.3, v), v
            )
        ),
        np.float64(0.3),
    ),
    "a choice of three": (
        lambda j, n: (
            lambda v: j.lax.fori_loop(
                0,
                STEPS,
                lambda i, v: j.lax.switch(i % 3, [lambda v: v * 0.7, lambda v: v + 1, lambda v: v - 0.25], v),
                v,
            )
        ),
        np.float64(0.3),
    ),
    "division of integers": (
        lambda j, n: lambda v: j.lax.fori_loop(0, STEPS, lambda i, v: v // 3 + i * 7 - (v % 5), v),
        np.int64(12345),
    ),
    "int32 among them": (
        lambda j, n: lambda v: j.lax.fori_loop(0, STEPS, lambda i, v: (v * 31 + i.astype(n.int32)).astype(n.int32), v),
        np.int32(12345),
    ),
    "stacked flags": (
        lambda j, n: (
            lambda v: j.lax.scan(
                lambda c, x: (c * n.exp(-x) + n.tanh(c), (c > 1.0, n.floor(c))), v, n.linspace(0, 2, STEPS)
            )
        ),
        np.float64(0.7),
    ),
    "gradient": (
        lambda j, n: j.grad(
            lambda v: j.lax.scan(lambda c, x: (n.sin(c) * x + n.log1p(c * c), c**3), v, n.linspace(0, 2, STEPS))[
                1
            ].sum()
        ),
        np.float64(0.7),
    ),
    "unsigned": (
        lambda j, n: (
            lambda s: j.lax.fori_loop(
                0, STEPS, lambda i, s: (s[1], s[0] + s[1], s[2] ^ (s[0].astype(n.uint64) << n.uint64(3))), s
            )
        ),
        (np.int64(0), np.int64(1), np.uint64(7)),
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_give_what_jax_gives(name):
    make, *args = LOOPS[name]
    with ferrax.enable_x64(True):
        found, want = both(lambda jax: jax.tree.leaves(jax.jit(make(jax, jax.numpy))(*args)))
        for a, b in zip(found, want, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_one_kernel(name):
    make, *args = LOOPS[name]
    with ferrax.enable_x64(True):
        text = ferrax.jit(make(ferrax, ferrax_numpy)).lower(*args).as_text("kernels")
        plain = (
            ferrax.jit(lambda x: ferrax.lax.fori_loop(0, 9, lambda i, x: x * i, x))
            .lower(np.int64(2))
            .as_text("kernels")
        )
    if "loop in registers" not in plain:
        pytest.skip("the machine has no handlers for lanes of 8 bytes")
    assert "loop in registers" in text
