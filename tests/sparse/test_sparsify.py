"""Functions of dense arrays applied to sparse ones, and derivatives."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.experimental import sparse
from tests.sparse.layouts import close, messy

V = np.arange(1.0, 4.0, dtype="float32")

FUNCTIONS = {
    "product": lambda m: 2 * jnp.dot(m, V) + 1,
    "sin": jnp.sin,
    "log1p": lambda m: jnp.log1p(jnp.abs(m)),
    "sqrt": lambda m: jnp.sqrt(jnp.abs(m)),
    "square": jnp.square,
    "power": lambda m: m**3,
    "sign": jnp.sign,
    "astype": lambda m: m.astype("int32"),
    "bool": lambda m: m.astype(bool).astype("float32"),
    "expm1": jnp.expm1,
    "transpose": lambda m: m.T @ jnp.ones(4),
    "matmul": lambda m: m @ m.T,
    "einsum": lambda m: jnp.einsum("ij,kj->ki", m, m),
    "sum": lambda m: m.sum(0) * 2,
    "mean": jnp.mean,
    "twice": lambda m: m + m - 3 * m,
    "product of elements": lambda m: m * m * V,
    "quotient": lambda m: m / V,
    "reshape": lambda m: m.reshape(2, 6),
    "ravel": jnp.ravel,
    "stack": lambda m: jnp.stack([m, 2 * m]),
    "hstack": lambda m: jnp.hstack([m, m]),
    "expand": lambda m: m[:, None],
    "slice": lambda m: m[1:, ::2],
    "flip": jnp.flip,
    "dynamic slice": lambda m: lax.dynamic_slice(m, (jnp.int32(1), jnp.int32(1)), (2, 2)),
    "take": lambda m: m[jnp.array([3, 0])],
    "jit": jax.jit(jnp.sin),
    "nested jit": jax.jit(lambda m: jax.jit(jnp.tanh)(m).T),
    "remat": jax.checkpoint(lambda m: jnp.sin(m) * 2),
    "cond": lambda m: lax.cond(jnp.sum(m) > 1e3, lambda x: x * 2, lambda x: jnp.sin(x), m),
    "switch": lambda m: lax.switch(jnp.int32(jnp.sum(m) > 0) + 1, [lambda x: x, lambda x: -x, lambda x: 3 * x], m),
    "fori": lambda m: lax.fori_loop(0, 3, lambda i, x: x * 2, m),
    "while": lambda m: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, m))[1],
    "while over": lambda m: lax.while_loop(lambda v: jnp.sum(m @ v) > 1e2, lambda v: v / 2, 100 * V),
    "scan over": lambda m: lax.scan(lambda c, x: (c + m @ x, x.sum()), jnp.zeros(4), jnp.ones((2, 3)))[0],
    "scan of": lambda m: lax.scan(lambda c, x: (c * x, x), m, jnp.arange(1.0, 3.0))[0],
    "dense inside": lambda m: sparse.todense(m) + 1,
    "gradient": lambda m: jax.grad(lambda v: jnp.sin(m @ v).sum())(V),
    "broadcast": lambda m: jnp.broadcast_to(m, (2, 4, 3)),
    "squeeze": lambda m: m[None][0],
    "convolution": lambda m: lax.conv_general_dilated(m.reshape(1, 1, 12), jnp.ones((1, 1, 3)), (1,), "SAME"),
    "constant": lambda m: jnp.ones(3),
    "tree": lambda m: {"a": m.T, "b": [m.sum(), V]},
}


@jax.custom_jvp
def doubled(x):
    return 2 * x


doubled.defjvp(lambda primals, tangents: (2 * primals[0], 2 * tangents[0]))


@jax.custom_vjp
def halved(x):
    return x / 2


halved.defvjp(lambda x: (x / 2, None), lambda _, ct: (ct / 2,))
FUNCTIONS["custom jvp"] = doubled


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    mat, dense = messy((4, 3))
    function = FUNCTIONS[name]
    wanted = function(jnp.asarray(dense, "float32"))
    for transformed in (sparse.sparsify(function), jax.jit(sparse.sparsify(function)), sparse.sparsify(function, True)):
        out = transformed(mat)
        is_leaf = sparse.test_util.is_sparse
        assert jax.tree.structure(out, is_leaf=is_leaf) == jax.tree.structure(wanted)
        for a, b in zip(jax.tree.leaves(out, is_leaf=is_leaf), jax.tree.leaves(wanted)):
            assert a.dtype == b.dtype
            close(a, b, 1e-4)


def test_what_is_sparse():
    mat, _ = messy((4, 3))
    for name, is_sparse in [("sin", True), ("product", False), ("sum", True), ("mean", False), ("cond", True)]:
        assert sparse.test_util.is_sparse(sparse.sparsify(FUNCTIONS[name])(mat)) == is_sparse
    assert isinstance(sparse.sparsify(lambda: 1.0)(), jax.Array)
    assert sparse.sparsify(lambda x, y=1: x * y)(mat, y=3).nse == mat.nse
    assert sparse.sparsify(lambda x, y: y + 1)(mat, V).tolist() == (V + 1).tolist()


@pytest.mark.parametrize(
    "function, text",
    [
        (jnp.cos, "sparse rule for cos is not implemented because it would result in dense output"),
        (jnp.exp, "would result in dense output"),
        (jnp.sort, "sparse rule for sort is not implemented"),
        (jnp.max, "sparse rule for reduce_max is not implemented"),
        (lambda m: jnp.maximum(m, 0), "sparse rule for max is not implemented"),
        (lambda m: m**-1, "integer_pow is not implemented because it would result in dense output"),
        (lambda m: lax.scan(lambda c, x: (c, x), 0.0, m), "sparse rule for scan with x values"),
        (lambda m: m + 1, "Addition between a sparse array"),
        (halved, "sparse rule for custom_vjp_call is not implemented"),
    ],
)
def test_what_is_not_there(function, text):
    with pytest.raises(NotImplementedError, match=text):
        sparse.sparsify(function)(messy((4, 3))[0])


def test_of_bcsr():
    mat, dense = messy((4, 3))
    mat = sparse.BCSR.from_bcoo(mat)
    for function in [jnp.sin, lambda m: -m, lambda m: 2 * m, lambda m: m @ V, lambda m: m / 2, jnp.square]:
        out = sparse.sparsify(function)(mat)
        close(out, function(dense.astype("float32")), 1e-4)
    with pytest.raises(NotImplementedError, match="sparse rule for transpose is not implemented"):
        sparse.sparsify(jnp.transpose)(mat)


def test_a_regression():
    """The logistic regression of JAX's documentation, on data of a fixed kind."""
    from ferrax.scipy import optimize

    x = np.where(np.random.default_rng(0).random((60, 3)) < 0.5, np.random.default_rng(1).standard_normal((60, 3)), 0)
    y = (x @ [1.0, -2.0, 0.5] + np.random.default_rng(2).standard_normal(60) > 0).astype("float32")

    def fit(x, y):
        def loss(params):
            p = 0.5 * (jnp.tanh((jnp.dot(x, params[1:]) + params[0]) / 2) + 1)
            return -jnp.mean(y * jnp.log(p) + (1 - y) * jnp.log(1 - p))

        return optimize.minimize(loss, x0=jnp.zeros(x.shape[1] + 1), method="BFGS").x

    x = jnp.asarray(x, "float32")
    np.testing.assert_allclose(sparse.sparsify(fit)(sparse.BCOO.fromdense(x), y), fit(x, y), rtol=1e-3, atol=1e-3)


