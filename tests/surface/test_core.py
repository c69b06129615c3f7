"""Programs seen and made from Python: `core`, `extend.core`, rebinding of equations, states of traces."""

import re

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.extend import core
from ferrax.extend.core import primitives


def run(jaxpr, consts, *args):
    """An interpreter as libraries write it."""
    env = {}

    def read(v):
        return v.val if isinstance(v, core.Literal) else env[v]

    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        outs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.primitive.get_bind_params(eqn.params))
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
    return [read(v) for v in jaxpr.outvars]


W = jnp.arange(6.0).reshape(2, 3)


@jax.custom_jvp
def custom(x):
    return x**2


custom.defjvp(lambda p, t: (p[0] ** 2, 10.0 * t[0]))


@jax.custom_vjp
def custom_back(x):
    return x**2


custom_back.defvjp(lambda x: (x**2, x), lambda x, ct: (7.0 * ct,))

PROGRAMS = {
    "dot": lambda x: W @ x,
    "reductions": lambda x: (x.sum(), x.max(), jnp.argmax(x), jnp.cumsum(x)),
    "shapes": lambda x: (x.reshape(3, 1).T, x[::-1], jnp.concatenate([x, x]), jnp.pad(x, 1), x[1:]),
    "gather": lambda x: (x[jnp.array([0, 2])], x.at[1].add(2.0), lax.dynamic_slice(x, (1,), (2,))),
    "sort": lambda x: (jnp.sort(-x), lax.top_k(x, 2)),
    "control": lambda x: (
        lax.scan(lambda c, v: (c + v, c * v), 1.0, x),
        lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x.sum()), (0, 1.0)),
        lax.cond(x[0] > 0, lambda x: x, lambda x: -x, x),
        lax.fori_loop(0, 3, lambda i, c: c + i, x),
    ),
    "jit": lambda x: jax.jit(lambda y: y * 2 + W[0])(x),
    "custom": lambda x: (custom(x), custom_back(x)),
    "checkpoint": lambda x: jax.checkpoint(jnp.sin)(x),
    "random": lambda x: jax.random.normal(jax.random.key(0), (3,)) + x,
    "linalg": lambda x: (jnp.linalg.solve(jnp.outer(x, x) + jnp.eye(3), x), jnp.linalg.eigh(jnp.outer(x, x))[0]),
    "convolution": lambda x: jnp.convolve(x, x),
    "fft": lambda x: jnp.fft.rfft(x),
    "conversions": lambda x: (x.astype(jnp.int32), x.astype(jnp.bfloat16), lax.bitcast_convert_type(x, jnp.int32)),
    "callback": lambda x: jax.pure_callback(lambda v: np.sin(v), jax.ShapeDtypeStruct((3,), jnp.float32), x),
    "selects": lambda x: (jnp.where(x > 0, x, 0.0), jnp.clip(x, -1, 1), lax.select_n(x > 0, x, 2 * x)),
}
X = jnp.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize("name", PROGRAMS)
def test_equations_are_bound_again(name):
    program = jax.make_jaxpr(PROGRAMS[name])(X)
    wanted = jax.tree.leaves(PROGRAMS[name](X))
    for got in (
        run(program.jaxpr, program.consts, X),
        jax.jit(lambda x: run(program.jaxpr, program.consts, x))(X),
        jax.core.eval_jaxpr(program.jaxpr, program.consts, X),
        core.jaxpr_as_fun(program)(X),
    ):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(a, "complex64"), np.asarray(b, "complex64"), rtol=1e-5, atol=1e-6)


def test_custom_rules_survive():
    program = jax.make_jaxpr(lambda x: custom(x) + custom_back(x))(1.0)
    assert jax.grad(lambda x: run(program.jaxpr, program.consts, x)[0])(1.0) == 17.0


def test_programs_inside_can_be_replaced():
    program = jax.make_jaxpr(lambda x: jax.jit(lambda y: jnp.sin(y) + 1)(x))(1.0)
    (eqn,) = program.eqns
    other = jax.make_jaxpr(lambda y: y * 3)(1.0)
    [out] = eqn.primitive.bind(2.0, **(eqn.params | {"jaxpr": other}))
    assert out == 6.0


