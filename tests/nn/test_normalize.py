"""The softmax family, log-sum-exp, standardization, one-hot and attention as JAX's."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax._src.ad_checkpoint import saved_residuals
from tests.support import assert_same

jax = pytest.importorskip("jax")

rng = np.random.default_rng(0)
X = rng.normal(size=(3, 4)).astype("float32") * 3
B = rng.normal(size=(3, 4)).astype("float32")
W = rng.random((3, 4)) > 0.4
W[0] = True


def run(module, name, *args, **kwargs):
    move = lambda a: module.numpy.asarray(a) if isinstance(a, np.ndarray) else a
    return getattr(module.nn, name)(*map(move, args), **{k: move(v) for k, v in kwargs.items()})


def check(name, *args, rtol=2e-6, jitted=False, **kwargs):
    ours = run(ferrax, name, *args, **kwargs)
    theirs = jax.jit(lambda: run(jax, name, *args, **kwargs))() if jitted else run(jax, name, *args, **kwargs)
    for a, b in zip(ours, theirs) if isinstance(theirs, tuple) else [(ours, theirs)]:
        assert_same(a, b, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "standardize"])
def test_family(name):
    for kwargs in ({}, {"axis": 0}, {"axis": (0, 1)}, {"axis": None}, {"where": W}):
        check(name, X, **kwargs)
    check(name, np.arange(3))
    check(name, X.astype(jnp.bfloat16), rtol=2e-2)


def test_softmax_extremes():
    x = np.array([[1e4, -1e4, 1e4], [-np.inf, 0.0, 1.0]], "float32")
    check("softmax", x)
    check("log_softmax", x)


def test_logsumexp():
    for kwargs in (
        {}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"where": W, "axis": 1}, {"b": B, "axis": 1},
        {"b": B, "axis": 1, "return_sign": True, "keepdims": True},
        {"b": B, "where": W, "axis": 0, "return_sign": True},
        {"b": np.zeros((3, 4), "float32")}, {"return_sign": True},
    ):  # fmt: skip
        check("logsumexp", X, jitted=True, **kwargs)
    check("logsumexp", np.array([-np.inf, -np.inf], "float32"))
    check("logsumexp", np.array([np.inf, 1.0], "float32"))
    check("logsumexp", np.arange(4))
    check("logsumexp", 2.0)
    check("logsumexp", X.astype("complex64"), axis=1)


def test_logmeanexp():
    for kwargs in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"where": W, "axis": 1}):
        check("logmeanexp", X, **kwargs)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "logmeanexp"])
def test_gradients(name):
    def slope(module, where):
        where = None if where is None else module.numpy.asarray(where)
        f = lambda x: (getattr(module.nn, name)(x, axis=1, where=where) * module.numpy.asarray(B[:, :1])).sum()
        if name == "log_softmax" and where is not None:
            f = lambda x: module.numpy.where(where, module.nn.log_softmax(x, where=where), 0).sum()
        return module.grad(f)(module.numpy.asarray(X))

    for where in (None, W):
        np.testing.assert_allclose(slope(ferrax, where), slope(jax, where), rtol=2e-5, atol=1e-6)


def test_log1mexp():
    x = np.array([1e-6, 0.1, 0.6931, 0.7, 5.0, 100.0, 0.0, -1.0], "float32")
    check("log1mexp", x)
    slopes = [m.vmap(m.grad(m.nn.log1mexp))(m.numpy.asarray(x[:6])) for m in (ferrax, jax)]
    np.testing.assert_allclose(*slopes, rtol=2e-6)


def test_standardize_options():
    check("standardize", X, algorithm="stable")
    check("standardize", X, mean=np.float32(0.5), variance=np.float32(2.0), epsilon=1e-3)
    with pytest.raises(ValueError, match="Unknown algorithm 'x'"):
        ferrax.nn.standardize(jnp.ones(3), algorithm="x")


def test_one_hot():
    x = np.array([[0, 2], [5, -1]])
    for kwargs in ({}, {"axis": 0}, {"axis": 1, "dtype": "int8"}, {"dtype": "bfloat16"}):
        check("one_hot", x, 4, **kwargs)
    check("one_hot", np.float32(2.0), 3)
    with pytest.raises(ferrax.errors.ConcretizationTypeError, match="num_classes"):
        ferrax.jit(lambda n: ferrax.nn.one_hot(jnp.arange(2), n))(3)
    with pytest.raises(ValueError, match="out of bounds"):
        ferrax.nn.one_hot(jnp.arange(2), 3, axis=5)


def attention_arrays(batch=True):
    shapes = [(2, 4, 4, 8), (2, 5, 2, 8), (2, 5, 2, 8)]
    return [rng.normal(size=s if batch else s[1:]).astype("float32") for s in shapes]


def test_attention():
    q, k, v = attention_arrays()
    bias, mask = rng.normal(size=(1, 4, 4, 5)).astype("float32"), rng.random((1, 1, 4, 5)) > 0.2
    for kwargs in (
        {}, {"bias": bias}, {"mask": mask}, {"is_causal": True}, {"local_window_size": (2, 1)}, {"scale": 0.3},
        {"local_window_size": 1}, {"key_value_seq_lengths": np.array([2, 5])},
        {"query_seq_lengths": np.array([2, 3]), "return_residual": True, "bias": bias},
    ):  # fmt: skip
        check("dot_product_attention", q, k, v, rtol=3e-5, jitted=True, **kwargs)
    check("dot_product_attention", *attention_arrays(batch=False), rtol=3e-5)
    for shape in ((4, 5), (5,), (4, 1, 5)):  # axes that a bias or a mask leaves out in front
        check("dot_product_attention", q, k, v, rtol=3e-5, bias=rng.normal(size=shape).astype("float32"))
        check("dot_product_attention", q, k, v, rtol=3e-5, mask=rng.random(shape) > 0.2)
    with pytest.raises(ValueError, match="must be a multiple"):
        ferrax.nn.dot_product_attention(jnp.ones((1, 2, 3, 4)), jnp.ones((1, 2, 2, 4)), jnp.ones((1, 2, 2, 4)))


def test_scaled_matmul():
    a = rng.integers(-3, 4, (2, 3, 8)).astype("float32")
    scale = np.array([0.5, 2.0], "float32") * np.ones((2, 3, 2), "float32")
    ours = ferrax.nn.scaled_matmul(*map(jnp.asarray, (a, a, scale, scale)))
    scaled = a * np.repeat(scale, 4, axis=-1)
    np.testing.assert_allclose(ours, np.einsum("bmk,bnk->bmn", scaled, scaled), rtol=1e-6)
    check("scaled_dot_general", a, a, (((2,), (2,)), ((0,), (0,))))


@pytest.mark.parametrize("own_rule", [False, True])
@pytest.mark.parametrize("axis", [-1, (0, 1), None])
def test_softmax_with_and_without_a_rule(own_rule, axis):
    def values(module):
        f = lambda x: module.nn.softmax(x, axis, where=W)
        with module.softmax_custom_jvp(own_rule):
            return f(X), module.jvp(f, (X,), (B,))[1], module.hessian(lambda x: f(x)[0, 0])(X)

    for a, b in zip(values(ferrax), values(jax)):
        assert_same(a, b, rtol=1e-5, atol=1e-6)


def test_softmax_with_a_rule_keeps_its_result_alone():
    for own_rule, sizes in [(True, [4]), (False, [4, 1, 1])]:
        with ferrax.softmax_custom_jvp(own_rule):
            kept = saved_residuals(ferrax.nn.softmax, jnp.ones(4))
        assert [aval.size for aval, _ in kept] == sizes


def test_one_hot_over_a_mapped_axis():
    classes = np.array([0, 2, 1])
    found = ferrax.vmap(lambda _: ferrax.nn.one_hot(classes, 3, axis="i"), axis_name="i")(jnp.arange(3))
    np.testing.assert_array_equal(found, np.eye(3)[classes].T)
    with pytest.raises(ValueError, match="Expected num_classes to match the size of axis i, but 5 != 3"):
        ferrax.vmap(lambda _: ferrax.nn.one_hot(classes, 5, axis="i"), axis_name="i")(jnp.arange(3))
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        ferrax.nn.one_hot(classes, 3.0)
