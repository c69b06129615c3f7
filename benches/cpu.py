"""What the CPU engine reaches beside jax.jit and NumPy: fused kernels, rows, reductions, loops, library operations.

Every row is one call of a jitted function and waits for its result; NumPy stands beside it where it has the operation.
Ratios are of the best times of one run; rows that lose stay in the table. `--only` picks rows by name.
"""

from functools import partial

import harness
import numpy as np

SIZES = (1_000, 100_000, 10_000_000)


def size_name(n):
    return f"{n:.0e}".replace("e+0", "e")


def jitted(make, wide, jax, jnp):
    """A call of the jitted function that `make` gives with its arguments, as arrays of the library.

    `wide` says that the arguments have 64 bits: the function is then called in that mode.
    """
    f, *args = make(jax, jnp)
    compiled = jax.jit(f)
    if not wide:
        args = jax.device_put(args)
        return lambda: jax.block_until_ready(compiled(*args))
    with jax.enable_x64(True):
        args = jax.device_put(args)

    def call():
        with jax.enable_x64(True):
            return jax.block_until_ready(compiled(*args))

    return call


def row(libs, name, make, numpys=None, wide=False, **kwargs):
    """A row with a contender for each library, and NumPy's function of no arguments if there is one."""
    contenders = {n: partial(jitted, make, wide, *lib) for n, lib in libs.items()}
    if numpys:
        contenders["numpy"] = lambda: numpys
    return harness.Row(name, contenders, budget=0.3, **kwargs)


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def gelu(np, x):
    return 0.5 * x * (1 + np.tanh(0.7978846 * (x + 0.044715 * x * x * x)))


def elementwise_rows(libs):
    for n in SIZES:
        x, y = floats(n), floats(n, seed=1)
        at = f" {size_name(n)}"
        yield row(libs, "x*2+1-y" + at, lambda jax, jnp, x=x, y=y: (lambda x, y: x * 2 + 1 - y, x, y),
                  lambda x=x, y=y: x * 2 + 1 - y)  # fmt: skip
        yield row(libs, "gelu" + at, lambda jax, jnp, x=x: (partial(gelu, jnp), x), lambda x=x: gelu(np, x))
        yield row(libs, "where(x>0, x, y*2)" + at,
                  lambda jax, jnp, x=x, y=y: (lambda x, y: jnp.where(x > 0, x, y * 2), x, y),
                  lambda x=x, y=y: np.where(x > 0, x, y * 2))  # fmt: skip
        yield row(libs, "sin(x)*exp(-y)" + at,
                  lambda jax, jnp, x=x, y=y: (lambda x, y: jnp.sin(x) * jnp.exp(-y), x, y),
                  lambda x=x, y=y: np.sin(x) * np.exp(-y))  # fmt: skip