def test_closed_and_open():
    program = jax.make_jaxpr(lambda x: x @ W.T)(X)
    assert isinstance(program, core.ClosedJaxpr) and isinstance(program.jaxpr, core.Jaxpr)
    assert not isinstance(program, core.Jaxpr)
    assert len(program.jaxpr.constvars) == len(program.consts) == 1
    other = core.ClosedJaxpr(program.jaxpr, [2 * W])
    np.testing.assert_allclose(core.jaxpr_as_fun(other)(X)[0], X @ (2 * W).T)
    np.testing.assert_allclose(jax.core.eval_jaxpr(program.jaxpr, [3 * W], X)[0], X @ (3 * W).T)
    with pytest.raises(ValueError, match="has 1 constants, got 0"):
        core.ClosedJaxpr(program.jaxpr, [])
    with pytest.raises(TypeError, match="1 constants and 1 arguments"):
        jax.core.eval_jaxpr(program.jaxpr, [], X)


def test_traced_values_that_a_program_captured_are_constants():
    def f(a):
        program = jax.make_jaxpr(lambda x: a * x)(1.0)
        assert len(program.jaxpr.constvars) == len(program.consts) == 1
        assert len(program.jaxpr.invars) == 1
        return jax.core.eval_jaxpr(program.jaxpr, program.consts, 5.0)[0]

    assert jax.grad(f)(2.0) == 5.0
    assert jax.jit(f)(2.0) == 10.0


def test_numbers_that_a_function_closes_over_are_constants():
    c = jnp.array(2.0)
    program = jax.make_jaxpr(lambda x: x + c)(1.0)
    assert [float(v) for v in program.consts] == [2.0]
    assert jax.make_jaxpr(lambda x: x + jnp.array(2.0))(1.0).consts == []


def test_programs_made_from_parts():
    x, y, z = (core.Var(jax.typeof(1.0)) for _ in range(3))
    two = core.Literal(2.0, jax.typeof(2.0))
    eqns = [
        core.new_jaxpr_eqn([x, two], [y], primitives.mul_p, {}),
        core.new_jaxpr_eqn([y], [z], primitives.sin_p, {"accuracy": None}),
    ]
    jaxpr = core.Jaxpr([], [x], [z], eqns)
    core.check_jaxpr(jaxpr)
    np.testing.assert_allclose(jax.core.eval_jaxpr(jaxpr, [], 0.5)[0], np.sin(1.0), rtol=1e-6)
    closed = core.ClosedJaxpr(jaxpr, [])
    np.testing.assert_allclose(jax.grad(lambda v: core.jaxpr_as_fun(closed)(v)[0])(0.5), 2 * np.cos(1.0), rtol=1e-6)
    with pytest.raises(core.JaxprTypeError, match="not defined"):
        core.Jaxpr([], [x], [z], eqns[:1])


def test_parts_can_be_replaced():
    program = jax.make_jaxpr(lambda x: (jnp.sin(x), jnp.cos(x)))(0.5)
    first = program.jaxpr.replace(outvars=program.jaxpr.outvars[:1])
    assert len(jax.core.eval_jaxpr(first, [], 0.5)) == 1
    negated = [e.replace(primitive=primitives.neg_p, params={}) for e in program.eqns]
    assert jax.core.eval_jaxpr(program.jaxpr.replace(eqns=negated), [], 0.5) == [-0.5, -0.5]
    assert program.map_jaxpr(lambda j: first).out_avals == first.out_avals
    with pytest.raises(ValueError, match="Unknown keyword"):
        program.jaxpr.replace(other=1)


def test_programs_have_the_variables_that_they_are_made_of():
    """Libraries that put equations into programs, kfac-jax's tags, keep the parameters' variables meanwhile."""
    program = jax.make_jaxpr(lambda x, y: jnp.sin(x) * y)(0.5, 2.0)
    x, y = program.jaxpr.invars
    names = {x: "x", y: "y"}
    first, second = program.eqns
    shorter = program.jaxpr.replace(eqns=list(program.eqns))
    assert [names[v] for v in shorter.invars] == ["x", "y"] and shorter.outvars == program.jaxpr.outvars
    assert [e.outvars for e in shorter.eqns] == [e.outvars for e in program.eqns]
    tagged = core.Var(x.aval)
    tag = core.new_jaxpr_eqn([x], [tagged], primitives.neg_p, {}, set())
    closed = core.ClosedJaxpr(shorter.replace(eqns=[tag, first.replace(invars=[tagged]), second]), [])
    assert closed.eqns[1].invars == [tagged] and closed.jaxpr.invars == [x, y]
    again = closed.jaxpr.replace(eqns=[first, closed.eqns[2]])
    assert jax.core.eval_jaxpr(again, [], 0.5, 2.0) == jax.core.eval_jaxpr(program.jaxpr, [], 0.5, 2.0)
    three = jnp.arange(3.0)
    with_constants = jax.make_jaxpr(lambda x: x + three)(1.0)
    other = core.ClosedJaxpr(with_constants.jaxpr.replace(eqns=with_constants.eqns), [jnp.ones(3)])
    assert other.jaxpr.constvars == with_constants.jaxpr.constvars
    assert other.jaxpr.invars == with_constants.jaxpr.invars


