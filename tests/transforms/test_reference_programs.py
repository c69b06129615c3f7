"""Programs of functions that read and write references from outside: shown as JAX shows them, and as ones of arrays."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax._src import core
from ferrax._src.state import discharge, primitives, types
from ferrax.extend import linear_util as lu
from ferrax.interpreters import partial_eval as pe
from tests.recorded import expected


def add_to_rows(jax, ref):
    ref[...] += 1.0
    ref[0] += 1
    ref[1] += 5


def with_windows(jax, ref, i=1):
    ref[i] = ref[i + 1] + 1.0
    rows = ref[jax.ds(i, 2)] if hasattr(jax, "ds") else ref[jax.experimental.pallas.ds(i, 2)]
    return jax.ref.swap(ref, (i, slice(0, 2)), rows[0, :2])


def added(jax, ref):
    jax.ref.addupdate(ref, (), jax.numpy.ones((4, 3)))
    jax.ref.addupdate(ref, (slice(None), 0), jax.numpy.ones(4))
    return ref[()]


def of_indices(jax, ref):
    i = jax.numpy.array([0, 1])
    ref[i] = ref[:, 1:3][i].sum() * jax.numpy.ones((2, 3))


# functions of a module and a reference to an array of shape (4, 3)
FUNCTIONS = {
    **{f.__name__: f for f in (add_to_rows, with_windows, added, of_indices)},
    **{
        str(idx): lambda jax, ref, idx=idx: ref[idx]
        for idx in [
            *[(0, slice(None)), (slice(1, 3), slice(None)), (slice(0, 4, 2), 1), (slice(None), slice(None)), (..., 0)],
            *[..., (), -1, (slice(1, None), slice(None, 2))],
        ]
    },
    "views": lambda jax, ref: ref.at[1:3].at[0][...],
    "reshape": lambda jax, ref: ref.at[1].reshape(3, 1)[0],
    "transpose": lambda jax, ref: ref.T[0],
    "bitcast": lambda jax, ref: ref.bitcast("int32")[0],
    "grad": lambda jax, ref: jax.grad(lambda x: (ref[...] * x).sum())(2.0),
    "tree": lambda jax, ref: {"a": ref[0], "b": [ref[1, 2]]},
}


def shown(jax, name):
    ref = jax.new_ref(jax.numpy.zeros((4, 3)))
    program = jax.make_jaxpr(lambda ref: FUNCTIONS[name](jax, ref))(ref)
    effects = sorted(type(effect).__name__ for effect in program.effects)
    return str(program), effects, [str(e.primitive) for e in program.eqns], str(program.in_avals)


# constants are elsewhere in the one, and a derivative converts other numbers in the other
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("of_indices", "grad")])
def test_programs_are_shown_as_in_jax(name):
    assert list(shown(jax, name)) == list(expected(shown, name))


VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_of_arrays_do_the_same(name):
    ref = jax.new_ref(jnp.asarray(VALUES))
    program = jax.make_jaxpr(lambda ref: FUNCTIONS[name](jax, ref))(ref)
    assert (ref[...] == VALUES).all()  # tracing does not run it
    pure = discharge.discharge_state(program)
    assert not pure.effects
    *outs, last = core.eval_jaxpr(pure.jaxpr, pure.consts, VALUES)
    wanted = jax.tree.leaves(FUNCTIONS[name](jax, ref))
    assert len(outs) == len(wanted)
    for a, b in zip([*outs, last], [*wanted, ref[...]], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("operation", ["get", "swap", "addupdate"])
def test_of_mapped_functions(operation):
    def f(ref, i):
        if operation == "get":
            return ref[i]
        new = 1.0 + ref[i]
        return primitives.ref_swap(ref, (i,), new) if operation == "swap" else primitives.ref_addupdate(ref, (i,), new)

    i = jnp.array([3, 0, 2])
    ref = jax.new_ref(jnp.asarray(VALUES))
    mapped = jax.vmap(f, in_axes=(1, 0))
    pure = discharge.discharge_state(jax.make_jaxpr(mapped)(ref, i))
    outs = core.eval_jaxpr(pure.jaxpr, pure.consts, VALUES, i)
    wanted = mapped(ref, i)
    for a, b in zip(outs, [*jax.tree.leaves(wanted), ref[...]], strict=True):
        np.testing.assert_array_equal(a, b)


def test_of_loops():
    def f(ref):
        def body(i):
            ref[0] += 1.0
            return i + 1

        return jax.lax.while_loop(lambda i: i < 5, body, 0)

    pure = discharge.discharge_state(jax.make_jaxpr(f)(jax.new_ref(jnp.zeros(3))))
    count, last = core.eval_jaxpr(pure.jaxpr, pure.consts, np.zeros(3, np.float32))
    assert int(count) == 5
    np.testing.assert_array_equal(last, [5, 0, 0])


def closing(jax):
    ref = jax.new_ref(jax.numpy.zeros(2))

    def f(x):
        ref[0] = x
        return ref[1] + x

    program = jax.make_jaxpr(f)(jax.numpy.float32(1))
    names = sorted(type(effect).__name__ for effect in program.effects)
    return str(program), names, [isinstance(x, type(ref)) for x in program.consts]


def test_references_that_are_closed_over_are_constants():
    assert list(closing(jax)) == list(expected(closing))


def traced(f, *avals):
    return pe.trace_to_jaxpr_dynamic(lu.wrap_init(f), list(avals))


def test_programs_of_types():
    def f(x):
        x[()] = jnp.int32(1)
        primitives.ref_addupdate(x, (), jnp.int32(2))
        return [x[()]]

    jaxpr, outs, consts = traced(f, types.shaped_array_ref((), jnp.int32))
    assert (outs, consts) == ([core.ShapedArray((), jnp.int32)], [])
    wanted = [primitives.swap_p, primitives.addupdate_p, primitives.get_p]
    assert [eqn.primitive for eqn in jaxpr.eqns] == wanted
    (x,) = jaxpr.invars
    assert x.aval == types.AbstractRef(core.ShapedArray((), jnp.int32))
    assert jaxpr.effects == {types.WriteEffect(x), types.AccumEffect(x), types.ReadEffect(x)}
    assert all(isinstance(effect, types.RefEffect) for effect in jaxpr.effects)
    assert jaxpr.eqns[0].invars[0] == x
    assert repr(types.ReadEffect(x)).startswith("ReadEffect(") and str(types.ReadEffect(3)) == "Read<3>"
    assert jaxpr.pretty_print(use_color=False) == str(jaxpr)
    assert "a[...] += 2:i32[]" in str(jaxpr)


def test_errors():
    ref = types.shaped_array_ref((1, 2), jnp.float32)
    for idx, value, text in (
        ((), core.ShapedArray((2,), jnp.float32), "Invalid shape for `swap`"),
        ((slice(None), 0), core.ShapedArray((2,), jnp.float32), "Invalid shape for `swap`"),
        ((), core.ShapedArray((1, 2), jnp.int32), "Invalid dtype for `swap`"),
    ):
        with pytest.raises(ValueError, match=text):
            traced(lambda x, v, idx=idx: [primitives.ref_swap(x, idx, v)], ref, value)
    with pytest.raises(ValueError, match="Out of bound indexer"):
        traced(lambda x: [x[3]], ref)
    with pytest.raises(ValueError, match="Can only call `ref_get` on a `Ref`"):
        traced(lambda x: [primitives.ref_get(x, ())], core.ShapedArray((), jnp.float32))
    kept = jax.new_ref(jnp.zeros(2))
    with pytest.raises(NotImplementedError, match="closes over references"):
        discharge.discharge_state(jax.make_jaxpr(lambda: kept[0])())
    with pytest.raises(Exception, match="vmapped value on an unbatched"):
        jax.make_jaxpr(lambda x: jax.vmap(lambda v: kept.__setitem__(0, v))(x))(jnp.ones(3))


def test_programs_of_types_of_references():
    def f(x, y):
        x[...] += 2.0
        y[0] = x[1]
        return x[...]

    import jax as real
    from jax._src.interpreters import partial_eval as jax_pe
    from jax._src.state import discharge as jax_discharge, types as jax_types
    from jax._src.tree_util import FlatTree as JaxTree

    from ferrax._src.tree_util import FlatTree

    theirs = [jax_types.shaped_array_ref((3,), np.float32), jax_types.shaped_array_ref((2,), np.float32)]
    ours = [types.shaped_array_ref((3,), np.float32), types.shaped_array_ref((2,), np.float32)]
    debug = real.api_util.debug_info("test", f, (0, 0), {})
    want, out = jax_pe.trace_to_jaxpr(f, JaxTree.flatten_args(*theirs), debug)
    have, types_out = pe.trace_to_jaxpr(f, FlatTree.flatten_args(*ours), None)
    assert str(have) == str(want) == str(jax.make_jaxpr(f)(*ours))
    assert str(types_out.unflatten()) == str(out.unflatten())
    x, y = jnp.arange(3.0), jnp.ones(2)
    for should in (True, [True, True], [False, True], [True, False]):
        less = discharge.discharge_state(have, should_discharge=should)
        names = [str(v.aval) for v in less.jaxpr.invars]
        wanted = jax_discharge.discharge_state(want, should_discharge=should)
        assert names == [str(v.aval) for v in wanted.jaxpr.invars]
        assert len(less.jaxpr.outvars) == len(wanted.jaxpr.outvars)
        if isinstance(should, bool) or all(should):
            results = jax.extend.core.jaxpr_as_fun(less)(x, y)
            assert [r.tolist() for r in results] == [[2.0, 3.0, 4.0], [2.0, 3.0, 4.0], [3.0, 1.0]]
        else:
            assert {type(e).__name__ for e in less.jaxpr.effects} == {type(e).__name__ for e in wanted.effects}


def test_programs_of_trees():
    from ferrax._src.tree_util import FlatTree

    aval = jax.typeof(1.0)
    args = FlatTree.flatten_args({"a": aval, "b": aval}, (aval,))
    program, out = pe.trace_to_jaxpr(lambda x, y: {"c": x["a"] * y[0], "d": x["b"]}, args, None)
    assert list(out.unflatten()) == ["c", "d"] and len(program.in_avals) == 3
    assert [float(x) for x in jax.extend.core.jaxpr_as_fun(program)(2.0, 3.0, 5.0)] == [10.0, 3.0]
    flat = FlatTree.flatten_args(aval, aval)
    kwargs = {"fun_takes_flat_tree_arg": True, "fun_returns_flat_tree": True}
    program, out = pe.trace_to_jaxpr(lambda x, y: x.map2(lambda a, b: a - b, y), flat, None, **kwargs)
    assert [float(x) for x in jax.extend.core.jaxpr_as_fun(program)(2.0, 3.0)] == [-1.0] and len(out) == 1


def windows(lib):
    """Operations of programs without references, of numbers and slices as indices."""
    arr = lambda shape: lib.core.ShapedArray(shape, np.float32)
    ref = lambda fun, *types: of_types(lib, lambda *args: [fun(*args)], [(4, 3, 2)], types)
    yield ref(lambda r: r[0, 1])
    yield ref(lambda r: r[1:3])
    yield ref(lambda r: r[1:3, 0])
    yield ref(lambda r, i: r[:, i, 1], lib.core.ShapedArray((), np.int32))
    yield ref(lambda r, x: lib.ref.swap(r, (0, 1), x), arr((2,)))
    yield ref(lambda r, x: lib.ref.swap(r, (slice(1, 3),), x), arr((2, 3, 2)))
    yield ref(lambda r, x: lib.ref.addupdate(r, (slice(1, 3), 0), x) or x, arr((2, 2)))


def of_types(lib, fun, shapes, types):
    import importlib

    of = lambda name: importlib.import_module(f"{lib.__name__}.{name}")
    refs = [of("_src.state.types").shaped_array_ref(shape, np.float32) for shape in shapes]
    program = lib.make_jaxpr(fun)(*refs, *types)
    pure = of("_src.state.discharge").discharge_state(program)
    # the one normalizes numbers that are known, too
    extra = {"lt", "add", "select_n", "broadcast_in_dim", "reshape", "convert_element_type"}
    return [name for e in pure.eqns if (name := e.primitive.name) not in extra]


def test_numbers_and_slices_are_windows_of_arrays():
    import jax as oracle

    assert list(windows(jax)) == list(windows(oracle))
