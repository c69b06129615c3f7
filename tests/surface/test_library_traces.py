"""Transformations that libraries derive from `core.Trace` and `core.Tracer`, inside and outside of ours.

The one here notes operations and changes none: results are those of the function without it.
"""

import gc
import threading
import weakref

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._src import core
from ferrax.extend import linear_util as lu
from ferrax.extend.core import jaxpr_as_fun

X = jnp.arange(1.0, 5.0)


class Boxed(core.Tracer):
    """A value in a box; its type is asked for, not told."""

    __slots__ = ("_type", "value")

    def __init__(self, trace, value):
        self._trace = trace
        self.value = value
        self._type = jax.typeof(value)

    @property
    def aval(self):
        return self._type


class Boxing(core.Trace):
    __slots__ = ("log", "parent_trace", "tag")

    def __init__(self, parent_trace, log):
        super().__init__()
        self.parent_trace, self.tag, self.log = parent_trace, core.TraceTag(), log

    def opened(self, x):
        return x.value if isinstance(x, Boxed) and x._trace.tag is self.tag else x

    def process_primitive(self, primitive, tracers, params):
        self.log.append(primitive.name)
        with core.set_current_trace(self.parent_trace):
            out = primitive.bind(*map(self.opened, tracers), **params)
        return [Boxed(self, x) for x in out] if primitive.multiple_results else Boxed(self, out)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        self.log.append("custom_jvp")
        values = [self.opened(t) for t in tracers]
        params = {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros}
        out = primitive.bind_with_trace(self.parent_trace, values, [jax.typeof(v) for v in values], params)
        return [Boxed(self, x) for x in out]

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, *, out_trees, symbolic_zeros):
        self.log.append("custom_vjp")
        with core.set_current_trace(self.parent_trace):
            return [Boxed(self, x) for x in fun.call_wrapped(*map(self.opened, tracers))]


def boxed(f, log=None):
    """`f` on boxed values."""
    log = [] if log is None else log

    def run(*args):
        with core.take_current_trace() as parent:
            trace = Boxing(parent, log)
            args = jax.tree.map(lambda x: Boxed(trace, x), args)
            with core.set_current_trace(trace):
                out = f(*args)
            return jax.tree.map(trace.opened, out)

    return run


@jax.custom_jvp
def tenfold(x):
    return x * x


tenfold.defjvp(lambda p, t: (p[0] * p[0], 10.0 * t[0]))


@jax.custom_vjp
def reversed_tenfold(x):
    return x * x


reversed_tenfold.defvjp(lambda x: (x * x, None), lambda _, ct: (10.0 * ct,))
doubled_p = jax.extend.core.Primitive("doubled")
doubled_p.def_impl(lambda x: 2 * x)
doubled_p.def_abstract_eval(lambda x: x)

FUNCTIONS = {
    "operators": lambda x: 2 - x * x + np.ones(4, "float32") / x,
    "reflected": lambda x: np.float32(3) * x + (x > 1) - (x == 2),
    "functions": lambda x: jnp.sin(x) + jnp.exp(x).sum() + jnp.where(x > 2, x, 0),
    "methods": lambda x: x.reshape(2, 2).T.astype("int32").mean(axis=0),
    "itself": lambda x: x.astype(x.dtype).T.real,
    "index": lambda x: (x[1], x[1:3], x[::-1], x[jnp.array([0, 2])], x.at[0].set(7.0)),
    "indexed by it": lambda x: X[x.astype("int32") - 1],
    "lists": lambda x: jnp.array([x[0], 2.0, x[3]]) + jnp.stack([x[0], x[1], x[2]]),
    "iteration": lambda x: sum(list(x)) * len(x),
    "products": lambda x: (x @ x, jnp.einsum("i,j->ij", x, x), lax.dot(x, x)),
    "sort": lambda x: jnp.sort(x[::-1]),
    "slices": lambda x: lax.dynamic_slice(x, [x[0].astype("int32")], [2]),
    "random": lambda x: x + jax.random.normal(jax.random.key(0), (4,)),
    "jit": jax.jit(lambda x: jnp.cos(x) + 1),
    "vmap": jax.vmap(lambda x: jnp.cos(x) * 2),
    "named vmap": jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i"),
    "grad": jax.grad(lambda x: (jnp.cos(x) * x).sum()),
    "jvp": lambda x: jax.jvp(jnp.sin, (x,), (x,)),
    "cond": lambda x: lax.cond(x[0] > 1, jnp.sin, jnp.cos, x),
    "scan": lambda x: lax.scan(lambda c, a: (c + a, c * a), 0.0, x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (x[0], x)),
    "fft": lambda x: jnp.fft.fft(x.astype("complex64")),
    "relu": jax.nn.relu,
    "custom_jvp": lambda x: tenfold(x),
    "custom_vjp": lambda x: reversed_tenfold(x),
    "a primitive of a user's": lambda x: doubled_p.bind(x) + 1,
    "boxes in boxes": lambda x: boxed(lambda y: jnp.sin(y) * x)(x),
}


