"""The programs of loops and branches whose bounds or index are traced, and their values at the ends of the dtypes."""

import jax
import numpy as np
import pytest

import ferrax

ROWS = np.arange(3, dtype=np.float32)

PROGRAMS = {
    "fori_loop to a number": lambda lax: lambda x, n: lax.fori_loop(0, n, lambda i, x: x + i, x),
    "fori_loop from a number": lambda lax: lambda x, n: lax.fori_loop(n, 9, lambda i, x: x * 2.0, x),
    "switch": lambda lax: lambda x, n: lax.switch(n, [lax.sin, lax.cos, lambda x: x], x),
    "branches that close over one value": lambda lax: (
        lambda x, n: lax.cond(n > 0, lambda y: y * x, lambda y: y + x, 2.0)
    ),
    "branches that close over others": lambda lax: (
        lambda x, n: lax.switch(n, [lambda: x * 2.0, lambda: n * 1.0, lambda: n * x])
    ),
    "scan that hands a value on": lambda lax: (
        lambda x, n: lax.scan(lambda c, r: ((c[0], c[1] * c[0], c[2] + n), r * x), (x, 1.0, n), ROWS)
    ),
    "scan that gives its rows": lambda lax: (
        lambda x, n: lax.scan(
            lambda c, r: (c * r[0], (r[1], r[0] + c)), x, (lax.neg(x * ROWS), lax.broadcast(x, (3,))), reverse=True
        )
    ),
}


@pytest.mark.parametrize(
    ("name", "n"), [*((name, 2) for name in PROGRAMS), ("switch", np.int32(2)), ("switch", np.int8(2))]
)
def test_programs(name, n):
    got, want = (str(j.make_jaxpr(PROGRAMS[name](j.lax))(1.0, n)) for j in (ferrax, jax))
    assert got == want


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_an_index_is_the_nearest_branch(dtype):
    branches = [lambda k=k: k for k in range(3)]
    ends = np.iinfo(dtype)
    for index in (ends.min, 0, 1, 2, 3, ends.max):
        for wrap in (lambda f: f, ferrax.jit):
            got = wrap(lambda i: ferrax.lax.switch(i, branches))(ferrax.numpy.asarray(index, dtype))
            assert int(got) == min(max(index, 0), 2)


def test_a_wide_index():
    with ferrax.enable_x64():
        got = ferrax.jit(lambda i: ferrax.lax.switch(i, [lambda: 0, lambda: 1, lambda: 2]))(np.int64(2**32 + 1))
    assert int(got) == 2


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_and_results_are_kept_once(reverse):
    """What a gradient needs of the rows of a loop, and of its results, is these themselves, in loops around it too."""
    lax, jnp = ferrax.lax, ferrax.numpy

    def layers(w, x):
        def turn(c, _):
            h, kept = lax.scan(lambda h, w: (jnp.tanh(h @ w), h * 2.0), c, w, reverse=reverse)
            return h, kept.sum()

        c, s = lax.scan(turn, x, jnp.arange(5))
        return c.sum() + s.sum()

    w, x = jnp.linspace(-1.0, 1.0, 48).reshape(3, 4, 4), jnp.linspace(0.0, 1.0, 8).reshape(2, 4)
    program = ferrax.make_jaxpr(ferrax.grad(layers))(w, x)
    forward = next(e for e in program.eqns if e.primitive.name == "scan")
    assert [v.aval.shape for v in forward.outvars if v.aval.shape[:1] == (5,) and v.aval.shape[-2:] == (4, 4)] == []

    def unrolled(w, x):
        c, total = x, 0.0
        for _ in range(5):
            for row in w[::-1] if reverse else w:
                total += (c * 2.0).sum()
                c = jnp.tanh(c @ row)
        return c.sum() + total

    for got, want in zip(*(ferrax.grad(f, argnums=(0, 1))(w, x) for f in (layers, unrolled)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_result_that_a_gradient_needs_is_stacked_once():
    lax, jnp = ferrax.lax, ferrax.numpy
    f = lambda x: lax.scan(lambda c, r: ((y := jnp.exp(c * r)), y), 0.5, x)[1].sum()
    program = ferrax.make_jaxpr(ferrax.grad(f))(jnp.ones(7))
    forward = next(e for e in program.eqns if e.primitive.name == "scan")
    assert sum(v.aval.shape == (7,) for v in forward.outvars) <= 2
    ferrax.test_util.check_grads(f, (jnp.linspace(0.1, 0.9, 7),), order=2, rtol=2e-2)


def test_rows_that_nobody_uses_have_no_cotangents():
    def loss(lib):
        def f(c, x):
            lax, jnp = lib.lax, lib.numpy
            return lax.scan(lambda c, x: (jnp.sin(c) * x, c), c, x)[0]

        return str(lib.make_jaxpr(lib.grad(f))(1.0, lib.numpy.arange(3.0)))

    assert loss(ferrax) == loss(jax)
    lax, jnp = ferrax.lax, ferrax.numpy
    f = lambda c, w: lax.scan(lambda c, x: (jnp.sin(c) * x * w, (c, c * x, 1)), c, jnp.arange(1.0, 4.0))
    for use in (lambda c, w: f(c, w)[0], lambda c, w: f(c, w)[1][1].sum(), lambda c, w: sum(map(jnp.sum, f(c, w)[1]))):
        ferrax.test_util.check_grads(use, (0.5, 0.7), order=2, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("length", [0, 3])
def test_what_a_step_hands_on_is_the_operand(length):
    def f(x, rows):
        (same, product), given = ferrax.lax.scan(lambda c, r: ((c[0], c[1] * c[0] * r), r), (x, 1.0), rows)
        return same, product, given

    rows = ROWS[:length] + 1
    same, product, given = f(2.0, rows)
    assert float(same) == 2 and float(product) == np.prod(2 * rows)
    np.testing.assert_array_equal(given, rows)
    one, each, all_rows = ferrax.vmap(f, (None, 0), (None, 0, 0))(2.0, np.stack([rows, 2 * rows]))
    assert float(one) == 2 and each.shape == (2,) and all_rows.shape == (2, length)
    np.testing.assert_allclose(ferrax.grad(lambda x: f(x, rows)[1])(2.0), length * 2.0 ** (length - 1) * np.prod(rows))
    assert float(ferrax.lax.scan(lambda c, r: (c, r), 3.0, rows)[0]) == 3
