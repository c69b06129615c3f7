"""Programs of several processes on this machine, for the tests of them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap

BEGIN = """
import os, sys, time
import numpy as np
import ferrax as jax
from ferrax._src import distributed
from ferrax.experimental import multihost_utils
index, count, port = map(int, sys.argv[1:])
jax.distributed.initialize(f"localhost:{port}", count, index, initialization_timeout=60, heartbeat_timeout_seconds=10,
                           shutdown_timeout_seconds=30, coordinator_bind_address=f"127.0.0.1:{port}")
client = distributed.global_state.client
def error(f):
    try:
        f()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return "nothing was raised"
"""


def started(text: str, count: int) -> list[subprocess.Popen[str]]:
    """The processes of a program that has `index`, `count` and `client`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(text)]
    return [
        subprocess.Popen(
            [*command, str(i), str(count), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for i in range(count)
    ]


def printed(text: str, count: int = 2, codes: tuple[int, ...] | None = None) -> list[list[str]]:
    """The lines that each process prints; they end with these codes, 0 by default."""
    found = []
    processes = started(text, count)
    for process, code in zip(processes, codes or (0,) * count, strict=True):
        out, errors = process.communicate(timeout=120)
        assert process.returncode == code, f"{process.returncode}: {errors}"
        found.append(out.splitlines())
    return found
