"""Jitted functions that use references, lowered and compiled ahead of their calls."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp


def test_references_that_a_function_closes_over():
    ref, other = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.float32(1))

    @jax.jit
    def put(x, *, i):
        ref[i] = x * other[...]
        other[...] += 1
        return ref[...].sum()

    lowered = put.lower(2.0, i=1)
    assert isinstance(lowered, jax.stages.Lowered)
    assert "module @jit_put" in lowered.as_text()
    np.testing.assert_array_equal(ref[...], np.zeros(3))  # nothing has run
    compiled = lowered.compile()
    assert isinstance(compiled, jax.stages.Compiled)
    assert (compiled(2.0, i=1), compiled(3.0, i=0)) == (2.0, 8.0)
    np.testing.assert_array_equal(ref[...], [6.0, 2.0, 0.0])
    assert other[...] == 3
    assert put(1.0, i=2) == 11.0  # the function itself goes on


def test_references_among_the_arguments():
    @jax.jit
    def add(state, x):
        state["total"][...] += x
        return state["scale"] * x

    state = {"total": jax.new_ref(jnp.zeros(2)), "scale": 2.0}
    compiled = add.lower(state, jnp.ones(2)).compile()
    other = {"total": jax.new_ref(jnp.ones(2)), "scale": 3.0}
    np.testing.assert_array_equal(compiled(other, jnp.arange(2.0)), [0.0, 3.0])
    np.testing.assert_array_equal(other["total"][...], [1.0, 2.0])
    np.testing.assert_array_equal(state["total"][...], [0.0, 0.0])
    with pytest.raises(TypeError, match="called with"):
        compiled({"total": jax.new_ref(jnp.zeros(3)), "scale": 2.0}, jnp.ones(2))


def test_static_arguments_stay_static():
    ref = jax.new_ref(jnp.zeros(()))

    def f(kind, x):
        assert kind == "sum"
        ref[...] += x.sum()

    jax.jit(f, static_argnums=0).lower("sum", jnp.ones(3)).compile()(jnp.arange(3.0))
    assert ref[...] == 3


def test_errors_are_those_of_calls():
    ref = jax.new_ref(jnp.zeros(3))
    with pytest.raises(ValueError, match="only one reference"):
        jax.jit(lambda a, b: a[...] + b[...]).lower(ref, ref)
    with pytest.raises(ValueError, match="cannot be returned"):
        jax.jit(lambda a: a).lower(ref)
    with pytest.raises(ValueError, match="only one reference"):
        jax.jit(lambda a, b: a[...] + b[...]).trace(ref, ref)


def test_programs_and_types():
    ref = jax.new_ref(jnp.zeros(3))

    def f(a, kind, x, *, scale=1):
        assert (kind, scale) == ("set", 2)
        a[1] = x
        return {"all": ref[...] * x}

    traced = jax.jit(f, static_argnums=1, static_argnames="scale").trace(ref_of(2), "set", 1.0, scale=2)
    assert isinstance(traced, jax.stages.Traced)
    text = str(traced.jaxpr)
    assert "Ref{f32[2]}" in text
    assert "[1] <- " in text
    assert traced.out_info == {"all": jax.ShapeDtypeStruct((3,), jnp.float32)}
    assert traced.out_tree == traced.lower().out_tree == traced.lower().compile().out_tree
    assert traced.fun_name == "f"
    assert jax.jit(lambda: ref[...]).eval_shape() == jax.ShapeDtypeStruct((3,), jnp.float32)


def ref_of(n):
    return jax.new_ref(jnp.zeros(n))


def test_references_among_static_arguments():
    """They are as if the function closed over them: each makes a program of its own."""
    one, other = jax.new_ref(1.0), jax.new_ref(5.0)
    add = jax.jit(lambda ref, x: ref.__setitem__(..., ref[...] + x), static_argnums=0)
    for ref in (one, other, one):
        add(ref, 1.0)
    assert (one[...], other[...]) == (3.0, 6.0)
    total = jax.jit(lambda x, refs, last: x + sum(r[...] for r in refs) * last[...], static_argnames="refs")
    assert total(1.0, refs=(one,), last=other) == total(1.0, (one,), other) == 19.0
    with pytest.raises(ValueError, match="both closed over and passed as the argument last"):
        total(1.0, refs=(one, other), last=other)
    with pytest.raises(ValueError, match="was passed in as the argument last"):
        jax.jit(lambda refs, last: last, static_argnums=0)((one,), other)
