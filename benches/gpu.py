"""Programs on an NVIDIA GPU: our engine `cuda` beside JAX on the same GPU, in one run, and beside a copy's bandwidth.

`python benches/gpu.py` needs a GPU; JAX takes part where it has its own plugin for one. Rows of bandwidth say what
share of a copy's bytes per second they reach (the fewest bytes that the row must move, each input read once and each
output written once); rows of products say their TFLOP/s. What nobody asks to be less exact is computed in float32 by
us and in TF32 by JAX; rows of TF32 ask for it. Every row's results are compared before they are timed. JAX takes
memory as it needs it (`XLA_PYTHON_CLIENT_PREALLOCATE=false`), so that both fit.
"""

import os

os.environ["JAX_PLATFORMS"] = "cuda"
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import itertools
import re
from dataclasses import dataclass
from functools import partial

import harness
import numpy as np

#: Elements of the large arrays: their bytes are several times what a GPU's cache holds.
LARGE = 1 << 27


@dataclass
class Work:
    """What a row cannot do without: bytes of the GPU's memory, or operations."""

    bytes: float = 0
    flops: float = 0


def on(jax, *shapes, dtype=np.float32):
    """Random arrays of these shapes on the GPU."""
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return [jax.random.normal(k, shape, np.float32).astype(dtype) for k, shape in zip(keys, shapes, strict=True)]


def row(libs, name, make, **kwargs):
    return harness.Row(name, {n: partial(make, *lib) for n, lib in libs.items()}, **kwargs)


def dispatch_rows(libs):
    def jitted(jax, jnp):
        (x,) = on(jax, (10,))
        f = jax.jit(lambda x: x + x)
        return lambda: f(x)

    def eager(jax, jnp):
        (x,) = on(jax, (10,))
        return lambda: x + x

    def waited(jax, jnp):
        (x,) = on(jax, (10,))
        f = jax.jit(lambda x: x + x)
        return lambda: f(x).block_until_ready()

    def hundred(jax, jnp):
        (x,) = on(jax, (10,))

        @jax.jit
        def f(x):
            for _ in range(50):
                x = jnp.sort(jnp.sin(x) + x)
            return x

        return lambda: f(x)

    yield row(libs, "a jitted call", jitted, target=10e-6)
    yield row(libs, "a jitted call, waited for", waited)
    yield row(libs, "an eager x + x", eager, target=6e-6)
    yield row(libs, "a program of 100 kernels", hundred)


def fresh(jax):
    """Arrays of shapes that no call had before, as the functions of a row's contender take them."""
    for n in itertools.count(1000):
        yield jax.device_put(np.ones((n, 4), np.float32))


def compile_rows(libs):
    def tiny(jax, jnp):
        arrays = fresh(jax)
        return lambda: jax.block_until_ready(jax.jit(lambda x: x * 2 + 1)(next(arrays)))

    def step(jax, jnp):
        arrays, (w, v) = fresh(jax), on(jax, (4, 32), (32, 4))

        def first():
            def loss(w, v, x):
                return (jnp.tanh(x @ w) @ v).sum()

            return jax.block_until_ready(jax.jit(jax.grad(loss, (0, 1)))(w, v, next(arrays)))

        return first

    yield row(libs, "first call of a tiny jit", tiny, once=True, target=60e-3)
    yield row(libs, "first call of a gradient", step, once=True)


def program(make, *shapes, dtype=np.float32, precision=None):
    """A jitted function of random arrays, waited for."""

    def setup(jax, jnp):
        def computed(*xs):
            with jax.default_matmul_precision(precision):
                return make(jax, jnp, *xs)

        args = on(jax, *shapes, dtype=dtype)
        f = jax.jit(computed)
        return lambda: jax.block_until_ready(f(*args))

    return setup