def same(got, wanted):
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_allclose(g, w, rtol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_done_to_a_librarys_values_goes_to_its_trace(name):
    log = []
    same(boxed(FUNCTIONS[name], log)(X), FUNCTIONS[name](X))
    assert log or name == "itself"


@pytest.mark.parametrize("around", ["jit", "grad", "vmap", "jit of grad", "linearize", "jit of vmap"])
@pytest.mark.parametrize("name", ["functions", "relu", "custom_jvp", "scan", "jit", "cond", "boxes in boxes"])
def test_transformations_around_a_librarys(around, name):
    def total(f):
        return lambda x: sum(leaf.sum() for leaf in jax.tree.leaves(f(x)))

    made = {
        "jit": jax.jit,
        "grad": lambda f: jax.grad(total(f)),
        "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])),
        "jit of grad": lambda f: jax.jit(jax.grad(total(f))),
        "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
        "jit of vmap": lambda f: jax.jit(lambda x: jax.vmap(f)(jnp.stack([x, 2 * x]))),
    }[around]
    log = []
    same(made(boxed(FUNCTIONS[name], log))(X), made(FUNCTIONS[name])(X))
    assert log


def test_operations_on_plain_arrays_go_to_the_trace_that_is_set():
    log = []
    assert isinstance(boxed(lambda: jnp.sin(X), log)(), jax.Array)
    assert log == ["sin"]
    jnp.sin(X)
    assert log == ["sin"]


def test_a_librarys_value_is_an_array():
    def look(x):
        assert isinstance(x, jax.Array)
        assert isinstance(x, jax.core.Tracer)
        assert isinstance(x, Boxed)
        assert not isinstance(X, jax.core.Tracer)
        assert issubclass(Boxed, jax.core.Tracer)
        assert (x.shape, x.ndim, x.dtype, jnp.shape(x)) == ((4,), 1, np.dtype("float32"), (4,))
        assert repr(x) == "Traced<float32[4]>with<Boxing>"
        assert jax.typeof(x) == x.aval
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)
        with pytest.raises(AttributeError):
            x.no_such
        for error, use in [
            (jax.errors.TracerBoolConversionError, lambda: bool(x[0])),
            (jax.errors.TracerArrayConversionError, lambda: np.asarray(x)),
            (jax.errors.ConcretizationTypeError, lambda: float(x[0])),
        ]:
            with pytest.raises(error):
                use()
        return x

    boxed(look)(X)


