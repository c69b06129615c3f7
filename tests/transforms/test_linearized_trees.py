"""Pullbacks and linear functions as pytrees, `fwd_and_bwd`, costs and the precision of products, beside JAX."""

import importlib

import numpy as np
import pytest

import ferrax

jax = pytest.importorskip("jax")

W, X = np.arange(9.0, dtype=np.float32).reshape(3, 3) / 9, np.ones((2, 3), np.float32)


def both(program):
    """What a program gives under ferrax and under JAX."""
    return program(ferrax), program(jax)


def layer(j):
    return lambda w, x: j.numpy.tanh(x @ w)


def test_pullbacks_cross_jit():
    def program(j):
        y, pull = j.jit(lambda w, x: j.vjp(layer(j), w, x))(W, X)
        assert all(hasattr(leaf, "shape") for leaf in j.tree.leaves(pull))
        return j.jit(lambda pull, y: pull(y))(pull, j.numpy.ones_like(y))

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_pullbacks_are_rebuilt_around_anything():
    _, pull = ferrax.vjp(layer(ferrax), W, X)
    leaves, tree = ferrax.tree.flatten(pull)
    assert ferrax.tree.structure(tree.unflatten(range(len(leaves)))) == tree
    doubled = ferrax.tree.map(lambda x: x, pull)
    for a, b in zip(pull(X), doubled(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert ferrax.tree.structure(doubled) == tree


def test_pullbacks_are_traced_once():
    traces = []

    @ferrax.jit
    def bwd(pull, y):
        traces.append(1)
        return pull(y)

    fwd = ferrax.jit(lambda w, x: ferrax.vjp(layer(ferrax), w, x))
    for scale in (1.0, 2.0):
        y, pull = fwd(scale * W, X)
        expected = ferrax.vjp(layer(ferrax), scale * W, X)[1](y)
        np.testing.assert_allclose(bwd(pull, y)[0], expected[0], rtol=1e-6)
    assert len(traces) == 1


def test_linear_functions_cross_jit():
    def program(j):
        y, linear = j.jit(lambda w: j.linearize(j.numpy.sin, w))(W)
        return y, linear(X[:1] * W), j.jit(lambda f, t: f(t))(linear, W)

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1, 0)])
def test_fwd_and_bwd(argnums, jitted):
    def program(j):
        fwd, bwd = j.fwd_and_bwd(layer(j), argnums=argnums, jitted=jitted)
        y, residuals = fwd(W, X)
        return j.tree.leaves((y, bwd(residuals, 2 * y)))

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_fwd_and_bwd_with_aux():
    fwd, bwd = ferrax.fwd_and_bwd(lambda x: (x * x, {"x": x}), 0, has_aux=True)
    y, residuals, aux = fwd(3.0)
    assert (float(y), float(aux["x"]), float(bwd(residuals, 1.0))) == (9.0, 3.0, 6.0)


def test_gradients_by_complex_arguments():
    z = np.array([1 + 2j, 0.5 - 1j], np.complex64)
    ours, theirs = both(lambda j: j.grad(lambda z: j.numpy.sum(j.numpy.cos(j.numpy.abs(z))))(z))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("precision", [None, "bfloat16", "tensorfloat32", "float32", "highest", "BF16_BF16_F32"])
def test_programs_show_the_precision_of_products(precision):
    def program(j):
        with j.default_matmul_precision(precision):
            products = (j.numpy.dot, j.numpy.matmul, lambda x, y: j.lax.dot(x, y))
            return [str(j.make_jaxpr(f)(X, W)) for f in products]

    ours, theirs = both(program)
    assert ours == theirs


def test_costs():
    def program(j):
        f = j.jit(lambda x, w: (j.numpy.sin(x) @ w).sum())
        return [stage.cost_analysis() for stage in (f.lower(X, W), f.lower(X, W).compile())]

    for ours, theirs in zip(*both(program), strict=True):
        assert {k: ours[k] for k in ("flops", "transcendentals")} == {
            k: theirs[k] for k in ("flops", "transcendentals")
        }
        # the start of a sum is an operand in JAX
        assert ours["bytes accessed"] == theirs["bytes accessed"] - 4


