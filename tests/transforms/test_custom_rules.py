"""Rules of users' own and helpers around transformations, against JAX: batching rules, linear solves and roots with
auxiliary data, names and policies of `checkpoint`, `ravel_pytree`, derivative checks."""

import contextlib
import functools
import io
import logging

import numpy as np
import pytest

import ferrax
import ferrax.numpy as ferrax_numpy
from tests.recorded import both, expected

X = np.linspace(0.2, 1.4, 6, dtype=np.float32).reshape(3, 2)


def same(make, *args, rtol=1e-5):
    got, wanted = both(lambda jax: make(jax, jax.numpy)(*args))
    ferrax.tree.map(lambda g, w: np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol), got, wanted)


# ---- rules that close over mapped values ----------------------------------------------------------------------------


def scaled(jax, kind, n, factor):
    """x -> n * x, whose slope is `factor` times the right one."""
    if kind == "jvp":
        f = jax.custom_jvp(lambda x: n * x)
        f.defjvp(lambda primals, tangents: (f(*primals), factor * n * tangents[0]))
        return f
    if kind == "static jvp":
        f = jax.custom_jvp(lambda n, x: n * x, nondiff_argnums=(0,))
        f.defjvp(lambda n, primals, tangents: (f(n, *primals), factor * n * tangents[0]))
        return functools.partial(f, n)
    f = jax.custom_vjp(lambda x: n * x)
    f.defvjp(lambda x: (n * x, n), lambda n, ct: (factor * n * ct,))
    return f


@pytest.mark.parametrize("kind", ["jvp", "static jvp", "vjp"])
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("jit", [False, True])
def test_rules_that_close_over_mapped_values(jit, in_axes, kind):
    n, x = (np.arange(1, 4, dtype=np.float32) if axis == 0 else np.float32(2) for axis in in_axes)

    def make(jax, jnp):
        outer = jax.jit if jit else lambda f: f
        value = jax.vmap(lambda n, x: scaled(jax, kind, n, 10.0)(x), in_axes)
        slope = jax.vmap(jax.grad(lambda n, x: scaled(jax, kind, n, 10.0)(x), argnums=1), in_axes)
        rows = jax.vmap(jax.vmap(lambda n, x: scaled(jax, kind, n, 10.0)(x), (0, None)), (None, 0))
        return outer(lambda n, x: (value(n, x), slope(n, x), rows(jnp.atleast_1d(n), jnp.atleast_1d(x))))

    same(make, n, x)


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_recorded_rules_keep_their_slopes(kind):
    """A jitted function that closes over what is mapped later: the rule still gives the slope."""

    def f(n, x):
        double = ferrax.custom_jvp(lambda x: n * x) if kind == "jvp" else ferrax.custom_vjp(lambda x: n * x)
        if kind == "jvp":
            double.defjvp(lambda primals, tangents: (primals[0] * 0 + 7, 100 * tangents[0]))
        else:
            double.defvjp(lambda x: (x * 0 + 7, None), lambda _, ct: (100 * ct,))
        return double(x)

    n, x = np.arange(1, 4, dtype=np.float32), np.float32(2)
    rows = ferrax.vmap(ferrax.jit(f), (0, None))
    np.testing.assert_array_equal(rows(n, x), n * x)
    np.testing.assert_array_equal(ferrax.grad(lambda x: rows(n, x).sum())(x), 300.0)
    np.testing.assert_array_equal(ferrax.vmap(ferrax.grad(ferrax.jit(f), argnums=1), (0, None))(n, x), [100] * 3)


# ---- custom_vmap -----------------------------------------------------------------------------------------------------


