"""The kernels of a program as text."""

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


def test_other_dialects_say_what_there_is():
    with pytest.raises(NotImplementedError, match="kernels"):
        jax.jit(jnp.sin).lower(1.0).as_text("hlo")


def test_a_loop_over_scalars_runs_in_registers():
    def f(v):
        return jax.lax.fori_loop(0, 100, lambda i, v: 3.7 * v * (1 - v), v)

    text = jax.jit(f).lower(jnp.float32(0.3)).as_text("kernels")
    if "kernel[" in jax.jit(jax.nn.softmax).lower(jnp.ones((64, 300))).as_text("kernels"):
        assert "loop in registers" in text, text