def bandwidth_rows():
    """Name, program, and the bytes that it cannot do without."""
    n, side = LARGE, 8192
    square = (side, side)
    at = np.random.default_rng(0).integers(0, n, n // 8).astype(np.int32)
    yield "copy", program(lambda jax, jnp, x: jnp.copy(x), (n,)), Work(8 * n)
    yield "x + y", program(lambda jax, jnp, x, y: x + y, (n,), (n,)), Work(12 * n)
    yield "sin(x) * x + 1", program(lambda jax, jnp, x: jnp.sin(x) * x + 1, (n,)), Work(8 * n)
    yield "gelu, bf16", program(lambda jax, jnp, x: jax.nn.gelu(x), (n,), dtype="bfloat16"), Work(4 * n)
    yield "sum of all", program(lambda jax, jnp, x: x.sum(), (n,)), Work(4 * n)
    yield "sum of rows", program(lambda jax, jnp, x: x.sum(1), square), Work(4 * side * side)
    yield "sum of columns", program(lambda jax, jnp, x: x.sum(0), square), Work(4 * side * side)
    yield "argmax of rows", program(lambda jax, jnp, x: x.argmax(1), square), Work(4 * side * side)
    yield "cumsum of all", program(lambda jax, jnp, x: jnp.cumsum(x), (n,)), Work(8 * n)
    yield "softmax of rows", program(lambda jax, jnp, x: jax.nn.softmax(x), square), Work(8 * side * side)
    yield "layernorm of rows", program(layernorm, square), Work(8 * side * side)
    yield "transpose", program(lambda jax, jnp, x: x.T + 0, square), Work(8 * side * side)
    yield "gather", program(lambda jax, jnp, x: x[jnp.asarray(at)], (n,)), Work(12 * len(at))
    yield "scatter-add", program(lambda jax, jnp, x: x.at[jnp.asarray(at)].add(1.0), (n,)), Work(8 * n)
    yield "concatenate", program(lambda jax, jnp, x, y: jnp.concatenate([x, y]), (n,), (n,)), Work(16 * n)
    yield "normal numbers", program(lambda jax, jnp, x: jax.random.normal(jax.random.key(1), (n,)), (1,)), Work(4 * n)
    yield "sort 1e7", program(lambda jax, jnp, x: jnp.sort(x), (10_000_000,)), Work(8 * 10_000_000)
    yield "fft of rows", program(fourier, (4096, 4096)), Work(8 * 4096 * 4096)
    yield "top 64 of rows", program(lambda jax, jnp, x: jax.lax.top_k(x, 64)[0], (1024, 8192)), Work(4 * 1024 * 8192)


def fourier(jax, jnp, x):
    y = jnp.fft.fft(x)
    return y.real + y.imag


def layernorm(jax, jnp, x):
    mean = x.mean(1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(x.var(1, keepdims=True) + 1e-5)


def arithmetic_rows():
    """Name, program, and the operations that it cannot do without."""
    side = 4096
    square = (side, side)
    half, tf32 = {"dtype": "bfloat16"}, {"precision": "tensorfloat32"}
    yield "matmul 4096, f32", program(lambda jax, jnp, x, y: x @ y, square, square), Work(flops=2 * side**3)
    yield "matmul 4096, bf16", program(lambda jax, jnp, x, y: x @ y, square, square, **half), Work(flops=2 * side**3)
    yield "matmul 4096, TF32", program(lambda jax, jnp, x, y: x @ y, square, square, **tf32), Work(flops=2 * side**3)
    batch = (256, 128, 128)
    yield "256 matmuls 128", program(lambda jax, jnp, x, y: x @ y, batch, batch), Work(flops=2 * 256 * 128**3)
    image, window, cells = (32, 56, 56, 64), (3, 3, 64, 64), Work(flops=2 * 32 * 56 * 56 * 64 * 64 * 9)
    yield "convolution 3 x 3", program(convolution, image, window), cells
    yield "convolution 3 x 3, TF32", program(convolution, image, window, **tf32), cells
    yield "convolution 3 x 3, bf16", program(convolution, image, window, **half), cells
    head = (8, 1024, 8, 64)
    yield "attention", program(attention, head, head, head), Work(flops=4 * 8 * 8 * 1024 * 1024 * 64)
    yield "attention, TF32", program(attention, head, head, head, **tf32), Work(flops=4 * 8 * 8 * 1024 * 1024 * 64)
    yield "attention, bf16", program(attention, head, head, head, **half), Work(flops=4 * 8 * 8 * 1024 * 1024 * 64)
    mlp = [(1024, 1024), (1024, 4096), (4096, 1024)]
    step = Work(flops=5 * 2 * 1024 * 1024 * 4096)
    yield "training step of an MLP", program(training, *mlp), step
    yield "training step of an MLP, TF32", program(training, *mlp, **tf32), step
    yield "training step of an MLP, bf16", program(training, *mlp, **half), step
    yield "scan of 200 steps", program(recurrence, (200, 16, 32), (32, 32)), Work(flops=200 * 2 * 16 * 32 * 32)
    yield "200 fori steps", program(iteration, (1024, 1024)), Work(bytes=200 * 8 * 1024 * 1024)


def convolution(jax, jnp, x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def attention(jax, jnp, q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def training(jax, jnp, x, w, v):
    def loss(w, v):
        return ((jax.nn.gelu(x @ w / 32) @ v / 64 - x) ** 2).mean()

    return [a - 0.1 * g for a, g in zip((w, v), jax.grad(loss, (0, 1))(w, v), strict=True)]


def recurrence(jax, jnp, x, w):
    return jax.lax.scan(lambda c, a: (jnp.tanh(c @ w + a),) * 2, x[0], x)[1]


def iteration(jax, jnp, x):
    return jax.lax.fori_loop(0, 200, lambda i, x: jnp.sin(x) + 0.5, x)


def same(libs, make):
    """The largest difference of two libraries' results, in parts of the largest number in them."""
    results = []
    for jax, jnp in libs.values():
        tree = jax.tree.leaves(make(jax, jnp)())
        results.append([np.asarray(leaf.astype(np.float32)) for leaf in tree])
    first, *others = results
    worst = 0.0
    for other in others:
        for a, b in zip(first, other, strict=True):
            worst = max(worst, float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)))
    return worst


def run_rows(libs, rows, options, copies):
    """Rows with their rate beside their times; `copies` has each library's bytes per second of the row `copy`."""
    for name, make, work in rows:
        if name != "copy" and not re.search(options.only, name):
            continue
        try:
            difference = f"{same(libs, make):.1e}" if len(libs) > 1 else ""
        except Exception as error:
            difference = harness.first_line(error)[:60]
        made = row(libs, name, make)
        harness.measure(made)
        cells = ""
        for library in libs:
            if (seconds := made.times.get(library)) is None:
                cells += f"{'failed':>11}{'':>10}"
                continue
            if name == "copy":
                copies[library] = work.bytes / seconds
            best = max(copies.values(), default=0)
            rate = f"{work.flops / seconds / 1e12:.1f} TF" if work.flops else f"{work.bytes / seconds / best:.0%}"
            cells += f"{harness.show_time(seconds):>11}{rate:>10}"
        print(f"{name:<28}{cells}{harness.show_ratio(made, 'ferrax', 'jax'):>9}   {difference}", flush=True)
        for library, failure in made.failures.items():
            print(f"    {library} failed: {failure[:150]}")


def main():
    options = harness.parse_arguments(__doc__.splitlines()[0])
    libs = harness.libraries(options)
    for name, (jax, _) in libs.items():
        print(f"{name} {jax.__version__}: {jax.devices()[0]} {jax.devices()[0].device_kind}")
    harness.run([partial(rows, libs) for rows in (dispatch_rows, compile_rows)], options, list(libs))
    head = "".join(f"{name:>11}{'rate':>10}" for name in libs)
    print(f"\n{'':<28}{head}{'vs jax':>9}   difference")
    copies = {}
    run_rows(libs, bandwidth_rows(), options, copies)
    run_rows(libs, arithmetic_rows(), options, copies)
    print("copies, bytes per second:", {name: f"{rate:.3g}" for name, rate in copies.items()})


if __name__ == "__main__":
    main()
