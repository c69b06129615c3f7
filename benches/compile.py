"""What the first call costs: tracing and compiling, end to end (promise P3).

Each repeat makes a new function, so nothing is found in a cache. Large programs run on JAX only with `--slow`.
`python benches/compile.py --target jax` tries the program without ferrax.
"""

import itertools
from functools import partial

import harness
import numpy as np
from dispatch import mlp


def first_call(jax, make, args):
    """A function that jits a new function, calls it and waits for the result."""
    return lambda: jax.block_until_ready(jax.jit(make())(*args))


def small_rows(libs):
    def row(name, make, **kwargs):
        contenders = {n: partial(make, *lib) for n, lib in libs.items()}
        return harness.Row(name, contenders, once=True, **kwargs)

    def tiny(jax, jnp):
        x = jax.device_put(np.ones(10, np.float32))
        return first_call(jax, lambda: lambda x: x + 1, (x,))

    def training_step(jax, jnp):
        params, loss, x, y = mlp(jax, jnp)

        def make():
            def step(params, x, y):
                grads = jax.grad(lambda p: loss(p, x, y))(params)
                return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

            return step

        return first_call(jax, make, (params, x, y))

    def scan(jax, jnp):
        x = jax.device_put(np.ones((100, 10), np.float32))

        def make():
            return lambda x: jax.lax.scan(lambda c, a: (jnp.tanh(c + a), c * a), x[0], x)

        return first_call(jax, make, (x,))

    yield row("first call of a tiny jit", tiny, target=0.3e-3)
    yield row("first call of an MLP training step", training_step, target=3e-3)
    yield row("first call of a scan", scan)
    yield chain_row(libs, 200, 2e-3)


def chain(jax, jnp, n):
    """The first call of n equations."""
    x = jax.device_put(np.ones(10, np.float32))

    def make():
        def f(x):
            for _ in range(n // 2):
                x = jnp.sin(x) * 0.9
            return x

        return f

    return first_call(jax, make, (x,))


def chain_row(libs, n, target=None, **kwargs):
    contenders = {name: partial(chain, *lib, n) for name, lib in libs.items()}
    return harness.Row(f"first call of {n:,} operations", contenders, target, once=True, **kwargs)


def large_rows(libs, options):
    if not options.slow:
        libs = {n: lib for n, lib in libs.items() if n == options.target}
    ten = chain_row(libs, 10_000, 50e-3, budget=1.0)
    yield ten
    hundred = chain_row(libs, 100_000, budget=3.0)
    yield hundred
    target = options.target
    if target in ten.times and target in hundred.times:
        ratio = hundred.times[target] / ten.times[target]
        print(f"    time(100,000) / time(10,000) = {ratio:.1f}, promised ≤ 12: {'ok' if ratio <= 12 else 'MISS'}")


def shape_rows(libs):
    def new_shapes(jax, jnp, count):
        sizes = itertools.count(1000)

        def run():
            # arrays first: copying them in is not what is timed, and costs far less
            arrays = [jax.device_put(np.ones(next(sizes), np.float32)) for _ in range(count)]
            for x in arrays:
                jnp.sin(x)

        return run

    count = 20
    contenders = {n: partial(new_shapes, *lib, count) for n, lib in libs.items()}
    yield harness.Row("jnp.sin of a new shape", contenders, 20e-6, once=True, calls=count, budget=1.0)


def main():
    options = harness.parse_arguments(__doc__.splitlines()[0])
    libs = harness.libraries(options)
    harness.run([partial(small_rows, libs), partial(shape_rows, libs), partial(large_rows, libs, options)], options)


if __name__ == "__main__":
    main()
