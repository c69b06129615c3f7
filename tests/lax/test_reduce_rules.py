"""Slopes of `lax.reduce` and `lax.reduce_window` by any function, against sums and products written out."""

import jax
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

JITTED = [lambda f: f, ferrax.jit]


def numbers(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def product(a, b):
    return a * b


@pytest.mark.parametrize("jitted", JITTED)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("sizes", [(5, 4, 3), (1, 6, 2), (8, 1, 1)])
def test_axes(jitted, axes, sizes):
    x = numbers(*sizes)
    mine = lambda x, i: lax.reduce(x, i, product, axes)
    want = lambda x, i: i * jnp.prod(x, axes)
    loss = lambda f: lambda x, i: (f(x, i) ** 2).sum()
    np.testing.assert_allclose(jitted(mine)(x, 2.0), want(x, 2.0), rtol=1e-5)
    got = jitted(ferrax.grad(loss(mine), (0, 1)))(x, jnp.float32(2.0))
    for g, w in zip(got, ferrax.grad(loss(want), (0, 1))(x, jnp.float32(2.0)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
    _, along = ferrax.jvp(jitted(lambda x: mine(x, 2.0)), (x,), (x,))
    np.testing.assert_allclose(along, len(np.ravel(x)) // max(along.size, 1) * want(x, 2.0), rtol=1e-4)


def test_as_jax_has_them():
    x = np.asarray(numbers(7, 3))
    f = lambda lib, numpy: lambda x: (lib.reduce(x, np.float32(-np.inf), numpy.logaddexp, (0,)) ** 2).sum()
    want = jax.jit(jax.grad(f(jax.lax, jax.numpy)))(x)
    np.testing.assert_allclose(ferrax.grad(f(lax, jnp))(x), want, rtol=1e-5)


def test_second_derivatives_and_maps():
    x = numbers(5, 4)
    f = lambda x: lax.reduce(x, 1.0, product, (0,))[0]
    np.testing.assert_allclose(ferrax.hessian(f)(x), ferrax.hessian(lambda x: jnp.prod(x, 0)[0])(x), atol=1e-4)
    rows = ferrax.vmap(ferrax.grad(lambda row: lax.reduce(row, 1.0, product, (0,))))(x)
    np.testing.assert_allclose(rows, ferrax.grad(lambda x: jnp.prod(x, 1).sum())(x), rtol=1e-4)


def test_neighbours_are_combined_in_order():
    """Maps x -> a x + b are composed: a function that is associative and does not commute."""
    a, b = numbers(6), numbers(6, seed=1)
    compose = lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1])

    def ours(a, b):
        return lax.reduce((a, b), (1.0, 0.0), compose, (0,))[1]

    def written_out(a, b):
        x = jnp.float32(0)
        for i in range(6):
            x = a[i] * x + b[i]
        return x

    got = ferrax.grad(ours, (0, 1))(a, b)
    for g, w in zip(got, ferrax.grad(written_out, (0, 1))(a, b), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)


def largest(x, y):
    """The larger number and its index."""
    first = x[0] >= y[0]
    return jnp.where(first, x[0], y[0]), jnp.where(first, x[1], y[1])


@pytest.mark.parametrize("jitted", JITTED)
def test_pytrees_with_integers(jitted):
    x, index = numbers(5, 4), jnp.arange(20).reshape(5, 4)
    f = lambda x: lax.reduce((x, index), (-np.inf, -1), largest, (0,))[0].sum()
    np.testing.assert_array_equal(jitted(ferrax.grad(f))(x), x == x.max(0))
    values, places = jitted(lambda x: lax.reduce((x, index), (-np.inf, -1), largest, (0,)))(x)
    np.testing.assert_array_equal(values, x.reshape(-1)[places])


# Window, strides, padding, spacing of elements, spacing of cells.
WINDOWS = [
    ((2, 3), (1, 2), "SAME", None, None),
    ((2, 2), (2, 2), "VALID", None, None),
    ((3, 1), (1, 1), [(2, 1), (0, 0)], None, (2, 1)),
    ((2, 2), (2, 1), [(1, 0), (0, 1)], (1, 2), (2, 1)),
    ((2, 2), (1, 1), [(-1, 0), (0, 2)], None, None),
    ((6, 5), (1, 1), "VALID", None, None),
]


def windows_of(x, fill, window, strides, padding, base, spacing):
    """The cells of all windows, by NumPy's indices."""
    base, spacing = base or (1, 1), spacing or (1, 1)
    spread = [(n - 1) * d + 1 for n, d in zip(x.shape, base, strict=True)]
    spans = [(n - 1) * d + 1 for n, d in zip(window, spacing, strict=True)]
    pads = lax.padtype_to_pads(spread, spans, strides, padding) if isinstance(padding, str) else padding
    places = np.arange(x.size).reshape(x.shape)
    full = np.full(spread, -1)
    full[:: base[0], :: base[1]] = places
    full = np.pad(full, [(max(low, 0), max(high, 0)) for low, high in pads], constant_values=-1)
    full = full[max(-pads[0][0], 0) :, max(-pads[1][0], 0) :]
    rows, columns = (max((n - s) // step + 1, 0) for n, s, step in zip(full.shape, spans, strides, strict=True))
    cells = np.array(
        [
            [
                full[i * strides[0] :, j * strides[1] :][: spans[0] : spacing[0], : spans[1] : spacing[1]].ravel()
                for j in range(columns)
            ]
            for i in range(rows)
        ],
        int,
    ).reshape(rows, columns, window[0] * window[1])
    return jnp.where(cells < 0, fill, x.reshape(-1)[cells])


@pytest.mark.parametrize("jitted", JITTED)
@pytest.mark.parametrize("where", WINDOWS)
def test_windows(jitted, where):
    x = numbers(5, 4)
    mine = lambda x, i: lax.reduce_window(x, i, product, *where)
    want = lambda x, i: i * windows_of(x, i, *where).prod(-1)
    loss = lambda f: lambda x, i: (f(x, i) ** 2).sum()
    got = jitted(ferrax.grad(loss(mine), 0))(x, jnp.float32(1))
    np.testing.assert_allclose(got, ferrax.grad(loss(want), 0)(x, jnp.float32(1)), rtol=1e-3, atol=1e-5)
    _, along = ferrax.jvp(jitted(lambda x: mine(x, jnp.float32(1))), (x,), (x,))
    np.testing.assert_allclose(
        along, ferrax.jvp(lambda x: want(x, jnp.float32(1)), (x,), (x,))[1], rtol=1e-3, atol=1e-5
    )


def test_windows_by_multiplication_and_of_pytrees():
    x, index = numbers(4, 6), jnp.arange(24).reshape(4, 6)
    slope = ferrax.grad(lambda x: lax.reduce_window(x, 1.0, lax.mul, (2, 2), (2, 2)).sum())(x)
    np.testing.assert_allclose(slope * x, np.kron(slope[::2, ::2] * x[::2, ::2], np.ones((2, 2))), rtol=1e-4)
    f = lambda x: lax.reduce_window((x, index), (-np.inf, -1), largest, (2, 2), (2, 2))[0].sum()
    assert ferrax.grad(f)(x).sum() == 6


def test_nothing_to_reduce():
    assert ferrax.grad(lambda x: lax.reduce(x, 1.0, product, (0,)).sum())(jnp.ones((0, 3))).shape == (0, 3)
    slope = ferrax.grad(lambda i: lax.reduce(jnp.ones((0, 3)), i, product, (0,)).sum())(2.0)
    assert slope == 3
    assert not ferrax.grad(lambda x: lax.reduce_window(x, 1.0, product, (9, 9)).sum())(jnp.ones((3, 3))).any()


def test_arrays_that_nothing_follows_need_no_rule():
    """Integers, and arrays outside of transformations, are reduced as they are."""
    text = str(ferrax.make_jaxpr(lambda x: lax.reduce(x, 1, product, (0,)))(jnp.arange(3)))
    assert "custom_jvp" not in text and "reduce" in text
    np.testing.assert_allclose(lax.reduce(numbers(3), 1.0, product, (0,)), numbers(3).prod(), rtol=1e-6)