def test_parameters_are_those_that_bind_takes():
    seen = {}

    class Looking(Boxing):
        __slots__ = ()

        def process_primitive(self, primitive, tracers, params):
            seen[primitive.name] = params
            return super().process_primitive(primitive, tracers, params)

    with core.take_current_trace() as parent:
        trace = Looking(parent, [])
        x = Boxed(trace, X)
        jax.jit(lambda x: jnp.broadcast_to(x, (2, 4)))(x)
        lax.mul(x, x)
        jnp.fft.fft(x)
        jnp.broadcast_to(x, (3, 4))
    assert seen["jit"]["inline"] is False
    again = seen["jit"]["jaxpr"]
    assert jaxpr_as_fun(again)(X)[0].shape == (2, 4)
    assert seen["mul"] == {"out_dtype": None}
    assert seen["fft"]["fft_type"] is lax.FftType.FFT
    assert seen["broadcast_in_dim"] == {"shape": (3, 4), "broadcast_dimensions": (1,), "sharding": None}
    weakref.ref(again)
    # libraries keep what they make of a program by the object
    first = again
    jax.jit(lambda x: jnp.broadcast_to(x, (2, 4)))(x)
    assert seen["jit"]["jaxpr"] is first
    assert lax.mul_p.bind(X, X, out_dtype="float16").dtype == "float16"


def test_numbers_stay_numbers():
    seen = []

    class Looking(Boxing):
        __slots__ = ()

        def process_primitive(self, primitive, tracers, params):
            seen.append(tracers[0])
            return super().process_primitive(primitive, tracers, params)

    with core.take_current_trace() as parent:
        lax.polygamma(1.0, Boxed(Looking(parent, []), X))
    assert [type(x) for x in seen] == [float]


def test_methods_speak_before_types():
    class Looking(Boxing):
        __slots__ = ()

        def process_primitive(self, primitive, tracers, params):
            if primitive is lax.dot_general_p:
                raise ValueError("no such axes")
            return super().process_primitive(primitive, tracers, params)

    with core.take_current_trace() as parent:
        trace = Looking(parent, [])
        x = Boxed(trace, jnp.ones((3, 3)))
        with pytest.raises(ValueError, match="no such axes"):
            lax.dot_general_p.bind(
                x, x, dimension_numbers=(((0, 1), (0,)), ((), ())), precision=None, preferred_element_type=None
            )


def test_programs_of_equations_are_one_object():
    inner = jax.jit(lambda x: 2 * x)
    first, second = (jax.make_jaxpr(lambda x: inner(x))(X).eqns[0].params["jaxpr"] for _ in range(2))
    assert first is second
    other = jax.make_jaxpr(lambda x: inner(x))(X[:1]).eqns[0].params["jaxpr"]
    assert other is not first
    weakref.ref(first)


def test_rules_of_custom_derivatives_are_handed_over():
    got = []

    class Rules(Boxing):
        __slots__ = ()

        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            values = [self.opened(t) for t in tracers]
            with core.set_current_trace(self.parent_trace):
                got.extend([fun.call_wrapped(*values), jvp.call_wrapped(*values, *values)])
            return [Boxed(self, x) for x in got[0]]

        def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, *, out_trees, symbolic_zeros):
            values = [self.opened(t) for t in tracers]
            with core.set_current_trace(self.parent_trace):
                *residuals, out = fwd.call_wrapped(*[part for v in values for part in (v, True)])
                got.extend([[out], bwd.call_wrapped(*residuals, out)])
            return [Boxed(self, out)]

    with core.take_current_trace() as parent:
        x = Boxed(Rules(parent, []), jnp.float32(3))
        tenfold(x)
        reversed_tenfold(x)
        jax.nn.relu(x)
    flat = [[float(x) for x in row] for row in got]
    assert flat == [[9.0], [9.0, 30.0], [9.0], [90.0], [3.0], [3.0, 3.0]]


def test_a_trace_that_says_nothing_of_an_operation_is_an_error():
    class Silent(core.Trace):
        pass

    for f, text in [(jnp.sin, "must override"), (tenfold, "process_custom_jvp_call"), (reversed_tenfold, "custom_vjp")]:
        with core.set_current_trace(Silent()), pytest.raises(NotImplementedError, match=text):
            f(X)


