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
