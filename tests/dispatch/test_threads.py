"""Threads of the CPU engine: results do not depend on their number, and they are safe under fork."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp

PROGRAM = """
import hashlib
import numpy as np
import ferrax as jax
import ferrax.numpy as jnp

x = jnp.asarray(np.random.default_rng(0).normal(size=(500, 4001)).astype(np.float32))

def f(x):
    y = jax.nn.softmax(x, axis=-1)
    return y, jnp.sin(x) * y, y.sum(), jnp.exp(x.ravel()).sum(), x.sum(0), x[:, :700] @ x[:, :700].T

digest = hashlib.sha256()
for _ in range(3):
    for out in jax.jit(f)(x):
        digest.update(np.asarray(out).tobytes())
print(digest.hexdigest())
"""


def run(**environment):
    environment = {**os.environ, **environment}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_number_of_threads_changes_no_bit():
    one = run(FERRAX_NUM_THREADS="1")
    assert run(FERRAX_NUM_THREADS="2") == one
    assert run(FERRAX_NUM_THREADS="5") == one


def test_instruction_sets_change_no_bit():
    assert run(FERRAX_CPU_ISA="avx2") == run(FERRAX_CPU_ISA="portable") == run()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_large_calls_work_in_a_forked_child():
    x = jnp.asarray(np.linspace(0, 1, 3_000_000, dtype=np.float32))
    f = jax.jit(lambda x: jnp.sin(x) * jnp.exp(x))
    want = hashlib.sha256(np.asarray(f(x)).tobytes()).digest()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, hashlib.sha256(np.asarray(f(x)).tobytes()).digest())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == want
    assert os.waitpid(child, 0)[1] == 0
