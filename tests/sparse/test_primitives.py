"""Operations of sparse arrays as primitives: bound with JAX's parameters, transformed, and shown by programs."""

import importlib

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax._composites import Composite
from ferrax.experimental import sparse
from ferrax.extend.core import Primitive
from ferrax.interpreters import mlir
from tests.recorded import expected
from tests.sparse.layouts import close

MAT = np.array([[0, 2, 0, 1], [3, 0, 0, 0], [0, 0, 4, 5]], np.float32)
DATA = np.array([2, 1, 3, 4, 5], np.float32)
INDICES = np.array([[0, 1], [0, 3], [1, 0], [2, 2], [2, 3]], np.int32)
# unsorted, an index twice, padding at the end
MESSY = np.array([[2, 3], [0, 1], [0, 1], [1, 0], [3, 4]], np.int32)
COLUMNS, STARTS, ROWS = INDICES[:, 1].copy(), np.array([0, 2, 3, 5], np.int32), INDICES[:, 0].copy()
V = np.array([1, -2, 0.5, 3], np.float32)
W = np.arange(8, dtype=np.float32).reshape(4, 2) - 3
PRODUCT = (((1,), (0,)), ((), ()))
SQUARE = (np.array([4, 1, 3, 5], np.float32), np.array([0, 1, 1, 2], np.int32), np.array([0, 2, 3, 4], np.int32))


def info(sparse, **flags):
    return sparse.util.SparseInfo((3, 4), **flags)


#: By primitive and case: operands, and parameters of JAX's modules of sparse arrays.
CASES = {
    "bcoo_todense": ((DATA, MESSY), lambda s: {"spinfo": info(s)}),
    "bcoo_fromdense": ((MAT,), lambda s: {"nse": 6, "n_batch": 0, "n_dense": 0, "index_dtype": np.dtype("int32")}),
    "bcoo_fromdense batch": (
        (MAT,),
        lambda s: {"nse": 2, "n_batch": 1, "n_dense": 0, "index_dtype": np.dtype("int32")},
    ),
    "bcoo_extract": ((INDICES, MAT), lambda s: {"assume_unique": True}),
    "bcoo_extract repeated": ((MESSY[:4], MAT), lambda s: {"assume_unique": False}),
    "bcoo_transpose": ((DATA, INDICES), lambda s: {"permutation": (1, 0), "spinfo": info(s)}),
    "bcoo_sort_indices": ((DATA, MESSY), lambda s: {"spinfo": info(s)}),
    "bcoo_sum_duplicates": ((DATA, MESSY), lambda s: {"spinfo": info(s), "nse": 3}),
    "bcoo_dot_general": (
        (DATA, MESSY, W),
        lambda s: {"dimension_numbers": PRODUCT, "preferred_element_type": None, "lhs_spinfo": info(s)},
    ),
    "bcoo_dot_general vector": (
        (DATA, INDICES, V),
        lambda s: {
            "dimension_numbers": PRODUCT,
            "preferred_element_type": None,
            "lhs_spinfo": info(s, indices_sorted=True, unique_indices=True),
        },
    ),
    "bcoo_dot_general_sampled": ((MAT, W, INDICES[:3] % 2), lambda s: {"dimension_numbers": PRODUCT}),
    "bcoo_spdot_general": (
        (DATA, INDICES, DATA, INDICES),
        lambda s: {
            "lhs_spinfo": info(s),
            "rhs_spinfo": info(s),
            "dimension_numbers": (((1,), (1,)), ((), ())),
            "preferred_element_type": None,
        },
    ),
    "bcsr_todense": ((DATA, COLUMNS, STARTS), lambda s: {"spinfo": info(s)}),
    "bcsr_fromdense": ((MAT,), lambda s: {"nse": 5, "n_batch": 0, "n_dense": 0, "index_dtype": np.dtype("int32")}),
    "bcsr_extract": ((COLUMNS, STARTS, MAT), lambda s: {}),
    "bcsr_dot_general": (
        (DATA, COLUMNS, STARTS, W),
        lambda s: {"dimension_numbers": PRODUCT, "preferred_element_type": None, "lhs_spinfo": info(s)},
    ),
    "coo_todense": ((DATA, ROWS, COLUMNS), lambda s: {"spinfo": s.coo.COOInfo((3, 4))}),
    "coo_fromdense": ((MAT,), lambda s: {"nse": 5, "index_dtype": np.dtype("int32")}),
    "coo_matvec": ((DATA, ROWS, COLUMNS, V), lambda s: {"spinfo": s.coo.COOInfo((3, 4)), "transpose": False}),
    "coo_matvec turned": (
        (DATA, ROWS, COLUMNS, V[:3]),
        lambda s: {"spinfo": s.coo.COOInfo((3, 4)), "transpose": True},
    ),
    "coo_matmat": ((DATA, ROWS, COLUMNS, W), lambda s: {"spinfo": s.coo.COOInfo((3, 4)), "transpose": False}),
    "csr_todense": ((DATA, COLUMNS, STARTS), lambda s: {"shape": (3, 4)}),
    "csr_fromdense": ((MAT,), lambda s: {"nse": 5, "index_dtype": np.dtype("int32")}),
    "csr_matvec": ((DATA, COLUMNS, STARTS, V), lambda s: {"shape": (3, 4), "transpose": False}),
    "csr_matmat": ((DATA, COLUMNS, STARTS, W[:3]), lambda s: {"shape": (3, 4), "transpose": True}),
    "spsolve": ((*SQUARE, V[:3]), lambda s: {"tol": 1e-6, "reorder": 1}),
}
FLOATS = {name: [i for i, x in enumerate(ops) if x.dtype == np.float32] for name, (ops, _) in CASES.items()}


