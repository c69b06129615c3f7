"""Classes of JAX's insides: those with a meaning here do what JAX's do, the others can be seen, derived from, asked."""

import inspect
import io

import jax
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax.experimental import custom_partitioning, hijax, jet, layout, profiler as xprof, sparse
from ferrax.extend import backend, linear_util as lu, lowering
from ferrax.extend.core import TraceTag, set_current_trace, take_current_trace
from ferrax.interpreters import ad, partial_eval as pe, pxla, xla


def derived(cls, **members):
    """A class that is derived from one, with an object that needs no arguments."""
    return type("Derived", (cls,), {"__init__": lambda self: None, **members})()


MEANINGLESS = [
    (lowering.JaxIrContext, (), "dialects d current"),
    (ad.JVPTrace, (None, TraceTag()), "to_primal_tangent_pair cur_qdd"),
    (pe.JaxprTracer, (None, None, None), "pval recipe parents is_known"),
    (backend.Backend, None, "compile runtime_type live_executables"),
]


@pytest.mark.parametrize(("cls", "args", "members"), MEANINGLESS)
def test_what_means_nothing_is_seen_and_refuses_use(cls, args, members):
    if args is not None:
        with pytest.raises(NotImplementedError, match=cls.__name__):
            cls(*args)
    assert not isinstance(3, cls)
    thing = derived(cls)
    assert isinstance(thing, cls)
    for name in members.split():
        assert hasattr(cls, name) and not hasattr(thing, name)
        with pytest.raises(AttributeError):
            getattr(thing, name)
        with pytest.raises(NotImplementedError, match=rf"{cls.__name__}\.{name}"):
            getattr(cls, name)()


@pytest.mark.parametrize(
    "name",
    ["core.Tracer", "interpreters.ad.JVPTracer", "interpreters.ad.JVPTrace", "interpreters.partial_eval.JaxprTracer"]
    + ["interpreters.partial_eval.DynamicJaxprTracer", "experimental.jet.JetTracer", "experimental.EArray"],
)
def test_constructors_like_jax(name):
    parameters = lambda root: list(inspect.signature(eval(f"root.{name}", {"root": root})).parameters)
    import jax.experimental.jet
    import jax.interpreters.ad
    import jax.interpreters.partial_eval

    assert parameters(ferrax) == parameters(jax)


def test_members_of_traced_values():
    seen = []

    def f(x):
        assert x.full_lower() is x and x.get_referent() is x and x.dimension_as_value() is x
        seen.append(x.to_concrete_value())
        return 2 * x

    ferrax.grad(f)(3.0)
    ferrax.jvp(f, (3.0,), (1.0,))
    ferrax.vmap(f)(jnp.ones(2))
    ferrax.jit(f)(3.0)
    assert seen == [3.0, 3.0, None, None]

    def g(x):
        assert x.get_const() is None and x.mutable_qdd is None and x.aval_mutable_qdd == x.aval
        assert not hasattr(x, "val") and not hasattr(x, "parent")
        with pytest.raises(TypeError, match="states"):
            x.cur_qdd()
        return x

    ferrax.make_jaxpr(g)(1.0)


def test_members_of_tracers_of_libraries():
    class Mine(ferrax.core.Tracer):
        __slots__ = ("held",)

        def __init__(self, trace, held):
            super().__init__(trace, ferrax.typeof(held))
            self.held = held

    class Trace(ferrax.core.Trace):
        def process_primitive(self, primitive, tracers, params, /):
            values = [t.held if isinstance(t, Mine) else t for t in tracers]
            with set_current_trace(parent):
                return Mine(self, primitive.bind(*values, **primitive.get_bind_params(params)))

    with take_current_trace() as parent:
        trace = Trace()
        x = Mine(trace, jnp.arange(3.0))
        assert Mine.sum(x).held == 3 and x.sum().held == 3
        assert (x.shape, x.dtype, x.size, x.ndim) == ((3,), np.float32, 3, 1)
        assert x.T is x and x.at[0].set(5.0).held[0] == 5
        assert x.get_referent() is x and x.to_concrete_value() is None
        assert {"T", "at", "sum", "sharding"} <= set(dir(Mine))


def test_arrays_have_slots_and_a_finalizer():
    x, theirs = jnp.ones(2), jax.numpy.ones(2)
    assert list(x.__slots__) == list(theirs.__slots__)
    assert type(x).__del__(x) is type(theirs).__del__(theirs) is None
    assert x.sum() == 2


