"""Programs of lists of traced values and of `stack` print as JAX prints them; values are NumPy's."""

import jax
import numpy as np
import pytest

import ferrax

PROGRAMS = {
    "numbers": lambda jnp: lambda x: jnp.array([x[0], x[1]]),
    "one number": lambda jnp: lambda x: jnp.array([x[0]]),
    "with a Python number": lambda jnp: lambda x: jnp.array([x[0], 2, 0.5]),
    "nested": lambda jnp: lambda x: jnp.array([[x[0], 1.0], [x[1], x[2]]]),
    "rows": lambda jnp: lambda x: jnp.asarray([x, x * 2]),
    "of several dtypes": lambda jnp: lambda x: jnp.array([x[0], x[0].astype("int8")]),
    "in a dtype": lambda jnp: lambda x: jnp.array([x[0], x[1]], "float16"),
    "stack": lambda jnp: lambda x: jnp.stack([x, x + 1]),
    "stack behind": lambda jnp: lambda x: jnp.stack([x, x + 1], axis=-1),
    "stack of one": lambda jnp: lambda x: jnp.stack([x], 1),
    "stack of several dtypes": lambda jnp: lambda x: jnp.stack([x, x.astype("int32")]),
    "stack of numbers": lambda jnp: lambda x: jnp.stack([x[0], x[2]]),
    "numbers that fill": lambda jnp: lambda x: jnp.zeros_like(x) + jnp.full_like(x, 3) + jnp.full(3, True, "float16"),
    "large integers that fill": lambda jnp: lambda x: jnp.full_like(x, -(2**70)) * jnp.full(3, 10**10, "float32"),
    "numbers that begin": lambda jnp: lambda x: jnp.max(x, initial=2) + jnp.prod(x, initial=3) + jnp.sum(x, initial=1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    x = np.arange(1, 4, dtype=np.float32)
    got, want = (j.make_jaxpr(PROGRAMS[name](j.numpy))(x) for j in (ferrax, jax))
    assert str(got) == str(want)
    ours, theirs = (PROGRAMS[name](j.numpy) for j in (ferrax, jax))
    wanted = theirs(jax.numpy.asarray(x))
    for value in (ours(ferrax.numpy.asarray(x)), ferrax.jit(ours)(x)):
        assert value.dtype == wanted.dtype
        np.testing.assert_array_equal(value, wanted)
    rows = ferrax.vmap(ours)(np.stack([x, x + 1]))
    np.testing.assert_array_equal(rows[1], theirs(jax.numpy.asarray(x + 1)))


def test_a_number_that_does_not_fit_is_no_literal():
    """A number is rounded once, and one that does not fit is refused, whether or not its neighbour is traced."""
    half = ferrax.jit(lambda x: ferrax.numpy.array([x, 0.1], "float16"))(np.float16(1))
    np.testing.assert_array_equal(half, np.array([1, 0.1], "float16"))
    for wrap in (lambda f: f, ferrax.jit):
        with pytest.raises(OverflowError):
            wrap(lambda x: ferrax.numpy.array([x, 300]))(ferrax.numpy.uint8(1))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_large_integers_fill_floats(dtype):
    """An integer that the default integers do not hold is the nearest float where floats were asked for."""
    for number in (2**31, -(2**40), 2**63 + 2**39 + 1):
        like = ferrax.ShapeDtypeStruct((2,), dtype)
        for value in (ferrax.lax.full((2,), number, dtype), ferrax.lax.full_like(like, number)):
            np.testing.assert_array_equal(value, jax.lax.full((2,), number, dtype))
    for make in (ferrax.lax.full, ferrax.numpy.full):
        with pytest.raises(OverflowError):
            make((2,), 2**40)


def test_what_a_row_comes_from():
    seen = []

    def look(x):
        seen.append((np.asarray(x.val), x.batch_dim))
        return x

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    ferrax.vmap(look, in_axes=1)(x)
    value, axis = seen[0]
    np.testing.assert_array_equal(np.moveaxis(value, axis, 0), x.T)