def bound(jax, case):
    """A function of a case's floats that binds the primitive, and the floats."""
    module = importlib.import_module(f"{jax.__name__}.experimental.sparse")
    importlib.import_module(f"{jax.__name__}.experimental.sparse.linalg")
    name = case.split()[0]
    primitive = getattr(module.linalg if name == "spsolve" else module, f"{name}_p")
    operands, params = CASES[case]
    operands = [jax.numpy.asarray(x) for x in operands]

    def f(*floats):
        full = list(operands)
        for i, x in zip(FLOATS[case], floats, strict=True):
            full[i] = x
        out = primitive.bind(*full, **params(module))
        # in which order elements of a product of two are, nobody says
        return module.BCOO(out, shape=(3, 3)).todense() if name == "bcoo_spdot_general" else out

    return f, [operands[i] for i in FLOATS[case]]


def results(jax, case):
    f, floats = bound(jax, case)
    return jax.tree.leaves(f(*floats)), jax.tree.leaves(jax.jit(f)(*floats))


def tangents(jax, case):
    """Derivatives of the results that are floats, in directions that are the operands' cosines."""
    f, floats = bound(jax, case)
    outs, dots = jax.jvp(f, floats, [jax.numpy.cos(x) for x in floats])
    return [t for x, t in zip(jax.tree.leaves(outs), jax.tree.leaves(dots), strict=True) if x.dtype == np.float32]


def same(found, wanted):
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_results_like_jax(case):
    found, compiled = results(ferrax, case)
    wanted, _ = expected(results, case)
    same(found, wanted)
    same(compiled, wanted)


@pytest.mark.parametrize("case", CASES)
def test_derivatives_like_jax(case):
    same(tangents(ferrax, case), expected(tangents, case))


