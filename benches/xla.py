"""Programs on a CPU client of XLA through the PJRT C API, beside JAX on its own and beside the embedded engine.

Needs a plugin: `FERRAX_PJRT_PLUGIN=xla_cpu:PATH python benches/xla.py` (`make xla-plugin` builds one). The contenders
are `xla` (ferrax on the plugin), `ferrax` (its embedded engine) and `jax` (XLA:CPU): dispatch of one call, first calls
with everything they compile, and what larger programs take. The plugin's XLA is another version than JAX's.
"""

import os
import sys
from functools import partial

import harness
import numpy as np


def places(libs):
    """Contender -> library, its `numpy`, and where its arrays go."""
    for name, (jax, jnp) in libs.items():
        if name == "ferrax":
            yield "xla", (jax, jnp, jax.devices("xla_cpu")[0])
            yield "ferrax", (jax, jnp, jax.devices("cpu")[0])
        else:
            yield name, (jax, jnp, jax.devices()[0])


def row(libs, name, make, **kwargs):
    return harness.Row(name, {n: partial(make, *where) for n, where in places(libs)}, **kwargs)


def on(jax, device, *shapes):
    """Random arrays of these shapes on a device."""
    numbers = np.random.default_rng(0)
    return [jax.device_put(numbers.standard_normal(shape).astype(np.float32), device) for shape in shapes]


def dispatch_rows(libs):
    def jitted(jax, jnp, device):
        (x,) = on(jax, device, 10)
        f = jax.jit(lambda x: x + x)
        return lambda: f(x)

    def eager(jax, jnp, device):
        (x,) = on(jax, device, 10)
        return lambda: x + x

    def waited(jax, jnp, device):
        (x,) = on(jax, device, 10)
        f = jax.jit(lambda x: x + x)
        return lambda: f(x).block_until_ready()

    def hundred(jax, jnp, device):
        tree = dict(enumerate(on(jax, device, *[10] * 100)))
        f = jax.jit(lambda t: t)
        return lambda: f(tree)

    yield row(libs, "a jitted call", jitted, target=4e-6)
    yield row(libs, "a jitted call, waited for", waited)
    yield row(libs, "an eager x + x", eager)
    yield row(libs, "a jitted call with 100 leaves", hundred)


def compile_rows(libs):
    def tiny(jax, jnp, device):
        (x,) = on(jax, device, 10)
        return lambda: jax.block_until_ready(jax.jit(lambda x: x + 1)(x))

    def step(jax, jnp, device):
        args = on(jax, device, (64, 32), (32, 32), (32, 4))

        def first():
            def loss(w, v, x):
                return (jnp.tanh(x @ w) @ v).sum()

            return jax.block_until_ready(jax.jit(jax.grad(loss, (0, 1)))(*args[1:], args[0]))

        return first

    yield row(libs, "first call of a tiny jit", tiny, once=True)
    yield row(libs, "first call of a gradient", step, once=True)


def throughput_rows(libs):
    def program(make, *shapes):
        def setup(jax, jnp, device):
            args = on(jax, device, *shapes)
            f = jax.jit(lambda *xs: make(jax, jnp, *xs))
            return lambda: jax.block_until_ready(f(*args))

        return setup

    def attention(jax, jnp, q, k, v):
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8.0)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v)

    def recurrence(jax, jnp, x, w):
        return jax.lax.scan(lambda c, a: (jnp.tanh(c @ w + a),) * 2, x[0], x)[1]

    head = (2, 128, 4, 64)
    yield row(libs, "sin(x) * x + 1, 1e6", program(lambda jax, jnp, x: jnp.sin(x) * x + 1, 1_000_000))
    yield row(libs, "matmul 512", program(lambda jax, jnp, x, y: x @ y, (512, 512), (512, 512)))
    yield row(libs, "softmax 512 x 1024", program(lambda jax, jnp, x: jax.nn.softmax(x), (512, 1024)))
    yield row(libs, "attention", program(attention, head, head, head))
    yield row(libs, "scan of 200 steps", program(recurrence, (200, 16, 32), (32, 32)))
    yield row(libs, "sort 1e5", program(lambda jax, jnp, x: jnp.sort(x), 100_000))
    yield row(libs, "fft 2^16", program(lambda jax, jnp, x: jnp.fft.fft(x), 2**16))


def main():
    options = harness.parse_arguments(__doc__.splitlines()[0])
    if "xla_cpu:" not in os.environ.get("FERRAX_PJRT_PLUGIN", ""):
        sys.exit("benches/xla.py needs a plugin: FERRAX_PJRT_PLUGIN=xla_cpu:PATH")
    libs = harness.libraries(options)
    contenders = ["xla", "ferrax"] + [n for n in libs if n != "ferrax"]
    harness.run([partial(rows, libs) for rows in (dispatch_rows, compile_rows, throughput_rows)], options, contenders)


if __name__ == "__main__":
    main()
