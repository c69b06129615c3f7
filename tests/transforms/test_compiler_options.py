"""Options of the compiler: the embedded engine has none, and takes those of XLA for what they are.

What XLA makes of its own is in `tests/xla/test_compilation_cache.py`.
"""

import re

import jax as peer
import pytest

import ferrax as jax
import ferrax.numpy as jnp

OPTIONS = {"xla_cpu_enable_fast_math": True}


def calls(options):
    """What compiles a function with options, in different ways."""
    jitted = jax.jit(lambda x: x * 2, compiler_options=options)
    return [
        lambda: jitted(jnp.ones(3)),
        lambda: jitted(x=jnp.ones(3)),
        lambda: jax.jit(lambda x: x * 2).lower(1.0).compile(compiler_options=options),
        lambda: jitted.lower(1.0).compile(),
        lambda: jax.jit(compiler_options=options)(lambda x: x)(1.0),
    ]


@pytest.mark.embedded
@pytest.mark.parametrize("options", [{"x": 1}, {"x": "text"}, {"x": True, "y": 2.0}])
def test_unknown_options_raise(options):
    for call in calls(options):
        with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: No such compile option: 'x'"):
            call()


@pytest.mark.embedded
@pytest.mark.parametrize("options", [None, {}, OPTIONS, {"xla_embed_ir_in_executable": True}])
def test_no_options_and_those_of_xla_change_nothing(options):
    for call in calls(options):
        call()
    assert jax.jit(lambda x: x * 2).lower(1.0).compile(options)(3.0) == 6


@pytest.mark.parametrize("outer", [jax.jit, jax.grad, jax.vmap])
def test_only_the_outermost_function_takes_options(outer):
    inner = jax.jit(lambda x: x * 2, compiler_options=OPTIONS)
    x = jnp.ones(3) if outer is jax.vmap else 1.0
    with pytest.raises(ValueError, match=r"`compiler_options` can only be passed to top-level `jax\.jit`"):
        outer(inner)(x)


def test_options_of_jit_are_those_of_its_programs():
    def f(x):
        return x + 1

    assert jax.jit(f)(1.0) == 2
    with pytest.raises(jax.errors.JaxRuntimeError):
        jax.jit(f, compiler_options={"x": 1})(1.0)
    assert jax.jit(f)(1.0) == 2


def test_values_are_simple():
    with pytest.raises(TypeError, match="an option of a plugin is"):
        jax.jit(lambda x: x, compiler_options={"x": object()})
    with pytest.raises(TypeError, match="a device or a sharding is expected; got 0"):
        jax.jit(lambda x: x).lower(1.0).compile(device_assignment=(0,))


def test_disabled_jit_needs_no_compiler():
    with jax.disable_jit():
        assert jax.jit(lambda x: x + 1, compiler_options=OPTIONS)(1.0) == 2


@pytest.mark.embedded
@pytest.mark.parametrize("value", ["invalid", "true", 1, 0.5])
@pytest.mark.parametrize("name", ["xla_embed_ir_in_executable", "xla_cpu_enable_fast_math"])
def test_options_that_are_yes_or_no(name, value):
    message = re.escape(f"INVALID_ARGUMENT: While setting option {name}, '{value}' is not a valid bool value.")
    for package in (jax, peer):
        with pytest.raises(package.errors.JaxRuntimeError, match=message):
            package.jit(lambda x: x + 1).lower(1.0).compile(compiler_options={name: value})
        for allowed in (True, "True", "False"):
            package.jit(lambda x: x + 1, compiler_options={name: allowed})(1.0)
