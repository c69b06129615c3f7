"""What JAX and ferrax print for the same cases, each in a process of its own; what JAX prints is recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from tests.recorded import shared


def texts_of(module: ModuleType) -> tuple[dict, dict]:
    """What the cases of a module print on JAX, and on ferrax: the module is a program that takes the library's name."""
    path = Path(module.__file__)
    return shared(printed_by_jax, path.name, path.read_text()), printed(path.name, "ferrax")


def printed_by_jax(jax: ModuleType, program: str, source: str) -> dict:
    """What a program of this folder prints on JAX; its source tells one question from another."""
    return printed(program, "jax")


def printed(program: str, library: str) -> dict:
    """What a program of this folder prints on a library."""
    command = [sys.executable, str(Path(__file__).parent / program), library]
    out = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert out.returncode == 0, out.stderr
    return json.loads(as_on_cpu(out.stdout))


def as_on_cpu(text: str) -> str:
    """What is printed of devices of XLA's CPU client, which are called otherwise (`make test-xla`), as of JAX's."""
    return text.replace("Xla_cpuDevice", "CpuDevice").replace("xla_cpu", "cpu")
