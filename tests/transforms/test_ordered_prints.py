"""Host functions in traced programs: prints in order under transformations, and results of callbacks."""

import functools

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax


def show(x):
    jax.debug.print("{}", x, ordered=True)
    return x * x


def scanned(x):
    return lax.scan(lambda c, _: (show(c), None), x, None, length=2)[0]


ROWS = np.arange(3.0, dtype=np.float32)
FUNCTIONS = {
    "grad": (jax.grad(show), 2.0, 4.0, ["2.0"]),
    "grad of jit": (jax.grad(jax.jit(show)), 2.0, 4.0, ["2.0"]),
    "grad of scan": (jax.grad(scanned), 2.0, 32.0, ["2.0", "4.0"]),
    "grad of checkpoint": (jax.grad(jax.checkpoint(show)), 2.0, 4.0, ["2.0"]),
    "grad of cond": (jax.grad(lambda x: lax.cond(x > 0, show, lambda x: x, x)), 2.0, 4.0, ["2.0"]),
    "vmap": (lambda x: jax.vmap(show)(x).sum(), ROWS, 5.0, ["0.0", "1.0", "2.0"]),
    "jit of vmap": (jax.jit(lambda x: jax.vmap(show)(x).sum()), ROWS, 5.0, ["0.0", "1.0", "2.0"]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ordered_prints_are_transformed(name, capsys):
    fun, x, value, lines = FUNCTIONS[name]
    assert float(fun(x)) == value
    jax.effects_barrier()
    assert capsys.readouterr().out.splitlines()[: len(lines)] == lines


def test_ordered_callbacks_of_programs_are_not():
    call = functools.partial(jax.experimental.io_callback, lambda x: x, np.float32(0), ordered=True)
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        jax.grad(call)(1.0)
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
        jax.vmap(call)(jnp.ones(2))


def test_results_of_callbacks_are_taken_by_their_leaves():
    announced = {"y": [jax.ShapeDtypeStruct((), jnp.float32)]}
    out = jax.jit(lambda x: jax.pure_callback(lambda x: {"y": [x]}, announced, [x]))(jnp.float32(2))
    assert jax.tree.structure(out) == jax.tree.structure(announced)
    assert float(out["y"][0]) == 2.0
    with pytest.raises(RuntimeError, match="announced was"):
        jax.pure_callback(lambda x: (x, x), announced, 1.0)


def test_traced_numbers_in_nested_indices():
    x = jnp.arange(24).reshape(2, 3, 4)
    inner = jax.jit(lambda i: x[((i, 0), (0, i)), i])(1)
    np.testing.assert_array_equal(inner, x[((1, 0), (0, 1)), 1])
    np.testing.assert_array_equal(jax.jit(lambda i: x[(i, 0),])(1), x[jnp.array([1, 0])])
    with pytest.raises(TypeError):
        jax.jit(lambda i: x[(i, 0.5),])(1)


@pytest.mark.parametrize("ordered", [False, True])
def test_callbacks_get_what_is_no_array_as_it_is(ordered):
    seen = []
    note = lambda *args, **kwargs: seen.append((args[0], float(args[1]), args[2], kwargs))
    f = jax.jit(lambda x: jax.debug.callback(note, "a", x, (None, note), ordered=ordered, key="b"))
    f(1.5)
    jax.effects_barrier()
    assert seen == [("a", 1.5, (None, note), {"key": "b"})]
