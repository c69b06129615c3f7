"""Libraries on top of JAX give the same results on ferrax: their programs run on both, in processes of their own.

A library that is not installed is skipped, and so is a comparison where JAX is not. Read next: `run.py`, and
`docs/ecosystem.md` for what was measured.
"""

import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent
LIBRARIES = sorted(p.stem.removeprefix("programs_") for p in HERE.glob("programs_*.py"))

# Chaotic or iterated programs amplify the last bits.
RTOL, ATOL = 2e-3, 2e-4


@functools.cache
def results(target: str, library: str) -> dict:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, str(HERE / "run.py"), target, library]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    _, found, text = done.stdout.partition("RESULTS")
    assert found, done.stderr[-2000:]
    return json.loads(text)


def same(got: list, wanted: list) -> None:
    assert got[:2] == wanted[:2]
    np.testing.assert_allclose(np.array(got[2], float), np.array(wanted[2], float), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("library", LIBRARIES)
def test_programs_give_the_results_of_jax(library: str) -> None:
    for name in (library, "jax"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    wanted = results("jax", library)
    for name, got in results("ferrax", library).items():
        assert isinstance(got, list), f"{name}: {got['error']}\n{got['where']}"
        assert len(got) == len(wanted[name]), name
        for one, other in zip(got, wanted[name], strict=True):
            same(one, other)


def test_classes_of_arrays_and_tracers_are_of_the_module_that_stands_in() -> None:
    program = """
import run; run.stand_in()
import jax, jax.numpy as jnp
def first(x):
    print(type(x).__module__.partition(".")[0])
    return x
x = first(jnp.ones(2))
first(jax.random.key(0)), jax.jit(first)(x), jax.vmap(first)(x), jax.jvp(first, (x,), (x,)), jax.grad(first)(1.0)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *(p for p in sys.path if p)])}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.stdout.split() == ["jax"] * 6, done.stderr[-2000:]