def test_arrays_of_extended_dtypes():
    assert issubclass(ferrax.experimental.EArray, ferrax.Array)
    with pytest.raises(NotImplementedError, match=r"jax\.random\.key"):
        ferrax.experimental.EArray(ferrax.typeof(1.0), jnp.ones(()))


def test_settings_and_names_of_printers():
    for root in (jax, ferrax):
        with pytest.warns(DeprecationWarning):
            settings, context_class = root.core.JaxprPpSettings, root.core.JaxprPpContext
        assert tuple(settings(print_effects=True)) == (True, False, False, True, True)
        assert settings._fields == ("print_shapes", "source_info", "name_stack", "custom_pp_eqn_rules", "print_effects")
        program = root.make_jaxpr(lambda x, y: (x, root.numpy.sin(y)))(1.0, 2.0).jaxpr
        x, y = program.invars
        z = program.eqns[0].outvars[0]
        context = context_class({y: "q"})
        context.suggest_same_var_names([x, z], [y, y])
        assert [context.var_names[v] for v in (x, y, z)] == ["q", "q", "a"]
        context.suggest_same_var_names([z], [])
        names = context_class()
        assert [names.var_names[i] for i in range(30)][25:28] == ["z", "aa" if root is ferrax else "ba", *_next(root)]


def _next(root):
    """JAX goes on after z with ba, as digits do."""
    return ["ab"] if root is ferrax else ["bb"]


def test_deprecated_names_of_core():
    with pytest.warns(DeprecationWarning):
        assert isinstance(ferrax.core.aval_mapping_handlers, dict)
        wrapped = lu.wrap_init(lambda x: [2 * x], debug_info=ferrax.api_util.debug_info("f", None, (1.0,), {}))
        assert ferrax.core.call(wrapped, 3.0) == [6.0]


def test_results_of_parts():
    with pytest.warns(DeprecationWarning):
        handler, handlers = pxla.global_aval_to_result_handler, pxla.global_avals_to_results_handler
        kinds = pxla.global_result_handlers
    devices = ferrax.devices()[:2]
    mesh = ferrax.sharding.Mesh(np.array(devices), ("x",))
    divided = ferrax.NamedSharding(mesh, ferrax.P("x"))
    aval = ferrax.core.ShapedArray((2 * len(devices),), np.float32)
    parts = [ferrax.device_put(jnp.full(2, float(i)), d) for i, d in enumerate(devices)]
    whole = handler(aval, divided, True)(parts)
    assert whole.sharding == divided and whole.tolist() == [float(i) for i in range(len(devices)) for _ in range(2)]
    (again,) = handlers([aval], [divided], True)([parts])
    assert again.tolist() == whole.tolist()
    assert type(aval) in kinds
    with pytest.raises(TypeError, match="no handler"):
        handler(3, divided, True)
    with pytest.raises(NotImplementedError, match="compiler_options"):
        pxla.create_compile_options(None, None, None, None, None, None, None)


def test_executables():
    with pytest.warns(DeprecationWarning):
        computation, executable = pxla.MeshComputation, pxla.MeshExecutable
    compiled = ferrax.jit(lambda x: 2 * x).lower(1.0).compile()
    assert isinstance(compiled._executable, executable)
    assert compiled._executable.as_text() == compiled.as_text()
    assert compiled._executable.runtime_executable() is compiled
    for cls, count in ((computation, 7), (executable, 11)):
        with pytest.raises(NotImplementedError, match=cls.__name__):
            cls(*[None] * count)
    assert isinstance(backend.get_backend(), xla.Backend)


# ---- operations ------------------------------------------------------------------------------------------------------


def test_primitives_that_no_program_has():
    assert ferrax.custom_derivatives.remat_opt_p.name == "remat_opt"
    double = ferrax.make_jaxpr(lambda x: 2 * x)(1.0)
    partitioned = lambda x: custom_partitioning.custom_partitioning_p.bind(x, call=double, partition=None)[0]
    assert ferrax.jit(partitioned)(3.0) == 6.0
    assert "custom_partitioning[" in str(ferrax.make_jaxpr(partitioned)(3.0))
    assert ferrax.grad(partitioned)(3.0) == 2.0