def marked(jax, jnp, seen):
    """A function whose rule adds 10, so that it shows when it was used."""

    @jax.custom_batching.custom_vmap
    def f(x, tree):
        return jnp.sin(x) * tree["y"], x

    @f.def_vmap
    def rule(axis_size, in_batched, x, tree):
        seen.append((axis_size, in_batched))
        x, y = x, tree["y"]
        if not in_batched[0]:
            x = jnp.broadcast_to(x, (axis_size, *jnp.shape(x)))
        if not in_batched[1]["y"]:
            y = jnp.broadcast_to(y, (axis_size, *jnp.shape(y)))
        y = jnp.reshape(y, (axis_size, *[1] * (jnp.ndim(x) - jnp.ndim(y)), *jnp.shape(y)[1:]))
        return (jnp.sin(x) * y + 10, x), (True, True)

    return f


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("in_axes", [(0, {"y": None}), (1, {"y": 1}), (None, {"y": 0}), (0, {"y": 0})])
def test_custom_vmap(in_axes, jit):
    def results(jax):
        seen = []
        f = marked(jax, jax.numpy, seen)
        mapped = jax.vmap(jax.jit(f) if jit else f, in_axes)
        return mapped(X, {"y": X + 1}), f(X, {"y": X}), seen

    (got, got_plain, got_seen), (want, want_plain, want_seen) = both(results)
    assert got_seen == want_seen
    for g, w in zip((*got, *got_plain), (*want, *want_plain), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


def test_custom_vmap_under_other_transformations():
    def make(jax, jnp):
        f = marked(jax, jnp, [])

        def first(x):
            return f(x, {"y": 2.0})[0]

        return lambda x: (
            jax.vmap(lambda x: jax.jvp(first, (x,), (x,)))(x),
            jax.jvp(jax.vmap(first), (x,), (x,)),
            jax.vmap(jax.vmap(first))(x),
            jax.jit(jax.vmap(first))(x),
        )

    same(make, X)


def test_custom_vmap_in_reverse():
    f = marked(ferrax, ferrax_numpy, [])
    slope = ferrax.vmap(ferrax.grad(lambda x: f(x, {"y": 2.0})[0].sum()))(X)
    np.testing.assert_allclose(slope, 2 * np.cos(X), rtol=1e-6)


def test_custom_vmap_errors():
    def check(jax):
        plain = jax.custom_batching.custom_vmap(lambda x: x)
        with pytest.raises(AttributeError):
            jax.vmap(plain)(X)
        for rule in (lambda n, b, x: (x, x), lambda n, b, x: (x, True), lambda n, b, x: ((x, x), True)):
            f = jax.custom_batching.custom_vmap(lambda x: {"a": x})
            f.def_vmap(rule)
            with pytest.raises((ValueError, TypeError)):
                jax.vmap(f)(X)

        def rule(n, b, x):
            return [x], b

        f.def_vmap(rule)
        wanted = (
            r"structure of output returned by custom vmap rule \(rule\) does not match that of original custom-vmapped"
        )
        with pytest.raises(ValueError, match=wanted):
            jax.vmap(f)(X)
        f.def_vmap(lambda n, b, x: ([x, x], b))
        wanted = (
            r"structure of output value and output batching specification returned by custom vmap rule \(<lambda>\) do"
        )
        with pytest.raises(ValueError, match=wanted):
            jax.vmap(f)(X)

    both(check)
    f = ferrax.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(lambda n, b, x: (x[0], True))
    with pytest.raises(ValueError, match="rows must have type"):
        ferrax.vmap(f)(X)


def test_sequential_vmap():
    def make(jax, jnp):
        f = jax.custom_batching.sequential_vmap(lambda x, y: jnp.sin(x) * y["a"])
        return lambda x: (jax.vmap(f, (0, None))(x, {"a": x}), jax.vmap(f, (1, {"a": 0}))(x, {"a": x.T}))

    same(make, X)


def test_sequential_vmap_is_map():
    f = ferrax.custom_batching.sequential_vmap(lambda x, y: x + y)
    program = lambda g, *args: str(ferrax.make_jaxpr(g)(*args))
    both_rows = lambda x, y: ferrax.lax.map(lambda row: f(*row), (x, y))
    assert program(ferrax.vmap(f), X, X) == program(both_rows, X, X)
    one = lambda x, y: ferrax.lax.map(lambda row: f(row, y), x)
    assert program(ferrax.vmap(f, (0, None)), X, 4.0) == program(one, X, 4.0)


# ---- linear solves and roots -----------------------------------------------------------------------------------------


def solver(jax, jnp, has_aux):
    def solve(matvec, b):
        x = jnp.zeros_like(b)
        for _ in range(40):
            x = x + 0.4 * (b - matvec(x))
        return (x, {"steps": jnp.int32(40), "norm": jnp.sum(x)}) if has_aux else x

    def f(a, b):
        return jax.lax.custom_linear_solve(lambda x: a @ x, b, solve, solve, has_aux=has_aux)

    return f


@pytest.mark.parametrize("has_aux", [False, True])
def test_custom_linear_solve(has_aux):
    a = np.array([[1.5, 0.2], [-0.1, 1.2]], np.float32)
    b = np.array([0.3, 0.7], np.float32)

    def make(jax, jnp):
        f = solver(jax, jnp, has_aux)

        def loss(a, b):
            out = f(a, b)
            return jnp.sum(jnp.sin(out[0] if has_aux else out))

        return lambda a, b: (
            f(a, b),
            jax.grad(loss, (0, 1))(a, b),
            jax.jit(jax.grad(loss))(a, b),
            jax.jvp(loss, (a, b), (a, b)),
            jax.vmap(jax.grad(loss, 1), (None, 0))(a, jnp.stack([b, 2 * b])),
        )

    same(make, a, b, rtol=1e-4)


def test_a_solver_that_closes_over_the_matrix():
    """What the solver closes over is not differentiated, and does not hide the matrix's derivative."""
    a = np.array([[1.5, 0.2], [-0.1, 1.2]], np.float32)
    b = np.array([0.3, 0.7], np.float32)

    def make(jax, jnp):
        def f(a, b):
            def cramer(a, b):
                x = jnp.stack([a[1, 1] * b[0] - a[0, 1] * b[1], a[0, 0] * b[1] - a[1, 0] * b[0]])
                return x / (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0])

            x = jax.lax.custom_linear_solve(lambda x: a @ x, b, lambda _, b: cramer(a, b), lambda _, b: cramer(a.T, b))
            return jnp.sum(x**2)

        def of_b(b):
            return f(a, b)

        return lambda a, b: (
            jax.grad(f, (0, 1))(a, b),
            jax.jit(jax.grad(f, (0, 1)))(a, b),
            jax.grad(jax.jit(f))(a, b),
            jax.vmap(jax.grad(f), (0, None))(jnp.stack([a, 2 * a]), b),
            jax.hessian(of_b)(b),
            jax.jvp(jax.grad(f), (a, b), (b[:, None] * a, b))[1],
        )

    same(make, a, b, rtol=1e-4)


