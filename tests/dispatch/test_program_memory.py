"""Programs are bounded in bytes and go with their function (promise P13)."""

import gc
import os
import subprocess
import sys
import weakref

import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import _ferrax, lax
from ferrax.experimental import io_callback


def programs():
    return _ferrax.jit_cache_totals()[0]


@pytest.fixture
def no_programs():
    gc.collect()
    ferrax.clear_caches()
    yield
    ferrax.clear_caches()


def live():
    return ferrax.devices()[0].memory_stats()["bytes_in_use"]


def in_a_process_of_its_own(function):
    """Runs a function of this file where nothing else takes or gives back memory; what it prints, as numbers."""
    run = subprocess.run(
        [sys.executable, __file__, function.__name__], env=os.environ, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return [int(n) for n in run.stdout.split()]


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def test_programs_go_with_the_function(no_programs):
    def make():
        def f(x):
            return x + 1

        ferrax.jit(f)(jnp.ones(3))
        return f

    f = make()
    assert programs() == 1
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None
    assert programs() == 0


SCALAR = ferrax.ShapeDtypeStruct((), jnp.float32)
CALLS = {
    "pure": lambda host: ferrax.pure_callback(host, SCALAR, 1.0),
    "io": lambda host: io_callback(host, SCALAR, 1.0),
    "ordered": lambda host: io_callback(host, SCALAR, 1.0, ordered=True),
    "debug": lambda host: ferrax.debug.callback(host, 1.0),
    "loop": lambda host: lax.fori_loop(0, 2, lambda i, x: ferrax.pure_callback(host, SCALAR, x), 1.0),
    "while": lambda host: lax.while_loop(lambda x: ferrax.pure_callback(host, SCALAR, x) < 3, lambda x: x + 1, 1.0),
    "scan": lambda host: lax.map(lambda x: ferrax.pure_callback(host, SCALAR, x), jnp.ones(2)),
    "branch": lambda host: lax.cond(True, lambda x: ferrax.pure_callback(host, SCALAR, x), lambda x: x, 1.0),
    "branch of a loop": lambda host: lax.map(
        lambda x: lax.cond(x > 0, lambda x: ferrax.pure_callback(host, SCALAR, x), lambda x: x, x), jnp.ones(2)
    ),
    "vmap": lambda host: ferrax.vmap(lambda x: ferrax.pure_callback(host, SCALAR, x, vmap_method="sequential"))(
        jnp.ones(2)
    ),
    "jit": lambda host: ferrax.jit(lambda x: ferrax.pure_callback(host, SCALAR, x))(1.0),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_host_code_ends_with_its_last_use(call):
    called = []

    def host(x):
        called.append(1)
        return x

    call(host)
    ferrax.effects_barrier()
    assert called
    gone = weakref.ref(host)
    del host
    gc.collect()
    assert gone() is None


def test_programs_of_a_wrapper_that_is_in_a_cycle_go(no_programs):
    class Model:
        def __init__(self):
            self.apply = ferrax.jit(self.apply_once)

        def apply_once(self, x):
            return x + 1

    model = Model()
    model.apply(jnp.ones(3))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    assert programs() == 0


def test_constants_go_with_the_function(no_programs):
    before = live()

    def make():
        big = jnp.ones((256, 1024))
        return ferrax.jit(lambda x: x + big)

    f = make()
    f(jnp.float32(1.0))
    assert live() >= before + (1 << 20)
    del f
    gc.collect()
    assert live() < before + (1 << 16)


def many_programs():
    """10,000 programs under a limit that holds a tenth of them."""

    def chain(x, n):
        for _ in range(10):
            x = jnp.sin(x) * n
        return x

    x = jnp.ones(8)
    f = ferrax.jit(chain, static_argnums=1)
    for i in range(500):
        f(x, i)
    each = f.cache_info().bytes // 500
    limit = 1000 * each
    _ferrax.set_jit_cache_limit(limit)
    for i in range(2000):
        f(x, i)
    start = resident()
    for i in range(2000, 10_000):
        f(x, i)
    taken, kept = resident() - start, programs()
    before = f.cache_info()
    f(x, 9_999)
    print(limit, kept, taken, f.cache_info().hits - before.hits)


def test_many_programs_stay_within_the_limit():
    """Memory stays, and the last programs are kept."""
    limit, kept, taken, hits = in_a_process_of_its_own(many_programs)
    assert kept <= 1000
    # the table is full from the start: what is added is what other caches and the allocator take
    assert taken <= 0.1 * limit + (4 << 20)
    assert hits == 1


def two_thousand_programs():
    def chain(x, n):
        for _ in range(20):
            x = jnp.sin(x) * n
        return x

    x = jnp.ones(8)
    f = ferrax.jit(chain, static_argnums=1)
    for i in range(200):
        f(x, i)
    start, counted = resident(), f.cache_info().bytes
    for i in range(200, 2200):
        f(x, i)
    print(resident() - start, f.cache_info().bytes - counted)


def test_the_estimate_of_bytes_bounds_what_programs_take():
    taken, estimated = in_a_process_of_its_own(two_thousand_programs)
    assert 0.2 * estimated <= taken <= 1.1 * estimated, (taken, estimated)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
