"""Many threads, forks, signals and exits. A trial takes `times`, which scales a count, and a random generator."""

import asyncio
import gc
import os
import random
import signal
import subprocess
import sys
import threading

import numpy as np

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

THREADS = 8
SCALAR = ferrax.ShapeDtypeStruct((), jnp.float32)


def in_threads(*functions):
    """Runs functions at the same time and raises the first error."""
    errors = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def everywhere(work):
    """Runs `work(k)` in all threads."""
    in_threads(*[lambda k=k: work(k) for k in range(THREADS)])


def mean_of_layer(w, x):
    return jnp.mean(jnp.tanh(x @ w[0] + w[1]) ** 2)


def one_program(times, rng):
    """All threads call the same programs and eager operations."""
    f = ferrax.jit(lambda x, y: jnp.sin(x) @ y + x.sum())
    g = ferrax.jit(ferrax.value_and_grad(mean_of_layer))
    x = jnp.asarray(np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32))
    w = (jnp.full((32, 8), 0.1), jnp.zeros(8))
    product, leaves = np.asarray(f(x, x.T)), [np.asarray(leaf) for leaf in ferrax.tree.leaves(g(w, x))]

    def work(k):
        for _ in times(200):
            assert np.array_equal(f(x, x.T), product)
            assert all(map(np.array_equal, ferrax.tree.leaves(g(w, x)), leaves))
            assert np.array_equal(ferrax.grad(mean_of_layer)(w, x)[0], leaves[1])
            assert float(jnp.sum(jnp.arange(k + 10.0))) == sum(range(k + 10))
            assert float(x.at[k].set(float(k))[k, 0]) == k

    everywhere(work)


def own_programs(times, rng):
    """Each thread compiles programs of its own, while caches are cleared."""

    def work(k):
        own = random.Random(k)
        for i in times(150):
            scale, n = own.random(), own.randrange(1, 300)
            f = ferrax.jit(lambda x: jnp.cumsum(jnp.sin(x) * scale)[-1] + jnp.sort(x)[0])
            x = np.arange(n, dtype=np.float32)
            assert abs(float(f(x)) - (np.sin(x) * scale).sum()) < 1e-2 * n
            if i % 50 == 0:
                ferrax.clear_caches()
            if i % 20 == 0:
                gc.collect()

    everywhere(work)


def first_call(times, rng):
    """All threads make the first call of one function."""
    for _ in times(15):
        f = ferrax.jit(lambda x: lax.fori_loop(0, 50, lambda i, c: jnp.sin(c) + i, x))
        results = []
        in_threads(*[lambda: results.append(np.asarray(f(jnp.arange(2000.0))))] * THREADS)
        assert len(results) == THREADS and all(np.array_equal(r, results[0]) for r in results)


def settings(times, rng):
    """A setting of one thread is not another's."""

    def wide(on):
        for _ in times(200):
            with ferrax.enable_x64(on):
                want = jnp.float64 if on else jnp.float32
                assert jnp.arange(3.0).dtype == want
                assert ferrax.jit(lambda a: jnp.sin(a) * 2)(np.ones(3)).dtype == want

    def nans():
        for _ in times(100):
            with ferrax.debug_nans(True):
                try:
                    jnp.log(jnp.float32(-1.0))
                except FloatingPointError:
                    continue
                raise AssertionError("a NaN without an error")

    def usual():
        for _ in times(300):
            assert jnp.arange(3.0).dtype == jnp.float32
            assert np.isnan(float(jnp.log(jnp.float32(-1.0))))

    in_threads(lambda: wide(True), lambda: wide(False), nans, usual, usual)


def donation(times, rng):
    """Of threads that donate one array, one wins, and readers see it whole or deleted."""
    f = ferrax.jit(lambda x: x + 1, donate_argnums=0)
    # Memory that NumPy looks at is not donated. Tracing takes so long that readers are interrupted while they look: it
    # comes before.
    f(jnp.zeros(50_000)).block_until_ready()
    for _ in times(100):
        x, results, seen = jnp.zeros(50_000), [], []

        def give():
            try:
                results.append(float(f(x)[0]))
            except RuntimeError:
                results.append(None)

        def read():
            for _ in range(10):
                try:
                    seen.append(float(np.asarray(x).sum()))
                    seen.append(float(x.sum()))
                except RuntimeError:
                    return

        in_threads(give, read, give, read)
        assert sorted(results, key=str) == [1.0, None] and not any(seen)


def pending(times, rng):
    """Results that nobody waits for, chains of donations, and threads that start long work."""
    last = ferrax.jit(lambda a: jnp.cumsum(jnp.sin(a) * 0 + a)[-1])
    grow = ferrax.jit(lambda a: a * 2, donate_argnums=0)
    big = jnp.ones(1_000_000)

    def work(k):
        for _ in times(10):
            dropped = [last(big) for _ in range(3)]
            del dropped
            x = big * k
            assert float(last(x)) == 1e6 * k
            y = x + 0
            for _ in range(5):
                y = grow(y)
            assert float(y[0]) == 32 * k

    everywhere(work)


