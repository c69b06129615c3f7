"""Programs that take long run after their calls have returned."""

import contextlib
import gc
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp

N = 400_000


def slow(x):
    """Some milliseconds of elementwise work."""
    for _ in range(6):
        x = jnp.sin(x) + jnp.cos(x) * 0.5
    return x


@pytest.fixture
def x():
    return jnp.linspace(0.0, 1.0, N)


def warmed(f, *args):
    """The jitted function after a call that measured it."""
    jitted = jax.jit(f)
    jax.block_until_ready(jitted(*args))
    return jitted


@contextlib.contextmanager
def synchronous():
    """Programs end in their calls."""
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    try:
        yield
    finally:
        jax.config.update("jax_cpu_enable_async_dispatch", True)


def test_a_call_returns_before_its_program_has_ended(x):
    f = warmed(slow, x)
    seen = []
    for _ in range(20):
        y = f(x)
        seen.append(y.is_ready())
        assert y.shape == (N,) and y.dtype == jnp.float32
    assert not all(seen)
    y.block_until_ready()
    assert y.is_ready()
    np.testing.assert_array_equal(np.asarray(y), np.asarray(jax.jit(slow)(x)))


def test_short_programs_and_switched_off_ones_end_in_their_calls(x):
    small = warmed(slow, x[:100])
    assert all(small(x[:100]).is_ready() for _ in range(20))
    f = warmed(slow, x)
    with synchronous():
        assert all(f(x).is_ready() for _ in range(5))


def test_callers_who_wait_at_once_are_run_in_their_calls(x):
    f = warmed(slow, x)

    def ready():
        y = f(x)
        try:
            return y.is_ready()
        finally:
            y.block_until_ready()

    # A busy machine may make any call look slow: one quiet moment is enough.
    assert any(sum(ready() for _ in range(60)) > 30 for _ in range(20))


def test_chains_and_full_queues_keep_the_order(x):
    f = warmed(lambda x, k: slow(x) + k, x, 1.0)
    y = expected = x
    for k in range(80):
        y = f(y, float(k))
    with synchronous():
        for k in range(80):
            expected = f(expected, float(k))
    np.testing.assert_array_equal(np.asarray(y), np.asarray(expected))


def test_donation_of_arrays_that_are_not_there_yet(x):
    step = jax.jit(lambda x: slow(x) + 1.0, donate_argnums=0)
    plain = warmed(lambda x: slow(x) + 1.0, x)
    y, expected = jnp.array(x), x
    y = step(y).block_until_ready()
    expected = plain(expected)
    held = []
    for _ in range(10):
        before, y = y, step(y)
        assert before.is_deleted()
        expected = plain(expected)
        held.append(before)
    with pytest.raises(RuntimeError, match="donated"):
        held[-1].block_until_ready()
    np.testing.assert_array_equal(np.asarray(y), np.asarray(expected))


def test_readers_that_were_called_first_see_donated_arrays(x):
    read = warmed(lambda x: jnp.sum(slow(x)), x)
    step = jax.jit(lambda x: slow(x) * 2.0, donate_argnums=0)
    y = step(jnp.array(x)).block_until_ready()
    expected = float(read(jnp.array(y)))
    for _ in range(5):
        copy = jnp.array(y)
        total, after = read(copy), step(copy)
        assert copy.is_deleted()
        assert float(total) == expected
        after.block_until_ready()


def test_deleting_and_dropping_what_is_not_there_yet(x):
    f = warmed(slow, x)
    gc.collect()
    before = jax.device_memory_stats()["bytes_in_use"]
    for _ in range(10):
        y = f(x)
        y.delete()
        assert y.is_deleted()
        with pytest.raises(RuntimeError, match="deleted"):
            y.block_until_ready()
        f(x)
    del y
    assert jax.device_memory_stats()["bytes_in_use"] == before


def test_threads_that_start_and_wait(x):
    f = warmed(slow, x)
    expected = np.asarray(f(x))
    wrong = []

    def work():
        for _ in range(10):
            ys = [f(x) for _ in range(3)]
            wrong.extend(i for i, y in enumerate(ys) if not np.array_equal(np.asarray(y), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def run(program):
    code = "import ferrax as jax, ferrax.numpy as jnp, numpy as np, os, resource\n" + textwrap.dedent(program)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert out.returncode == 0, out.stderr
    return out.stdout


SLOW = """
def slow(x):
    for _ in range(6):
        x = jnp.sin(x) + jnp.cos(x) * 0.5
    return x
f = jax.jit(slow)
x = jnp.ones(400_000)
f(x).block_until_ready()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forks_while_programs_run():
    out = run(
        SLOW
        + """
ys = [f(x) for _ in range(10)]
child = os.fork()
assert all(y.is_ready() for y in ys)
z = [f(x) for _ in range(10)]
assert all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(ys, z))
if child == 0:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print("done")
"""
    )
    assert out == "done\n"


def test_the_process_ends_while_programs_run():
    assert run(SLOW + "ys = [f(np.ones(400_000, np.float32)) for _ in range(10)]\nprint('end')") == "end\n"


def test_a_failure_reaches_whoever_uses_the_results():
    out = run(
        """
grow = jax.jit(lambda x: jnp.cumsum(jnp.outer(x, x), axis=0))
total = jax.jit(lambda y: jnp.sin(y).sum())
x = jnp.ones(9000)
total(grow(x)).block_until_ready()
limits = resource.getrlimit(resource.RLIMIT_AS)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
held, late = [], 0
resource.setrlimit(resource.RLIMIT_AS, (used + (50 << 20), limits[1]))
for _ in range(12):
    try:
        y = grow(x)
        held.append(y)
        s = total(y)
    except MemoryError:
        continue
    for result in (y, s, y):
        try:
            result.block_until_ready()
        except MemoryError as e:
            assert "out of memory" in str(e) and result.is_ready() and not result.is_deleted()
            late += 1
resource.setrlimit(resource.RLIMIT_AS, limits)
held.clear()
print(late > 0, float(grow(x)[1, 1]))
"""
    )
    assert out == "True 2.0\n"