def test_linear_solve_errors():
    def check(jax):
        b = jax.numpy.ones(2)
        for matvec in (lambda x: (x, x), lambda x: x[:1]):
            with pytest.raises(ValueError, match="matvec"):
                jax.lax.custom_linear_solve(matvec, b, lambda mv, b: b)
        with pytest.raises(TypeError):
            jax.lax.custom_linear_solve(lambda x: x, b, lambda mv, b: {"x": b})
        with pytest.raises(TypeError, match="transpose_solve"):
            jax.grad(lambda b: jax.lax.custom_linear_solve(lambda x: x, b, lambda mv, b: b).sum())(b)

    both(check)


@pytest.mark.parametrize("has_aux", [False, True])
def test_custom_root(has_aux):
    def make(jax, jnp):
        def cube_root(a):
            def solve(f, x):
                for _ in range(30):
                    x = x - f(x) / (3 * x * x)
                return (x, {"residual": f(x)}) if has_aux else x

            return jax.lax.custom_root(
                lambda x: x**3 - a, jnp.float32(1.0), solve, lambda g, y: y / g(jnp.float32(1.0)), has_aux=has_aux
            )

        def value(a):
            out = cube_root(a)
            return out[0] if has_aux else out

        return lambda a: (
            value(a),
            jax.grad(value)(a),
            jax.jit(jax.grad(value))(a),
            jax.vmap(jax.grad(value))(X[0] + 2),
        )

    same(make, np.float32(5.0))


# ---- checkpoint ------------------------------------------------------------------------------------------------------


def test_names_print_and_differentiate():
    def make(jax, jnp):
        name = __import__(f"{jax.__name__}.ad_checkpoint", fromlist=["x"]).checkpoint_name
        return str(jax.make_jaxpr(lambda x: name(x, "a"))(1.0)), jax.grad(lambda x: jnp.sin(name({"x": x}, "b")["x"]))(
            0.5
        )

    got, wanted = both(lambda jax: make(jax, jax.numpy))
    assert got[0] == wanted[0]
    np.testing.assert_allclose(got[1], wanted[1], rtol=1e-6)


