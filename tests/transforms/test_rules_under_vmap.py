"""Rules of custom derivatives that close over a `vmap`'s rows, called on what no row maps; beside JAX."""

import numpy as np
import pytest

import ferrax
from tests.recorded import expected

ROWS = np.arange(1.0, 4.0, dtype=np.float32)


def jvp_rule(jax, c, in_function=False):
    """A function whose rule uses `c`; its value does `in_function`."""
    value = lambda x: jax.numpy.sin(x) * (c if in_function else 1)
    f = jax.custom_jvp(value)
    f.defjvp(lambda p, t: (value(p[0]), t[0] * c))
    return f


def vjp_rule(jax, c, in_function=False):
    """The same in reverse; `c` reaches the backward function as a residual."""
    value = lambda x: jax.numpy.sin(x) * (c if in_function else 1)
    f = jax.custom_vjp(value)
    f.defvjp(lambda x: (value(x), (x, c)), lambda r, ct: (ct * r[0] * r[1],))
    return f


def over_rows(jax, f):
    """The function `x -> f(x)`, one `f(c)` a row."""
    return lambda x: jax.vmap(lambda c: f(c)(x))(jax.numpy.asarray(ROWS))


def across(jax, out_axes):
    """A sum over the rows, with a rule, of what they share."""
    f = jax.custom_vjp(lambda x: jax.lax.psum(x, "i"))
    f.defvjp(lambda x: (jax.lax.psum(x, "i"), None), lambda _, ct: (jax.lax.psum(ct, "i"),))
    return lambda g: jax.vmap(lambda _: g(f)(1.5), axis_name="i", out_axes=out_axes)(jax.numpy.asarray(ROWS))


def two(jax, decorate):
    """A function of two arguments, and its rule, whose results depend on one each."""
    f = decorate(lambda x, y: (x * 2, y * 3))
    if decorate is jax.custom_jvp:
        f.defjvp(lambda p, t: ((p[0] * 2, p[1] * 3), (t[0] * 2, t[1] * 3)))
    else:
        f.defvjp(lambda x, y: ((x * 2, y * 3), y), lambda y, ct: (ct[0] * 2, ct[1] * 3 * y))
    return f


def mixed(jax, f, out_axes=(0, 0)):
    return jax.vmap(lambda c: f(c), out_axes=out_axes)(jax.numpy.asarray(ROWS))


def kept(jax, decorate, wrap, out_axes=(0, None)):
    """What depends on the operand that is not mapped stays without rows, its tangents and cotangents too."""
    f = jax.vmap(jax.jit(two(jax, decorate)), in_axes=(0, None), out_axes=out_axes)
    return wrap(lambda y: f(jax.numpy.asarray(ROWS), y))(1.5)


def total(jax):
    return lambda f: jax.jit(jax.grad(lambda y: sum(v.sum() for v in f(y))))


def wide(jax):
    """The tangent of a result that all rows share differs from row to row."""
    f = jax.custom_jvp(lambda x, y: (x * 2, y * 3))
    f.defjvp(lambda p, t: ((p[0] * 2, p[1] * 3), (t[0] * 2, t[1] * p[0])))
    g = jax.vmap(jax.jit(f), in_axes=(0, None))
    return jax.jit(lambda y: jax.jvp(lambda y: g(jax.numpy.asarray(ROWS), y), (y,), (1.0,)))(1.5)