@pytest.mark.parametrize("case", CASES)
def test_gradients_and_maps_agree(case):
    """Cotangents are the transposes of tangents, in compiled functions too; a mapped primitive is a loop."""
    f, floats = bound(ferrax, case)

    def loss(*xs):
        return sum(jnp.sum(jnp.sin(x)) for x in ferrax.tree.leaves(f(*xs)) if x.dtype == np.float32)

    directions = [jnp.cos(x) for x in floats]
    grads = ferrax.grad(loss, tuple(range(len(floats))))(*floats)
    slope = ferrax.jvp(loss, floats, directions)[1]
    np.testing.assert_allclose(sum(jnp.sum(g * d) for g, d in zip(grads, directions)), slope, rtol=1e-4, atol=1e-5)
    same(ferrax.tree.leaves(ferrax.jit(ferrax.grad(loss))(*floats)), [grads[0]])
    rows = [jnp.stack([x, 2 * x]) for x in floats]
    mapped = ferrax.tree.leaves(ferrax.vmap(f)(*rows))
    loop = [ferrax.tree.leaves(f(*(r[i] for r in rows))) for i in range(2)]
    same(mapped, [jnp.stack(xs) for xs in zip(*loop, strict=True)])


def shown(jax, what):
    """The sparse primitives of a program, with their parameters as text."""
    module = importlib.import_module(f"{jax.__name__}.experimental.sparse")
    m = module.BCOO.fromdense(jax.numpy.asarray(MAT))
    r = module.BCSR.fromdense(jax.numpy.asarray(MAT))
    coo, csr = module.COO.fromdense(jax.numpy.asarray(MAT)), module.CSR.fromdense(jax.numpy.asarray(MAT))
    function, operand = {
        "product": (lambda a: a @ V, m),
        "transposed": (lambda a: a.T.todense(), m),
        "sorted": (lambda a: module.bcoo_sort_indices(a), m),
        "summed": (lambda a: a.sum_duplicates(nse=5, remove_zeros=False), m),
        "extracted": (lambda a: module.bcoo_extract(a, MAT), m),
        "of two": (lambda a: module.bcoo_dot_general(a, a, dimension_numbers=(((1,), (1,)), ((), ()))), m),
        "from dense": (lambda a: module.BCOO.fromdense(a, nse=5), jax.numpy.asarray(MAT)),
        "rows": (lambda a: (a @ V, a.todense()), r),
        "coo": (lambda a: (a @ V, a @ W, a.todense()), coo),
        "csr": (lambda a: (a @ V, a @ W, a.todense()), csr),
        "any": (lambda a: module.todense(a), m),
    }[what]
    eqns = jax.make_jaxpr(function)(operand).eqns
    found = [e for e in eqns if e.primitive.name.startswith(("bcoo", "bcsr", "coo", "csr", "todense"))]
    return [
        (e.primitive.name, {k: str(v) for k, v in sorted(e.params.items()) if k not in ("tree", "index_dtype")})
        for e in found
    ]


PROGRAMS = [
    "product",
    "transposed",
    "sorted",
    "summed",
    "extracted",
    "of two",
    "from dense",
    "rows",
    "coo",
    "csr",
    "any",
]


@pytest.mark.parametrize("what", PROGRAMS)
def test_programs_show_what_jax_s_show(what):
    assert shown(ferrax, what) == [(name, params) for name, params in expected(shown, what)] != []


def test_counts_are_needed_where_indices_are_traced():
    m = sparse.BCOO((jnp.asarray(DATA), jnp.asarray(MESSY)), shape=(3, 4))
    primitive = sparse.bcoo_sum_duplicates_p
    # data alone may be traced
    data, indices = primitive.bind(m.data, m.indices, spinfo=m._info, nse=None)
    assert data.shape == (3,) and indices.shape == (3, 2)
    with pytest.raises(ValueError, match="nse must be specified"):
        ferrax.jit(lambda i: primitive.bind(m.data, i, spinfo=m._info, nse=None))(m.indices)