def residuals_of(jax, jnp, policy):
    """How many sines the backward pass of a chain of three computes again."""
    name = __import__(f"{jax.__name__}.ad_checkpoint", fromlist=["x"]).checkpoint_name

    def f(x):
        y = name(jnp.sin(x), "y")
        z = name(jnp.sin(y), "z")
        return jnp.sum(jnp.sin(z))

    return str(jax.make_jaxpr(jax.grad(jax.checkpoint(f, policy=policy)))(X)).count("= sin ")


@pytest.mark.parametrize(
    "policy",
    [
        lambda p: p.save_only_these_names("y"),
        lambda p: p.save_only_these_names("y", "z"),
        lambda p: p.save_any_names_but_these("y"),
        lambda p: p.save_any_names_but_these("y", "z"),
        lambda p: p.save_from_both_policies(p.save_only_these_names("y"), p.save_only_these_names("z")),
        lambda p: p.nothing_saveable,
        lambda p: p.everything_saveable,
        lambda p: None,
    ],
)
def test_policies_by_name(policy):
    got, wanted = both(lambda jax: residuals_of(jax, jax.numpy, policy(jax.checkpoint_policies)))
    assert got == wanted
    for jit in (lambda f: f, ferrax.jit):
        f = ferrax.checkpoint(
            lambda x: ferrax_numpy.sum(ferrax_numpy.sin(ferrax_numpy.sin(x))), policy=policy(ferrax.checkpoint_policies)
        )
        np.testing.assert_allclose(jit(ferrax.grad(f))(X), np.cos(np.sin(X)) * np.cos(X), rtol=1e-5)


