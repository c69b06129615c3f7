"""Errors of operations of several operands show the user's shapes, those of one example under `vmap`."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax

M, X, Y = jnp.ones((3, 4)), jnp.ones(3), jnp.ones(4)
PAIRS = [
    ("add", lambda m, x: m + x),
    ("subtract", lambda m, x: m - x),
    ("multiply", lambda m, x: np.asarray(1.0) * m * x),
    ("less", lambda m, x: m < x),
    ("power", lambda m, x: m**x),
    ("mod", jnp.mod),
    ("divmod", jnp.divmod),
    ("floor_divide", lambda m, x: m // x),
    ("arctan2", jnp.arctan2),
    ("hypot", jnp.hypot),
    ("heaviside", jnp.heaviside),
    ("copysign", jnp.copysign),
    ("fmax", jnp.fmax),
    ("maximum", jnp.maximum),
    ("logical_and", jnp.logical_and),
    ("clip", lambda m, x: jnp.clip(m, x, 2.0)),
    ("clip", lambda m, x: jnp.clip(m, 0.0, x)),
    ("where", lambda m, x: jnp.where(m > 0, m, x)),
]


def both_ways(f):
    """`f` itself, jitted, and over rows of either operand or both."""
    yield f
    yield jax.jit(f)
    for axes in [(0, 0), (0, None), (None, 0)]:
        mapped = jax.vmap(f, axes)
        for g in (mapped, jax.jit(mapped)):
            yield lambda m, x, g=g, axes=axes: g(*(v if a is None else jnp.stack([v, v]) for v, a in zip((m, x), axes)))


@pytest.mark.parametrize(("name", "f"), PAIRS)
def test_different_ranks(name, f):
    for g in both_ways(f):
        with pytest.raises(ValueError, match="Incompatible shapes for broadcasting: shapes=") as caught:
            g(M, X)
        text = str(caught.value)
        assert name in text
        assert "(3, 4)" in text
        assert "(3,)" in text
        assert "(1, 3)" not in text
        assert "(2, 3" not in text


@pytest.mark.parametrize(("name", "f"), PAIRS)
def test_one_rank(name, f):
    short = {"add": "add", "subtract": "sub", "multiply": "mul", "less": "lt", "power": "pow", "arctan2": "atan2"}
    for g in both_ways(f):
        with pytest.raises((TypeError, ValueError), match="ncompatible shapes for broadcasting") as caught:
            g(X, Y)
        text = str(caught.value)
        assert short.get(name, name)[:3] in text
        assert "(3,)" in text
        assert "(4,)" in text


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda m: lax.add(m, X), ["{1, 2}"]),
        (lambda m: lax.clamp(X, m, X), ["(3,)", "(3, 4)"]),
        (lambda m: lax.select(X > 0, m, m), ["(3,)", "(3, 4)"]),
        (lambda m: jnp.concatenate([m, X[None]]), ["dimension 0", "(3, 4), (1, 3)"]),
        (lambda m: lax.dot_general(m, X, (((1,), (0,)), ((), ()))), ["(3, 4)", "(3,)"]),
        (lambda m: lax.pad(m, 0.0, ((0, 0, 0),)), ["(3, 4)"]),
        (lambda m: lax.dynamic_update_slice(m, jnp.ones((4, 4)), (0, 0)), ["(4, 4)", "(3, 4)"]),
        (lambda m: lax.rev(m, (2,)), ["2"]),
    ],
)
def test_rows_under_vmap(f, words):
    """What the operation says of one row is what it says under `vmap`."""
    with pytest.raises((TypeError, ValueError)) as plain:
        f(M)
    rows, more = jnp.ones((2, 3, 4)), jnp.ones((2, 2, 3, 4))
    for g, operand in [(jax.vmap(f), rows), (jax.jit(jax.vmap(f)), rows), (jax.vmap(jax.vmap(f)), more)]:
        with pytest.raises(type(plain.value)) as caught:
            g(operand)
        assert str(caught.value) == str(plain.value)
    assert [w for w in words if w not in str(plain.value)] == []


def test_places_of_trapezoid():
    with pytest.raises(ValueError, match=r"3 places x for 4 values.*y.shape=\(3, 4\), x.shape=\(3,\)"):
        jnp.trapezoid(M, X)