def test_variables():
    (eqn,) = jax.make_jaxpr(lambda x: x + 1)(1).eqns
    x, one = eqn.invars
    assert isinstance(x, core.Var) and isinstance(one, core.Literal) and not hasattr(x, "val")
    assert one.val == 1 and one.aval.dtype == jnp.int32
    other = jax.make_jaxpr(lambda x: x + 1)(1).jaxpr.invars[0]
    assert x != other
    (sort,) = jax.make_jaxpr(lambda x: lax.sort_key_val(x, x)[1])(X).eqns
    assert [isinstance(v, core.DropVar) for v in sort.outvars] == [True, False]


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (2.0, float, "Literal(2.0)"),
        (2, int, "Literal(TypedInt(2, dtype=int32))"),
        (True, bool, "Literal(True)"),
        (np.float32(2), np.ndarray, "Literal(2.0)"),
        (np.int8(2), np.ndarray, "Literal(2)"),
        (np.complex64(1j), np.ndarray, "Literal(1j)"),
    ],
)
def test_literals_are_numbers(number, kind, text):
    """Those of Python's with a dtype of their own, where their types are weak, else NumPy's."""
    (eqn,) = jax.make_jaxpr(lambda x: lax.eq_p.bind(x, number))(number).eqns
    literal = eqn.invars[1]
    assert isinstance(literal.val, kind) and literal.val == number and repr(literal) == text
    assert np.asarray(literal.val, literal.aval.dtype).shape == () and hash(number) == literal.hash
    assert jnp.asarray(literal.val).aval == literal.aval


def test_built_in_primitives_by_name():
    (eqn,) = jax.make_jaxpr(jnp.exp)(1.0).eqns
    assert eqn.primitive is lax.exp_p is primitives.exp_p
    assert lax.add_p.bind(1.0, 2.0) == 3.0
    (jit,) = jax.make_jaxpr(jax.jit(lambda x: x + 1))(1.0).eqns
    assert jit.primitive is primitives.jit_p
    with pytest.raises(AttributeError):
        primitives.nothing_p
    with pytest.raises(TypeError, match="cannot be bound"):
        primitives.reduce_sum_p.bind(X)


def test_states_of_traces():
    outside = core.get_opaque_trace_state()
    assert outside == core.get_opaque_trace_state()
    seen = []
    f = lambda x: seen.append(core.get_opaque_trace_state() == outside) or x
    jax.jit(f)(1.0), jax.grad(f)(1.0), jax.vmap(f)(X), jax.jvp(f, (1.0,), (1.0,))
    assert seen == [False] * 4
    assert core.get_opaque_trace_state() == outside
    under = []
    jax.jit(lambda x: under.append(core.unsafe_am_i_under_a_jit_DO_NOT_USE()) or x)(1.0)
    assert under == [True] and not core.unsafe_am_i_under_a_jit_DO_NOT_USE()
    jax.vmap(lambda x: under.append(core.unsafe_get_axis_names_DO_NOT_USE()) or x, axis_name="i")(X)
    assert under[-1] == ["i"]


def test_a_tracer_knows_its_trace():
    def f(x):
        assert x._trace is core.find_top_trace((x,)) and x._trace.main is core.find_top_trace(()).main
        return x

    jax.jvp(f, (1.0,), (1.0,)), jax.vmap(f)(X), jax.jit(f)(1.0)


def test_moved_and_removed_names():
    with pytest.warns(DeprecationWarning, match="Use jax.extend.core.gensym"):
        assert jax.core.gensym is core.gensym
    with pytest.raises(AttributeError, match="removed"):
        jax.core.get_aval


