"""The engine `cuda` on a driver without a GPU: every test runs programs in processes of their own."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.cuda import fake

START = """
import ferrax as jax, ferrax.numpy as jnp, numpy as np
from ferrax import lax
from tests.cuda.fake import Driver

def message(kind, f, *args):
    try:
        f(*args)
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")

driver = Driver()
gpus, cpu = jax.devices("cuda"), jax.devices("cpu")[0]
"""
END = "\nassert driver.violations() == []\n"


def process(source, check=True, **environment):
    """What a process with the fake prints; with `check=False` its exit status and all that it wrote."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FERRAX_", "JAX_", "FAKE_CUDA_"))}
    env = {**kept, **fake.environment(), "PYTHONPATH": str(fake.ROOT), **environment}
    env = {name: value for name, value in env.items() if value is not None}
    command = [sys.executable, *(source if isinstance(source, list) else ["-c", source])]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    if not check:
        return done.returncode, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="session")
def run():
    """Runs a program that has the GPUs as `gpus`, and gives what it prints; the fake must have seen no violation."""
    if fake.missing():
        pytest.skip(fake.missing())
    fake.build()
    return lambda source, **environment: process(START + textwrap.dedent(source) + END, **environment)


@pytest.fixture(scope="session")
def bare(run):
    """Runs a program, or Python with arguments, in a process with the fake, and gives its status and what it wrote."""
    return lambda source, **environment: process(source, check=False, **environment)