def test_raw_products_of_coordinates():
    dense = np.array([[0, 2, 0], [1, 0, 3]], np.float32)
    row, col = (jnp.asarray(i, jnp.int32) for i in dense.nonzero())
    data = jnp.asarray(dense[dense.nonzero()])
    vector, matrix = np.arange(3, dtype=np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)
    bcoo = sparse.bcoo
    for primitive, right in ((bcoo.coo_spmv_p, vector), (bcoo.coo_spmm_p, matrix)):
        got = primitive.bind(data, row, col, jnp.asarray(right), transpose=False, shape=(2, 3))
        assert got.tolist() == (dense @ right).tolist()
        flat = primitive.bind(data, row, col, jnp.asarray(right[:2]), transpose=True, shape=(2, 3))
        assert flat.tolist() == (dense.T @ right[:2]).tolist()
    assert bcoo.CUSPARSE_DATA_DTYPES[0] is np.float32 and [np.int32] == bcoo.CUSPARSE_INDEX_DTYPES


def test_what_loops_have_left():
    transform, mat = sparse.transform, sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    assert transform.bcoo_impl(mat[None], dimensions=(0,)).todense().tolist() == mat.todense().tolist()
    assert transform.impl(mat, 1).todense().tolist() == [3, 0]
    assert transform.method == "__getitem__" and transform.prim.name == "concatenate"


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x**2,
        lambda x: jnp.sin(x) * x + 3,
        lambda x: jnp.where(x > 0, x, -x),
        lambda x: ferrax.nn.relu(x) * x,
        lambda x: ferrax.jit(jnp.exp)(x) / x,
        lambda x: ferrax.lax.scan(lambda c, _: (c * x, None), x, None, length=3)[0],
        lambda x: sum(jnp.linalg.qr(jnp.array([[1.0, 2.0], [3.0, 4.0]]) * x)[1].ravel()),
    ],
)
def test_jet_tracers_give_what_jet_gives(f):
    with take_current_trace() as parent:
        trace = jet.JetTrace(TraceTag(), parent, 2)
        with set_current_trace(trace):
            out = f(jet.JetTracer(trace, 1.5, [1.0, jet.zero_term]))
        value, terms = trace.to_primal_terms_pair(out)
    wanted, series = jet.jet2(f, (1.5,), ([1.0, 0.0],))
    np.testing.assert_allclose([value, *terms], [wanted, *series], rtol=1e-6)


def test_jet_tracers_that_do_not_move():
    with take_current_trace() as parent:
        trace = jet.JetTrace(TraceTag(), parent, 1)
        still = jet.JetTracer(trace, 1.5, [jet.zero_term])
        assert still.full_lower() == 1.5 and still.aval == ferrax.typeof(1.5)
        with set_current_trace(trace):
            assert jnp.sin(jet.JetTracer(trace, 0.0, jet.zero_series)).terms is jet.zero_series
        assert trace.stage_value(2.0).terms is jet.zero_series
    assert jet.call_param_updaters == {}


@pytest.mark.parametrize("make", [jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda x: jnp.full_like(x, 1)])
def test_arrays_like_a_weak_bool(make):
    made = make(ferrax.lax.gt_p.bind(1.5, 0.0))
    assert made.dtype == bool and made.weak_type and made.shape == ()


# ---- types and primitives of values that are no arrays ---------------------------------------------------------------


class Cell(hijax.MutableHiType):
    def lo_ty_qdd(self, state):
        return [state]

    def read_loval(self, state, val):
        return [val]

    def new_from_loval(self, state, *vals):
        return (state, *vals)

    def update_from_loval(self, state, val, *lo_vals):
        val.append((state, *lo_vals))

    def to_tangent_aval(self):
        return self


def test_types_with_a_state():
    both = hijax.AvalQDD(Cell(), "s")
    assert both.lo_ty() == ["s"] and both.read_loval(3) == both.read_loval_in(3) == [3]
    assert both.read_loval_out(3).unflatten() == [3]
    assert both.new_from_loval(1, 2) == ("s", 1, 2) and both.has_qdd and both.is_high and not both.is_writer
    assert hijax.AvalQDD(Cell(), None).to_tangent_aval().qdd is None
    told = []
    Cell().update_from_loval2("s", told, both.read_loval_out(3))
    assert told == [("s", 3)]
    assert hijax.AvalMutableQDD(1, 2).mutable_qdd == 2
    for name, args in (("new_from_loval", (1,)), ("read_loval", (1, 2)), ("update_from_loval", (1, 2))):
        with pytest.raises(NotImplementedError, match=name):
            getattr(hijax.MutableHiType(), name)(*args)
    for rule in ("jvp", "transpose"):
        with pytest.raises(NotImplementedError, match=rule):
            getattr(hijax.HiPrimitive("p"), rule)((), ())


