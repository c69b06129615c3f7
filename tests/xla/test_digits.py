"""examples/digits.py on a CPU client of XLA: it loses as on the embedded engine, step by step."""

import numpy as np
import pytest

from tests.examples.test_digits import digits, losses_of  # noqa: F401 - a fixture

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")


def test_digits_learns_on_xla_as_on_the_embedded_engine(digits, tmp_path):
    theirs, accuracy = losses_of(digits, "ferrax", 3, tmp_path, "--platform", "xla_cpu")
    ours, _ = losses_of(digits, "ferrax", 3, tmp_path, "--platform", "cpu")
    np.testing.assert_allclose(theirs, ours, rtol=2e-5)
    assert accuracy > 0.85