@pytest.mark.parametrize("f", [jnp.unwrap, lambda x: jnp.histogram2d(x, x, 2)[0]])
def test_rules_that_want_their_value_first_get_it_first(f):
    """Quax's rules for `and` and `or` are looked up by the first operand's type."""

    class First(Boxing):
        __slots__ = ()

        def process_primitive(self, primitive, tracers, params):
            out = super().process_primitive(primitive, tracers, params)
            if not any(isinstance(x, Boxed) for x in tracers):
                return [x.value for x in out] if primitive.multiple_results else out.value
            assert primitive.name not in ("and", "or") or isinstance(tracers[0], Boxed)
            return out

    log = []
    with core.take_current_trace() as parent:
        trace = First(parent, log)
        with core.set_current_trace(trace):
            out = f(Boxed(trace, X))
    same(trace.opened(out), f(X))
    assert "and" in log or "or" in log


def test_errors_leave_what_was_in_force_before():
    class Failing(Boxing):
        __slots__ = ()

        def process_primitive(self, primitive, tracers, params):
            raise RuntimeError("refused")

    with core.take_current_trace() as parent, pytest.raises(RuntimeError, match="refused"):
        with core.set_current_trace(Failing(parent, [])):
            jnp.sin(X)
    assert core.trace_state_clean()
    np.testing.assert_array_equal(jnp.sin(X), np.asarray(jax.jit(jnp.sin)(X)))

    @lu.transformation
    def left_behind(*args):
        with core.take_current_trace() as parent:
            # a generator that an error goes past leaves its trace set
            core.set_current_trace(Failing(parent, [])).__enter__()
            yield args, {}

    @jax.jit
    def traced(x):
        with pytest.raises(RuntimeError, match="refused"):
            left_behind(lu.wrap_init(lambda y: [jnp.sin(y)])).call_wrapped(x)
        gc.collect()
        return x + 1

    same(traced(X), X + 1)
    assert core.trace_state_clean()


def test_a_trace_that_has_ended_cannot_be_set():
    kept = []

    @jax.jit
    def f(x):
        with core.take_current_trace() as trace:
            kept.append(trace)
        return x

    f(X)
    with pytest.raises(ReferenceError, match="has ended"), core.set_current_trace(kept[0]):
        pass
    with pytest.raises(NotImplementedError, match="not at work"):
        core.set_current_trace(jax.vmap(lambda x: kept.append(x._trace) or x)(X) is not None and kept[-1]).__enter__()


def test_values_and_traces_are_let_go():
    gone = []

    def f(x):
        gone.append(weakref.ref(x))
        gone.append(weakref.ref(x._trace))
        return jnp.sin(x) * 2

    boxed(f)(X)
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_traces_are_set_on_one_thread():
    found = []
    with core.set_current_trace(Boxing(None, [])):
        thread = threading.Thread(target=lambda: found.append(jnp.sin(X)))
        thread.start()
        thread.join()
    assert isinstance(found[0], jax.Array)
    assert not isinstance(found[0], jax.core.Tracer)


def test_functions_of_make_jaxpr_take_further_arguments():
    held = jnp.arange(3.0)

    def f(x):
        trace = core.trace_ctx.trace
        inner = jax.vmap(lambda row: row * trace.new_arg(jax.typeof(held), source_info=None).sum())(x)
        return inner, trace.new_arg(jax.typeof(1.0)) + x

    closed = jax.make_jaxpr(f)(X)
    assert [v.aval.shape for v in closed.jaxpr.invars] == [(4,), (3,), ()]
    inner, outer = jaxpr_as_fun(closed)(X, held, 2.0)
    np.testing.assert_array_equal(inner, X * 3)
    np.testing.assert_array_equal(outer, X + 2)
    with pytest.raises(NotImplementedError, match="make_jaxpr alone"):
        jax.jit(lambda x: core.trace_ctx.trace.new_arg(jax.typeof(x)))(X)
    with pytest.raises(NotImplementedError, match="make_jaxpr alone"):
        core.trace_ctx.trace.new_arg(jax.typeof(X))
