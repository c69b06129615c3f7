"""A child of a fork computes, whatever other threads of its parent were doing at that moment."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import ferrax as jax
import ferrax.numpy as jnp

SECONDS, FORKS = 4.0, 60
data = np.linspace(0.0, 1.0, 200_000, dtype=np.float32)

@jax.jit
def wave(x):
    for _ in range(3):
        x = jnp.sin(x) + jnp.cos(x) * 0.5
    return x, x.sum()

def work(i):
    for n in (7 + i % 5, 4_000, 200_000):
        x = jnp.asarray(data[:n])
        y = jnp.sort(x * 2 + jnp.exp(x))
        z, total = wave(x)
        new = jax.jit(lambda v, k=i: (v @ v) * k)
        assert np.isfinite(float(total) + float(new(x)) + float(y[-1]) + float(z[0]))
        assert jnp.fft.fft(x[:100]).shape == (min(n, 100),)

def thread(k):
    while not done.is_set():
        work(k)
        k += 4

work(0)
done = threading.Event()
threads = [threading.Thread(target=thread, args=(k,)) for k in range(1, 4)]
for t in threads:
    t.start()
start, forks = time.monotonic(), 0
while forks < FORKS and time.monotonic() - start < SECONDS:
    child = os.fork()
    if child == 0:
        signal.alarm(100)
        try:
            work(forks)
        except BaseException:
            os._exit(3)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        print("fork", forks, "ended with", status)
        os._exit(1)
    forks += 1
done.set()
for t in threads:
    t.join()
print("forks" if forks else "none")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("asynchronous", ["1", "0"])
def test_children_compute_while_threads_of_the_parent_do(asynchronous):
    environment = {**os.environ, "JAX_CPU_ENABLE_ASYNC_DISPATCH": asynchronous}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "forks\n"), done.stderr