def test_exported_programs_have_what_primitives_of_python_do():
    """Files know the primitives that ferrax defines; others are what they are lowered to, those of users too."""
    scaled = Primitive("scaled_for_export")
    scaled.def_abstract_eval(lambda x: x)
    mlir.register_lowering(scaled, mlir.lower_fun(lambda x: 3 * x, multiple_results=False))
    m = sparse.BCOO.fromdense(jnp.asarray(MAT))

    def f(data, v):
        product = sparse.BCOO((data, m.indices), shape=m.shape) @ v
        return scaled.bind(ferrax.lax.cond(v[0] > 0, lambda x: scaled.bind(x), lambda x: x, product))

    file = ferrax.export.export(ferrax.jit(f))(m.data, jnp.asarray(V)).serialize()
    np.testing.assert_allclose(ferrax.export.deserialize(file).call(m.data, V), 9 * (MAT @ V), rtol=1e-6)
    impure = Primitive("impure_for_export")
    impure.def_abstract_eval(lambda x: x)
    impure.def_impl(lambda x: x)
    mlir.register_lowering(impure, lambda ctx, x: x)
    with pytest.raises(NotImplementedError, match="host_callbacks"):
        ferrax.export.export(ferrax.jit(impure.bind))(1.0)


def test_shardings_go_through_the_function_of_a_primitive():
    devices = np.array(ferrax.devices("cpu"))
    sharding = ferrax.NamedSharding(ferrax.sharding.Mesh(devices, ("i",)), ferrax.P("i"))
    turned = Composite("turned_rows", lambda x: x.T * 2)
    x = ferrax.device_put(jnp.ones((len(devices), 2)), sharding)
    wanted = ferrax.jit(lambda x: x.T * 2)(x).sharding
    assert ferrax.jit(turned.bind)(x).sharding == wanted and wanted.spec == ferrax.P(None, "i")


# --- rules of sparsify


def test_users_give_rules_to_primitives():
    transform = sparse.transform
    double = Primitive("double_sparse")
    double.def_impl(lambda x: 2 * x)
    double.def_abstract_eval(lambda x: x)
    mlir.register_lowering(double, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    m = sparse.BCOO.fromdense(jnp.asarray(MAT))
    f = sparse.sparsify(lambda x: double.bind(x) + x)
    with pytest.raises(NotImplementedError, match="double_sparse"):
        f(m)

    def rule(spenv, value):
        data = 2 * spenv.data(value)
        return [spenv.sparse(value.shape, data, indices_ref=value.indices_ref)]

    transform.sparse_rules_bcoo[double] = rule
    try:
        close(f(m).todense(), 3 * MAT)
        assert f(m).nse == m.nse  # the indices stay the same object
    finally:
        del transform.sparse_rules_bcoo[double]


def test_a_users_rule_takes_the_place_of_the_librarys():
    rules, p = sparse.transform.sparse_rules_bcoo, ferrax.lax.sin_p
    own = rules[p]
    rules[p] = lambda spenv, value, **_: [spenv.dense(jnp.ones(value.shape))]
    try:
        close(sparse.sparsify(jnp.sin)(sparse.eye(2)), np.ones((2, 2)))
    finally:
        rules[p] = own
    close(sparse.sparsify(jnp.sin)(sparse.eye(2)).todense(), np.sin(np.eye(2)))


def from_table(jax, name, rows):
    """What a rule of a table gives for an array: its data, or the dense array."""
    module = importlib.import_module(f"{jax.__name__}.experimental.sparse")
    transform = module.transform
    env = transform.SparsifyEnv()
    mat = (module.BCSR if rows else module.BCOO).fromdense(jax.numpy.asarray(MAT))
    table = transform.sparse_rules_bcsr if rows else transform.sparse_rules_bcoo
    values = transform.arrays_to_spvalues(env, [mat])
    p = jax.lax
    primitive, others, params = {
        "sin": (p.sin_p, [], {"accuracy": None}),
        "neg": (p.neg_p, [], {}),
        "integer_pow": (p.integer_pow_p, [], {"y": 3}),
        "dot": (
            p.dot_general_p,
            [jax.numpy.asarray(V)],
            {
                "dimension_numbers": PRODUCT,
                "precision": None,
                "preferred_element_type": np.dtype("float32"),
                "out_sharding": None,
            },
        ),
        "transpose": (p.transpose_p, [], {"permutation": (1, 0)}),
    }[name]
    values += transform.arrays_to_spvalues(env, others)
    (out,) = transform.spvalues_to_arrays(env, list(table[primitive](env, *values, **params)))
    return [out.data, out.indices] if hasattr(out, "indices") else [out]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        *[(name, False) for name in ("sin", "neg", "integer_pow", "dot", "transpose")],
        *[(name, True) for name in ("sin", "neg", "dot")],
    ],
)
def test_rules_of_the_tables_like_jax(name, rows):
    same(from_table(ferrax, name, rows), expected(from_table, name, rows))


