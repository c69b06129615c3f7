"""examples/transformer.py: it loses as on one device, and as JAX does, step by step, and says where its arrays live."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = pathlib.Path(__file__).parents[2] / "examples" / "transformer.py"
RUN = f"""
import json, runpy
losses = runpy.run_path({str(PROGRAM)!r})["main"]()
print(json.dumps(losses))
"""


def run(*options, steps=8):
    """The losses of some steps, and what the program prints."""
    command = [sys.executable, "-c", RUN, "--steps", str(steps), *options]
    out = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert out.returncode == 0, out.stderr
    *printed, losses = out.stdout.splitlines()
    return np.array(json.loads(losses)), printed


@pytest.fixture(scope="module")
def alone():
    losses, printed = run("--mesh", "1x1")
    assert losses[-1] < losses[0] and "(64, 256)" in "".join(printed)
    return losses


@pytest.mark.parametrize("mesh", ["4x2", "2x4", "8x1"])
def test_devices_share_the_work(alone, mesh):
    losses, printed = run("--mesh", mesh, "--platform", "cpu")
    np.testing.assert_array_equal(losses, alone)
    model = int(mesh[-1])
    (up,) = [line.split() for line in printed if line.startswith("['layers'][0]['up']")]
    assert " ".join(up[1:]) == f"(64, 256) P(None, 'model') (64, {256 // model}) on each of 8 devices"


def test_jax_loses_alike(alone):
    pytest.importorskip("jax")
    losses, _ = run("--backend", "jax")
    np.testing.assert_allclose(losses, alone, rtol=2e-4)
