"""What a traced function makes of data is traced, too, as in JAX; what it closes over and leaves as it is, is not."""

import numpy as np
import pytest

import ferrax
from tests.recorded import expected

MADE = {
    "a number": lambda jnp, c: jnp.asarray(1.0),
    "a number of a dtype": lambda jnp, c: jnp.asarray(1, jnp.float16),
    "a copy": lambda jnp, c: jnp.array(c),
    "a list": lambda jnp, c: jnp.array([1, 2]),
    "an empty list": lambda jnp, c: jnp.array([]),
    "an array of NumPy's": lambda jnp, c: jnp.asarray(np.ones(2, np.float32)),
    "a scalar of NumPy's": lambda jnp, c: jnp.asarray(np.float32(1)),
    "a scalar type": lambda jnp, c: jnp.int32(True),
    "ones without axes": lambda jnp, c: jnp.ones(()),
    "a range of floats": lambda jnp, c: jnp.arange(0.0, 1.0, 0.3),
    "an array": lambda jnp, c: jnp.asarray(c),
    "an array of its dtype": lambda jnp, c: jnp.asarray(c, jnp.float32),
    "converted to its dtype": lambda jnp, c: c.astype(jnp.float32),
    "converted": lambda jnp, c: jnp.asarray(c, jnp.float16),
    "with as many axes": lambda jnp, c: jnp.broadcast_to(c, (3,)),
}


def wheres(jax):
    f = lambda g: lambda x: (g(), x * 1.0)[1]
    return {
        "jit": lambda g: jax.jit(f(g))(1.0),
        "grad": lambda g: jax.grad(f(g))(1.0),
        "vmap": lambda g: jax.vmap(f(g))(np.ones(2, np.float32)),
        "cond": lambda g: jax.lax.cond(True, f(g), lambda x: x, 1.0),
        "grad in jit": lambda g: jax.jit(jax.grad(f(g)))(1.0),
    }


@pytest.mark.parametrize("where", wheres(ferrax))
@pytest.mark.parametrize("name", MADE)
def test_is_traced(name, where):
    def traced(jax):
        c, found = jax.numpy.ones(3), []
        wheres(jax)[where](lambda: found.append(isinstance(MADE[name](jax.numpy, c), jax.core.Tracer)))
        return found[0]

    assert traced(ferrax) == expected(traced)


def test_numbers_stay_in_the_program():
    def f(x):
        jnp = ferrax.numpy
        return x * jnp.asarray(2), x + jnp.ones(()), jnp.float32(3.0), jnp.asarray(1) + jnp.asarray(2.5)

    text = str(ferrax.make_jaxpr(f)(ferrax.numpy.ones(3)))
    assert "convert_element_type" not in text
    assert "mul a 2.0:f32[]" in text
    assert "add 1.0:f32[] 2.5:f32[]" in text
    for got, want in zip(ferrax.jit(f)(np.ones(3, np.float32)), ([2] * 3, [2] * 3, 3.0, 3.5), strict=True):
        np.testing.assert_array_equal(got, want)


def test_inner_programs_have_them_as_their_own():
    jnp = ferrax.numpy

    def f(x):
        factor, offset = jnp.float32(2.0), jnp.array([1.0, 2.0])
        return ferrax.lax.scan(lambda c, _: (c * factor + offset, None), x, None, length=2)[0]

    assert "num_consts=0" in str(ferrax.make_jaxpr(f)(jnp.ones(2)))
    np.testing.assert_array_equal(ferrax.jit(f)(jnp.ones(2)), [7.0, 10.0])
    np.testing.assert_array_equal(ferrax.jacobian(f)(jnp.ones(2)), 4 * np.eye(2))


def test_values_are_known_where_they_are_asked_for():
    jnp = ferrax.numpy

    @ferrax.jit
    def f(x):
        with ferrax.ensure_compile_time_eval():
            assert jnp.asarray(3) > 2
        # trip counts and initial values that a function makes are as good as Python's
        total = ferrax.lax.fori_loop(jnp.int32(0), jnp.int32(3), lambda i, c: c * x, x)
        return total + ferrax.lax.reduce_window(x, jnp.float32(0), ferrax.lax.add, (2,), (1,), "SAME").sum()

    assert ferrax.grad(lambda x: f(x).sum())(jnp.ones(2)).shape == (2,)
    with pytest.raises(ferrax.errors.TracerBoolConversionError):
        ferrax.jit(lambda: 1 if jnp.asarray(True) else 0)()
    with pytest.raises(ferrax.errors.UnexpectedTracerError):
        kept = []
        ferrax.jit(lambda x: (kept.append(jnp.asarray(1.0)), x)[1])(1.0)
        kept[0] + 1


def closed_over(jax):
    """How many constants the programs have that a traced function makes of others, and whether these are traced."""
    jnp, found, results = jax.numpy, {}, []

    def f(x):
        number, data = jnp.array(2.0), jnp.array([1.0, 2.0])
        programs = {
            "a number": lambda y: y + number,
            "data": lambda y: y + data,
            "both": lambda y: y * number + data - number,
            "in a jitted function": lambda y: jax.jit(lambda y: y + number)(y),
            "in a loop": lambda y: jax.lax.fori_loop(0, 3, lambda i, c: c * number + data, y),
            "in a branch": lambda y: jax.lax.cond(y.sum() > 0, lambda y: y + number, lambda y: y * number, y),
            "as a result": lambda y: number,
        }
        for name, g in programs.items():
            closed = jax.make_jaxpr(g)(x)
            found[name] = [isinstance(c, jax.core.Tracer) for c in closed.consts]
            results.append(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0])
        return results

    values = jax.jit(f)(jnp.ones(2))
    return found, [np.asarray(v) for v in values]


def test_programs_that_are_seen_have_them_as_constants():
    found, values = closed_over(ferrax)
    want, wanted = expected(closed_over)
    assert found == want
    for got, value in zip(values, wanted, strict=True):
        np.testing.assert_array_equal(got, value)
