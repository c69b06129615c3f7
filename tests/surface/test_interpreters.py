"""`interpreters`, `extend.linear_util` and `api_util`: what libraries that write transformations use."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import api_util
from ferrax.extend import linear_util as lu
from ferrax.interpreters import ad, batching, partial_eval as pe

X = jnp.array([0.5, -1.0, 2.0])


def test_zeros():
    zero = ad.Zero(jax.typeof(X))
    np.testing.assert_array_equal(ad.instantiate_zeros(zero), np.zeros(3))
    assert ad.instantiate_zeros(X) is X
    assert ad.add_tangents(zero, X) is X and ad.add_tangents(X, zero) is X
    np.testing.assert_array_equal(ad.add_tangents(X, X), 2 * X)
    assert ad.Zero.from_primal_value(3).aval.dtype == jax.float0
    assert jax.tree.leaves(zero) == [] and jax.tree.leaves(ad.UndefinedPrimal(zero.aval)) == []


@pytest.mark.parametrize(("dim", "shape"), [(None, (4, 2, 3)), (0, (2, 3)), (1, (3, 2))])
def test_batch_axes(dim, shape):
    assert batching.bdim_at_front(jnp.ones((2, 3)), dim, 4).shape == shape


def test_broadcast_and_move():
    assert batching.broadcast(jnp.ones((2, 3)), 4, 1).shape == (2, 4, 3)
    assert batching.moveaxis(jnp.ones((2, 3)), None, 0).shape == (2, 3)
    assert batching.moveaxis(jnp.ones((2, 3)), 1, 0).shape == (3, 2)


def test_partial_evaluation():
    def f(x, y):
        return jnp.sin(x) + 1, jnp.sin(x) * y, jnp.arange(3)

    args = [pe.PartialVal.known(X), pe.PartialVal.unknown(jax.typeof(X))]
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(lu.wrap_init(f), args)
    assert [o.is_known() for o in outs] == [True, False, True]
    np.testing.assert_allclose(outs[0].get_known(), jnp.sin(X) + 1)
    np.testing.assert_array_equal(outs[2].get_known(), np.arange(3))
    np.testing.assert_allclose(jax.core.eval_jaxpr(jaxpr, consts, 2 * X)[0], jnp.sin(X) * 2 * X, rtol=1e-6)
    _, outs, _ = pe.trace_to_jaxpr_nounits(lu.wrap_init(f), args, instantiate=True)
    assert not any(o.is_known() for o in outs)


def test_dead_code():
    jaxpr = jax.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y)))(1.0, 1.0).jaxpr
    less, used = pe.dce_jaxpr(jaxpr, [False, True])
    assert used == [False, True] and [e.primitive.name for e in less.eqns] == ["cos"]
    assert pe.dce_jaxpr(jaxpr, [False, True], instantiate=True)[1] == [True, True]


def test_wrapped_functions():
    info = api_util.debug_info("test", lambda x, y: x, (1.0, {"a": 2.0}), {})
    assert info.arg_names == ("x", "y['a']")
    leaves, tree = jax.tree.flatten(((1.0, 2.0), {"k": 3.0}))
    flat, out_tree = api_util.flatten_fun(lu.wrap_init(lambda x, y, k: {"sum": x + y + k}, debug_info=info), tree)
    assert flat.call_wrapped(*leaves) == [6.0]
    assert out_tree() == jax.tree.structure({"sum": 0})
    with pytest.raises(lu.StoreException):
        api_util.flatten_fun_nokwargs(lu.wrap_init(abs), jax.tree.structure((1,)))[1]()


def test_transformations_compose():
    @lu.transformation2
    def doubled(f, *args):
        return 2 * f(*args)

    @lu.transformation
    def shifted(by, *args):
        out = yield args, {}
        yield out + by

    f = shifted(doubled(lu.wrap_init(lambda x: x + 1)), 100)
    assert f.call_wrapped(1) == 104
    assert jax.jit(f.call_wrapped)(1) == 104


def test_arguments():
    f, given = api_util.argnums_partial(lu.wrap_init(lambda a, b, c: (a, b, c)), (0, 2), (1, 2, 3))
    assert given == (1, 3) and f.call_wrapped(*given) == (1, 2, 3)
    with pytest.raises(ValueError, match="not hashable"):
        api_util.argnums_partial(lu.wrap_init(lambda a, b: a), 0, (1, []))
    assert api_util.rebase_donate_argnums((1, 3), (0, 2)) == (0, 1)
    assert api_util.flatten_axes("in_axes", jax.tree.structure(([1, 2], 3)), (0, None)) == [0, 0, None]
    with pytest.raises(ValueError, match="in_axes specification must be a tree prefix"):
        api_util.flatten_axes("in_axes", jax.tree.structure(([1, 2], 3)), (0, 1, 2))
    with pytest.raises(ValueError, match=r"Mismatch details \(1 found\):\n.*different types at key path\n *spec\['b'"):
        api_util.flatten_axes("spec", jax.tree.structure({"a": 1, "b": 2}), {"a": None, "b": (0, 1)})
    with pytest.raises(ValueError, match=r"Mismatch details \(2 found\)"):
        api_util.flatten_axes("spec", jax.tree.structure({"a": 1, "b": 2}), {"a": [0, 1], "b": (2, 3)})
    with pytest.raises(ValueError, match=r"`static_argnums` \[1, 2\] and `donate_argnums` \[0, 1\] cannot intersect"):
        api_util.rebase_donate_argnums((0, 1), (1, 2))


def test_vmap_passes_other_things_than_arrays():
    f = lambda op, x: op(x)
    np.testing.assert_allclose(jax.vmap(f, in_axes=(None, 0))(jnp.sin, X), jnp.sin(X))
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.vmap(f)(jnp.sin, X)


def test_eval_shape_of_types():
    struct = jax.ShapeDtypeStruct((2,), jnp.int32)
    assert jax.eval_shape(lambda: {"a": struct, "b": jnp.ones(3)})["a"] == struct


def test_operand_none_is_an_operand():
    assert jax.lax.cond(True, lambda _: 1, lambda _: 2, operand=None) == 1
    assert jax.lax.switch(1, [lambda _: 1, lambda _: 2], operand=None) == 2


def test_symbolic_zeros_of_custom_vjp():
    seen = []

    @jax.custom_vjp
    def f(x, n):
        return x["a"] * n

    def fwd(x, n):
        seen.append((x["a"].perturbed, n.perturbed))
        values = jax.custom_derivatives.custom_vjp_primal_tree_values((x, n))
        return f(*values), (True, 3, values[1])

    def bwd(residuals, ct):
        flag, count, n = residuals
        assert flag is True and type(count) is int
        return {"a": ct * n * count}, None

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    assert jax.grad(lambda a: f({"a": a}, 2.0))(1.0) == 6.0
    assert jax.jit(jax.grad(lambda a: f({"a": a}, 2.0)))(1.0) == 6.0
    assert seen == [(True, False)] * 2
    np.testing.assert_array_equal(jax.vmap(jax.grad(lambda a: f({"a": a}, 2.0)))(X), np.full(3, 6.0))


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (5, 3, 2), (3, 0)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_raw_qr(shape, dtype):
    rng = np.random.RandomState(0)
    a = (rng.randn(*shape) + (1j * rng.randn(*shape) if dtype == "complex64" else 0)).astype(dtype)
    h, tau = jnp.linalg.qr(a, mode="raw")
    wanted = np.linalg.qr(a, mode="raw")
    np.testing.assert_allclose(h, wanted[0], atol=2e-5)
    np.testing.assert_allclose(tau, wanted[1], atol=2e-5)


def test_raw_qr_of_zeros():
    h, tau = jnp.linalg.qr(jnp.zeros((3, 2)), mode="raw")
    assert not np.any(h) and not np.any(tau)


def test_tracers_of_derivatives_have_their_parts():
    def f(x):
        assert isinstance(x, ad.JVPTracer)
        return x.primal * x.tangent

    assert float(jax.jvp(f, (3.0,), (2.0,))[0]) == 6
    program = jax.make_jaxpr(lambda t: jax.jvp(f, (3.0,), (t,))[0])(1.0)
    assert [e.primitive.name for e in program.eqns] == ["mul"]