def test_policies_that_move_memory():
    p = ferrax.checkpoint_policies
    moved = p.save_and_offload_only_these_names(
        names_which_can_be_saved=["y"],
        names_which_can_be_offloaded=["z"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    assert residuals_of(ferrax, ferrax_numpy, moved) == residuals_of(
        ferrax, ferrax_numpy, p.save_only_these_names("y", "z")
    )
    assert p.offload_dot_with_no_batch_dims("device", "pinned_host") is p.dots_with_no_batch_dims_saveable


def test_static_arguments_of_checkpoint():
    def make(jax, jnp):
        def f(x, times, *, power=1, flag=False):
            assert isinstance(times, int) and isinstance(power, int) and flag in (True, False)
            for _ in range(times):
                x = jnp.sin(x) ** power
            return jnp.sum(x)

        by_number = jax.checkpoint(f, static_argnums=(1,), static_argnames=("power", "flag"))
        by_name = jax.checkpoint(f, static_argnames=["times", "power", "flag"])
        return by_number, by_name

    # JAX 0.10.2 traces the parameters that keep their defaults when names are given, so only numbers are compared.
    by_number, by_name = make(ferrax, ferrax_numpy)
    plain = ferrax.checkpoint(lambda x, n: ferrax_numpy.sum(ferrax_numpy.sin(x) ** n), static_argnums=1)

    def of_powers(jax, n):
        return jax.grad(jax.checkpoint(lambda x, n: jax.numpy.sum(jax.numpy.sin(x) ** n), static_argnums=1))(X, n)

    wanted = functools.partial(expected, of_powers)
    np.testing.assert_allclose(ferrax.grad(plain)(X, 2), wanted(2), rtol=1e-6)
    np.testing.assert_allclose(ferrax.grad(by_number)(X, 1, power=2), wanted(2), rtol=1e-6)
    np.testing.assert_allclose(ferrax.grad(by_name)(X, 1, power=2, flag=True), wanted(2), rtol=1e-6)
    jitted = ferrax.jit(ferrax.grad(lambda x: by_name(x, times=1, power=3)))
    np.testing.assert_allclose(jitted(X), wanted(3), rtol=1e-6)


# ---- trees as vectors, derivative checks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tree",
    [
        {"a": X, "b": (np.int32(3), X[0])},
        [X.astype(np.float16), X],
        {"c": X + 1j, "d": X},
        2.5,
        [],
        [np.arange(3), np.arange(4)],
    ],
)
def test_ravel_pytree(tree):
    def there_and_back(jax):
        flat, back = __import__(f"{jax.__name__}.flatten_util", fromlist=["x"]).ravel_pytree(tree)
        return flat, back(flat)

    (got, a), (want, b) = both(there_and_back)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    ferrax.tree.map(lambda x, y: (np.testing.assert_array_equal(x, y), x.dtype == y.dtype), a, b)
    with pytest.raises(ValueError, match="shape"):
        if not got.size:
            raise ValueError("shape")
        ferrax.flatten_util.ravel_pytree(tree)[1](got[:-1])


def test_ways_back_of_trees_of_one_structure_are_equal():
    ways = [ferrax.flatten_util.ravel_pytree({"a": ferrax_numpy.ones(n), "b": 1})[1] for n in (2, 2, 3)]
    assert ways[0] == ways[1] != ways[2] and hash(ways[0]) == hash(ways[1])
    traces = []
    f = ferrax.jit(lambda v, back: traces.append(1) or back(v)["a"].sum(), static_argnums=1)
    assert float(f(ferrax_numpy.ones(3), ways[0])) == float(f(ferrax_numpy.ones(3), ways[1])) == 2 and len(traces) == 1


def test_ravel_pytree_differentiates():
    def make(jax, jnp):
        ravel = __import__(f"{jax.__name__}.flatten_util", fromlist=["x"]).ravel_pytree
        flat, back = ravel({"a": X, "b": X[0]})
        return lambda v: (jax.grad(lambda v: jnp.sum(jnp.sin(back(v)["a"])))(v), jax.jit(back)(v)["b"])

    same(make, np.arange(8, dtype=np.float32))


def test_derivative_checks():
    from ferrax.test_util import check_grads, check_jvp, check_vjp

    def f(x, tree):
        return ferrax_numpy.sin(x) * tree["y"], {"n": ferrax_numpy.sum(x * x)}

    for modes in ("fwd", "rev", ("fwd", "rev")):
        check_grads(f, (X, {"y": X}), order=2, modes=modes, eps=1e-2, atol=2e-2, rtol=2e-2)
    check_grads(lambda x: ferrax_numpy.real(x * x), (X + 1j * X,), order=1, eps=1e-2, atol=2e-2, rtol=2e-2)
    check_grads(lambda x, n: x * n, (X, 3), order=1, eps=1e-2, atol=2e-2, rtol=2e-2)

    @ferrax.custom_jvp
    def wrong(x):
        return x * x

    wrong.defjvp(lambda p, t: (wrong(p[0]), 3 * p[0] * t[0]))
    for check in (
        lambda: check_grads(wrong, (X,), order=1, modes=["fwd"], eps=1e-2),
        lambda: check_grads(wrong, (X,), order=1, modes=["rev"], eps=1e-2),
        lambda: check_jvp(wrong, functools.partial(ferrax.jvp, wrong), (X,), eps=1e-2),
        lambda: check_vjp(wrong, functools.partial(ferrax.vjp, wrong), (X,), eps=1e-2),
    ):
        with pytest.raises(AssertionError):
            check()
    with pytest.raises(ValueError, match="modes"):
        check_grads(wrong, (X,), order=1, modes=["sideways"])


# ---- debug, platforms ------------------------------------------------------------------------------------------------


def test_debug_forms(caplog):
    seen = []

    def f(x):
        ferrax.debug.callback(ordered=True)(lambda v, ordered: seen.append((int(v), ordered)), x, ordered=7)
        ferrax.debug.print(ordered=True)("{} {ordered}", x, ordered=x + 1)
        ferrax.debug.log("logged {}", x)
        return x

    text = io.StringIO()
    with contextlib.redirect_stdout(text), caplog.at_level(logging.INFO, logger="ferrax.debug"):
        ferrax.jit(f)(3)
        ferrax.effects_barrier()
    assert seen == [(3, 7)]
    assert text.getvalue() == "3 4\n"
    assert [r.getMessage() for r in caplog.records] == ["logged 3"]
    with pytest.raises(TypeError):
        ferrax.debug.callback(None, 3)


@pytest.mark.embedded
def test_platform_dependent():
    def make(jax, jnp):
        def f(x):
            return jax.lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos, default=jnp.tan)

        return lambda x: (f(x), jax.jit(f)(x), jax.vmap(jax.grad(lambda x: f(x).sum()))(x))

    same(make, X)

    def check(jax):
        with pytest.raises(NotImplementedError):
            jax.lax.platform_dependent(X, cuda=jax.numpy.sin)

    both(check)
    with pytest.raises(TypeError, match="one type"):
        ferrax.lax.platform_dependent(X, cpu=ferrax_numpy.sin, default=lambda x: x.sum())


