"""What goes wrong on a CPU client of XLA: typed errors, at the use of a result or in the call, and nothing is left.

Faults of the plugin's own functions, one by one: `crates/ferrax-pjrt/tests`; of any engine at any step: `tests/engine`.
"""

import contextlib
import gc
import inspect
import pathlib

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from tests.xla.processes import plugin, run


@pytest.fixture
def xla():
    """The first device of the plugin, on which a test leaves nothing."""
    device = jax.devices("xla_cpu")[0]
    gc.collect()
    before = device.memory_stats()["bytes_in_use"]
    yield device
    for _ in range(3):
        gc.collect()
    jax.clear_caches()
    gc.collect()
    assert device.memory_stats()["bytes_in_use"] <= before


def works(device):
    x = jax.device_put(jnp.arange(4.0), device)
    assert float(jax.jit(lambda x: (x * 2).sum())(x)) == 12.0


def line():
    """The number of the line of the caller."""
    return inspect.currentframe().f_back.f_lineno


def huge(x):
    return jnp.broadcast_to(x[:, None], (2, 2**43)) + 1


def test_memory_that_is_not_there_is_an_error_that_names_the_call(xla):
    f = jax.jit(huge)
    x = jax.device_put(jnp.ones(2), xla)
    called = line() + 2
    with pytest.raises(MemoryError, match="RESOURCE_EXHAUSTED") as caught:
        y = f(x)
        y.block_until_ready()
    frames = "".join(str(entry) for entry in caught.traceback)
    assert f"test_faults.py:{called}" in str(caught.value) or f"test_faults.py':{called}" in frames
    works(xla)


def test_what_reads_a_failed_result_fails_alike_and_the_next_call_works(xla):
    x = jax.device_put(jnp.ones(2), xla)
    with contextlib.suppress(MemoryError):
        y = jax.jit(huge)(x)
        z = jax.jit(lambda y: y[0, 0] * 2)(y)
        for use in (lambda: float(z), z.block_until_ready, lambda: np.asarray(z), lambda: z + 1 == 2, z.tolist):
            with pytest.raises(MemoryError, match="RESOURCE_EXHAUSTED"):
                use()
    works(xla)


def test_an_error_within_a_driven_program_surfaces_and_the_host_is_not_called_after_it(xla):
    seen = []

    @jax.jit
    def f(x):
        jax.debug.callback(lambda x: seen.append("before"), x[0])
        y = huge(x)
        jax.debug.callback(lambda y: seen.append("after"), y[0, 0])
        return y[0, 1]

    with pytest.raises(MemoryError, match="RESOURCE_EXHAUSTED"):
        jax.block_until_ready(f(jax.device_put(jnp.ones(2), xla)))
    assert seen == ["before"]
    works(xla)


def test_an_array_that_is_too_large_to_upload_or_copy(xla):
    with pytest.raises((MemoryError, RuntimeError)):
        jax.block_until_ready(jnp.zeros(2**45, device=xla))
    works(xla)


def test_donated_arrays_are_gone_for_every_use(xla):
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jax.device_put(jnp.arange(8.0), xla)
    y = f(x)
    for use in (lambda: x + 1, lambda: f(x), lambda: np.asarray(x), lambda: x[0], x.tolist):
        with pytest.raises(RuntimeError, match="donated"):
            use()
    assert x.is_deleted() and float(y[7]) == 8.0


def test_a_donated_argument_that_no_result_can_use_stays(xla):
    x = jax.device_put(jnp.arange(8.0), xla)
    with pytest.warns(UserWarning, match="not usable"):
        total = jax.jit(lambda x: x.sum(), donate_argnums=0)(x)
    assert float(total) == 28.0
    assert not x.is_deleted() and float((x + 1)[7]) == 8.0


def test_a_deleted_array_is_an_error(xla):
    x = jax.device_put(jnp.arange(8.0), xla)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1
    works(xla)


def test_a_program_that_the_compiler_refuses_is_an_error_each_time(xla):
    x = jax.device_put(jnp.ones(3), xla)
    f = jax.jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": "perhaps"})
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError):
            f(x)
    works(xla)


def test_a_loop_whose_results_have_no_memory_fails_and_frees_what_it_held(xla):
    def step(carry, _):
        return carry + 1, huge(carry)

    with pytest.raises(MemoryError, match="RESOURCE_EXHAUSTED"):
        jax.block_until_ready(jax.jit(lambda x: lax.scan(step, x, None, length=3))(jax.device_put(jnp.ones(2), xla)))
    works(xla)


def test_two_clients_of_one_plugin_share_nothing():
    code = f"""
import ferrax as jax, ferrax.numpy as jnp, gc
jax.register_plugin("second", {plugin()!r})
first, second = jax.devices("xla_cpu")[0], jax.devices("second")[0]
x, y = (jax.device_put(jnp.arange(1000.0), d) for d in (first, second))
print([d.memory_stats()["bytes_in_use"] for d in (first, second)])
f = jax.jit(lambda x, y: x + y)
for call in (f, jnp.add):
    try:
        call(x, y)
    except ValueError as e:
        print("incompatible devices" in str(e))
both = [f(x, jax.device_put(y, first)), f(jax.device_put(x, second), y), f(x, jnp.arange(1000.0))]
print([float(z[999]) for z in both], [z.device.platform for z in both])
del x, y, both
gc.collect()
print([d.memory_stats()["bytes_in_use"] for d in (first, second)])
"""
    assert run(code, FERRAX_PLATFORMS="cpu").splitlines() == [
        "[4000, 4000]",
        "True",
        "True",
        "[1998.0, 1998.0, 1998.0] ['xla_cpu', 'second', 'xla_cpu']",
        "[0, 0]",
    ]


def test_a_process_ends_well_whatever_is_alive_then():
    code = """
import threading, ferrax as jax, ferrax.numpy as jnp
x = jnp.ones((500, 500))
f = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda i, x: jnp.tanh(x @ x), x))
pending, stuck = f(x), f(x)
def forever():
    while True:
        f(x).block_until_ready()
threading.Thread(target=forever, daemon=True).start()
pending.block_until_ready()
print(x.device)
"""
    assert run(code, FERRAX_PLATFORMS="xla_cpu") == "xla_cpu:0"


MAPPINGS = """
import mmap
import ferrax as jax
import ferrax.numpy as jnp

made = [jnp.ones(n) + n for n in range(1, 60)]
most = int(open("/proc/sys/vm/max_map_count").read())
held, here = [], sum(1 for _ in open("/proc/self/maps"))
try:
    while here + len(held) < most - 12:
        held.append(mmap.mmap(-1, 1))
except OSError:
    del held[-12:]
for n in range(60, 90):
    made.append(jnp.ones(n) + n)
assert all(float(x[0]) == n for n, x in enumerate(made, 2))
print("worked")
"""


@pytest.mark.skipif(not pathlib.Path("/proc/sys/vm/max_map_count").exists(), reason="needs Linux's limit of mappings")
def test_programs_that_caches_hold_make_room_for_others(xla):
    """A process may have so many mappings, of which XLA's CPU client takes some for each program."""
    if int(pathlib.Path("/proc/sys/vm/max_map_count").read_text()) > 300_000:
        pytest.skip("the limit is too far away")
    assert "worked" in run(MAPPINGS, FERRAX_PLATFORMS="xla_cpu")