def test_costs_of_loops_branches_and_convolutions():
    lax, jnp = ferrax.lax, ferrax.numpy
    scan = ferrax.jit(lambda x: lax.scan(lambda c, a: (c + a, jnp.exp(c)), 0.0, x)[0])
    assert scan.lower(np.ones(5, np.float32)).cost_analysis()["transcendentals"] == 5.0
    cond = ferrax.jit(lambda p, x: lax.cond(p, lambda: jnp.exp(x), lambda: x))
    assert cond.lower(True, X).cost_analysis()["transcendentals"] == 6.0
    conv = ferrax.jit(lambda x, k: lax.conv(x, k, (1, 1), "VALID"))
    image, kernel = np.ones((1, 2, 8, 8), np.float32), np.ones((3, 2, 3, 3), np.float32)
    assert conv.lower(image, kernel).cost_analysis()["flops"] == 2.0 * 3 * 36 * 18
    assert ferrax.jit(lambda x: x).lower(1.0).cost_analysis() == {}


def test_cache_size_and_attributes():
    def program(j):
        def f(x):
            return x

        f.some_value = 4
        jitted = j.jit(f)
        sizes = [jitted._cache_size()]
        for x in (1, 2, 1.0):
            jitted(x)
            sizes.append(jitted._cache_size())
        return sizes, jitted.some_value, repr(j.jit(_Unspeakable())), j.make_jaxpr(f).__name__

    ours, theirs = both(program)
    assert ours == theirs


class _Unspeakable:
    def __call__(self):
        pass

    def __repr__(self):
        raise ValueError("no text")


def test_vmap_keeps_the_documentation():
    def scaled(a):
        """Does things."""

    doc = ferrax.vmap(scaled).__doc__
    assert doc.startswith("Vectorized version of scaled") and doc.endswith("\n\nDoes things.")


def test_rules_for_vmap_behind_custom_vjp():
    def program(j):
        custom_vmap = importlib.import_module(f"{j.__name__}.custom_batching").custom_vmap
        f = j.custom_vjp(custom_vmap(lambda x, y: j.numpy.sin(x) * y))
        f.def_vmap(lambda size, batched, x, y: (j.numpy.cos(x) * y, True))
        f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (ct * r[1], 3 * ct))
        return j.vmap(f)(X[0], X[1]), j.grad(f, 1)(0.5, 2.0)

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_matrices_of_joined_rows():
    def program(j):
        r_, c_ = j.numpy.r_, j.numpy.c_
        return [r_["r", [1, 2], [3]], r_["c", [1, 2], [3]], c_["r", [1, 2], [3, 4]], c_["c", [1, 2]], r_["r", 0:3]]

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_keys_have_no_item():
    with pytest.raises(TypeError, match="a random key is no number"):
        ferrax.random.key(0).item()


def kept(j, f, *args):
    """What a pullback keeps of its arguments and of the forward run, as texts of shapes."""
    _, pull = j.vjp(f(j), *args)
    shapes = lambda tree: j.tree.map(lambda x: str(np.shape(x)), tree)
    return repr(shapes(pull.args_res)), repr(shapes(pull.opaque_residuals)), repr(shapes(j.tree.leaves(pull)))


@pytest.mark.parametrize(
    "f",
    [
        layer,
        lambda j: lambda w, x: x @ w,
        lambda j: lambda w, x: j.numpy.sin(w).sum() + x.sum(),
        lambda j: lambda w, x: {"a": (w * w) @ w, "b": x},
        lambda j: lambda w, x: x @ j.numpy.sin(w) @ w,
    ],
)
def test_what_pullbacks_keep_is_in_the_arguments_order(f):
    ours, theirs = kept(ferrax, f, W, X), kept(jax, f, W, X)
    assert ours == theirs


def test_kept_arguments_can_be_exchanged():
    def program(j):
        w, x = j.numpy.asarray(W), j.numpy.asarray(X)
        y, pull = j.vjp(layer(j), {"w": w}["w"], x)
        before = pull(j.numpy.ones_like(y))
        pull.args_res[0] = 2 * w
        edited = pull(j.numpy.ones_like(y))
        through = j.jit(lambda p, y: p(y))(pull, j.numpy.ones_like(y))
        pull.args_res = [w, x]
        return [*before, *edited, *through, *pull(j.numpy.ones_like(y))]

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


class Weights:
    """A container of a user's own."""

    def __init__(self, w):
        self.w = w


for module in (ferrax, jax):
    module.tree_util.register_pytree_node(Weights, lambda node: ((node.w,), None), lambda _, parts: Weights(*parts))