def test_other_functions_of_lax():
    def check(jax):
        jnp = jax.numpy
        tangent = jax.lax.composite(lambda x, scale: scale * jnp.sin(x) / jnp.cos(x), name="my.tangent")
        np.testing.assert_allclose(tangent(X, scale=2.0), 2 * np.tan(X), rtol=1e-5)
        assert "my.tangent" in str(jax.make_jaxpr(lambda x: tangent(x, scale=2.0))(X))
        assert jax.lax.stage(2).dtype == np.int32
        drawn = np.asarray(jax.lax.rng_uniform(np.float32(2), np.float32(3), (50,)))
        assert drawn.dtype == np.float32
        assert (drawn >= 2).all() and (drawn < 3).all()
        assert len(set(drawn.tolist())) > 40

    both(check)


def test_rules_run_in_the_precision_of_the_call():
    """A function that computes in float64 inside has derivatives, of second order too, where float64 is off."""

    @ferrax.custom_jvp
    def cube(x):
        return x * x * x

    cube.defjvps(lambda t, ans, x: 3 * t * square(x))

    @ferrax.custom_jvp
    def square(x):
        return x * x

    square.defjvps(lambda t, ans, x: 2 * t * x)

    def f(x):
        with ferrax.enable_x64(True):
            return cube(x.astype("float64") / 3).astype("float32")

    for function in (f, ferrax.jit(f)):
        x = ferrax_numpy.float32(2)
        np.testing.assert_allclose(ferrax.grad(function)(x), 4 / 9, rtol=1e-6)
        np.testing.assert_allclose(ferrax.grad(ferrax.grad(function))(x), 4 / 9, rtol=1e-6)
        np.testing.assert_allclose(ferrax.jit(ferrax.hessian(function))(x), 4 / 9, rtol=1e-6)


# ---- rules that are asked for zero cotangents -----------------------------------------------------------------------


def sevens(jax):
    """Functions with rules: `f`, whose slope is always 7, and `stop` and `pick`, which pull back no cotangent."""
    f = jax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * 0 + 7,))
    stop = jax.custom_vjp(lambda y: y * 3)
    stop.defvjp(lambda y: (y * 3, None), lambda _, ct: (None,))
    pick = jax.custom_vjp(lambda y, z: y * 3 + z)
    pick.defvjp(lambda y, z: (y * 3 + z, None), lambda _, ct: (None, ct))
    return f, stop, pick


ZERO_COTANGENTS = {
    "unused": lambda jax, f, stop, pick, x: (f(x), x * x)[1],
    "stopped": lambda jax, f, stop, pick, x: stop(f(x)),
    "through another operation": lambda jax, f, stop, pick, x: stop(jax.numpy.sin(f(jax.numpy.cos(x)))) + x,
    "one of two": lambda jax, f, stop, pick, x: pick(f(x), x),
    "no tangent": lambda jax, f, stop, pick, x: jax.numpy.floor(f(x)) + jax.lax.stop_gradient(f(x)) + x,
    "jitted outside": lambda jax, f, stop, pick, x: jax.jit(lambda x: stop(f(x)))(x),
    "jitted inside": lambda jax, f, stop, pick, x: stop(jax.jit(f)(x)),
    "jitted, unused": lambda jax, f, stop, pick, x: jax.jit(lambda x: (f(x), x))(x)[1],
    "scan": lambda jax, f, stop, pick, x: jax.lax.scan(lambda c, _: (c + x, stop(f(c))), x, None, length=2)[1].sum(),
    "cond": lambda jax, f, stop, pick, x: jax.lax.cond(x > 0, lambda x: stop(f(x)), lambda x: x, x),
    "remat": lambda jax, f, stop, pick, x: jax.checkpoint(lambda x: stop(f(x)))(x),
}


