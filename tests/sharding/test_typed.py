"""Types over explicit axes of a mesh say what JAX's say: in programs, of results, of gradients, and in errors.

Both libraries run the cases of `typed.py`, each in a process of its own with eight CPU devices.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import both
import typed


@pytest.fixture(scope="module")
def texts() -> tuple[dict, dict]:
    """What both libraries print for each case."""
    return both.texts_of(typed)


@pytest.mark.parametrize("name", typed.cases())
def test_case(texts, name):
    theirs, ours = texts
    assert theirs[name]
    assert ours[name] == theirs[name]
