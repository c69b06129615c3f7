"""What `vmap` does not map reaches the function as it is, and comes back as it is: numbers, NumPy's arrays, objects."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp

X = jnp.arange(3.0)


def test_numbers_stay_numbers():
    seen = []

    def f(x, n, y):
        seen.append((type(n), type(y)))
        return x * sum(range(n)), n, y * 2.0, x

    out = ferrax.vmap(f, in_axes=(0, None, None), out_axes=(0, None, None, 0))(X, 3, 4.0)
    assert seen == [(int, float)]
    np.testing.assert_array_equal(np.asarray(out[0]), 3 * np.arange(3))
    assert out[1:3] == (3, 8.0) and [type(v) for v in out[1:3]] == [int, float]


def test_arrays_of_numpy_stay_theirs():
    table = np.arange(4)
    out = ferrax.vmap(lambda x, t: (x + t[1], t), in_axes=(0, None), out_axes=(0, None))(X, table)
    assert out[1] is table
    np.testing.assert_array_equal(np.asarray(out[0]), np.arange(3) + 1)


def test_objects_are_seen_and_cannot_be_results():
    class Options:
        scale = 5

    np.testing.assert_array_equal(np.asarray(ferrax.vmap(lambda o, x: o.scale * x, (None, 0))(Options(), X)), 5 * X)
    with pytest.raises(TypeError, match="Options"):
        ferrax.vmap(lambda o, x: (o, x), (None, 0), (None, 0))(Options(), X)


def test_results_that_are_no_arrays_are_repeated_where_an_axis_is_asked_for():
    a, b = ferrax.vmap(lambda x: (2, x))(X)
    assert a.tolist() == [2, 2, 2] and a.weak_type and b.shape == (3,)


def test_under_other_transformations():
    f = ferrax.vmap(lambda x, n: x**n, in_axes=(0, None))
    np.testing.assert_array_equal(np.asarray(ferrax.jit(lambda x: f(x, 2))(X)), np.arange(3.0) ** 2)
    np.testing.assert_array_equal(np.asarray(ferrax.grad(lambda x: f(x, 2).sum())(X)), 2 * np.arange(3.0))
    both = ferrax.vmap(lambda y: f(X, y))(jnp.array([1.0, 2.0]))
    np.testing.assert_array_equal(np.asarray(both), np.stack([np.arange(3.0), np.arange(3.0) ** 2]))
    slope = ferrax.grad(lambda y: ferrax.vmap(lambda x, y: x * y, (0, None))(X, y).sum())(2.0)
    assert slope == 3.0
