"""Trials of threads, memory and hostile input: `python -m tests.fuzz.trials [NAME...]`.

Each trial is a function of a count, run in a child process with a time limit: it asserts what it asks, and ends. A
trial that kills or hangs its process fails alone.
"""

import os
import subprocess
import sys

SECONDS = 300


def names():
    """The trials' names: module and function."""
    from tests.fuzz.trials import hostile, memory, threads

    modules = {"threads": threads, "memory": memory, "hostile": hostile}
    return {f"{name}.{f.__name__}": f for name, module in modules.items() for f in module.TRIALS}


def run(name, share, seed=0):
    """Runs a trial in a child; None, or how it failed.

    Args:
        name: one of `names()`.
        share: which part of its usual count, at least 1 step.
        seed: of its random choices.
    """
    command = [sys.executable, "-W", "ignore", "-X", "faulthandler", "-m", "tests.fuzz.trials", name]
    command += ["--share", str(share), "--seed", str(seed), "--child"]
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    try:
        child = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        return f"{name}: more than {SECONDS} s\n{(error.stderr or b'').decode()[-2000:]}"
    return None if child.returncode == 0 else f"{name}: exit status {child.returncode}\n{child.stderr[-3000:]}"
