"""What rules of `custom_jvp` and `custom_vjp` return: shapes, dtypes, structures, under all transformations."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp

X = np.ones(3, np.float32)


def vjp_function(pulled):
    """A function of a dict and a vector whose backward rule returns `pulled(params, x, ct)`."""

    @jax.custom_vjp
    def loss(params, x):
        return jnp.sum(params["w"] * x) + jnp.sum(params["b"])

    def loss_fwd(params, x):
        return loss(params, x), (params, x)

    def loss_bwd(residuals, ct):
        return pulled(*residuals, ct)

    loss.defvjp(loss_fwd, loss_bwd)
    return loss


def jvp_function(pushed, fun=jnp.sin):
    @jax.custom_jvp
    def wave(x):
        return fun(x)

    @wave.defjvp
    def wave_jvp(primals, tangents):
        return pushed(primals[0], tangents[0])

    return wave


def calls(function):
    """Gradients of a function of (params, x) under transformations."""
    params = {"w": X, "b": X[:2]}

    def grad(params, x):
        return jax.grad(lambda p: jnp.sum(function(p, x)))(params)

    def loop(params):
        return jax.lax.scan(lambda c, _: (c + function(params, X), None), 0.0, None, length=3)[0]

    rows = np.stack([X, X])
    yield lambda: grad(params, X)
    yield lambda: jax.jit(grad)(params, X)
    yield lambda: jax.grad(jax.jit(function))(params, X)
    yield lambda: jax.vmap(grad, (None, 0))(params, rows)
    yield lambda: jax.grad(lambda p: jax.vmap(function, (None, 0))(p, rows).sum())(params)
    yield lambda: jax.grad(loop)(params)
    yield lambda: jax.grad(jax.checkpoint(function))(params, X)


def right(params, x, ct):
    return {"w": x * ct, "b": jnp.ones(2) * ct}, None


@pytest.mark.parametrize(
    ("pulled", "error", "words"),
    [
        (
            lambda p, x, ct: ({"w": 1.0, "b": p["b"]}, x),
            ValueError,
            ["output[0]['w']", "params['w']", "float32[]", "[3]"],
        ),
        (lambda p, x, ct: ({"w": x, "b": x}, x), ValueError, ["params['b']", "float32[3]", "float32[2]", "shapes"]),
        (lambda p, x, ct: ({"w": x, "b": jnp.arange(2)}, x), ValueError, ["int32[2]", "float32[2]", "dtypes"]),
        (lambda p, x, ct: ({"w": x.astype("bfloat16"), "b": p["b"]}, x), ValueError, ["bfloat16[3]", "float32[3]"]),
        (lambda p, x, ct: ({"w": x, "b": p["b"]}, ct + 1j), ValueError, ["output[1]", "argument x", "complex64[]"]),
        (lambda p, x, ct: ({"w": x}, x), TypeError, ["structure", "argument params", "length 2"]),
        (lambda p, x, ct: ({"w": x, "c": p["b"]}, x), TypeError, ["structure", "argument params"]),
        (lambda p, x, ct: ((p["b"], x), x), TypeError, ["structure", "argument params"]),
        (lambda p, x, ct: (p, x, None), TypeError, ["structure", "length 2"]),
        (lambda p, x, ct: p, TypeError, ["structure", "length 2"]),
    ],
)
def test_cotangents(pulled, error, words):
    for call in calls(vjp_function(pulled)):
        with pytest.raises(error) as caught:
            call()
        text = str(caught.value)
        assert [w for w in ["loss_bwd", "loss", *words] if w not in text] == []


def test_right_cotangents():
    for call in calls(vjp_function(right)):
        assert jax.tree.map(np.shape, call())["b"] in [(2,), (2, 2)]


def test_cotangents_that_stand_for_others():
    """`None` is zero, for a leaf or a tree; Python's numbers take the argument's dtype; integers have no cotangent."""

    @jax.custom_vjp
    def f(tree, x, n):
        return x * n

    f.defvjp(lambda tree, x, n: (f(tree, x, n), None), lambda _, ct: ({"a": None, "b": None}, 2, ct))
    tree = {"a": (X, X), "b": X}
    for grad in (jax.grad, lambda f, argnums: jax.jit(jax.grad(f, argnums))):
        zeros, slope = grad(f, (0, 1))(tree, jnp.float16(1), 3)
        assert slope.dtype == np.float16
        assert slope == 2
        assert jax.tree.map(np.shape, zeros) == {"a": ((3,), (3,)), "b": (3,)}
        assert not any(np.any(leaf) for leaf in jax.tree.leaves(zeros))
    pulled = jax.vjp(lambda n: f(tree, 1.0, n), 3)[1](1.0)[0]
    assert pulled.dtype == jax.dtypes.float0


@pytest.mark.parametrize(
    ("pushed", "words"),
    [
        (lambda x, t: (x, 1.0), ["float32[3]", "float32[]"]),
        (lambda x, t: (x, t[:2]), ["float32[3]", "float32[2]"]),
        (lambda x, t: (x, jnp.arange(3)), ["float32[3]", "int32[3]"]),
        (lambda x, t: (x, t.astype("bfloat16")), ["float32[3]", "bfloat16[3]"]),
        (lambda x, t: (x, t + 0j), ["float32[3]", "complex64[3]"]),
        (lambda x, t: (jnp.arange(3), t), ["float0[3]", "int32[3]", "float32[3]"]),
        (lambda x, t: ((x,), t), ["structures"]),
        (lambda x, t: ((x, x), (t, t[:1])), ["output[1]", "float32[3]", "float32[1]"]),
        (lambda x, t: x, ["pair"]),
    ],
)
def test_tangents(pushed, words):
    wave = jvp_function(pushed)

    def leaves(x):
        return jax.tree.leaves(wave(x))[0]

    rows = np.stack([X, X])
    for call in (
        lambda: jax.jvp(wave, (X,), (X,)),
        lambda: jax.jit(lambda x: jax.jvp(wave, (x,), (x,)))(X),
        lambda: jax.grad(lambda x: leaves(x).sum())(X),
        lambda: jax.vmap(lambda x: jax.jvp(wave, (x,), (x,)))(rows),
        lambda: jax.jvp(jax.vmap(wave), (rows,), (rows,)),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert [w for w in ["wave_jvp", "wave", *words] if w not in str(caught.value)] == []


def test_values_of_rules():
    """A traced function's type is known when its rule runs: the rule's value must have it."""
    for value, words in [
        (jnp.ones(2), ["float32[2]", "float32[3]"]),
        (jnp.arange(3), ["int32[3]", "float32[3]"]),
        ((jnp.ones(3),), ["structure", "(float32[3],)"]),
    ]:
        f = jax.custom_vjp(jnp.sin)
        f.defvjp(lambda x, value=value: (value, x), lambda x, ct: (x,))
        zeros = jax.tree.map(lambda v: np.zeros(v.shape, v.dtype if v.dtype == X.dtype else jax.dtypes.float0), value)
        g = jvp_function(lambda x, t, value=value, zeros=zeros: (value, zeros), lambda x: jnp.sin(x))
        for call in (
            lambda f=f: jax.vjp(jax.jit(f), X),
            lambda f=f: jax.vjp(lambda x: jax.lax.scan(lambda c, _: (c, f(c)), x, None, length=2), X),
            lambda g=g: jax.jvp(jax.jit(g), (X,), (X,)),
            lambda g=g: jax.vjp(lambda x: jax.lax.scan(lambda c, _: (c, g(c)), x, None, length=2), X),
        ):
            with pytest.raises(TypeError, match=r"Custom (VJP fwd|JVP) rule") as caught:
                call()
            assert [w for w in words if w not in str(caught.value)] == []


def test_rules_by_argument():
    @jax.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    for part, error, word in [
        (1.0, TypeError, "float32[]"),
        (jnp.arange(3), TypeError, "int32[3]"),
        ((X,), TypeError, "structure"),
    ]:

        def by_x(t, out, x, y, part=part):
            return part

        for rules in [(by_x, None), (by_x, lambda t, out, x, y: t), (lambda t, out, x, y: t, by_x)]:
            f.defjvps(*rules)
            with pytest.raises(error) as caught:
                jax.jvp(f, (X, X), (X, X))
            assert "by_x" in str(caught.value)
            assert word in str(caught.value)
    f.defjvps(lambda t, out, x, y: t)
    with pytest.raises(ValueError, match=r"1 rules.*2 arguments"):
        jax.jvp(f, (X, X), (X, X))


def test_integer_results():
    """The tangent of an integer result is `float0`."""
    f = jvp_function(lambda x, t: (jnp.int32(1), jnp.int32(0)), lambda x: jnp.int32(1))
    with pytest.raises(TypeError, match=r"Expected float0\[\] \(tangent type of int32\[\]\) but got int32\[\]"):
        jax.jvp(f, (1.0,), (1.0,))
    f = jvp_function(lambda x, t: ((x, 1), (t, np.zeros((), jax.dtypes.float0))), lambda x: (x, 1))
    for function in (f, jax.jit(f), lambda x: jax.tree.map(lambda v: v[0], jax.vmap(f)(jnp.stack([x, x])))):
        (_, one), (slope, zero) = jax.jvp(function, (2.0,), (3.0,))
        assert (int(one), float(slope), zero.dtype) == (1, 3.0, jax.dtypes.float0)


def test_traced_values_as_static_arguments():
    f = jax.custom_vjp(lambda n, x: x * n, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (x * n, x), lambda n, x, ct: (ct * n,))
    for call in (lambda: jax.jit(f)(2.0, X), lambda: jax.grad(lambda n: f(n, X).sum())(2.0)):
        with pytest.raises(jax.errors.UnexpectedTracerError, match="nondiff_argnums"):
            call()
    g = jax.custom_jvp(lambda n, x: x * n, nondiff_argnums=(0,))
    g.defjvp(lambda n, primals, tangents: (g(n, *primals), tangents[0] * n))
    assert jax.grad(lambda n: g(n, X).sum())(2.0) == 0
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x, n: g(n, x).sum()))(X, 2.0), 2 * X)


def test_symbolic_zero_tangents():
    zero = jax.custom_derivatives.SymbolicZero(jax.typeof(X))
    np.testing.assert_array_equal(jax.jvp(jvp_function(lambda x, t: (x, zero)), (X,), (X,))[1], 0 * X)


def test_pullbacks_of_custom_gradient():
    @jax.custom_gradient
    def f(x):
        return jnp.sum(x), lambda ct: ct * jnp.ones(2)

    with pytest.raises(ValueError, match=r"float32\[2\].*float32\[3\].*f's pullback"):
        jax.grad(f)(X)


def test_zero_tangents_are_symbolic_under_vmap_and_jit():
    """Rules with `symbolic_zeros` see which tangents are zero, per argument."""
    Zero, seen = jax.custom_derivatives.SymbolicZero, []
    f = jax.custom_jvp(lambda a, b, x: (a + x, b * x))

    def rule(primals, tangents):
        seen.append([type(t) is Zero and (t.shape, t.dtype) for t in tangents])
        return f(*primals), (tangents[2] + 90.0, primals[1] * tangents[2])

    f.defjvp(rule, symbolic_zeros=True)
    b = jnp.array([2.0, 3.0])
    g = lambda x: f(1.0, b, x)[0]
    rows = lambda x: jax.vmap(lambda b: f(1.0, b, x)[0])(jnp.stack([b, b]))
    for call, shape in ((g, (2,)), (jax.jit(g), (2,)), (rows, (2,))):
        assert np.all(jax.jvp(call, (4.0,), (7.0,))[1] == 97.0)
        assert seen.pop() == [((), jnp.float32), (shape, jnp.float32), False]


def test_zero_cotangents_are_symbolic():
    Zero, seen = jax.custom_derivatives.SymbolicZero, []
    f = jax.custom_vjp(lambda x, y: (x * y, jnp.sin(x)))

    def bwd(res, cts):
        seen.append([type(ct) is Zero for ct in cts])
        return res[0] * 2.0, Zero(jax.typeof(res[1]))

    f.defvjp(lambda x, y: (f(x.value, y.value), (x.value, y.value)), bwd, symbolic_zeros=True)
    for transform in (lambda g: g, jax.jit, lambda g: lambda x, y: jax.vmap(g)(x[None], y[None])[0]):
        for out, want in ((0, [False, True]), (1, [True, False])):
            slope = jax.grad(transform(lambda x, y, out=out: f(x, y)[out]), (0, 1))(jnp.float32(3.0), jnp.float32(2.0))
            assert (float(slope[0]), float(slope[1])) == (6.0, 0.0)
            assert seen.pop() == want
    f.defvjp(
        lambda x, y: (f(x.value, y.value), None), lambda _, cts: (cts[0], Zero(jax.typeof(X))), symbolic_zeros=True
    )
    with pytest.raises(ValueError, match=r"output\[1\] the SymbolicZero had shape/dtype float32\[3\].*None here"):
        jax.grad(lambda x, y: f(x, y)[0])(3.0, 2.0)


def test_calls_of_custom_gradient_have_pullbacks_of_their_own():
    @jax.custom_gradient
    def f(x):
        slope = 2.0 if jnp.ndim(x) == 0 else 3.0
        return x, lambda ct: slope * ct

    both = lambda x: f(x) + f(jnp.reshape(x, (1,)))[0]
    assert jax.grad(both)(1.0) == jax.jit(jax.grad(both))(1.0) == 5.0
    (_, first), (_, second) = jax.vjp(f, 1.0), jax.vjp(f, jnp.ones(2))
    np.testing.assert_array_equal(first(1.0)[0], 2.0)
    np.testing.assert_array_equal(second(jnp.ones(2))[0], [3.0, 3.0])

    @jax.custom_gradient
    def g(x):
        return x, (lambda ct: 5.0 * ct) if x > 0 else (lambda ct: 7.0 * ct)

    assert jax.grad(lambda x: g(x) + g(-x))(1.0) == -2.0

    @jax.custom_gradient
    def h(x, y):
        return {"of x": x * y}, lambda ct: (ct["of x"] * y, ct["of x"] * x)

    twice = lambda x, y: h(h(x, y)["of x"], y)["of x"]
    assert jax.grad(twice, (0, 1))(3.0, 2.0) == (4.0, 12.0)
    assert jax.grad(jax.grad(twice, 1), 1)(3.0, 2.0) == 6.0
    steps = lambda x: jax.lax.scan(lambda c, y: (h(c, y)["of x"], None), x, jnp.array([2.0, 3.0]))[0]
    assert jax.grad(steps)(1.0) == 6.0
