"""Types over explicit axes of a mesh say what JAX's say: in programs, of results, of gradients, and in errors.

Both libraries run the cases of `typed.py`, each in a process of its own with eight CPU devices.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import typed


@pytest.fixture(scope="module")
def texts() -> tuple[dict, dict]:
    """What both libraries print for each case."""
    found = []
    for library in ("jax", "ferrax"):
        command = [sys.executable, typed.__file__, library]
        out = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert out.returncode == 0, out.stderr
        found.append(json.loads(out.stdout))
    return found[0], found[1]


@pytest.mark.parametrize("name", typed.cases())
def test_case(texts, name):
    theirs, ours = texts
    assert theirs[name]
    assert ours[name] == theirs[name]