def evaluated(jax):
    """A program and a function run on values in an environment."""
    module = importlib.import_module(f"{jax.__name__}.experimental.sparse")
    lu = importlib.import_module(f"{jax.__name__}.extend.linear_util")
    transform, env = module.transform, module.transform.SparsifyEnv()
    mat = module.BCOO.fromdense(jax.numpy.asarray(MAT))
    program = jax.make_jaxpr(lambda x, v: (2 * x, jax.numpy.dot(x, v), x + x))(MAT, V)
    values = transform.arrays_to_spvalues(env, [mat, jax.numpy.asarray(V)])
    outs = transform.eval_sparse(program.jaxpr, program.consts, values, env)
    arrays = transform.spvalues_to_arrays(env, list(outs))
    debug = jax.api_util.debug_info("sparsify", lambda x: x, (1.0,), {})
    wrapped = lu.wrap_init(lambda x, v: [jax.numpy.sin(x), 3.0 * v], debug_info=debug)
    arrays += list(transform.sparsify_fun(wrapped, [mat, jax.numpy.asarray(V)]))
    return [a.todense() if hasattr(a, "todense") else a for a in arrays]


def test_programs_run_on_values_of_an_environment():
    same(evaluated(ferrax), expected(evaluated))


def split(jax):
    """What the flat form of a function of sparse arguments gives."""
    module = importlib.import_module(f"{jax.__name__}.experimental.sparse")
    mat = module.BCOO.fromdense(jax.numpy.asarray(MAT))
    scale = jax.numpy.float32(2.0)

    def f(v, pair):
        return ((pair["m"] @ v) * pair["s"]).sum()

    arguments = (jax.numpy.asarray(V), {"m": mat, "s": scale})
    flat, which, arrays, back = module.ad.flatten_fun_for_sparse_ad(f, (0, 1), arguments)
    v, pair = back(jax.grad(flat, which)(*arrays))
    return [int(i) for i in which], [v, pair["m"].data, pair["m"].indices, pair["s"]]


def test_flat_functions_of_sparse_arguments():
    (which, found), (places, wanted) = split(ferrax), expected(split)
    assert which == list(places)
    same(found, wanted)


def mapped(jax, shapes, axes):
    util = importlib.import_module(f"{jax.__name__}.experimental.sparse.util")
    arrays = [jax.numpy.arange(np.prod(s), dtype="float32").reshape(s) for s in shapes]
    return util.broadcasting_vmap(lambda x, y: jax.numpy.dot(x, y) + 1, in_axes=axes)(*arrays)


@pytest.mark.parametrize(
    ("shapes", "axes"),
    [(((1, 3), (2, 3)), 0), (((2, 3), (3, 1)), (0, 1)), (((3,), (2, 3)), (None, 0)), (((1, 3), (1, 3)), 0)],
)
def test_mapped_axes_of_size_one_broadcast(shapes, axes):
    same([mapped(ferrax, shapes, axes)], [expected(mapped, shapes, axes)])


def test_mapped_axes_of_other_sizes_do_not():
    with pytest.raises(ValueError, match="mismatched"):
        mapped(ferrax, ((2, 3), (4, 3)), 0)


def test_random_arrays_with_zeros():
    make = sparse.test_util.rand_sparse(np.random.RandomState(0), nse=0.25, post=jnp.asarray)
    x = make((4, 5), np.float32)
    assert isinstance(x, ferrax.Array) and x.dtype == np.float32 and np.count_nonzero(x) == 5
    assert np.count_nonzero(make((4, 5), np.float32, nse=7)) == 7
