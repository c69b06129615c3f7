"""examples/transformer.py on several devices of a CPU client of XLA: it loses as on one."""

import numpy as np

from tests.examples.test_transformer import alone, run  # noqa: F401 - a fixture


def test_a_transformer_is_cut_by_xla(alone):
    for mesh in ("4x2", "2x2"):
        losses, printed = run("--mesh", mesh, "--platform", "xla_cpu")
        np.testing.assert_allclose(losses, alone, rtol=2e-4)
        assert sum("P('model', None)" in line for line in printed) == 4