@pytest.mark.parametrize("transform", ["eager", "jit", "vmap"])
@pytest.mark.parametrize("name", ZERO_COTANGENTS)
def test_backward_rules_are_asked_for_zeros(name, transform):
    """A rule that gives no cotangent (None) does not keep the rules before it from being asked, as in JAX: what they
    answer may be new state, such as scales of quantized numbers."""

    def make(jax, jnp):
        slope = jax.grad(lambda x: ZERO_COTANGENTS[name](jax, *sevens(jax), x))
        return {"eager": slope, "jit": jax.jit(slope), "vmap": lambda x: jax.vmap(slope)(jnp.array([x, 0.5]))}[
            transform
        ]

    same(make, 1.5)


# ---- results that are operands --------------------------------------------------------------------------------------


HANDED_ON = {
    "cond": lambda lax, i, s: lax.cond(i > 1, lambda a, b: (a * 2, b), lambda a, b: (a, b), i, s),
    "cond, captured": lambda lax, i, s: lax.cond(i > 1, lambda a: (a * 2, s), lambda a: (a, s), i)[:1] + (s,),
    "switch": lambda lax, i, s: lax.switch(i.astype(int), [lambda a, b: (a * 2, b), lambda a, b: (a + b, b)], i, s),
    "while": lambda lax, i, s: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + c[1], c[1]), (i, s)),
    "fori": lambda lax, i, s: lax.fori_loop(0, i.astype(int), lambda _, c: (c[0] + c[1], c[1]), (i, s)),
    "scan": lambda lax, i, s: lax.scan(lambda c, _: ((c[0] + c[1], c[1]), None), (i, s), None, length=2)[0],
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_results_that_are_handed_on_are_not_batched(name):
    """A branch or a body that hands an operand on makes it no result of the choice: `out_axes` may be None."""

    def make(jax, jnp):
        f = lambda i: HANDED_ON[name](jax.lax, i, jnp.float32(3))
        slopes = jax.vmap(jax.jacfwd(lambda i: HANDED_ON[name](jax.lax, i, i * 2 + 1)))
        return lambda x: (jax.vmap(f, out_axes=(0, None))(x), slopes(x))

    same(make, np.arange(3, dtype=np.float32))


@pytest.mark.parametrize("name", ["cond", "switch", "while"])
def test_programs_of_results_that_are_handed_on_print_as_in_jax(name):
    got, wanted = both(
        lambda jax: str(jax.make_jaxpr(lambda i, s: HANDED_ON[name](jax.lax, i, s))(jax.numpy.float32(2), 3.0))
    )
    assert got == wanted


def test_a_carry_that_the_condition_reads_stays_one():
    f = lambda jax: jax.make_jaxpr(
        lambda a, b: jax.lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + b, c[1], c[2]), (a, b, a))
    )
    got, wanted = both(lambda jax: str(f(jax)(1.0, 2.0)))
    assert got == wanted


def test_out_axes_of_batched_results_name_the_result():
    for out_axes, place in (((0, None), "[1]"), ({"a": 0, "b": None}, "['b'][0]"), (None, "")):
        f = (lambda i: {"a": i, "b": [i]}) if isinstance(out_axes, dict) else lambda i: (i, i) if place else i
        with pytest.raises(ValueError, match="axis spec None") as error:
            ferrax.vmap(f, out_axes=out_axes)(ferrax_numpy.ones(3))
        wanted = f"at vmap out_axes{place}, got axis spec None but output was batched on axis 0"
        assert str(error.value).startswith(wanted)


class _Keyed:
    def __init__(self, alpha):
        self.alpha = alpha


class _Unkeyed(_Keyed):
    def __init__(self, alpha):
        if isinstance(alpha, int):
            raise TypeError("no number")
        super().__init__(alpha)


ferrax.tree_util.register_pytree_with_keys(
    _Keyed, lambda s: (((ferrax.tree_util.GetAttrKey("alpha"), s.alpha),), None), lambda _, c: _Keyed(*c)
)
ferrax.tree_util.register_pytree_node(_Unkeyed, lambda s: ((s.alpha,), None), lambda _, c: _Unkeyed(*c))