def test_kept_arguments_are_in_tuples():
    """Whatever containers the arguments are in; they may be put back in their own."""

    def program(j):
        def f(params, rest, own):
            return (j.numpy.tanh(params["b"] @ params["a"]["w"]) @ own.w).sum() * rest[0]

        args = {"a": {"w": j.numpy.asarray(W)}, "b": j.numpy.asarray(X)}, [j.numpy.float32(2), None], Weights(W)
        _, pull = j.vjp(f, *args)
        pulls = [pull(j.numpy.float32(1))]
        shown = repr(j.tree.map(np.shape, pull.args_res))
        for back in (args, [args[0], [j.numpy.float32(4), None], (2 * W,)]):
            pull.args_res = list(back)
            pulls.append(pull(j.numpy.float32(1)))
        assert all(type(p[2]) is Weights for p in pulls)
        return shown, j.tree.leaves(pulls)

    (shown, ours), (expected, theirs) = both(program)
    assert shown == expected
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_kept_arguments_can_be_taken_out_and_put_back():
    """A pullback without its weights is a tree of what else it keeps, which programs and custom rules hand on."""

    def program(j):
        w, x = j.numpy.asarray(W), j.numpy.asarray(X)
        f = layer(j)
        y, pull = j.vjp(f, w, x)
        pull.args_res[0] = None
        leaves, tree = j.tree.flatten(pull)
        again = j.tree.unflatten(tree, leaves)
        assert again.args_res[0] is None and len(leaves) == len(j.tree.leaves(j.vjp(f, w, x)[1])) - 1

        def restored(p, w, y):
            p.args_res[0] = w
            return p(y)

        outs = [*restored(again, w, y), *j.jit(restored)(j.tree.unflatten(tree, leaves), w, y)]

        @j.custom_vjp
        def g(w, x):
            return f(w, x)

        def fwd(w, x):
            y, pull = j.vjp(f, w, x)
            pull.args_res = [{"out": None}, pull.args_res[1]]
            return y, (pull, w)

        g.defvjp(fwd, lambda kept, ct: restored(*kept, ct))
        for k in (g, j.jit(g)):
            outs += j.grad(lambda w, x, k=k: (k(w, x) ** 2).sum(), (0, 1))(w, x)
        return outs

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_pullbacks_show_their_parts():
    text = repr(ferrax.vjp(lambda x, y: x + y, 1.0, ferrax.numpy.ones(2))[1])
    assert text.startswith("VJP(in_tree=PyTreeDef((*, *)), out_tree=PyTreeDef(*), args_res=[NotNeeded(), NotNeeded()]")


def test_exchanged_arguments_must_be_there():
    w, x = ferrax.numpy.asarray(W), ferrax.numpy.asarray(X)
    y, pull = ferrax.vjp(lambda w, x: x @ w, w, x)
    pull.args_res = [w]
    with pytest.raises(ValueError, match="args_res of a VJP function has the structure"):
        pull(ferrax.numpy.ones_like(y))
    _, other = ferrax.vjp(lambda w, x: w.sum() + x.sum(), w, x)
    pull.args_res = other.args_res
    with pytest.raises(ValueError, match="lacks values that the backward pass needs"):
        pull(ferrax.numpy.ones_like(y))


def named(j):
    name = importlib.import_module(f"{j.__name__}.ad_checkpoint").checkpoint_name

    def f(params, x):
        for k, w in enumerate(params):
            x = name(j.numpy.tanh(x @ w), f"layer{k}")
        return j.numpy.sum(x**2)

    return f


@pytest.mark.parametrize(
    "wrap",
    [
        lambda j: lambda f: f,
        lambda j: j.checkpoint,
        lambda j: lambda f: j.checkpoint(f, policy=j.checkpoint_policies.save_only_these_names("layer0")),
        lambda j: lambda f: j.checkpoint(f, policy=j.checkpoint_policies.dots_saveable),
        lambda j: lambda f: lambda p, x: j.numpy.exp(j.checkpoint(f)(p, j.numpy.cos(x))),
    ],
)
def test_saved_residuals_are_told(wrap, capsys):
    texts = []
    for j in (ferrax, jax):
        show = importlib.import_module(f"{j.__name__}.ad_checkpoint").print_saved_residuals
        show(wrap(j)(named(j)), [W, W], x=X)
        texts.append(capsys.readouterr().out.splitlines())
    assert sorted(texts[0]) == sorted(texts[1])


def test_saved_residuals_of_constants_and_jitted_functions(capsys):
    def words(j):
        show = importlib.import_module(f"{j.__name__}.ad_checkpoint").print_saved_residuals
        inner = j.jit(lambda x: j.numpy.sin(x) * W)
        show(lambda x: inner(x) * X[:, :1].sum(), X[:1])
        return [line.split(" from ")[0] for line in capsys.readouterr().out.splitlines()]

    assert words(ferrax) and all(line.startswith("f32[") for line in words(ferrax))