def double_rows(libs):
    """The same in float64; JAX needs its 64-bit mode for that."""
    for n in (100_000, 10_000_000):
        x, y = floats(n).astype(np.float64), floats(n, seed=1).astype(np.float64)
        rows = x.reshape(n // 1000, 1000)
        at = f" f64 {size_name(n)}"
        wide = {"wide": True}
        yield row(libs, "x*2+1-y" + at, lambda jax, jnp, x=x, y=y: (lambda x, y: x * 2 + 1 - y, x, y),
                  lambda x=x, y=y: x * 2 + 1 - y, **wide)  # fmt: skip
        yield row(libs, "gelu" + at, lambda jax, jnp, x=x: (partial(gelu, jnp), x), lambda x=x: gelu(np, x), **wide)
        yield row(libs, "softmax" + at, lambda jax, jnp, x=rows: (jax.nn.softmax, x), lambda x=rows: softmax(x), **wide)
        yield row(libs, "variance of rows" + at, lambda jax, jnp, x=rows: (lambda x: x.var(-1), x),
                  lambda x=rows: x.var(-1), **wide)  # fmt: skip
        yield row(libs, "sum" + at, lambda jax, jnp, x=x: (lambda x: x.sum(), x), lambda x=x: x.sum(), **wide)


def layernorm(np, x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def logsumexp(x):
    m = x.max(-1, keepdims=True)
    return np.log(np.exp(x - m).sum(-1)) + m[..., 0]


def row_rows(libs):
    for n in SIZES:
        x, y, z = floats(n // 1000, 1000), floats(n), floats(n, seed=1)
        at = f" {size_name(n)}"
        yield row(libs, "softmax" + at, lambda jax, jnp, x=x: (jax.nn.softmax, x), lambda x=x: softmax(x))
        yield row(libs, "layernorm" + at, lambda jax, jnp, x=x: (partial(layernorm, jnp), x),
                  lambda x=x: layernorm(np, x))  # fmt: skip
        yield row(libs, "logsumexp" + at, lambda jax, jnp, x=x: (partial(jax.nn.logsumexp, axis=-1), x),
                  lambda x=x: logsumexp(x))  # fmt: skip
        yield row(libs, "variance of rows" + at, lambda jax, jnp, x=x: (lambda x: x.var(-1), x), lambda x=x: x.var(-1))
        yield row(libs, "sum(exp(x)*y)" + at, lambda jax, jnp, y=y, z=z: (lambda x, y: (jnp.exp(x) * y).sum(), y, z),
                  lambda y=y, z=z: (np.exp(y) * z).sum())  # fmt: skip
        yield row(libs, "sum" + at, lambda jax, jnp, y=y: (lambda x: x.sum(), y), lambda y=y: y.sum())
        yield row(libs, "sum over axis 0" + at, lambda jax, jnp, x=x: (lambda x: x.sum(0), x), lambda x=x: x.sum(0))
        yield row(libs, "cumsum" + at, lambda jax, jnp, y=y: (jnp.cumsum, y), lambda y=y: np.cumsum(y))


def rnn(jax, jnp):
    def loss(w, h, xs):
        return jax.lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h), h, xs)[1].sum()

    return loss, floats(64, 64) * 0.1, np.zeros(64, np.float32), floats(200, 64)


def loop_rows(libs):
    def scalar(jax, jnp, start=np.float32(0.3)):
        return lambda v: jax.lax.fori_loop(0, 100_000, lambda i, v: 3.7 * v * (1 - v), v), start

    def lorenz(jax, jnp):
        def step(y, _):
            change = jnp.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])
            return y + 0.001 * change, y

        return lambda y: jax.lax.scan(step, y, None, length=10_000), np.ones(3)

    def wide(jax, jnp):
        def body(i, v):
            return 3.7 * v * (1 - v) + 0.01 * jnp.abs(v) - 0.5 * v * v * v

        return lambda v: jax.lax.fori_loop(0, 10_000, body, v), np.full(16, 0.3, np.float32)

    def gradient(jax, jnp):
        loss, *args = rnn(jax, jnp)
        return jax.grad(loss), *args

    yield row(libs, "fori of a scalar, a step", scalar, calls=100_000)
    yield row(libs, "fori of 16 lanes and 10 operations, a step", wide, calls=10_000)
    yield row(libs, "fori of an f64 scalar, a step", partial(scalar, start=np.float64(0.3)), wide=True, calls=100_000)
    yield row(libs, "Lorenz's equations in f64, a step", lorenz, wide=True, calls=10_000)
    yield row(libs, "RNN of 200 steps and 64 units", rnn)
    yield row(libs, "gradient of that RNN", gradient)


