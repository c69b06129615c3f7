"""Functions that are one equation of programs: `fused`, `scheduling_group`, primitives of networks, their rules."""

import importlib
import re

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._composites import Composite
from ferrax.experimental import control_deps, rnn, scheduling_groups
from ferrax.experimental.fused import fused
from ferrax.interpreters import partial_eval as pe
from tests.recorded import expected

DEVICE = ferrax.memory.Space.Device
X = np.array([0.5, -1.0, 2.0], np.float32)


def plain(x, y):
    return {"a": jnp.sin(x) * y, "b": x + 1}


WRAPPED = {
    "fused": fused(out_spaces=(DEVICE, DEVICE))(plain),
    "scheduling_group": scheduling_groups.scheduling_group("layer")(plain),
    "xla_metadata_call": scheduling_groups.xla_metadata_call(plain, first="1", second="2"),
}
TRANSFORMED = {
    "eager": lambda f: f(X, 2.0),
    "jit": lambda f: ferrax.jit(f)(X, 2.0),
    "vmap": lambda f: ferrax.vmap(f, in_axes=(0, None))(jnp.stack([X, 2 * X]), 3.0),
    "vmap of names": lambda f: ferrax.vmap(lambda x: lax.psum(f(x, 2.0)["a"], "i"), axis_name="i")(X),
    "jvp": lambda f: ferrax.jvp(f, (X, 2.0), (jnp.cos(X), 1.0)),
    "grad": lambda f: ferrax.grad(lambda x, y: jnp.sum(f(x, y)["a"] * f(x, y)["b"]), (0, 1))(X, 2.0),
    "hessian": lambda f: ferrax.hessian(lambda x: jnp.sum(f(x, 2.0)["a"]))(X),
    "scan": lambda f: lax.scan(lambda c, x: (f(x, c)["a"], f(x, c)), 1.0, X),
    "checkpoint": lambda f: ferrax.grad(lambda x: jnp.sum(ferrax.checkpoint(f)(x, 2.0)["a"]))(X),
    "captured": lambda f: ferrax.grad(lambda y: jnp.sum(ferrax.jit(lambda x: f(x, y)["a"])(X)))(2.0),
    "linearize": lambda f: ferrax.linearize(lambda x: f(x, 2.0), X)[1](X),
}


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("kind", WRAPPED)
def test_as_the_function(kind, name):
    found, wanted = TRANSFORMED[name](WRAPPED[kind]), TRANSFORMED[name](plain)
    assert ferrax.tree.structure(found) == ferrax.tree.structure(wanted)
    for x, y in zip(ferrax.tree.leaves(found), ferrax.tree.leaves(wanted), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_equations_have_the_program_and_the_notes():
    (eqn,) = ferrax.make_jaxpr(WRAPPED["xla_metadata_call"])(X, 2.0).eqns
    assert eqn.primitive is scheduling_groups.xla_metadata_call_p
    assert {k: v for k, v in eqn.params.items() if k != "jaxpr"} == {"first": "1", "second": "2"}
    assert [e.primitive.name for e in eqn.params["jaxpr"].eqns][0] == "sin"
    (eqn,) = ferrax.make_jaxpr(WRAPPED["fused"])(X, 2.0).eqns
    assert eqn.primitive.name == "fused_call" and eqn.params["out_spaces"] == (DEVICE, DEVICE)


def _calls(f, *args):
    """Of the program of a function: names and notes of functions that are called, and how many functions there are."""
    text = ferrax.jit(f).lower(*args).as_text()
    return re.findall(r"call (@\w+)\(.*(\{\w+ = [^}]*\})", text), text.count("func.func private @xla_metadata_call")


def test_lowered_programs_call_functions_with_notes():
    notes = '{inlineable = "false"}'
    double = scheduling_groups.xla_metadata_call(ferrax.jit(lambda x: x * 2), inlineable="false")
    twice = lambda x: double(double(x)).sum()
    call = ("@xla_metadata_call", notes)
    assert _calls(twice, X) == ([call] * 2, 1)
    assert _calls(ferrax.grad(twice), X) == ([call] * 2, 1)
    assert _calls(ferrax.vmap(double), X) == ([call], 1)
    (outer, inner), count = _calls(scheduling_groups.scheduling_group("outer")(double), X)
    assert (outer[1], inner[1], count) == ('{scheduling_group = "outer"}', notes, 2)


def test_equations_of_derivatives_have_the_notes():
    f = scheduling_groups.scheduling_group("g")(lambda x: jnp.sin(x) * 2)
    forward, backward = ferrax.make_jaxpr(ferrax.grad(f))(1.0).eqns
    assert forward.params["scheduling_group"] == backward.params["scheduling_group"] == "g"
    assert [e.primitive.name for e in forward.params["jaxpr"].eqns] == ["sin", "cos", "mul"]
    assert [e.primitive.name for e in backward.params["jaxpr"].eqns] == ["mul", "mul"]


def test_orders_between_operations():
    @ferrax.jit
    def f(x, y):
        first, second = jnp.sin(x), jnp.cos(y)
        control_deps.schedule([second, first])
        return first + second

    text = f.lower(1.0, 2.0).as_text("hlo")
    call = (
        'ffi_call.1 = () custom-call(cos.1, sin.1), custom_call_target="control_dep", custom_call_has_side_effect=true'
    )
    assert f"{call}, api_version=API_VERSION_TYPED_FFI, backend_config={{}}\n" in text
    np.testing.assert_allclose(f(1.0, 2.0), jnp.sin(1.0) + jnp.cos(2.0), rtol=1e-6)
    assert control_deps.schedule([jnp.ones(1), jnp.ones(2), jnp.ones(3)]) is None


def test_foreign_functions_in_hlo():
    f = lambda x, **attributes: ferrax.ffi.ffi_call("foo", ferrax.ShapeDtypeStruct((2,), "float32"))(x, **attributes)
    text = ferrax.jit(lambda x: f(x, a="s", b=True)).lower(X).as_text("hlo")
    assert (
        'f32[2]{0} custom-call(x.1), custom_call_target="foo", operand_layout_constraints={f32[3]{0}}, '
        'api_version=API_VERSION_TYPED_FFI, backend_config={a = "s", b = true}'
    ) in text
    with pytest.raises(NotImplementedError, match="numbers"):
        ferrax.jit(lambda x: f(x, n=3)).lower(X).as_text("hlo")


def test_keyword_arguments_and_what_is_captured():
    offset = jnp.arange(3.0)

    @scheduling_groups.scheduling_group("g")
    def f(x, *, scale):
        return x * scale + offset

    np.testing.assert_allclose(ferrax.jit(f)(X, scale=2.0), 2 * X + np.arange(3))
    np.testing.assert_allclose(ferrax.grad(lambda s: f(X, scale=s).sum())(2.0), X.sum())


def test_effects_inside_are_kept(capsys):
    @scheduling_groups.scheduling_group("g")
    def f(x):
        ferrax.debug.print("seen {}", x)
        return x

    ferrax.jit(lambda x: (f(x), 3)[1])(1.0)
    ferrax.effects_barrier()
    assert capsys.readouterr().out == "seen 1.0\n"


def test_mistakes():
    with pytest.raises(NotImplementedError, match="texts"):
        scheduling_groups.xla_metadata_call(plain, note=1)(X, 1.0)
    with pytest.raises(ValueError, match="1 memory spaces for 2 results"):
        fused(out_spaces=(DEVICE,))(plain)(X, 1.0)
    with pytest.raises(NotImplementedError, match="Host"):
        fused(out_spaces=(DEVICE, ferrax.memory.Space.Host))(plain)(X, 1.0)


# --- dead code


def shortened(jax):
    """Numbers of equations and arguments that stay, by what is wanted."""
    partial_eval = importlib.import_module(f"{jax.__name__}.interpreters.partial_eval")
    groups = importlib.import_module(f"{jax.__name__}.experimental.scheduling_groups")
    scale = np.ones(3, np.float32)

    def f(x, y, z):
        a, b = groups.scheduling_group("g")(lambda x, y: (x * 2, y + 1))(x, y)
        c, d = jax.jit(lambda a, z: (a - z, z * scale))(a, z)
        return b, c, d

    program = jax.make_jaxpr(f)(X, X, X).jaxpr
    found = []
    for wanted in ([True, False, False], [False, True, False], [False, False, True], [False] * 3):
        less, used = partial_eval.dce_jaxpr(program, wanted)
        inner = [len(e.params["jaxpr"].eqns) for e in less.eqns if "jaxpr" in e.params]
        found.append((list(used), inner))
    a, b = jax.numpy.ones(2), jax.numpy.zeros(3)
    constant = jax.make_jaxpr(lambda x, y: (x + a, y + b, x))(1.0, 1.0).jaxpr
    for wanted in ([True, False, False], [False, True, True], [False] * 3):
        less, consts, used = partial_eval.dce_jaxpr_consts(constant, wanted)
        found.append((list(consts), [*used, len(less.constvars), len(less.eqns)]))
    found.append(partial_eval.dce_jaxpr_consts(constant, [False] * 3, [True, False, True, False])[1:])
    (eqn,) = [e for e in program.eqns if e.primitive.name == "xla_metadata_call"]
    for wanted in ([True, False], [False, True], [False, False]):
        used, less = groups.dce_jaxpr_xla_metadata_rule(wanted, eqn)
        found.append((list(used), None if less is None else len(less.invars)))
    return found


def test_dead_code_like_jax():
    assert shortened(ferrax) == [tuple(x) for x in expected(shortened)]


def test_users_rules_of_dead_code():
    p = Composite("pair_for_dce", lambda x, y: [x + 1, y + 1], multiple_results=True)
    program = ferrax.make_jaxpr(lambda x, y: p.bind(x, y))(1.0, 1.0).jaxpr
    assert pe.dce_jaxpr(program, [True, False])[1] == [True, True]
    pe.dce_rules[p] = lambda used, eqn: (list(used), None)
    try:
        less, used = pe.dce_jaxpr(program, [False, False])
    finally:
        del pe.dce_rules[p]
    assert not less.eqns and used == [False, False]


# --- networks

SIZES = dict(input_size=3, hidden_size=4, num_layers=2, dropout=0.0, bidirectional=True)


def network():
    rng = np.random.default_rng(0)
    count = rnn.get_num_params_in_lstm(3, 4, 2, True)
    draw = lambda *shape: jnp.asarray(0.5 * rng.normal(size=shape), np.float32)
    return draw(2, 5, 3), draw(4, 2, 4), draw(4, 2, 4), draw(count), jnp.array([5, 3], np.int32)


def test_the_primitives_of_networks_are_the_network():
    operands = network()
    outs, kept = rnn.lstm_fwd(*operands, *SIZES.values(), None)
    wanted = rnn.lstm(*operands, *SIZES.values())
    for x, y in zip(outs, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)
    cts = [jnp.cos(x) for x in outs]
    *found, lengths = rnn.lstm_bwd(*SIZES.values(), None, kept, cts)
    pulled = ferrax.vjp(lambda *xs: rnn.lstm(*xs, operands[4], *SIZES.values()), *operands[:4])[1](tuple(cts))
    assert lengths.dtype == np.int32 and not lengths.any()
    for x, y in zip(found, pulled, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_types_of_the_primitives_of_networks():
    operands = network()
    params = {**SIZES, "cudnn_allow_tf32": True}
    eqn, *_ = ferrax.make_jaxpr(lambda *xs: rnn.rnn_fwd_p.bind(*xs, **params))(*operands).eqns
    avals = [ferrax.typeof(x) for x in operands]
    types = rnn.rnn_abstract_eval(*avals, *params.values())
    assert [(v.aval.shape, v.aval.dtype) for v in eqn.outvars] == [(a.shape, a.dtype) for a in types]
    with pytest.raises(NotImplementedError, match="int32"):
        rnn.lstm_fwd(*operands[:4], operands[4].astype("uint8"), *SIZES.values(), None)
    assert rnn._allows_tf32(None) and rnn._allows_tf32("default") and not rnn._allows_tf32(lax.Precision.HIGHEST)
    assert not rnn._allows_tf32((lax.Precision.HIGHEST, None))


def test_composites_of_integers_and_of_nothing():
    p = Composite("mixed_composite", lambda x, i: [x * 2, i + 1], multiple_results=True, linear=(0,))
    outs, dots = ferrax.jvp(lambda x: p.bind(x, jnp.array([1, 2])), (X[:2],), (X[:2],))
    assert dots[1].dtype == ferrax.float0 and outs[1].tolist() == [2, 3]
    np.testing.assert_allclose(dots[0], 2 * X[:2])
    # nothing of the results is wanted: cotangents are zeros
    np.testing.assert_array_equal(ferrax.grad(lambda x: p.bind(x, 1)[1] * 1.0)(2.0), 0.0)


def test_notes_for_xla_decorate_functions():
    from ferrax.experimental.xla_metadata import set_xla_metadata

    @set_xla_metadata(note=True)
    @ferrax.jit
    def twice(x):
        return 2 * x

    assert twice(3) == 6 and "multiply" in twice.lower(3).as_text()
    with set_xla_metadata(note="x") as nothing:
        assert nothing is None and twice(4) == 8
