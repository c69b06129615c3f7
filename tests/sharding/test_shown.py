"""Values that a function sees inside `shard_map` show what each device holds, as in JAX.

Both libraries run the cases of `shown.py`, each in a process of its own with four CPU devices.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import both
import shown


@pytest.fixture(scope="module")
def texts() -> tuple[dict, dict]:
    """What both libraries print for each case."""
    return both.texts_of(shown)


@pytest.mark.parametrize("name", shown.CASES)
def test_text(texts, name):
    theirs, ours = texts
    assert theirs[name]
    assert ours[name] == theirs[name]
