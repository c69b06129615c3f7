"""What a report of a problem should say of the machine: versions, devices, settings in the environment."""

from __future__ import annotations

import os
import platform
import sys

import ml_dtypes
import numpy as np

from ferrax import _devices
from ferrax.version import __version__

__all__ = ["print_environment_info"]


def _nvidia_smi() -> str:
    """What NVIDIA's tool says of the GPUs; nothing where there is no such tool."""
    import shutil  # few programs have these loaded
    import subprocess

    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    done = subprocess.run([tool], check=False, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints versions, devices and settings: what belongs into a report of a problem.

    Args:
      return_string: whether to give the text back instead of printing it.

    Returns:
      The text, or `None` when it was printed.

    >>> import ferrax as jax
    >>> jax.print_environment_info(return_string=True).splitlines()[0]
    'ferrax: ...'
    """
    everywhere = _devices.devices()
    lines = [
        f"ferrax: {__version__}",
        f"numpy:  {np.__version__}",
        f"ml_dtypes: {ml_dtypes.__version__}",
        f"python: {' '.join(sys.version.split())}",
        f"device info: {everywhere[0].device_kind}-{len(everywhere)}, {_devices.local_device_count()} local devices",
        f"process_count: {_devices.process_count()}",
        f"platform: {platform.uname()}",
    ]
    lines += [f"{key}={value}" for key, value in os.environ.items() if key.startswith(("FERRAX_", "JAX_", "XLA_"))]
    smi = _nvidia_smi()
    text = "\n".join(lines) + (f"\n\n$ nvidia-smi\n{smi}" if smi else "")
    if return_string:
        return text
    print(text)
    return None