# --- derivatives

PRODUCTS = {
    "matvec": lambda m, v: m @ v,
    "todense": lambda m, v: m.todense() * v,
    "sum": lambda m, v: m.sum(0).todense() * v,
    "summed up": lambda m, v: m.sum_duplicates(nse=m.nse, remove_zeros=False) @ v,
    "sorted": lambda m, v: m.sort_indices() @ v,
    "transposed": lambda m, v: m.T.reshape(12).todense(),
    "sliced": lambda m, v: m[1:, :2] @ v[:2],
    "squared": lambda m, v: (m * m) @ v,
    "product of two": lambda m, v: (m @ m.T).todense(),
    "layout": lambda m, v: m.update_layout(n_batch=1, on_inefficient=None) @ v,
    "dense axis": lambda m, v: m.update_layout(n_dense=1, on_inefficient=None).todense() @ v,
    "joined": lambda m, v: sparse.bcoo_concatenate([m, m], dimension=1) @ jnp.concatenate([v, v]),
    "compressed": lambda m, v: sparse.BCSR.from_bcoo(m) @ v,
    "times": lambda m, v: (m * v).sum(1).todense(),
    "sparsified": lambda m, v: sparse.sparsify(lambda x: jnp.sin(x) @ v)(m),
    "dynamic": lambda m, v: sparse.bcoo_dynamic_slice(m, (1, 0), (2, 3)) @ v,
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_derivatives(name):
    """Those of the data are the ones of the dense function along the data."""
    mat, _ = messy((4, 3))
    function = PRODUCTS[name]

    def of_data(data, v):
        return function(sparse.BCOO((data, mat.indices), shape=mat.shape), v).sum()

    jax.test_util.check_grads(of_data, (mat.data, V), order=2, modes=("fwd", "rev"), eps=1e-2, atol=3e-2, rtol=3e-2)
    by_mat, by_v = jax.jit(sparse.grad(lambda m, v: function(m, v).sum(), (0, 1)))(mat, V)
    assert by_mat.shape == mat.shape and by_mat.nse == mat.nse
    close(by_mat.data, jax.grad(of_data)(mat.data, V), 1e-4)
    close(by_v, jax.grad(of_data, 1)(mat.data, V), 1e-4)


def test_derivatives_from_and_of_dense():
    dense = jnp.array([[0.0, 2.0], [3.0, 0.0]])
    weights = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    gradient = jax.grad(lambda x: (sparse.BCOO.fromdense(x, nse=3).todense() * weights).sum())(dense)
    assert gradient.tolist() == [[0, 2], [3, 0]]
    mat = sparse.BCOO.fromdense(dense)
    gradient = jax.grad(lambda x: (sparse.bcoo_extract(mat, x).data * jnp.array([5.0, 7.0])).sum())(weights)
    assert gradient.tolist() == [[0, 5], [7, 0]]
    a = jnp.ones((2, 3))
    numbers = (((1,), (1,)), ((), ()))
    jax.test_util.check_grads(
        lambda a, b: sparse.bcoo_dot_general_sampled(a, b, mat.indices, dimension_numbers=numbers),
        (a, a + 1),
        order=1,
        modes=("fwd", "rev"),
        eps=1e-2,
        atol=1e-2,
        rtol=1e-2,
    )


def test_derivatives_of_custom_rules():
    """The rule's, not those of the function."""
    mat = sparse.BCOO.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))

    @jax.custom_jvp
    def times(x, v):
        return x * 2 + x * v

    times.defjvp(lambda primals, tangents: (times(*primals), 20 * tangents[0] + primals[0] * tangents[1]))
    for transform in (lambda f: f, jax.jit):
        function = transform(sparse.grad(lambda m, v: sparse.sparsify(times)(m, v).todense().sum(), (0, 1)))
        by_mat, by_v = function(mat, jnp.array([3.0, 4.0]))
        assert by_mat.data.tolist() == [20, 20] and by_v.tolist() == [2, 1]
    product = jax.custom_jvp(lambda x, v: x @ v)
    product.defjvps(lambda t, _, x, v: 20 * (t @ v), lambda t, _, x, v: 30 * (x @ t))
    by_mat, by_v = sparse.grad(lambda m, v: sparse.sparsify(product)(m, v).sum(), (0, 1))(mat, jnp.array([3.0, 4.0]))
    assert by_mat.data.tolist() == [80, 60] and by_v.tolist() == [60, 30]
    through = jax.custom_jvp(lambda x: x)
    through.defjvps(lambda t, _, x: 5 * t)
    assert sparse.grad(lambda m: sparse.sparsify(through)(m).todense().sum())(mat).data.tolist() == [5, 5]
    relu = jax.custom_jvp(jnp.sin)
    relu.defjvps(lambda t, _, x: t * jnp.cos(x))
    with pytest.raises(NotImplementedError, match="sparse rule for cos"):
        sparse.grad(lambda m: sparse.sparsify(relu)(m).todense().sum())(mat)


