"""examples/transformer.py on several devices of a CPU client of XLA, and of two processes: it loses as on one."""

import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tests.examples.test_transformer import alone, run  # noqa: F401 - a fixture


def test_a_transformer_is_cut_by_xla(alone):
    for mesh in ("4x2", "2x2"):
        losses, printed = run("--mesh", mesh, "--platform", "xla_cpu")
        np.testing.assert_allclose(losses, alone, rtol=2e-4)
        assert sum("P('model', None)" in line for line in printed) == 4


def test_two_processes_share_the_devices(alone):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"localhost:{free.getsockname()[1]}"
    one = lambda i: run("--mesh", "2x2", "--platform", "xla_cpu", "--process", f"{i}/2", "--coordinator", address)
    with ThreadPoolExecutor(2) as both:
        (losses, printed), (others, silent) = both.map(one, range(2))
    np.testing.assert_allclose(losses, alone, rtol=2e-4)
    np.testing.assert_array_equal(losses, others)
    assert not silent and sum("on each of 4 devices" in line for line in printed) == len(printed) - 2