PARAMETERS = {
    "products": lambda j: lambda x: j.numpy.dot(x, x.T).astype("float16"),
    "shapes": lambda j: lambda x: j.numpy.broadcast_to(x[0], (5, 3)).reshape(-1),
    "indices": lambda j: lambda x: x[j.numpy.array([0, 1])] + j.numpy.argmax(x, 0),
    "scatters": lambda j: lambda x: x.at[j.numpy.array([0, 1])].add(1.0, mode="drop"),
    "functions": lambda j: lambda x: j.numpy.sin(x) + j.numpy.exp(x) + j.numpy.sqrt(x) + j.lax.logistic(x),
    "bits": lambda j: lambda x: j.lax.bitcast_convert_type(x, "int32") + j.lax.iota("int32", 3),
    "convolutions": lambda j: lambda x: j.lax.conv(x[None, None], x[None, None, :1, :2], (1, 1), "SAME"),
}


def known(params):
    """Parameters as texts; functions and shardings have none that could be compared."""
    keep = lambda v: v is None or isinstance(v, (bool, int, float, str, tuple, np.dtype)) or hasattr(v, "_fields")
    return {k: str(getattr(v, "name", v)) if hasattr(v, "name") else str(v) for k, v in params.items() if keep(v)}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_have_the_names_and_values_of_the_reference(name):
    reference = pytest.importorskip("jax")
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    ours, theirs = (j.make_jaxpr(PARAMETERS[name](j))(x) for j in (jax, reference))
    wanted = [(str(e.primitive), known(e.params)) for e in theirs.eqns]
    names = [str(e.primitive) for e in ours.eqns]
    for primitive, texts in wanted:
        if names.count(primitive) == 1 == [n for n, _ in wanted].count(primitive):
            params = ours.eqns[names.index(primitive)].params
            got = {k: str(getattr(v, "name", v)) for k, v in params.items()}
            assert {k: got.get(k) for k in texts} == texts, primitive
    assert set(names) & {n for n, _ in wanted}
    # and they are what `bind` takes
    np.testing.assert_allclose(run(ours.jaxpr, ours.consts, x)[0], PARAMETERS[name](jax)(jnp.asarray(x)), rtol=1e-6)


def test_atoms_have_the_text_of_the_reference():
    def texts(j):
        program = j.make_jaxpr(lambda x, n: (2.0 * x + 1, n + 1))(np.ones(3, np.float32), 2)
        atoms = [*program.jaxpr.invars, *program.jaxpr.outvars, *(a for e in program.eqns for a in e.invars)]
        return [re.sub(r"id=\d+", "id=", repr(a)) for a in atoms]

    assert texts(jax) == texts(pytest.importorskip("jax"))


def test_internals_that_programs_over_jaxprs_import():
    from ferrax._src import api, util
    from ferrax._src.interpreters import mlir
    from ferrax._src.lax import lax as inner_lax
    from ferrax._src.lib.mlir.dialects import hlo

    assert api.grad is jax.grad and inner_lax.add is lax.add and mlir.lower_fun
    assert util.unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4)) and util.safe_zip([1], [2]) == [(1, 2)]
    assert util.split_list([1, 2, 3], [1]) == [[1], [2, 3]]
    parted = util.partition_list([False, True, False], "abc")
    assert parted == (["a", "c"], ["b"]) and util.merge_lists([False, True, False], *parted) == ["a", "b", "c"]
    with pytest.raises(NotImplementedError, match=r"hlo\.CustomCallOp: ferrax has no MLIR"):
        _ = hlo.CustomCallOp
    with pytest.raises(ValueError):
        util.safe_zip([1], [1, 2])


def test_calls_of_functions_are_what_these_do():
    from ferrax._src import core, linear_util as lu

    def called(primitive):
        def f(*args):
            flat, tree = jax.tree.flatten(args)
            wrapped = lu.wrap_init(lambda x, y: {"sum": x + y, "product": jnp.sin(x) * y})
            fun, out_tree = jax.api_util.flatten_fun_nokwargs(wrapped, tree)
            leaves = primitive.bind(*flat, subfuns=(fun,))
            return jax.tree.unflatten(out_tree(), leaves)

        return f

    for primitive in (core.call_p, core.closed_call_p):
        f = called(primitive)
        for g in (f, jax.jit(f)):
            out = g(2.0, 3.0)
            assert out["sum"] == 5.0 and np.isclose(out["product"], np.sin(2.0) * 3.0)
        assert np.isclose(jax.grad(lambda x: f(x, 3.0)["product"])(2.0), np.cos(2.0) * 3.0)
        np.testing.assert_allclose(jax.vmap(f, (0, None))(jnp.arange(3.0), 1.0)["sum"], [1.0, 2.0, 3.0])
    inner = jax.make_jaxpr(lambda x: (x + 1, x * 2))(1.0)
    assert core.closed_call_p.bind(3.0, call_jaxpr=inner) == [4.0, 6.0]