CASES = {
    "shared result of jit": lambda jax: kept(jax, jax.custom_jvp, lambda f: f),
    "shared result in jit": lambda jax: kept(jax, jax.custom_jvp, jax.jit),
    "shared result, vjp": lambda jax: kept(jax, jax.custom_vjp, jax.jit),
    "shared result's gradient": lambda jax: kept(jax, jax.custom_jvp, total(jax)),
    "shared result's gradient, vjp": lambda jax: kept(jax, jax.custom_vjp, total(jax), (0, 0)),
    "jvp": lambda jax: jax.jvp(over_rows(jax, lambda c: jvp_rule(jax, c)), (1.0,), (1.0,)),
    "jvp, value too": lambda jax: jax.jvp(over_rows(jax, lambda c: jvp_rule(jax, c, True)), (1.0,), (1.0,)),
    "grad": lambda jax: jax.grad(lambda x: over_rows(jax, lambda c: jvp_rule(jax, c))(x).sum())(1.0),
    "jit": lambda jax: jax.jit(jax.grad(lambda x: over_rows(jax, lambda c: jvp_rule(jax, c))(x).sum()))(1.0),
    "two maps": lambda jax: jax.jvp(
        lambda x: jax.vmap(lambda y: over_rows(jax, lambda c: jvp_rule(jax, c))(x * y))(jax.numpy.asarray(ROWS)),
        (1.0,),
        (1.0,),
    ),
    "vjp": lambda jax: jax.grad(lambda x: over_rows(jax, lambda c: vjp_rule(jax, c))(x).sum())(1.0),
    "vjp, value too": lambda jax: jax.grad(lambda x: over_rows(jax, lambda c: vjp_rule(jax, c, True))(x).sum())(1.0),
    "vjp in a map": lambda jax: jax.vmap(jax.grad(lambda x: over_rows(jax, lambda c: vjp_rule(jax, c))(x).sum()))(
        jax.numpy.asarray(ROWS)
    ),
    "psum": lambda jax: across(jax, None)(lambda f: f),
    "psum, repeated": lambda jax: across(jax, 0)(lambda f: f),
    "psum, jitted": lambda jax: across(jax, None)(jax.jit),
    "psum's gradient": lambda jax: across(jax, None)(jax.grad),
    "one of two mapped": lambda jax: mixed(jax, lambda c: two(jax, jax.custom_jvp)(c, 1.5), (0, None)),
    "one of two mapped, vjp": lambda jax: mixed(jax, lambda c: jax.vjp(two(jax, jax.custom_vjp), c, 1.5)[0], (0, None)),
    "its cotangents": lambda jax: jax.grad(
        lambda y: sum(v.sum() for v in mixed(jax, lambda c: two(jax, jax.custom_vjp)(c, y)))
    )(1.5),
    "its cotangents, not repeated": lambda jax: jax.grad(
        lambda y: sum(v.sum() for v in mixed(jax, lambda c: two(jax, jax.custom_vjp)(c, y), (0, None)))
    )(1.5),
}


@pytest.mark.parametrize("name", CASES)
def test_as_in_jax(name):
    got, want = ferrax.tree.leaves(CASES[name](ferrax)), ferrax.tree.leaves(expected(CASES[name]))
    for a, b in zip(got, want, strict=True):
        assert (np.shape(a), ferrax.typeof(a).dtype) == (np.shape(b), ferrax.typeof(b).dtype)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_a_rule_that_depends_on_more_has_its_rows():
    """JAX's result has one row too few for its type."""
    outs, dots = wide(ferrax)
    assert [v.tolist() for v in (*outs, *dots)] == [[2, 4, 6], [4.5] * 3, [0, 0, 0], [1, 2, 3]]


def test_a_rule_that_depends_on_more_than_the_recorded_function():
    f = ferrax.custom_jvp(lambda x: 2 * x)
    f.defjvp(lambda p, t: (2 * p[0], t[0] * ferrax.lax.axis_index("i")))
    mapped = lambda x: ferrax.vmap(lambda _: f(x), axis_name="i")(ferrax.numpy.asarray(ROWS))
    assert ferrax.jvp(mapped, (1.0,), (1.0,))[1].tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(TypeError, match="differs from row to row"):
        ferrax.jvp(ferrax.jit(mapped), (1.0,), (1.0,))
    inner = lambda x: ferrax.vmap(lambda c: ferrax.jit(jvp_rule(ferrax, c))(x))(ferrax.numpy.asarray(ROWS))
    with pytest.raises(TypeError, match="closes over a value that an enclosing transformation traces"):
        ferrax.jvp(inner, (1.0,), (1.0,))
