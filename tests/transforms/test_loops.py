"""Reverse mode of `while_loop`, and `vmap` of `cond`, against JAX's scan and select."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as ferrax_numpy
from tests.recorded import expected


def same(got, wanted, rtol=1e-5, atol=0.0):
    def one(got, wanted):
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=rtol, atol=atol)

    ferrax.tree.map(one, got, wanted)


def step(jnp, w, x):
    return jnp.sin(w * x) + 0.5 * x


def by_while(n, w, x):
    """`n` steps, counted by the loop."""
    jnp = ferrax_numpy
    out = ferrax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, step(jnp, w, s[1])), (0, x))
    return jnp.sum(out[1])


def by_scan(jax, n, w, x):
    jnp = jax.numpy
    return jnp.sum(jax.lax.scan(lambda c, _: (step(jnp, w, c), None), x, None, length=n)[0])


def gradient_by_scan(jax, n, w, x):
    return jax.grad(lambda w, x: by_scan(jax, n, w, x), (0, 1))(w, x)


X = np.array([0.3, -0.7, 1.1], np.float32)
W = np.array([0.9, 1.3, -0.4], np.float32)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 100, 3000])
def test_gradient_is_that_of_scan(n):
    wanted = expected(gradient_by_scan, n, W, X)
    same(ferrax.grad(by_while, (1, 2))(n, W, X), wanted, rtol=2e-4)
    same(ferrax.jit(ferrax.grad(by_while, (1, 2)))(n, W, X), wanted, rtol=2e-4)
    same(ferrax.grad(ferrax.jit(by_while), (1, 2))(n, W, X), wanted, rtol=2e-4)


def test_longer_than_the_square_of_the_buffer():
    # A carry of 64 KiB leaves 16 slots: beyond 256 steps the second buffer has a stride.
    x = np.linspace(0, 1, 16384, dtype=np.float32)
    wanted = expected(gradient_by_scan, 700, np.float32(0.9), x)
    same(ferrax.grad(by_while, (1, 2))(700, np.float32(0.9), x), wanted, rtol=5e-4)


@pytest.mark.parametrize("jit", [False, True])
def test_rows_of_different_lengths(jit):
    def rows(n, w, x):
        loss = ferrax.jit(by_while) if jit else by_while
        return ferrax.vmap(ferrax.grad(loss, (1, 2)), in_axes=(0, None, 0))(n, w, x)

    n = np.array([0, 3, 7])
    x = np.stack([X, -X, X / 2])
    wanted = [expected(gradient_by_scan, int(k), W, r) for k, r in zip(n, x, strict=True)]
    same(rows(n, W, x), tuple(np.stack(g) for g in zip(*wanted, strict=True)))
    both = ferrax.grad(lambda w: ferrax.vmap(by_while, in_axes=(0, None, 0))(n, w, x).sum())(W)
    same(both, sum(g[0] for g in wanted))


def test_second_derivatives_and_jacobians():
    def one(n, x):
        return by_while(n, 0.9, x)

    def other(jax, n):
        return lambda x: by_scan(jax, n, 0.9, x)

    wanted = expected(lambda jax: jax.grad(jax.grad(other(jax, 4)))(0.3))
    same(ferrax.grad(ferrax.grad(lambda x: one(4, x)))(0.3), wanted)
    same(ferrax.grad(ferrax.jit(ferrax.grad(lambda x: one(4, x))))(0.3), wanted)
    same(ferrax.hessian(lambda x: one(4, x))(X), expected(lambda jax: jax.hessian(other(jax, 4))(X)))
    same(ferrax.jvp(ferrax.grad(lambda x: one(4, x)), (0.3,), (2.0,))[1], 2 * wanted)
    push = ferrax.linearize(lambda x: one(4, x), X)[1]
    same(push(W), expected(lambda jax: jax.jvp(other(jax, 4), (X,), (W,))[1]))
    jacobians = (f(lambda x: step(ferrax_numpy, one(3, x), x))(X) for f in (ferrax.jacrev, ferrax.jacfwd))
    for jacobian in jacobians:
        same(jacobian, expected(lambda jax: jax.jacfwd(lambda x: step(jax.numpy, other(jax, 3)(x), x))(X)))


def test_a_loop_that_ends_by_value():
    """Newton's method: the gradient of the root, the steps' number depends on the argument."""

    def root(a):
        def test(s):
            return abs(s * s - a) > 1e-6 * a

        return ferrax.lax.while_loop(test, lambda s: (s + a / s) / 2, a)

    for a in (2.0, 50.0):
        for f in (ferrax.grad(root), ferrax.jit(ferrax.grad(root))):
            np.testing.assert_allclose(f(a), 0.5 / np.sqrt(a), rtol=1e-4)


def test_carries_without_tangents():
    def f(key, x):
        def body(s):
            i, key, x = s
            key, use = ferrax.random.split(key)
            return i + 1, key, x * ferrax.random.uniform(use)

        return ferrax.lax.while_loop(lambda s: s[0] < 5, body, (0, key, x))[2]

    key = ferrax.random.key(3)
    np.testing.assert_allclose(ferrax.grad(f, 1)(key, 2.0), f(key, 1.0), rtol=1e-6)


def test_fori_with_bounds_that_are_traced():
    def f(lower, upper, x):
        return ferrax.lax.fori_loop(lower, upper, lambda i, x: x * (1 + 0.1 * i), x)

    wanted = np.prod(1 + 0.1 * np.arange(2, 6))
    np.testing.assert_allclose(ferrax.jit(ferrax.grad(f, 2))(2, 6, 3.0), wanted, rtol=1e-6)
    np.testing.assert_allclose(ferrax.grad(ferrax.jit(f), 2)(2, 6, 3.0), wanted, rtol=1e-6)


def test_prints_are_shown_once(capsys):
    def f(x):
        def body(s):
            ferrax.debug.print("{}", s[0])
            return s[0] + 1, s[1] * 2

        return ferrax.lax.while_loop(lambda s: s[0] < 3, body, (0, x))[1]

    assert ferrax.grad(f)(1.0) == 8.0
    assert capsys.readouterr().out == "0\n1\n2\n"


def test_side_effects_raise():
    from ferrax.experimental import io_callback

    def f(x):
        def body(s):
            io_callback(lambda: None, None)
            return s[0] + 1, s[1] * 2

        return ferrax.lax.while_loop(lambda s: s[0] < 3, body, (0, x))[1]

    with pytest.raises(NotImplementedError, match="side effects"):
        ferrax.grad(f)(1.0)


def test_a_value_that_is_carried_and_constant():
    @ferrax.jit
    def f(x):
        y = x[::-1]
        by_scan = ferrax.lax.fori_loop(0, 4, lambda i, c: c * y, y)
        by_while = ferrax.lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] * y), (0, y))[1]
        return by_scan, by_while

    @ferrax.jit
    def alone(x):
        y = x[::-1]
        return ferrax.lax.fori_loop(0, 4, lambda i, c: c * y, y)

    for got in (*f(X), alone(X)):
        np.testing.assert_allclose(got, X[::-1] ** 5, rtol=1e-6)


# ---- vmap of cond ----------------------------------------------------------------------------------------------------


def branching(jax, x):
    """The program of JAX issue 2947: each loop ends only for the rows that choose it."""

    def positive(x):
        return jax.lax.while_loop(lambda y: (y <= 0) | (y > 1e-6), lambda y: y * 0.1, x)

    def negative(x):
        return jax.lax.while_loop(lambda y: y < -1e-6, lambda y: y * 0.1, x)

    return jax.lax.cond(x >= 0, positive, negative, x)


def test_loops_that_end_for_the_rows_that_choose_them():
    x = np.array([0.5, -2.0, 3.0, -0.1], np.float32)
    wanted = np.array([expected(branching, v) for v in x])
    np.testing.assert_array_equal(ferrax.vmap(lambda x: branching(ferrax, x))(x), wanted)
    np.testing.assert_array_equal(ferrax.jit(ferrax.vmap(lambda x: branching(ferrax, x)))(x), wanted)
    for rows in (x[x > 0], x[x < 0]):
        got = ferrax.vmap(lambda x: branching(ferrax, x))(rows)
        np.testing.assert_array_equal(got, [expected(branching, v) for v in rows])
    slope = ferrax.vmap(ferrax.grad(lambda x: branching(ferrax, x)))(x)
    np.testing.assert_allclose(slope, wanted / x, rtol=1e-4)


CASES = {
    "loops": lambda jax, jnp: [
        lambda x, y: jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * y, x),
        lambda x, y: jax.lax.scan(lambda c, v: (c + v * y, v), x, jnp.arange(3.0))[0],
        lambda x, y: jnp.cos(x) + y,
    ],
    "products": lambda jax, jnp: [
        lambda x, y: jnp.dot(jnp.outer(x, x), x) * y,
        lambda x, y: jnp.sort(x) + y,
        lambda x, y: 2 * x,
    ],
    "cheap": lambda jax, jnp: [lambda x, y: jnp.sin(x), lambda x, y: x * y, lambda x, y: jax.jit(jnp.cos)(x)],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("in_axes", [(0, 0, None), (0, None, 0), (0, 0, 0), (0, None, None)])
def test_switch_over_rows(case, in_axes):
    index = np.array([0, 2, 1, 5, -3])
    x = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
    y = np.linspace(0.5, 2, 5, dtype=np.float32)
    args = (index, x if in_axes[1] == 0 else x[1], y if in_axes[2] == 0 else y[1])

    def make(jax, jnp):
        branches = CASES[case](jax, jnp)

        def f(i, x, y):
            return jax.lax.switch(i, branches, x, y)

        def loss(x, y):
            return jnp.sum(jax.vmap(f, in_axes)(args[0], x, y) ** 2)

        inner = jax.vmap(jax.grad(lambda i, x, y: f(i, x, y).sum(), (1, 2)), in_axes)
        return jax.vmap(f, in_axes)(*args), jax.grad(loss, (0, 1))(*args[1:]), inner(*args)

    same(make(ferrax, ferrax_numpy), expected(lambda jax: make(jax, jax.numpy)))


def test_nested_maps():
    pred = np.array([[True, False], [False, False]])
    x = np.linspace(0.1, 1, 4, dtype=np.float32).reshape(2, 2)

    def make(jax):
        def f(p, x):
            return jax.lax.cond(p, lambda x: jax.lax.fori_loop(0, 4, lambda i, c: c * x, x), lambda x: -x, x)

        return jax.vmap(jax.vmap(f))(pred, x), jax.jit(jax.vmap(jax.vmap(jax.grad(f, 1))))(pred, x)

    same(make(ferrax), expected(make))


def test_what_a_branch_shows_is_shown_for_its_rows(capsys):
    def f(x):
        return ferrax.lax.cond(x > 0, lambda x: (ferrax.debug.print("{}", x), x)[1], lambda x: -x, x)

    np.testing.assert_array_equal(ferrax.vmap(f)(np.array([1, -2, 3])), [1, 2, 3])
    assert capsys.readouterr().out == "1\n3\n"


def test_a_branch_nobody_chooses_does_not_run():
    calls = []

    def costly(x):
        return ferrax.pure_callback(
            lambda x: (calls.append(np.shape(x)), np.asarray(x))[1],
            ferrax.ShapeDtypeStruct(x.shape, x.dtype),
            x,
            vmap_method="expand_dims",
        )

    f = ferrax.vmap(lambda x: ferrax.lax.cond(x > 0, costly, lambda x: -x, x))
    np.testing.assert_array_equal(f(np.array([-1.0, -2.0])), [1, 2])
    assert calls == []
    np.testing.assert_array_equal(f(np.array([-1.0, 2.0, -3.0, 4.0])), [1, 2, 3, 4])
    assert calls == [(1,), (1,)]


def test_only_the_rows_that_choose_a_branch_are_computed():
    rows = []

    def costly(x):
        def note(x):
            rows.append(float(x))
            return np.float32(x * 10)

        return ferrax.pure_callback(note, ferrax.ShapeDtypeStruct((), x.dtype), x, vmap_method="sequential")

    f = ferrax.jit(ferrax.vmap(lambda x: ferrax.lax.cond(x > 0, costly, lambda x: -x, x)))
    x = np.array([-1, 2, -3, -4, 5, -6, -7, -8], np.float32)
    np.testing.assert_array_equal(f(x), np.where(x > 0, x * 10, -x))
    assert rows == [2, 5]
    rows.clear()
    np.testing.assert_array_equal(f(-np.abs(x)), np.abs(x))
    assert rows == []
    np.testing.assert_array_equal(f(np.abs(x)), np.abs(x) * 10)
    assert rows == list(np.abs(x))


@pytest.mark.parametrize("rows", [1, 2, 7, 100])
@pytest.mark.parametrize("chosen", ["none", "one", "some", "all"])
def test_rows_in_steps_of_a_few(rows, chosen):
    # a branch so costly that each step takes few rows, or one, and the last step is not full
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, 12, 12)).astype(np.float32)
    pred = {"none": np.zeros, "all": np.ones}.get(chosen, np.zeros)(rows, bool)
    pred[rng.permutation(rows)[: {"one": 1, "some": rows // 2 + 1}.get(chosen, 0)]] = True

    def make(jax, jnp):
        def f(p, x, w):
            costly = lambda x: jax.lax.fori_loop(0, 5, lambda i, c: jnp.tanh(c @ w) @ x, x)
            return jax.lax.cond(p, costly, lambda x: 2 * x, x)

        def loss(x, w):
            return jnp.sum(jax.vmap(f, (0, 0, None))(pred, x, w) ** 2)

        w = jnp.eye(12) * 0.1
        return jax.jit(jax.vmap(f, (0, 0, None)))(pred, x, w), jax.grad(loss, (0, 1))(x, w)

    want = expected(lambda jax: make(jax, jax.numpy)) if rows == 7 else None
    got = make(ferrax, ferrax_numpy)
    if want is not None:
        same(got, want, atol=1e-6)

    def one(p, x, w):
        return ferrax.lax.cond(
            p, lambda x: ferrax.lax.fori_loop(0, 5, lambda i, c: ferrax_numpy.tanh(c @ w) @ x, x), lambda x: 2 * x, x
        )

    alone = [one(p, v, ferrax_numpy.eye(12) * 0.1) for p, v in zip(pred, x)]
    np.testing.assert_allclose(got[0], np.stack(alone), rtol=1e-5, atol=1e-6)


def test_rows_meet_in_a_branch():
    def make(jax):
        def f(x):
            return jax.lax.cond(x > 0, lambda x: jax.lax.psum(x, "i"), lambda x: -x, x)

        return jax.vmap(f, axis_name="i")(np.array([1.0, -2.0, 3.0], np.float32))

    same(make(ferrax), expected(make))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_switch_has_more_branches_than_its_index_can_count(dtype):
    branches = [lambda x, k=k: x + k for k in range(200)]
    for index in (-1, 0, 100, 127):
        if index < 0 and dtype.startswith("u"):
            continue
        i = ferrax.numpy.asarray(index, dtype)
        wanted = max(index, 0)
        assert float(ferrax.lax.switch(i, branches, 0.0)) == wanted
        assert float(ferrax.jit(lambda i: ferrax.lax.switch(i, branches, 0.0))(i)) == wanted
        with ferrax.enable_x64():
            assert float(ferrax.jit(lambda i: ferrax.lax.switch(i, branches, 0.0))(i)) == wanted


def test_bounds_of_loops_stay_weakly_typed():
    def text(jax):
        loop = lambda n: jax.lax.fori_loop(0, n, lambda i, c: c + i, 0)
        choice = lambda i: jax.lax.switch(i, [lambda x: x, lambda x: -x], 1.0)
        return str(jax.make_jaxpr(loop)(5)), str(jax.make_jaxpr(choice)(1))

    assert text(ferrax) == expected(text)


def test_bounds_that_are_known_are_numbers_without_a_dtype():
    bounds = [("uint8", 0, 3), ("int32", 1, 4), ("float32", 0.0, 3.5), ("int16", 3, 0)]

    def text(jax):
        loop = lambda a, b, first: jax.lax.fori_loop(a, b, lambda i, c: c + i, first)
        found = [
            loop(jax.numpy.asarray(a, t), jax.numpy.asarray(b, t), first)
            for t, a, b in bounds
            for first in (0, np.int8(2), np.float16(0.5))
        ]
        return str([f"{jax.typeof(v)} {float(v)}" for v in found])

    assert text(ferrax) == expected(text)


UNUSED = {
    "rows": lambda lax, x: lax.scan(lambda c, p: (c, x.sum()), x[0] / 0, x / 0)[1],
    "mapped": lambda lax, x: lax.map(lambda p: x.sum(), x / 0, batch_size=2),
    "carried": lambda lax, x: lax.fori_loop(0, 3, lambda i, c: (c[0] + 1.0, c[1] * 2), (x[0], x[1] / 0))[0],
    "carried to another": lambda lax, x: lax.fori_loop(
        0, 3, lambda i, c: (c[1], c[0], c[1] + c[2]), (*x[:2], x[2] / 0)
    )[0],
    "in no branch": lambda lax, x: lax.cond(x[0] > 0, lambda y, z: z * 2, lambda y, z: z, x[0] / 0, x[1]),
    "no steps": lambda lax, x: lax.scan(lambda c, _: (c[::-1], None), (x[0], x[1] / 0)[:1], None, length=0)[0][0],
}


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", UNUSED)
def test_what_no_result_needs_has_no_cotangent(name, jitted):
    def slope(jax):
        f = jax.grad(lambda x: jax.numpy.sum(UNUSED[name](jax.lax, x)))
        return (jax.jit(f) if jitted else f)(jax.numpy.array([-2.0, 1.0, 3.0]))

    wanted = expected(slope)
    assert np.all(np.isfinite(wanted))
    np.testing.assert_array_equal(slope(ferrax), wanted)