def callbacks(times, rng):
    """Callbacks from many threads, which call jitted functions, raise, and wait for other threads."""
    double = ferrax.jit(lambda x: ferrax.pure_callback(lambda v: np.float32(v) * 2, SCALAR, x) + 1)

    def inner(x):
        return np.asarray(ferrax.jit(lambda v: v + 1)(x)) + np.asarray(ferrax.grad(lambda v: v * v)(x))

    nested = ferrax.jit(lambda x: ferrax.pure_callback(inner, SCALAR, x) * 2)

    def fails(x):
        raise KeyError("of the callback")

    failing = ferrax.jit(lambda x: ferrax.pure_callback(fails, SCALAR, x))

    def waits(x):
        found = []
        in_threads(lambda: found.append(float(ferrax.jit(jnp.sum)(jnp.ones(100_000)))))
        return np.float32(found[0])

    waiting = ferrax.jit(lambda x: ferrax.pure_callback(waits, SCALAR, x))

    def work(k):
        for i in times(50):
            assert float(double(float(k + i))) == 2.0 * (k + i) + 1
            assert float(nested(float(k))) == 2 * (k + 1 + 2 * k)
            assert float(waiting(1.0)) == 100_000
            try:
                float(failing(1.0))
            except Exception as error:
                assert "of the callback" in str(error)
            else:
                raise AssertionError("the error of a callback is lost")

    everywhere(work)


def forks(times, rng):
    """Children of a process that computes go on computing."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32))
    f, long = ferrax.jit(lambda a: (a @ a).sum()), ferrax.jit(lambda a: jnp.cumsum(jnp.sin(a)).sum())
    big, want, ended = jnp.ones(1_000_000), float(f(x)), []

    def load():
        while not ended:
            float(long(big))
            float(f(x))

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for _ in times(10):
            unfinished = long(big)
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                right = float(f(x)) == want and float(jnp.sort(-x.reshape(-1))[0]) == -float(x.max())
                os._exit(0 if right and float(long(big)) == float(unfinished) else 3)
            assert os.waitpid(child, 0)[1] == 0, "a child did not end well"
    finally:
        ended.append(True)
        thread.join()


def tasks(times, rng):
    """Coroutines and executors share programs."""
    f = ferrax.jit(lambda a: jnp.cumsum(a)[-1])

    async def one(k):
        result = f(jnp.full(100_000, float(k)))
        await asyncio.sleep(0)
        return float(result)

    async def main():
        loop = asyncio.get_running_loop()
        small = [loop.run_in_executor(None, lambda k=k: float(f(jnp.full(1000, float(k))))) for k in range(20)]
        return await asyncio.gather(*map(one, range(20))), await asyncio.gather(*small)

    for _ in times(5):
        large, small = asyncio.run(main())
        assert large == [100_000.0 * k for k in range(20)] and small == [1000.0 * k for k in range(20)]


def tracing(times, rng):
    """Threads that begin inside a trace are outside of it; a collection at every allocation harms nothing."""
    for _ in times(30):
        found = []

        def traced(x):
            in_threads(lambda: found.append(float(ferrax.jit(lambda v: v * 2)(3.0))))
            return x * 2

        assert float(ferrax.grad(ferrax.jit(traced))(1.0)) == 2.0 and found[0] == 6.0
    gc.set_threshold(1, 1, 1)
    for i in times(30):
        f = ferrax.jit(lambda x: lax.scan(lambda a, b: (a + b * i, a), x, jnp.arange(3.0))[0])
        assert float(f(1.0)) == 1 + 3 * i and float(ferrax.grad(f)(1.0)) == 1


def signals(times, rng):
    """Handlers run jitted functions, and may raise anywhere."""

    class Raised(Exception):
        pass

    def raises(*_):
        raise Raised

    hits = []
    # a handler that runs inside of a trace is traced
    signal.signal(signal.SIGALRM, lambda *_: hits.append(ferrax.jit(jnp.sum)(jnp.ones(100)).shape))
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    for i in times(200):
        f = ferrax.jit(lambda a: jnp.sin(a) * i + ferrax.grad(lambda q: (q**2).sum())(a))
        assert f(jnp.ones(50)).shape == (50,)
    signal.setitimer(signal.ITIMER_REAL, 0, 0)
    assert set(hits) <= {()}
    signal.signal(signal.SIGALRM, raises)
    for i in times(200):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + rng.random() * 0.003)
            f = ferrax.jit(lambda a: jnp.sin(a) * i)
            ferrax.vmap(f)(jnp.ones((3, 50)))
            lax.scan(lambda a, b: (a + b, a), 0.0, jnp.ones(5))
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Raised:
            signal.setitimer(signal.ITIMER_REAL, 0)
    assert float(ferrax.jit(jnp.sum)(jnp.ones(9))) == 9


EXITS = {
    "daemon threads": """
def work():
    while True:
        f(big)
        float(f(big))
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
kept = [f(big) for _ in range(5)]""",
    "results not there yet": "kept = [f(big) for _ in range(3)]",
    "work at exit": """
atexit.register(lambda: print(float(f(big))))
class Last:
    def __del__(self):
        float(jnp.sum(big + 1))
sys.last = Last()
cycle = [Last()]
cycle.append(cycle)""",
}


def exits(times, rng):
    """Processes end well whatever still runs."""
    head = "import atexit, sys, threading, time\nimport ferrax, ferrax.numpy as jnp\n"
    head += "f, big = ferrax.jit(lambda a: jnp.cumsum(jnp.sin(a)).sum()), jnp.ones(1_000_000)\nfloat(f(big))\n"
    for name, text in EXITS.items():
        for _ in times(3):
            child = subprocess.run([sys.executable, "-c", head + text], capture_output=True, timeout=60, check=False)
            assert child.returncode == 0, f"{name}: {child.stderr.decode()[-1000:]}"


TRIALS = [
    one_program,
    own_programs,
    first_call,
    settings,
    donation,
    pending,
    callbacks,
    forks,
    tasks,
    tracing,
    signals,
    exits,
]
