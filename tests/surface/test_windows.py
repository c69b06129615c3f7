"""Windows (`ferrax.ds`) in indices of arrays and references, beside JAX's."""

import jax
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp

X = np.arange(20, dtype=np.float32).reshape(4, 5)
Y = np.arange(60, dtype=np.int32).reshape(3, 4, 5)

# functions of a module like JAX, its array functions, X, Y and a start
READS = {
    "axis": lambda m, np_, x, y, s: x[m.ds(s, 2)],
    "two": lambda m, np_, x, y, s: x[m.ds(s, 2), m.ds(1, 2)],
    "array after": lambda m, np_, x, y, s: x[m.ds(s, 2), np_.array([0, 2])],
    "array before": lambda m, np_, x, y, s: x[np_.array([0, 2]), m.ds(s, 2)],
    "number and array": lambda m, np_, x, y, s: y[0, m.ds(s, 2), np_.array([0, 2])],
    "between arrays": lambda m, np_, x, y, s: y[np_.array([0, 1]), m.ds(s, 2), np_.array([0, 2])],
    "stride": lambda m, np_, x, y, s: x[m.ds(s, 2, 2)],
    "no stride": lambda m, np_, x, y, s: x[m.ds(s, 2, 0)],
    "steps": lambda m, np_, x, y, s: x[m.ds(s, 2), ::2],
    "backwards": lambda m, np_, x, y, s: x[m.ds(s, 2), ::-1],
    "new axes": lambda m, np_, x, y, s: x[None, m.ds(s, 2), None, 1],
    "dots": lambda m, np_, x, y, s: y[..., m.ds(s, 2)],
    "flag": lambda m, np_, x, y, s: x[True, m.ds(s, 2)],
    "empty": lambda m, np_, x, y, s: x[m.ds(s, 0)],
    "fill": lambda m, np_, x, y, s: x.at[m.ds(s, 2)].get(mode="fill", fill_value=-1),
    "clip": lambda m, np_, x, y, s: x.at[m.ds(s, 2)].get(mode="clip"),
}
UPDATES = {
    "set": lambda m, np_, x, y, s: x.at[m.ds(s, 2), 1].set(-1.0),
    "set, clipped": lambda m, np_, x, y, s: x.at[m.ds(s, 2), 1].set(-1.0, mode="clip"),
    "add": lambda m, np_, x, y, s: x.at[m.ds(s, 2), np_.array([0, 2])].add(100.0),
    "multiply": lambda m, np_, x, y, s: x.at[m.ds(s, 2, 2)].multiply(-1.0),
    "add twice": lambda m, np_, x, y, s: x.at[m.ds(s, 2, 0)].add(1000.0),
    "apply": lambda m, np_, x, y, s: x.at[1, m.ds(s, 2)].apply(np_.negative),
    "values": lambda m, np_, x, y, s: x.at[m.ds(s, 2), m.ds(0, 3)].set(np_.arange(6.0).reshape(2, 3)),
}


@pytest.mark.parametrize("name", [*READS, *UPDATES])
def test_like_jax(name):
    f = {**READS, **UPDATES}[name]
    for start in (-6, -1, 0, 1, 2, 3, 7):
        wanted = f(jax, jax.numpy, jax.numpy.asarray(X), jax.numpy.asarray(Y), start)
        x, y = jnp.asarray(X), jnp.asarray(Y)
        for got in (
            f(ferrax, jnp, x, y, start),
            f(ferrax, jnp, x, y, jnp.array(start)),
            ferrax.jit(lambda s: f(ferrax, jnp, x, y, s))(start),
        ):
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted), f"start {start}")


def test_transformations():
    slope = ferrax.grad(lambda x: (x[ferrax.ds(1, 2)] ** 2).sum())(jnp.asarray(X))
    assert (slope[1:3] == 2 * X[1:3]).all() and not slope[0].any() and not slope[3].any()
    rows = ferrax.vmap(lambda i: jnp.asarray(X)[ferrax.ds(i, 2)])(jnp.arange(3))
    np.testing.assert_array_equal(rows, np.stack([X[i : i + 2] for i in range(3)]))


def test_windows_themselves():
    assert ferrax.ds(None) == slice(None)
    assert (ferrax.ds(3).start, ferrax.ds(3).size) == (0, 3)
    assert repr(ferrax.ds(1, 2)) == repr(jax.ds(1, 2))
    assert ferrax.tree.leaves(ferrax.ds(1, 2)) == [] == jax.tree.leaves(jax.ds(1, 2))
    for bad in (-1, 1.5, "a"):
        with pytest.raises(ValueError):
            ferrax.ds(0, 1, bad)


def test_what_no_window_can_be():
    x = jnp.asarray(X)
    with pytest.raises(TypeError, match="static integer"):
        ferrax.jit(lambda n: x[ferrax.ds(0, n)])(2)
    with pytest.raises(TypeError, match="integer scalar"):
        x[ferrax.ds(jnp.array([1]), 2)]
    with pytest.raises(TypeError, match="integer scalar"):
        x[ferrax.ds(1.5, 2)]
    with pytest.raises(TypeError, match="does not fit"):
        x[ferrax.ds(0, 9)]
    with pytest.raises(IndexError, match="Too many indices"):
        x[ferrax.ds(0, 1), 0, 0]


def test_arrays_without_windows_are_as_before():
    ferrax.ds(0, 1)
    x = jnp.asarray(X)
    assert x[1, 2] == X[1, 2] and (x[1:3] == X[1:3]).all() and x.at[0, 0].set(9.0)[0, 0] == 9
    with pytest.raises(IndexError, match="only integers, slices"):
        x[object()]


def test_references():
    ref, theirs = ferrax.new_ref(jnp.asarray(X)), jax.new_ref(jax.numpy.asarray(X))
    ref[ferrax.ds(1, 2)] = jnp.ones((2, 5))
    theirs[jax.ds(1, 2)] = jax.numpy.ones((2, 5))
    ferrax.ref.addupdate(ref, (ferrax.ds(0, 1), ferrax.ds(1, 2)), jnp.ones((1, 2)))
    jax.ref.addupdate(theirs, (jax.ds(0, 1), jax.ds(1, 2)), jax.numpy.ones((1, 2)))
    for start in (0, 2, 3):

        def step(m, r, start=start):
            def f(i):
                r[m.ds(i, 2), 0] = r[m.ds(i, 2), 1] + i
                return r[m.ds(i, 2)]

            return m.jit(f)(start)

        np.testing.assert_array_equal(step(ferrax, ref), step(jax, theirs))
        np.testing.assert_array_equal(ref[...], theirs[...])
    for start, size in ((3, 2), (7, 1)):
        for m, r in ((ferrax, ref), (jax, theirs)):
            with pytest.raises(ValueError, match="Out of bound slice"):
                r[m.ds(start, size)]
