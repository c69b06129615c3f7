"""What stays in memory after thousands of programs, errors, cycles and callbacks: nothing.

A trial takes `times`, which scales a count, and a random generator.
"""

import gc
import resource
import weakref

import numpy as np

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from tests.fuzz.generator import FERRAX, Generator

#: Bytes that a step may leave on average: the allocator's own slack over some hundred steps.
KEPT = 4096


def resident():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * resource.getpagesize()


def settled():
    gc.collect()
    ferrax.clear_caches()
    gc.collect()
    return resident()


def stays_level(step, steps):
    """Runs `step(i)`; the resident memory is the same after the second half as after the first."""
    steps = list(steps)
    half = len(steps) // 2
    for i in steps[:half]:
        step(i)
    held, before = ferrax.devices()[0].memory_stats()["bytes_in_use"], settled()
    for i in steps[half:]:
        step(i)
    grown = settled() - before
    assert grown < max(8 << 20, KEPT * (len(steps) - half)), f"{grown / (len(steps) - half):.0f} bytes a step stay"
    assert ferrax.devices()[0].memory_stats()["bytes_in_use"] <= held


def functions(times, rng):
    """Functions that are jitted and dropped."""

    def step(i):
        ferrax.jit(lambda x: jnp.sin(x) * i + jnp.cumsum(x)[-1])(np.ones(10, np.float32))

    stays_level(step, times(4000))


def static_values(times, rng):
    """Ever new static arguments and shapes of functions that stay."""
    scaled = ferrax.jit(lambda x, k: jnp.sin(x) * k, static_argnums=1)
    shaped = ferrax.jit(lambda x: jnp.sin(x) * 2 + jnp.cumsum(x)[-1])

    def step(i):
        scaled(np.ones(10, np.float32), i)
        shaped(np.ones(1 + i, np.float32))
        jnp.sum(jnp.ones((i % 100 + 1, i // 100 + 1)))

    stays_level(step, times(3000))


def derivatives(times, rng):
    """Transformations of functions that are dropped."""

    def step(i):
        def loss(w, x):
            return jnp.mean((jnp.tanh(x @ w) * i) ** 2)

        w, x = jnp.ones((4, 3)), jnp.ones((5, 4))
        ferrax.grad(loss)(w, x)
        ferrax.jit(ferrax.value_and_grad(loss))(w, x)
        ferrax.vmap(ferrax.grad(loss), (None, 0))(w, x[:, None])
        value, back = ferrax.vjp(loss, w, x)
        back(value)
        ferrax.linearize(loss, w, x)[1](w, x)
        ferrax.make_jaxpr(loss)(w, x)

    stays_level(step, times(1000))


def raised(error, function, *args):
    try:
        function(*args)
    except error:
        return
    raise AssertionError(f"{error.__name__} was not raised")


def errors(times, rng):
    """Errors while tracing, in callbacks and of leaked tracers."""

    def step(i):
        def fails(x):
            raise KeyError(i)

        kept = []
        shape = ferrax.ShapeDtypeStruct((), jnp.float32)
        raised(ferrax.errors.TracerBoolConversionError, ferrax.jit(lambda x: x if x > 0 else i), 1.0)
        raised(Exception, ferrax.jit(lambda x: ferrax.pure_callback(fails, shape, x)), 1.0)
        raised(TypeError, lambda: lax.scan(lambda c, x: (c + 1j, x), jnp.float32(0), jnp.ones(3)))
        raised(ValueError, lambda: ferrax.tree.map(lambda a, b: a, {"a": 1, i: 2}, {"a": 1}))
        raised(ZeroDivisionError, ferrax.jit(lambda x: ferrax.vmap(lambda y: 1 / 0)(x)), jnp.ones(3))
        ferrax.jit(lambda x: (kept.append(x), x)[1])(1.0)
        raised(ferrax.errors.UnexpectedTracerError, lambda: kept[0] + 1)

    stays_level(step, times(1000))


def cycles(times, rng):
    """Objects that hold jitted functions, derivatives and arrays that hold them."""

    class Holder:
        pass

    def step(i):
        h = Holder()
        h.a = jnp.ones(1000)
        h.f = ferrax.jit(lambda x: x + h.a)
        h.f(h.a)
        h.g = ferrax.grad(lambda x: (x * h.a).sum())
        h.g(h.a)
        h.vjp = ferrax.vjp(lambda x: x * h.a, h.a)
        h.partial = ferrax.tree_util.Partial(h.f)
        h.all = {"list": [h, h.a, h.f], "tree": ferrax.tree.structure([h, h.a])}

    stays_level(step, times(1000))


def weak_references(times, rng):
    """Functions and what they close over end with their last use."""

    class Token:
        pass

    made = []

    def step():
        token = Token()

        def function(x):
            assert token
            return lax.scan(lambda c, y: (c + y, c), x, jnp.arange(3.0))[0] * 2

        f = ferrax.jit(function)
        made.extend(map(weakref.ref, (token, function, f)))
        for use in (f, ferrax.grad(f), ferrax.make_jaxpr(f), ferrax.checkpoint(function), ferrax.jit(ferrax.grad(f))):
            use(1.0)
        ferrax.jvp(f, (1.0,), (1.0,))
        ferrax.vmap(f)(jnp.ones(3))
        f.lower(1.0).compile()(1.0)
        lax.cond(True, function, function, 1.0)
        lax.fori_loop(0, 2, lambda i, c: function(c), 1.0)

        def host(x):
            return x if token else None

        def calls(x):
            return ferrax.pure_callback(host, ferrax.typeof(x), x, vmap_method="sequential")

        ferrax.debug.callback(host, 1.0)
        for use in (calls, ferrax.jit(calls)):
            use(1.0)
            lax.cond(True, use, use, 1.0)
            lax.map(use, jnp.ones(2))
        ferrax.vmap(calls)(jnp.ones(2))
        made.extend(map(weakref.ref, (host, calls)))

    for _ in times(50):
        step()
    ferrax.effects_barrier()
    gc.collect()
    assert not [r for r in made if r() is not None]


def programs(times, rng):
    """Random programs, jitted and dropped."""
    np.seterr(all="ignore")
    first = rng.randrange(500_000)

    def step(i):
        program = Generator(first + i, False, (["tiny", "odd"], [2, 1])).draw()
        if program.steps:
            ferrax.jit(program.function(FERRAX))(*program.inputs.values())

    stays_level(step, times(2000))


TRIALS = [functions, static_values, derivatives, errors, cycles, weak_references, programs]
