"""Gradients through `where`: `safe_where` and the static check, against JAX's default."""

import warnings

import jax as reference
import jax.numpy as reference_numpy
import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp

X = np.array([-1.0, 0.0, 4.0], np.float32)


def guarded_root(x):
    return jnp.where(x > 0, jnp.sqrt(x), 0)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: jax.vmap(jax.grad(f)),
        lambda f: jax.grad(lambda x: f(x).sum()),
        lambda f: jax.grad(lambda x: jax.jit(f)(x).sum()),
        lambda f: jax.jit(jax.grad(lambda x: f(x).sum())),
        lambda f: jax.vmap(jax.jit(jax.grad(jax.jit(f)))),
        lambda f: jax.grad(lambda x: jax.checkpoint(f)(x).sum()),
        lambda f: jax.grad(lambda xs: jax.lax.scan(lambda c, x: (c + f(x), None), 0.0, xs)[0]),
        lambda f: lambda x: jax.vmap(jax.vjp(lambda x: f(x).sum(), x)[1])(jnp.ones(1))[0][0],
    ],
)
@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (guarded_root, [0, 0, 0.25]),
        (lambda x: jnp.where(x > 0, jnp.log(x), 5.0), [0, 0, 0.25]),
        (lambda x: jnp.where(x == 0, 1.0, 2 / x), [-2, 0, -0.125]),
        (lambda x: jnp.where(x <= 0, x, x ** jnp.float32(0.5)), [1, 1, 0.25]),
        (lambda x: jax.lax.select_n(x > 0, x, 3.0 * jnp.sqrt(x)), [1, 1, 0.75]),
    ],
)
def test_gradients(wrap, fun, expected):
    with jax.safe_where():
        np.testing.assert_allclose(wrap(fun)(X), np.array(expected, np.float32), rtol=1e-6)


def test_norm_through_reductions():
    def norm(x):
        return jnp.where(jnp.sum(x) > 0, jnp.sqrt(jnp.sum(x * x)), 0.0)

    with jax.safe_where():
        np.testing.assert_array_equal(jax.grad(norm)(jnp.zeros(3)), np.zeros(3))
        np.testing.assert_allclose(jax.grad(norm)(jnp.ones(3)), np.full(3, 3**-0.5), rtol=1e-6)


def test_second_derivatives():
    with jax.safe_where():
        assert jax.grad(jax.grad(guarded_root))(0.0) == 0.0
        np.testing.assert_allclose(jax.grad(jax.grad(guarded_root))(4.0), -1 / 32, rtol=1e-6)


def test_nothing_else_changes():
    functions = [
        lambda np_: lambda x: np_.sqrt(x).sum(),
        lambda np_: lambda x: (0.0 * np_.sqrt(x)).sum(),
        lambda np_: lambda x: np_.sqrt(x)[1:].sum(),
    ]
    for make in functions:
        expected = reference.grad(make(reference_numpy))(X)
        with jax.safe_where():
            np.testing.assert_allclose(jax.grad(make(jnp))(X), expected, rtol=1e-6)


def test_other_uses_of_a_value_stay():
    with jax.safe_where():
        slope = jax.grad(lambda x: guarded_root(x) + jnp.sqrt(x))(0.0)
    assert slope == np.inf


def test_off_is_jax():
    assert np.isnan(jax.grad(guarded_root)(0.0))
    with jax.safe_where():
        jitted = jax.jit(jax.grad(guarded_root))
        assert jitted(0.0) == 0.0
    assert np.isnan(jitted(0.0))


def test_no_nan_arises():
    with jax.safe_where(), jax.debug_nans():
        assert jax.grad(guarded_root)(0.0) == 0.0
        assert jax.jit(jax.grad(guarded_root))(0.0) == 0.0


def collected(call):
    with jax.check_where(), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in found]


def test_check_names_branch_and_lines():
    def f(x):
        root = jnp.sqrt(x)
        doubled = 2 * root
        return jnp.where(x > 0, doubled, 0.0)

    line = f.__code__.co_firstlineno
    for call in (lambda: jax.grad(f)(1.0), lambda: jax.jit(jax.grad(jax.jit(f)))(1.0)):
        [text] = collected(call)
        assert f"where at {__file__}:{line + 3}" in text
        assert f"`sqrt` at {__file__}:{line + 1}" in text
        assert "its branch for true" in text


def test_check_of_the_other_branch():
    [text] = collected(lambda: jax.grad(lambda x: jnp.where(x == 0, 1.0, 1 / x))(1.0))
    assert "its branch for false" in text
    assert "`div`" in text


def test_check_accepts_the_guarded_form():
    def f(x):
        safe = jnp.where(x > 0, x, 1.0)
        return jnp.where(x > 0, jnp.sqrt(safe), 0.0)

    assert collected(lambda: jax.grad(f)(1.0)) == []
    assert collected(lambda: jax.grad(lambda x: jnp.where(x > 0, jnp.sin(x), 0.0))(1.0)) == []


def test_check_is_off_by_default():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.grad(guarded_root)(1.0)
