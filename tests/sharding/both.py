"""What JAX and ferrax print for the same cases, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType


def texts_of(module: ModuleType) -> tuple[dict, dict]:
    """What the cases of a module print on JAX, and on ferrax: the module is a program that takes the library's name."""
    found = []
    for library in ("jax", "ferrax"):
        command = [sys.executable, module.__file__, library]
        out = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert out.returncode == 0, out.stderr
        found.append(json.loads(as_on_cpu(out.stdout)))
    return found[0], found[1]


def as_on_cpu(text: str) -> str:
    """What is printed of devices of XLA's CPU client, which are called otherwise (`make test-xla`), as of JAX's."""
    return text.replace("Xla_cpuDevice", "CpuDevice").replace("xla_cpu", "cpu")
