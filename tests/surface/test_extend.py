"""Programs seen from Python, and the hash of random keys."""

import jax
import jax.extend
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax.extend import core
from ferrax.extend.random import threefry_2x32


def program():
    return ferrax.make_jaxpr(lambda x: ferrax.lax.cond(x > 0, jnp.sin, jnp.cos, x / 2))(1.0)


def test_classes_of_programs():
    p = program()
    assert isinstance(p, core.ClosedJaxpr) and isinstance(p.jaxpr, core.Jaxpr)
    for equation in p.eqns:
        assert isinstance(equation, core.JaxprEqn) and isinstance(equation.primitive, core.Primitive)
        assert all(isinstance(v, (core.Var, core.Literal)) for v in equation.invars)
        assert all(isinstance(v, core.Var) for v in equation.outvars)


def test_programs_inside_of_programs():
    inner = list(core.subjaxprs(program()))
    assert [e.primitive.name for p in inner for e in p.eqns] == ["cos", "sin"]
    assert list(core.subjaxprs(inner[0])) == []
    assert list(core.jaxprs_in_params({"a": inner[0], "b": (1, inner[1]), "c": "text"})) == inner


def test_programs_as_functions():
    p = program()
    assert core.jaxpr_as_fun(p)(2.0)[0] == jnp.sin(1.0)
    slope = ferrax.grad(lambda x: core.jaxpr_as_fun(p)(x)[0])(2.0)
    np.testing.assert_allclose(slope, np.cos(1.0) / 2, rtol=1e-6)
    assert core.jaxpr_as_fun(p, 2.0)()[0] == jnp.sin(1.0)
    with pytest.raises(TypeError):
        core.jaxpr_as_fun(p, 1.0)(2.0)


def test_values_and_types_like_jax():
    theirs = jax.extend.core
    for x in (1, 1.5, "a", None, [1], np.ones(2), np.float32(1), object()):
        assert core.valid_jaxtype(x) is theirs.valid_jaxtype(x), x
    assert core.valid_jaxtype(jnp.ones(2)) and not core.valid_jaxtype(ferrax.typeof(1.0))
    assert {t for t in theirs.array_types if t.__module__ in ("numpy", "ml_dtypes")} == core.array_types
    for dtype in ("float32", "int8", "bool", "complex64", "bfloat16"):
        wanted = theirs.primal_dtype_to_tangent_dtype(jax.numpy.dtype(dtype))
        assert core.primal_dtype_to_tangent_dtype(jnp.dtype(dtype)) == wanted
    assert core.no_effects == frozenset() == theirs.no_effects


def test_types_of_mapped_values():
    aval = ferrax.typeof(jnp.ones((2, 3, 4)))
    for axis in (0, 1, 2, -1):
        inside = core.mapped_aval(aval.shape[axis], axis, aval)
        assert inside.shape == tuple(np.delete(aval.shape, axis)) and inside.dtype == aval.dtype
        assert core.unmapped_aval(aval.shape[axis], axis, inside).shape == aval.shape
    assert core.mapped_aval(5, None, aval) is aval is core.unmapped_aval(5, None, aval)
    assert core.unmapped_aval(2, 0, ferrax.typeof(1.0)).weak_type
    with pytest.raises(ValueError, match="no size 7"):
        core.mapped_aval(7, 0, aval)


def test_concrete_values():
    assert core.concrete_or_error(int, jnp.array(3)) == 3
    assert core.concrete_or_error(None, "any") == "any"
    with pytest.raises(ferrax.errors.ConcretizationTypeError, match="the length"):
        ferrax.jit(lambda n: core.concrete_or_error(int, n, "the length"))(3)


@pytest.mark.parametrize("shape", [(), (1,), (2,), (7,), (3, 4), (0,)])
def test_threefry_like_jax(shape):
    rng = np.random.default_rng(len(shape))
    key, count = (rng.integers(0, 2**32, s, np.uint32) for s in (2, shape))
    wanted = jax.extend.random.threefry_2x32(tuple(map(jax.numpy.asarray, key)), jax.numpy.asarray(count))
    for call in (threefry_2x32, ferrax.jit(threefry_2x32)):
        got = call(tuple(map(jnp.asarray, key)), jnp.asarray(count))
        assert got.dtype == np.uint32
        np.testing.assert_array_equal(got, wanted)


def test_threefry_takes_only_words():
    with pytest.raises(TypeError, match="uint32"):
        threefry_2x32((1, 2), jnp.zeros(2, "uint32"))
    hashed = ferrax.vmap(lambda c: threefry_2x32(jnp.array([1, 2], "uint32"), c))(jnp.zeros((3, 4), "uint32"))
    assert hashed.shape == (3, 4)
