"""Which package the pages' programs run on: ferrax, or real JAX with `FERRAX_TEST_BACKEND=jax`.

A test that runs on both shows that a program behaves as JAX's users know it. `ferrax_only` marks what ferrax promises
beyond the page; `own(...)` picks between the two texts where a message differs.
"""

import importlib
import os
import subprocess
import sys

import pytest

NAME = os.environ.get("FERRAX_TEST_BACKEND", "ferrax")
FERRAX = NAME == "ferrax"

jax = importlib.import_module(NAME)
jnp = importlib.import_module(f"{NAME}.numpy")
# programs import submodules by attribute, as after `import jax`
for _submodule in ("random", "nn", "tree_util", "ops", "experimental"):
    importlib.import_module(f"{NAME}.{_submodule}")

ferrax_only = pytest.mark.skipif(not FERRAX, reason="a promise of ferrax beyond JAX")


def own(ferrax_text, jax_text):
    """The text of the package under test."""
    return ferrax_text if FERRAX else jax_text


def run_program(source, **environment):
    """What a program prints in a process of its own, with `jax` the package under test."""
    header = f"import {NAME} as jax\nimport {NAME}.numpy as jnp\nimport numpy as np\n"
    done = subprocess.run(
        [sys.executable, "-c", header + source],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
