"""`lax.composite`: an operation of its own in programs and in StableHLO."""

import functools

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax

ATTRIBUTES = {
    "n": (3, "3 : i64"),
    "flag": (True, "true"),
    "x": (0.1, "1.000000e-01 : f64"),
    "far": (float("inf"), "0x7FF0000000000000 : f64"),
    "short": (np.int8(3), "3 : i8"),
    "text": ('a"b\n\\', '"a\\22b\\0A\\\\"'),
    "listed": ([1.0, "x", True, (2,)], '[1.000000e+00, "x", true, [2]]'),
    "numbers": (np.array([1, 2]), "dense<[1, 2]> : tensor<2xi64>"),
    "same": (np.ones((2, 2), np.float32), "dense<1.000000e+00> : tensor<2x2xf32>"),
    "named": ({"b": 1, "a": None}, "{b = 1 : i64}"),
    "dtype": (np.dtype("int32"), "i32"),
}


@functools.partial(lax.composite, name="my.pair", version=1)
def pair(x, /, **_):
    return x + 1, x * 2


def test_the_equation():
    square = lax.composite(lambda x, *, n: x**n, name="my.square")
    (eqn,) = jax.make_jaxpr(lambda x: square(x, n=3))(2.0).eqns
    assert eqn.primitive.name == "composite"
    assert {k: str(v) for k, v in eqn.params.items()} == {
        "attributes": "(('n', (3,), PyTreeDef(*)),)",
        "jaxpr": "{ lambda ; a:f32[]. let b:f32[] = integer_pow[y=3] a in (b,) }",
        "name": "my.square",
        "version": "0",
    }
    assert "name=my.square" in str(eqn)
    assert square(2.0, n=3) == jax.jit(lambda x: square(x, n=3))(2.0) == 8.0


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_in_lowered_programs(name):
    value, text = ATTRIBUTES[name]
    lowered = jax.jit(lambda x: pair(x, **{name: value})).lower(2.0).as_text()
    assert (
        f'%0:2 = stablehlo.composite "my.pair" %arg0 {{composite_attributes = {{{name} = {text}}}, decomposition = '
        "@my.pair, version = 1 : i32} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)"
    ) in lowered
    assert "func.func private @my.pair(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>) {" in lowered


def test_functions_of_lowered_programs_have_names_of_their_own():
    same = lax.composite(jnp.sin, "my.pair")
    text = jax.jit(lambda x: (pair(x), same(x), jax.jit(pair)(x, n=None))).lower(2.0).as_text()
    assert (
        '%1 = stablehlo.composite "my.pair" %arg0 {decomposition = @my.pair_0} : (tensor<f32>) -> tensor<f32>' in text
    )
    assert text.count("func.func private") == 2


def test_what_composites_cannot():
    x = jnp.ones(3)
    for text, kind, call in [
        ("JVP rule for composite not implemented", ValueError, lambda: jax.grad(lambda x: pair(x)[0])(1.0)),
        ("Batching rule for 'composite' not implemented", NotImplementedError, lambda: jax.vmap(pair)(x)),
        ("No attribute handler defined", TypeError, lambda: jax.jit(lambda x: pair(x, n=object()))(1.0)),
        ("must be a valid namespaced op name", ValueError, lambda: jax.jit(lax.composite(jnp.sin, "sin"))(1.0)),
    ]:
        with pytest.raises(kind, match=text):
            call()
    with pytest.raises(jax.errors.UnexpectedTracerError, match="as an attribute in the decomposition"):
        jax.jit(lambda x: pair(x, n=x))(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="as a constant in the decomposition"):
        jax.jit(lambda x: lax.composite(lambda y: x + y, "c")(1.0))(1.0)


def test_constants_are_its_first_operands():
    held = jnp.arange(3.0)
    call = lax.composite(lambda x: x + held, "my.sum")
    assert call(jnp.ones(3)).tolist() == [1, 2, 3]
    assert jax.jit(call)(jnp.ones(3)).tolist() == [1, 2, 3]
    (eqn,) = jax.make_jaxpr(call)(jnp.ones(3)).eqns
    assert len(eqn.invars) == 2 and not eqn.params["jaxpr"].consts
