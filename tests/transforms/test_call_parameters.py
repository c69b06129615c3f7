"""Parameters of calls in programs, beside JAX's, programs bound with them, and equations as keys."""

import numpy as np
import pytest

import ferrax

jax = pytest.importorskip("jax")


def _call(lib, **options):
    inner = lib.jit(lambda x, y: (2 * x + y, y), **options)
    return lib.make_jaxpr(lambda x: inner(x, 3 * x))(np.ones(3, np.float32)).eqns[-1]


def test_calls_have_all_parameters_of_jax():
    ours, theirs = (_call(lib).params for lib in (ferrax, jax))
    assert list(ours) == list(theirs)
    assert {k: repr(v) for k, v in ours.items()} == {k: repr(v) for k, v in theirs.items()}


def test_calls_know_the_mesh_that_is_in_use():
    mesh = ferrax.make_mesh((1,), ("i",))
    with ferrax.set_mesh(mesh):
        assert _call(ferrax).params["ctx_mesh"] == mesh


@pytest.mark.parametrize("wrap", ["eager", "make_jaxpr", "grad", "vmap", "jit"])
def test_calls_are_bound_with_their_parameters(wrap):
    e, x = _call(ferrax), np.arange(3, dtype=np.float32)

    def f(x):
        return e.primitive.bind(x, x, **e.params)[0]

    if wrap == "make_jaxpr":
        assert ferrax.make_jaxpr(f)(x).eqns[0].params["name"] == "<lambda>"
    elif wrap == "grad":
        np.testing.assert_array_equal(ferrax.grad(lambda x: f(x).sum())(x), [3, 3, 3])
    else:
        both, maps = np.stack([x, x]), {"eager": f, "vmap": ferrax.vmap(f), "jit": ferrax.jit(f)}
        given = both if wrap == "vmap" else x
        np.testing.assert_array_equal(maps[wrap](given), 3 * given)


def test_calls_are_bound_with_places_for_results():
    e, x = _call(ferrax), np.arange(3, dtype=np.float32)
    sharding = ferrax.sharding.NamedSharding(ferrax.make_mesh((1,), ("i",)), ferrax.P("i"))
    outs = e.primitive.bind(x, x, **{**e.params, "out_shardings": (sharding,) * 2})
    assert [o.sharding for o in outs] == [sharding] * 2
    np.testing.assert_array_equal(outs[0], 3 * x)


def test_a_call_is_bound_with_its_donation():
    e, x = _call(ferrax), ferrax.numpy.arange(3.0)
    first, _ = e.primitive.bind(x, x + 1, **{**e.params, "donated_invars": (True, False)})
    assert x.is_deleted()
    np.testing.assert_array_equal(first, [1, 4, 7])


def test_a_call_with_layouts_is_refused():
    e, x = _call(ferrax), np.arange(3, dtype=np.float32)
    with pytest.raises(NotImplementedError, match="layouts"):
        e.primitive.bind(x, x, **{**e.params, "in_layouts": ("column major", None)})


@pytest.mark.parametrize("lib", [ferrax, jax], ids=["ferrax", "jax"])
def test_equations_are_equal_to_themselves_alone(lib):
    program = lib.make_jaxpr(lambda x: (lib.numpy.sin(x), lib.numpy.sin(x)))(1.0)
    first, second = program.eqns
    assert program.eqns == [first, second] and program.eqns.index(second) == 1
    assert first != second and first != "sin"
    assert {e: i for i, e in enumerate(program.jaxpr.eqns)}[second] == 1
    assert lib.make_jaxpr(lib.numpy.sin)(1.0).eqns[0] != first
