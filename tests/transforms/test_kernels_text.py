"""The kernels of a program as text."""

import re

import pytest

import ferrax as jax
import ferrax.numpy as jnp


@pytest.mark.embedded
def test_a_row_kernel_is_one_kernel_with_its_phases():
    text = jax.jit(jax.nn.softmax).lower(jnp.ones((64, 300))).as_text("kernels")
    assert "Unary(Exp)" in text or "operations block by block" in text


@pytest.mark.embedded
def test_every_step_of_a_program_is_a_line():
    def f(x):
        return jax.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x @ x), x).sum(0)

    text = jax.jit(f).lower(jnp.ones((40, 40))).as_text("kernels")
    for part in ("scan", "part 0:", "Dot", "Reduce"):
        assert part in text


@pytest.mark.embedded
def test_halves_that_are_joined_are_written_where_they_lie():
    """Rotary embeddings, and what the gradient of a split joins."""

    def rotary(x, c, s):
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * c - b * s, b * c + a * s], -1)

    x, c = jnp.linspace(-1, 1, 4 * 16 * 64).reshape(4, 16, 64), jnp.cos(jnp.arange(512.0)).reshape(16, 32)

    def slope(x, c, s):
        return jax.grad(lambda x: (rotary(x, c, s) ** 2).sum())(x)

    for f in rotary, slope:
        text = jax.jit(f).lower(x, c, c * 2).as_text("kernels")
        assert "Concat" not in text and "Pad" not in text, text
        assert (jax.jit(f)(x, c, c * 2) == f(x, c, c * 2)).all()


@pytest.mark.embedded
def test_a_window_at_a_known_place_is_no_scatter():
    x = jnp.linspace(-1, 1, 30 * 30).reshape(30, 30)
    for how in "set", "add", "multiply", "max":

        def f(x, how=how):
            y = jax.lax.fori_loop(0, 3, lambda i, x: getattr(x.at[1:-1, 2:-2], how)(x[:-2, 1:-3] * 0.5), x)
            return getattr(y.at[3], how)(x[4])

        text = jax.jit(f).lower(x).as_text("kernels")
        assert text.count("Scatter {") <= 1, text
        assert (jax.jit(f)(x) == f(x)).all()


def test_other_dialects_say_what_there_is():
    lowered = jax.jit(jnp.sin).lower(1.0)
    for text in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(ValueError, match="unknown dialect: mhlo"):
            text("mhlo")


def test_stablehlo_says_where_it_comes_from():
    captured = jnp.arange(3.0)

    def f(x, params):
        y = jnp.sin(x)
        return y * params["w"] + captured, jax.lax.while_loop(lambda i: i < 3, lambda i: i + 1, 0)

    lowered = jax.jit(f, donate_argnums=0).lower(jnp.ones(3), {"w": jnp.ones(3)})
    text = lowered.as_text(debug_info=True)
    (head,) = (line for line in text.splitlines() if "@main" in line)
    assert 'loc("x")' in head and "loc(\"params['w']\")" in head and "{tf.aliasing_output" in head
    (sine,) = (line for line in text.splitlines() if "stablehlo.sine" in line)
    line = f.__code__.co_firstlineno + 1
    assert sine.endswith(f' loc("jit(f)/sin"("{__file__}":{line}:0))'), sine
    # bodies of loops are functions, which loops may share
    inside = [line for line in text.splitlines() if "func.call" in line]
    assert inside and all('loc("jit(f)/while"(' in line for line in inside)
    # nothing else differs
    plain = lowered.as_text()
    assert " loc(" not in plain
    assert re.sub(r' loc\("[^"]*"(\("[^"]*":\d+:0\))?\)', "", text) == plain


def test_a_loop_over_scalars_runs_in_registers():
    def f(v):
        return jax.lax.fori_loop(0, 100, lambda i, v: 3.7 * v * (1 - v), v)

    text = jax.jit(f).lower(jnp.float32(0.3)).as_text("kernels")
    if "kernel[" in jax.jit(jax.nn.softmax).lower(jnp.ones((64, 300))).as_text("kernels"):
        assert "loop in registers" in text, text