class Pair(hijax.VJPHiPrimitive):
    """`(x + 1, 2 * y)`, of which only what is needed is computed."""

    def __init__(self, x, y, effects=frozenset()):
        self.in_avals, self.out_aval, self.params = (x, y), (x, y), {}
        self.effects = effects
        super().__init__()

    def check(self, x, y):
        if x.shape != y.shape:
            raise TypeError(f"{x} and {y} differ")

    def expand(self, x, y):
        return x + 1, 2 * y

    def dce(self, used_outs):
        if used_outs == (True, False):
            return (True, False), (True, False), First(*self.in_avals[:1])
        return super().dce(used_outs)


class First(hijax.VJPHiPrimitive):
    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x,), x, {}
        super().__init__()

    def expand(self, x):
        return x + 1


def test_checks_and_unneeded_results_of_primitives():
    one = ferrax.typeof(1.0)
    with pytest.raises(TypeError, match="differ"):
        Pair(one, ferrax.typeof(jnp.ones(2)))
    program = ferrax.make_jaxpr(lambda x, y: Pair(one, one)(x, y))(1.0, 2.0).jaxpr
    for wanted, used, name in (([True, False], [True, False], "First"), ([True, True], [True, True], "Pair")):
        less, kept = pe.dce_jaxpr(program, wanted)
        assert kept == used and name in str(less)
    less, kept = pe.dce_jaxpr(program, [False, False])
    assert kept == [False, False] and not less.eqns
    assert ferrax.core.eval_jaxpr(pe.dce_jaxpr(program, [True, False])[0], [], 4.0) == [5.0]
    assert Pair(one, one).remat(None, 1.0, 2.0)[0] == (2.0, 4.0)


class Staged(First):
    def staging(self, trace, source_info, *args):
        return -super().staging(trace, source_info, *args)


def test_primitives_that_say_what_is_recorded():
    call = lambda x: Staged(ferrax.typeof(x))(x)
    assert call(1.0) == 2.0
    assert ferrax.jit(call)(1.0) == -2.0
    assert "neg" in str(ferrax.make_jaxpr(call)(1.0))


def test_effects_of_primitives():
    class Noted(ferrax.extend.core.Effect):
        pass

    hijax.control_flow_allowed_effects.add_type(Noted)
    one, noted = ferrax.typeof(1.0), Noted()
    program = ferrax.make_jaxpr(lambda x: Pair(one, one, frozenset([noted]))(x, x)[0])(1.0)
    assert program.effects == {noted}
    assert Pair(one, one) == Pair(one, one) != Pair(one, one, frozenset([noted]))


# ---- the rest --------------------------------------------------------------------------------------------------------


class TheirLayout:
    """What XLA's object of a layout answers."""

    def _xla_layout(self):
        return self

    def minor_to_major(self):
        return (0, 1)

    def tiling(self):
        return ((8, 128),)

    def element_size_in_bits(self):
        return 4


def test_layouts_of_other_libraries():
    assert layout.Layout.from_pjrt_layout(TheirLayout()) == layout.Layout((1, 0), ((8, 128),), 4)


def test_costs_of_instructions(tmp_path):
    with ferrax.profiler.trace(str(tmp_path)):
        jnp.ones(3) + 1
    (path,) = tmp_path.rglob("*.xplane.pb")
    assert xprof.get_profiled_instructions_proto(str(path.parent)) == b""
    with pytest.raises(ferrax.errors.JaxRuntimeError, match="NOT_FOUND"):
        xprof.get_profiled_instructions_proto(str(tmp_path / "nowhere"))


def test_options_of_the_debugger():
    out = io.StringIO()
    stop = lambda **options: ferrax.debug.breakpoint(stdin=io.StringIO("c\n"), stdout=out, **options)
    ferrax.jit(lambda x: stop(completekey="tab"))(1.0)
    assert "Entering jdb" in out.getvalue()
    with pytest.raises(TypeError, match="colour"):
        stop(colour="red")