def dot_rows(libs):
    for n in (8, 16, 32, 64, 128, 256, 512, 1024, 2048):
        a = floats(n, n)
        yield row(libs, f"matmul {n}", lambda jax, jnp, a=a: (lambda a, b: a @ b, a, a), lambda a=a: a @ a)
    for n in (64, 1024):
        a, b, v = floats(n, n), floats(n, n, seed=1), floats(n)
        yield row(libs, f"transposed matmul {n}", lambda jax, jnp, a=a, b=b: (lambda a, b: a.T @ b, a, b),
                  lambda a=a, b=b: a.T @ b)  # fmt: skip
        yield row(libs, f"a.T @ a {n}", lambda jax, jnp, a=a: (lambda a: a.T @ a, a), lambda a=a: a.T @ a)
        yield row(libs, f"matrix times vector {n}", lambda jax, jnp, a=a, v=v: (lambda a, v: a @ v, a, v),
                  lambda a=a, v=v: a @ v)  # fmt: skip
    for n in (8, 16):
        b = floats(1000, n, n)
        yield row(libs, f"1000 matmuls of {n}", lambda jax, jnp, b=b: (lambda a, b: a @ b, b, b), lambda b=b: b @ b)
    tall, thin = floats(4096, 1024), floats(1024, 8)
    yield row(libs, "matmul 4096x1024x8", lambda jax, jnp: (lambda a, b: a @ b, tall, thin), lambda: tall @ thin)
    q = floats(8, 128, 64)

    def attention(jax, jnp):
        def f(q, k, v):
            return jax.nn.softmax(q @ jnp.swapaxes(k, 1, 2) / 8.0) @ v

        return f, q, q, q

    def step(jax, jnp):
        def loss(params, x, y):
            for w, b in params[:-1]:
                x = jnp.maximum(x @ w + b, 0)
            w, b = params[-1]
            return -(jax.nn.log_softmax(x @ w + b) * y).sum(-1).mean()

        def train(params, x, y):
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x, y))

        params = [(floats(784, 512) * 0.05, np.zeros(512, np.float32)), (floats(512, 10), np.zeros(10, np.float32))]
        return train, params, floats(128, 784), np.eye(10, dtype=np.float32)[np.arange(128) % 10]

    def convolution(jax, jnp):
        numbers = ("NHWC", "HWIO", "NHWC")
        f = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)
        return f, floats(32, 28, 28, 8), floats(3, 3, 8, 16)

    def convolution_gradient(jax, jnp):
        f, *args = convolution(jax, jnp)
        return jax.grad(lambda x, w: jnp.square(f(x, w)).sum(), (0, 1)), *args

    def depthwise(jax, jnp):
        numbers = ("NHWC", "HWIO", "NHWC")
        f = lambda x, w: jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=32
        )
        return f, floats(32, 28, 28, 32), floats(3, 3, 1, 32)

    yield row(libs, "convolution 32x28x28x8 to 16, 3x3", convolution)
    yield row(libs, "gradient of that convolution", convolution_gradient)
    yield row(libs, "depthwise convolution 32x28x28x32, 3x3", depthwise)
    yield row(libs, "attention 8x128x64", attention)
    yield row(libs, "MLP training step 128x784x512x10", step)


def library_rows(every):
    libs = every
    for n in (1_000, 100_000, 1_000_000, 10_000_000):
        x = floats(n)
        at = f" {size_name(n)}"
        if n > 1_000_000:
            # JAX takes seconds here.
            libs = dict(list(every.items())[:1])
        yield row(libs, "sort" + at, lambda jax, jnp, x=x: (jnp.sort, x), lambda x=x: np.sort(x))
        yield row(libs, "argsort" + at, lambda jax, jnp, x=x: (jnp.argsort, x), lambda x=x: np.argsort(x))
        yield row(libs, "median" + at, lambda jax, jnp, x=x: (jnp.median, x), lambda x=x: np.median(x))
        k = (np.abs(x) * 100).astype(np.int32)
        yield row(libs, "unique" + at, lambda jax, jnp, k=k: (partial(jnp.unique, size=400), k),
                  lambda k=k: np.unique(k))  # fmt: skip
    libs = every
    for n in (100, 1000, 3000):
        x = floats(n, n)
        yield row(libs, f"transposition {n}", lambda jax, jnp, x=x: (lambda x: x.T + 0, x),
                  lambda x=x: np.ascontiguousarray(x.T))  # fmt: skip
    table, updates = floats(1000), floats(100_000)
    index = np.random.default_rng(0).integers(0, 1000, 100_000).astype(np.int32)

    def added():
        out = table.copy()
        np.add.at(out, index, updates)
        return out

    yield row(libs, "gather 1e5 of 1e3", lambda jax, jnp: (lambda t, i: t[i], table, index), lambda: table[index])
    yield row(libs, "scatter-add 1e5 to 1e3",
              lambda jax, jnp: (lambda t, i, u: t.at[i].add(u), table, index, updates), added)  # fmt: skip
    rows = floats(1000, 64)
    yield row(libs, "gather 1e5 rows of 64", lambda jax, jnp: (lambda t, i: t[i], rows, index), lambda: rows[index])
    channels = floats(32, 28, 28, 64)
    yield row(libs, "NHWC to NCHW 32x28x28x64",
              lambda jax, jnp: (lambda x: jnp.transpose(x, (0, 3, 1, 2)), channels),
              lambda: np.ascontiguousarray(channels.transpose(0, 3, 1, 2)))  # fmt: skip
    many = floats(64, 10_000)
    yield row(libs, "the 10 largest of 64 rows of 1e4", lambda jax, jnp: (lambda x: jax.lax.top_k(x, 10), many),
              lambda: np.sort(np.partition(many, -10)[:, -10:]))  # fmt: skip
    generator = np.random.default_rng(0)
    for n in (1_000, 1_000_000):
        at = f" {size_name(n)}"
        yield row(libs, "random bits" + at,
                  lambda jax, jnp, n=n: (lambda k: jax.random.bits(k, (n,)), jax.random.key(0)),
                  lambda n=n: generator.integers(0, 2**32, n, np.uint32))  # fmt: skip
        yield row(libs, "uniform" + at,
                  lambda jax, jnp, n=n: (lambda k: jax.random.uniform(k, (n,)), jax.random.key(0)),
                  lambda n=n: generator.random(n, np.float32))  # fmt: skip
        yield row(libs, "normal" + at,
                  lambda jax, jnp, n=n: (lambda k: jax.random.normal(k, (n,)), jax.random.key(0)),
                  lambda n=n: generator.standard_normal(n, np.float32))  # fmt: skip