def test_results_in_objects_are_named_as_their_class_says():
    for f, place in [
        (lambda i: {"q": _Keyed({"k": i})}, "['q'].alpha['k']"),
        (lambda i: _Unkeyed(i), "[<flat index 0>]"),
    ]:
        with pytest.raises(ValueError, match="axis spec None") as error:
            ferrax.vmap(f, out_axes=None)(ferrax_numpy.ones(3))
        assert str(error.value) == f"at vmap out_axes{place}, got axis spec None but output was batched on axis 0"


@pytest.mark.parametrize(("position", "error"), [(1, IndexError), (-2, ValueError)])
def test_static_positions_beyond_the_arguments(position, error):
    for decorate in (ferrax.custom_jvp, ferrax.custom_vjp):
        f = decorate(lambda x: x, nondiff_argnums=(position,))
        f.defjvp(abs) if decorate is ferrax.custom_jvp else f.defvjp(abs, abs)
        with pytest.raises(error, match=f"nondiff_argnums {position} is not"):
            f(1.0)


@pytest.mark.parametrize("decorator", [ferrax.custom_jvp, ferrax.custom_vjp])
def test_known_arguments_reach_the_function_as_arrays(decorator):
    """Where nothing is traced, the function itself runs; numbers come and go as arrays as they do elsewhere."""
    seen = []

    def f(tree, y):
        seen.append([type(x).__name__ for x in (*tree["a"], y)])
        return {"sum": tree["a"][0] + y, "number": 2.0, "numpy": np.float32(3)}

    rule = decorator(f)
    if decorator is ferrax.custom_jvp:
        rule.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    else:
        rule.defvjp(lambda tree, y: (f(tree, y), None), lambda kept, ct: ({"a": [ct["sum"], None]}, ct["sum"]))
    x = ferrax.numpy.ones(3)
    out = rule({"a": [x, 1]}, 2.5)
    assert seen == [["ArrayImpl"] * 3]
    assert [v.weak_type for v in ferrax.tree.leaves(out)] == [True, False, False]
    np.testing.assert_array_equal(out["sum"], x + 2.5)
    np.testing.assert_array_equal(ferrax.jit(rule)({"a": [x, 1]}, 2.5)["sum"], out["sum"])


def test_keywords_that_have_a_value_are_no_arguments():
    for kind in (ferrax.custom_jvp, ferrax.custom_vjp):
        partial = kind(functools.partial(lambda x, y, a: x + y * a, a=0.5))
        default = kind(lambda x, *, power=2: x**power)
        if kind is ferrax.custom_jvp:
            partial.defjvp(lambda primals, tangents: (partial(*primals), tangents[1]))
            default.defjvp(lambda primals, tangents: (default(*primals), 5 * tangents[0]))
        else:
            partial.defvjp(lambda x, y: (partial(x, y), None), lambda _, ct: (0 * ct, ct))
            default.defvjp(lambda x: (default(x), None), lambda _, ct: (5 * ct,))
        assert ferrax.grad(partial, argnums=(0, 1))(1.0, 2.0) == (0.0, 1.0) and partial(1.0, 2.0) == 2.0
        assert ferrax.grad(default)(3.0) == 5.0 and default(3.0) == 9.0
        with pytest.raises(TypeError, match="could not be resolved to positions: power"):
            default(3.0, power=3)


def test_converted_closures_take_their_constants():
    x = ferrax_numpy.arange(3.0)
    _, pull = ferrax.vjp(lambda a, b: a * b, 2.0, x)
    converted, consts = ferrax.closure_convert(pull, x)
    assert len(converted(x, *consts)) == 2
    with pytest.raises(TypeError, match="The inputs to the closure produced by closure_convert"):
        converted(x, *consts, x)


def test_a_rule_gives_no_value_of_the_transformation_itself():
    """It would be a tracer that outlives its trace; JAX raises, too."""

    def f(x):
        g = ferrax.custom_jvp(lambda h, y: h(y), nondiff_argnums=(0,))
        g.defjvp(lambda h, p, t: (g(h, p[0]), 2.0 * t[0]))
        return g(lambda y: x + y, x)

    for transformed in (lambda: ferrax.jvp(f, (2.0,), (1.0,)), lambda: ferrax.grad(f)(2.0)):
        with pytest.raises(ferrax.errors.UnexpectedTracerError):
            transformed()