@pytest.mark.parametrize("jacobian", ["jacfwd", "jacrev", "jacobian"])
def test_jacobians(jacobian):
    mat, _ = messy((4, 3))
    transform = getattr(sparse, jacobian)
    jac = transform(lambda m, v: (m @ v) ** 2)(mat, V)
    assert (jac.shape, jac.n_batch, jac.nse) == ((4, 4, 3), 1, mat.nse)
    wanted = jax.jacrev(lambda d: (sparse.BCOO((d, mat.indices), shape=mat.shape) @ V) ** 2)(mat.data)
    close(jac.data, wanted)
    out, aux = transform(lambda m: ({"a": m @ V, "b": m.sum()}, m), has_aux=True)(mat)
    assert out["a"].shape == (4, 4, 3) and out["b"].shape == (4, 3) and aux.nse == mat.nse
    jac = transform(lambda m, v: m @ v, argnums=(1, 0))(sparse.BCSR.from_bcoo(mat), V)
    close(jac[0], mat.todense())
    assert isinstance(jac[1], sparse.BCSR) and jac[1].shape == (4, 4, 3)
    with pytest.raises(ValueError, match="argnums"):
        transform(lambda m: m @ V, argnums=1)(mat)


def test_gradients_of_all_kinds():
    mat, dense = messy((4, 3))
    value, (by_mat, by_v) = sparse.value_and_grad(lambda m, v: (m @ v).sum(), argnums=(0, 1))(mat, V)
    close(value, (dense @ V).sum(), 1e-4)
    close(by_v, dense.sum(0))
    (value, aux), _ = sparse.value_and_grad(lambda m: ((m @ V).sum(), m), has_aux=True)(mat)
    assert aux.nse == mat.nse
    by_tree, aux = sparse.grad(lambda d: ((d["m"] @ d["v"]).sum(), 1), has_aux=True)({"m": mat, "v": V})
    assert isinstance(by_tree["m"], sparse.BCOO) and aux == 1
    for cls in (sparse.COO, sparse.CSR, sparse.CSC):
        other = cls.fromdense(dense.astype("float32"))
        out = sparse.grad(lambda m: (m @ V).sum())(other)
        assert type(out) is cls
        close(out, np.where(dense != 0, V, 0))
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        jax.grad(lambda m: (m @ V).sum())(mat)
    with pytest.raises(TypeError, match="real-valued outputs"):
        sparse.jacrev(lambda m: m * 2)(mat)


