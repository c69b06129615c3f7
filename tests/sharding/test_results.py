"""Results of programs over automatic axes of a mesh are divided as XLA divides JAX's.

Both libraries run the programs of `results.py`, each in a process of its own with eight CPU devices.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import both
import results


@pytest.fixture(scope="module")
def specs() -> tuple[dict, dict]:
    """The specs of the results of each program, of both libraries."""
    return both.texts_of(results)


@pytest.mark.parametrize("name", results.PROGRAMS)
def test_program(specs, name):
    theirs, ours = specs
    assert ours[name] == theirs[name]