def linear_algebra_rows(libs):
    def of(name, f, *arrays):
        return row(libs, name, lambda jax, jnp: (partial(f, jnp), *arrays), lambda: f(np, *arrays))

    for n in (64, 256, 1024):
        x = floats(n, n)
        spd = x @ x.T + n * np.eye(n, dtype=np.float32)
        yield of(f"cholesky {n}", lambda np, a: np.linalg.cholesky(a), spd)
        yield of(f"solve {n}", lambda np, a, b: np.linalg.solve(a, b), x, floats(n, 1))
        yield of(f"qr {n}", lambda np, a: np.linalg.qr(a), x)
        if n < 1024:
            yield of(f"eigh {n}", lambda np, a: np.linalg.eigh(a), spd)
            yield of(f"svd {n}", lambda np, a: np.linalg.svd(a), x)
    many = floats(1000, 4, 4)
    spd = many @ many.transpose(0, 2, 1) + 4 * np.eye(4, dtype=np.float32)
    yield of("1000 choleskys of 4", lambda np, a: np.linalg.cholesky(a), spd)
    yield of("1000 solves of 4", lambda np, a, b: np.linalg.solve(a, b), spd, floats(1000, 4, 1))
    yield of("1000 eighs of 4", lambda np, a: np.linalg.eigh(a), spd)
    for shape in ((1024,), (1_000_000,), (1000, 1000), (10_007,)):
        x = floats(*shape)
        yield of(f"fft {shape}", lambda np, a: np.fft.fft(a), x + 1j * x)
        yield of(f"rfft {shape}", lambda np, a: np.fft.rfft(a), x)
    yield of("fft2 (512, 512)", lambda np, a: np.fft.fft2(a), floats(512, 512))

    def scanned(jax, jnp):
        def step(b, _):
            return jnp.linalg.solve(a, b), None

        a = floats(3, 3) + 5 * np.eye(3, dtype=np.float32)
        return lambda b: jax.lax.scan(step, b, None, length=10_000)[0], floats(3)

    yield row(libs, "3x3 solve in a scan, a step", scanned, calls=10_000)


def copy_bandwidth():
    """Bytes a second that NumPy copies, read and written."""
    x, y = np.ones(10_000_000, np.float32), np.empty(10_000_000, np.float32)
    np.copyto(y, x)
    return 2 * x.nbytes / min(harness.loop_time(lambda: np.copyto(y, x), 1) for _ in range(20))


def main():
    options = harness.parse_arguments(__doc__.splitlines()[0])
    libs = harness.libraries(options)
    tables = [elementwise_rows, double_rows, row_rows, loop_rows, dot_rows, library_rows, linear_algebra_rows]
    done = harness.run([partial(table, libs) for table in tables], options)
    times = {r.name: r.times for r in done}
    triad = times.get("x*2+1-y 1e7", {}).get(options.target)
    if triad:
        copies = copy_bandwidth()
        print(f"x*2+1-y at 1e7 moves {12e7 / triad / 1e9:.1f} GB/s; NumPy copies {copies / 1e9:.1f} GB/s")


if __name__ == "__main__":
    main()