def test_gradients_under_vmap():
    mats, dense = messy((2, 4, 3), 1)
    out = jax.vmap(sparse.grad(lambda m: jnp.sin(m @ V).sum()))(mats)
    assert (out.shape, out.n_batch) == ((2, 4, 3), 1)
    for i in range(2):
        one = sparse.BCOO((mats.data[i], mats.indices[i]), shape=(4, 3))
        close(out.data[i], sparse.grad(lambda m: jnp.sin(m @ V).sum())(one).data)


def test_conversions_of_duplicates():
    """Elements of one index are added up before a conversion that is not additive."""
    indices = jnp.array([[1], [1], [0]])
    for data, dtype, wanted in [
        (jnp.array([0.5, 0.5, 0.25]), "int32", [0, 1, 0]),
        (jnp.array([1, -1, 2]), bool, [True, False, False]),
        (jnp.array([True, True, True]), "int32", [1, 1, 0]),
        (jnp.array([1, 2, 3]), "float32", [3, 3, 0]),
        (jnp.array([1 + 2j, 3, 1j]), "complex64", [1j, 4 + 2j, 0]),
    ]:
        mat = sparse.BCOO((data, indices), shape=(3,))
        out = mat.astype(dtype)
        assert out.todense().tolist() == wanted
    assert sparse.BCOO((jnp.array([1, 2, 3]), indices), shape=(3,)).astype("float32").indices is indices
    half = sparse.BCOO.fromdense(jnp.ones(2, "bfloat16"))
    through = jax.custom_jvp(lambda x: x)
    through.defjvps(lambda t, _, x: 5 * t)
    assert sparse.grad(lambda m: sparse.sparsify(through)(m).todense().sum())(half).data.tolist() == [5, 5]