def test_programs_are_printed_with_jaxs_arguments():
    program = jax.make_jaxpr(lambda x: x + 1)(1.0)
    for shown in (program, program.jaxpr):
        assert shown.pretty_print() == shown.pretty_print(use_color=False, print_shapes=True) == str(shown)
        place, scopes = shown.pretty_print(source_info=True, name_stack=True).split("\n")
        assert place.startswith(f"{shown} # {__file__}:") and place.endswith("<lambda>)")
        assert scopes == " " * len(str(shown)) + " # []"
        with pytest.raises(NotImplementedError, match="another print_shapes"):
            shown.pretty_print(print_shapes=False)
        with pytest.raises(TypeError):
            shown.pretty_print(colour=True)


def test_comments_stand_behind_the_lines_of_their_equations():
    def inner(x):
        with jax.named_scope("inner"):
            return jnp.sin(x)

    program = jax.make_jaxpr(lambda x: jax.lax.cond(x > 0, inner, lambda x: -x, jax.jit(inner)(x)))(1.0)
    text = program.jaxpr.pretty_print(name_stack=True)
    assert "\n".join(line.partition(" # ")[0].rstrip() for line in text.split("\n")) == str(program)
    (line,) = {line.partition(" # ")[2] for line in text.split("\n") if " sin " in line}
    assert line == "[inner]"
    assert len({line.index(" # ") for line in text.split("\n") if " # " in line}) == 1


def test_functions_with_derivatives_of_their_own_are_bound_with_subfuns():
    scale = jnp.arange(3.0)  # a constant of the program

    @jax.custom_jvp
    def scaled(x):
        return scale * x

    scaled.defjvp(lambda p, t: (scale * p[0], 10.0 * t[0]))
    x = jnp.ones(3)
    (eqn,) = jax.make_jaxpr(scaled)(x).eqns
    params = eqn.primitive.get_bind_params(eqn.params)
    assert "call_jaxpr" not in params
    consts = [scale] * (len(eqn.invars) - 1)
    fun, rule = params["subfuns"]
    np.testing.assert_array_equal(fun.call_wrapped(*consts, x)[0], scale)
    np.testing.assert_array_equal(rule.call_wrapped(x, 2 * x)[1], 20.0 * x)
    again = lambda x: eqn.primitive.bind(*consts, x, **params)[0]
    np.testing.assert_array_equal(again(x), scale)
    np.testing.assert_array_equal(jax.jvp(again, (x,), (x,))[1], 10.0 * x)
    other = params | {"subfuns": (jax.extend.linear_util.wrap_init(lambda *args: [args[-1] + 1]), rule)}
    np.testing.assert_array_equal(jax.jit(lambda x: eqn.primitive.bind(*consts, x, **other)[0])(x), x + 1)


def test_a_variable_is_one_object_while_it_is_held():
    def f(x, y):
        _, z = lax.cond(x > 0, lambda v: (v, v + 1), lambda v: (v, v - 1), y)
        return z * x

    for jaxpr in (
        jax.make_jaxpr(f)(1.0, 2.0).jaxpr,
        jax.make_jaxpr(jax.jit(f))(1.0, 2.0).eqns[0].params["jaxpr"].jaxpr,
    ):
        held = {id(v): v for v in [*jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)]}
        read = [v for e in jaxpr.eqns for v in e.invars if not isinstance(v, core.Literal)]
        assert {id(v) for v in [*read, *jaxpr.outvars]} <= held.keys()
        assert jaxpr.eqns[0].outvars[0] is jaxpr.eqns[0].outvars[0]
    replaced = jaxpr.replace(eqns=jaxpr.eqns, invars=jaxpr.invars)
    assert replaced.invars[0] is replaced.eqns[0].invars[0]
    variable = core.Var(jax.typeof(1.0))
    assert core.Jaxpr([], [variable], [variable], []).outvars[0] is variable