# --- values in an environment


def test_values_in_an_environment():
    from ferrax.experimental.sparse import transform

    env = transform.SparsifyEnv()
    arrays = (sparse.eye(3), jnp.ones(3), 2.0, sparse.BCSR.fromdense(jnp.eye(2)))
    values = transform.arrays_to_spvalues(env, arrays)
    refs = [(v.data_ref, v.indices_ref, v.indptr_ref) for v in values]
    assert refs == [(0, 1, None), (2, None, None), (3, None, None), (4, 5, 6)]
    assert [v.is_bcoo() for v in values] == [True, False, False, False] and values[3].is_bcsr()
    back = transform.spvalues_to_arrays(env, values)
    assert back[0].indices is arrays[0].indices and back[0]._info == arrays[0]._info
    assert [str(a) for a in transform.spvalues_to_avals(env, values)][:2] == ["float32[3,3]", "float32[3]"]
    out, tree = transform.sparsify_raw(lambda x, y: {"a": x @ y, "b": x * 2})(env, *values[:2])
    assert str(tree) == "PyTreeDef({'a': *, 'b': *})" and out[1].indices_ref == 1 and out[0].is_dense()
    with pytest.raises(RuntimeError, match="no indices"):
        env.indices(values[1])
    with pytest.raises(ValueError, match="one of data and data_ref"):
        env.sparse((3,), indices=jnp.zeros((1, 1), int))


def traced(f):
    return sparse.sparsify(f, use_tracer=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tracers_give_what_programs_give(name):
    mat, _ = messy((4, 3))
    wanted, out = ({"out": f(FUNCTIONS[name])(mat)} for f in (sparse.sparsify, traced))
    outs, tree = jax.tree.flatten(out, is_leaf=sparse.test_util.is_sparse)
    assert tree == jax.tree.structure(wanted, is_leaf=sparse.test_util.is_sparse)
    for x, y in zip(outs, jax.tree.leaves(wanted, is_leaf=sparse.test_util.is_sparse)):
        assert sparse.test_util.is_sparse(x) == sparse.test_util.is_sparse(y)
        close(x, np.asarray(sparse.todense(y)))


def test_functions_on_tracers_see_sparse_values():
    seen = []
    mat = sparse.eye(3)
    out = jax.jit(traced(lambda x: seen.append(x) or 2 * x))(mat)
    assert isinstance(seen[0], sparse.SparseTracer) and isinstance(seen[0], jax.core.Tracer)
    assert seen[0].spenv.data(seen[0]._spvalue).shape == (3,) and seen[0].shape == (3, 3)
    close(out, 2 * np.eye(3, dtype="float32"))
    sparse.sparsify(lambda x: seen.append(x))(mat)
    assert not isinstance(seen[1], sparse.SparseTracer)
    with pytest.raises(NotImplementedError, match="sparse rule for cumsum is not implemented"):
        traced(jnp.cumsum)(mat)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        traced(lambda x: float(x.sum()))(mat)
    with pytest.raises(RuntimeError, match="environment"):
        sparse.SparseTracer(object(), spvalue=None)


def test_tracers_under_transformations():
    mat = sparse.BCOO.fromdense(jnp.arange(6.0).reshape(2, 3))
    total = traced(lambda x: jnp.sum(jnp.sin(x) * x))
    slope = jax.grad(lambda data: total(sparse.BCOO((data, mat.indices), shape=mat.shape)))(mat.data)
    np.testing.assert_allclose(slope, jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))(jnp.arange(1.0, 6.0)), rtol=1e-6)
    loop = traced(lambda x: lax.fori_loop(0, 3, lambda i, y: y * 2, x))
    close(loop(mat), 8 * np.arange(6.0, dtype="float32").reshape(2, 3))


def test_sums_take_the_shape_of_the_dense_operand():
    mat, dense = messy((2, 3))
    other = np.ones((4, 2, 3), "float32")
    for way in (sparse.sparsify, traced):
        close(way(lambda x: x + other)(mat), dense + other)
        with pytest.raises(NotImplementedError, match=r"larger than Y\.shape"):
            way(lambda x: x + jnp.ones((1, 3)))(mat)
