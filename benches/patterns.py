"""Everyday programs beside jax.jit: stencils, normalizations, losses, indexing, pooling, optimizers, small loops.

`cpu.py` times what the engine is built around; here stands what users write, so that no pattern stays slow unseen.
Rows that lose stay in the table. `--only` picks rows by name.
"""

from functools import partial

import harness
import numpy as np
from cpu import floats, row


def integers(high, *shape, low=0):
    return np.random.default_rng(1).integers(low, high, shape).astype(np.int32)


def movement(jax, jnp):
    image, line = floats(1000, 1000), floats(1_000_000)
    return {
        "difference of neighbours 1e7": (lambda x: x[1:] - x[:-1], floats(10_000_000)),
        "five-point stencil 1000": (
            lambda x: 4 * x[1:-1, 1:-1] - x[2:, 1:-1] - x[:-2, 1:-1] - x[1:-1, 2:] - x[1:-1, :-2],
            image,
        ),
        "x + x.T 1000": (lambda x: x + x.T, image),
        "reversed times 2 1e6": (lambda x: x[::-1] * 2, line),
        "even times odd elements 1e6": (lambda x: x[::2] * x[1::2], line),
        "concatenate x*2 and y+1 1e6": (lambda x, y: jnp.concatenate([x * 2, y + 1]), line, line),
        "pad by 1 1000": (lambda x: jnp.pad(x, 1) * 2, image),
        "roll plus x 1e6": (lambda x: jnp.roll(x, 3) + x, line),
    }


def reductions(jax, jnp):
    image, line, maps = floats(1000, 1000), floats(1_000_000), floats(32, 28, 28, 64)

    def batchnorm(x):
        mean = x.mean((0, 1, 2))
        return (x - mean) / jnp.sqrt(((x - mean) ** 2).mean((0, 1, 2)) + 1e-5)

    def distances(x, y):
        return jnp.sqrt(((x[:, None] - y[None]) ** 2).sum(-1))

    return {
        "argmax of rows 1000": (lambda x: x.argmax(1), image),
        "argmax 1e6": (lambda x: x.argmax(), line),
        "count of positives 1e6": (lambda x: (x > 0).sum(), line),
        "mean of channels 32x28x28x64": (lambda x: x.mean((0, 1, 2)), maps),
        "mean over space 32x28x28x64": (lambda x: x.mean((1, 2)), maps),
        "batch normalization 32x28x28x64": (batchnorm, maps),
        "distances 300x300x3": (distances, floats(300, 3), floats(300, 3)),
        "distances 200x200x64": (distances, floats(200, 64), floats(200, 64)),
        "cumsum of columns 1000": (lambda x: x.cumsum(0), image),
        "cumprod of rows 1000": (lambda x: x.cumprod(1), image),
    }  # fmt: skip


def learning(jax, jnp):
    def loss(x, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()

    def layernorm(x, g, b):
        centred = x - x.mean(-1, keepdims=True)
        return ((centred / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b) ** 2).sum()

    def attention(q, k, v, causal=True):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8
        scores = jnp.where(jnp.tril(jnp.ones((128, 128), bool)), scores, -1e9)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)

    def adam(params, grads):
        new = []
        for (p, m, v), g in zip(params, grads, strict=True):
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            new.append((p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v))
        return new

    def normalized(x, g, b):
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return jax.nn.relu((x - mean) / jnp.sqrt(variance + 1e-5) * g + b)

    def pool(function, start):
        return lambda x: jax.lax.reduce_window(x, start, function, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    most, total = pool(jax.lax.max, -jnp.inf), pool(jax.lax.add, 0.0)
    logits, labels, maps = floats(1000, 1000), integers(1000, 1000), floats(32, 28, 28, 16)
    points = 0.1 * floats(1000, 50)
    table, ids = floats(10_000, 64), integers(10_000, 4096)
    heads = [floats(4, 128, 8, 64, seed=k) for k in range(3)]
    state = [tuple(np.abs(floats(300, 300, seed=k)) for k in range(3)) for _ in range(6)]
    return {
        "cross entropy 1000x1000": (loss, logits, labels),
        "its gradient": (jax.grad(loss), logits, labels),
        "gradient of layer norm 512x512": (jax.grad(layernorm, (0, 1, 2)), floats(512, 512), floats(512), floats(512)),
        "causal attention 4x8x128x64": (attention, *heads),
        "relu layer 128x512x512": (
            lambda x, w, b: jax.nn.relu(x @ w + b), floats(128, 512), floats(512, 512), floats(512)),
        "embedding 4096 of 10000x64": (lambda t, i: t[i], table, ids),
        "its gradient by the table": (jax.grad(lambda t, i: (t[i] ** 2).sum()), table, ids),
        "one_hot 10000x100": (lambda i: jax.nn.one_hot(i, 100), integers(100, 10_000)),
        "dropout 1000x1000": (
            lambda x: jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, x.shape), x * 2, 0), floats(1000, 1000)),
        "Adam of 6 times 300x300": (adam, state, [floats(300, 300)] * 6),
        "max pooling 32x28x28x16": (most, maps),
        "its gradient by the maps": (jax.grad(lambda x: (most(x) ** 2).sum()), maps),
        "gradient of mean pooling 32x28x28x16": (jax.grad(lambda x: (total(x) ** 2).sum()), maps),
        "logistic regression, gradient 10000x100": (
            jax.grad(lambda w, x, y: jnp.logaddexp(0.0, -y * (x @ w)).mean()), floats(100), floats(10_000, 100),
            np.sign(floats(10_000))),
        "rows of 20000 updates added to 10000x64": (
            lambda t, i, u: t.at[i].add(u), table, integers(10_000, 20_000), floats(20_000, 64)),
        "Gaussian kernel of 1000x50": (
            lambda x, y: jnp.exp(-((x**2).sum(1)[:, None] - 2 * x @ y.T + (y**2).sum(1))), points, points),
        "softmax(q k^T) of 1024x64": (lambda q, k: jax.nn.softmax(q @ k.T / 8), floats(1024, 64), floats(1024, 64)),
        "gradient of a batch normalization": (
            jax.grad(lambda x, g, b: (normalized(x, g, b) ** 2).sum(), (0, 1, 2)), maps, floats(16), floats(16)),
        "1000 times tanh(W x) of 16": (jax.vmap(lambda x, w: jnp.tanh(w @ x)), floats(1000, 16), floats(1000, 16, 16)),
    }  # fmt: skip


def numbers(jax, jnp):
    some, line = integers(1000, 1_000_000, low=-1000), floats(100_000)
    z = (floats(100_000) + 1j * floats(100_000, seed=1)).astype(np.complex64)
    return {
        "int32 // 7 1e6": (lambda x: x // 7, some),
        "int32 % 11 1e6": (lambda x: (x * 3 + 7) % 11, some),
        "abs of complex products 1e5": (lambda x: jnp.abs(x * x), z),
        "bfloat16 times 2 1e6": (lambda x: (x.astype(jnp.bfloat16) * 2 + 1).astype(jnp.float32), floats(1_000_000)),
        "histogram of 1e5": (lambda x: jnp.histogram(x, bins=50)[0], line),
        "bincount of 1e5": (lambda x: jnp.bincount(x, length=100), integers(100, 100_000)),
        "searchsorted 1e4 in 1e4": (jnp.searchsorted, np.sort(floats(10_000)), floats(10_000)),
        "interp 1e4 in 1e3": (lambda a, b, v: jnp.interp(v, a, b), np.sort(floats(1000)), floats(1000), floats(10_000)),
        "convolve 1e4 with 64": (jnp.convolve, floats(10_000), floats(64)),
        "Taylor series of exp of a 64x64 matrix": (taylor(jnp), 0.1 * floats(64, 64)),
    }


def taylor(jnp):
    def series(x):
        total = term = jnp.eye(64)
        for k in range(1, 10):
            term = term @ x / k
            total = total + term
        return total

    return series


def loops(jax, jnp):
    def oscillator(y0):
        def step(y, _):
            k1 = jnp.stack([y[1], -y[0]])
            k2 = jnp.stack([y[1] + 0.01 * k1[1], -(y[0] + 0.01 * k1[0])])
            return y + 0.02 * k2, y

        return jax.lax.scan(step, y0, None, length=1000)

    def lstm(xs, w, u, h, c):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ w + h @ u, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        return jax.lax.scan(step, (h, c), xs)

    def alternating(x):
        def step(c, i):
            return jax.lax.cond(i % 2 == 0, lambda c: c * 1.01, lambda c: c + 0.5, c), c

        return jax.lax.scan(step, x, jnp.arange(1000))

    def recurrence(x):
        return jax.lax.fori_loop(0, 1000, lambda i, b: b.at[i].set(b[i - 1] * 0.5 + 1), x)

    def newton(x):
        step = lambda s: (s[0] - (s[0] ** 2 - x) / (2 * s[0] + 1e-6), s[1] + 1)
        return jax.lax.while_loop(lambda s: s[1] < 50, step, (x + 1, 0))[0]

    def mandelbrot(x, y):
        def body(_, s):
            a, b, count = s
            a, b = a * a - b * b + x, 2 * a * b + y
            return a, b, count + (a * a + b * b < 4)

        start = jnp.zeros_like(x), jnp.zeros_like(x), jnp.zeros(x.shape, jnp.int32)
        return jax.lax.fori_loop(0, 50, body, start)[2]

    def both_ways(xs, w, u, h):
        step = lambda w, reverse: jax.lax.scan(lambda h, x: (jnp.tanh(w @ h + x),) * 2, h, xs, reverse=reverse)[1]
        return jnp.concatenate([step(w, False), step(u, True)], -1)

    def times(p, q):
        a, b = p[1:], q[1:]
        return jnp.concatenate([(p[0] * q[0] - a @ b)[None], p[0] * b + q[0] * a + jnp.cross(a, b)])

    def turned(q):
        w = jnp.cross(jnp.eye(3), -2 * q[0] * q[1:])
        return 2 * jnp.outer(q[1:], q[1:]) + w + (1 - 2 * q[1:] @ q[1:]) * jnp.eye(3)

    @jax.vmap
    def moved(q, spin, inertia):
        world = turned(q) @ inertia @ turned(q).T
        spin = spin - 0.01 * jnp.cross(spin, world @ spin)
        q = q + 0.005 * times(jnp.concatenate([jnp.zeros(1), spin]), q)
        return q / jnp.linalg.norm(q), spin

    def bodies(q, spin, inertia):
        step = lambda state, _: (moved(*state, inertia), state[0])
        return jax.lax.scan(step, (q, spin), None, length=1000)

    def roots(x):
        better = lambda s: (s[0] - (s[0] ** 3 - s[1]) / (3 * s[0] ** 2), s[1], s[2] + 1)
        far = lambda s: (jnp.abs(s[0] ** 3 - s[1]) > 1e-4) & (s[2] < 20)
        root = lambda r, y: (jax.lax.while_loop(far, better, (r + 0.5, y, 0))[0],) * 2
        return jax.lax.scan(root, jnp.float32(1), x)

    rigid = floats(4, 4), floats(4, 3), np.eye(3, dtype=np.float32) + 0.1 * floats(4, 3, 3)
    weights = 0.1 * floats(64, 256), 0.1 * floats(64, 256, seed=1)
    return {
        "scan of an oscillator, 1000 steps": (oscillator, floats(2)),
        "scan of 4 rigid bodies, 1000 steps": (bodies, *rigid),
        "a step of 4 rigid bodies": (moved, *rigid),
        "scan of Newton's method until it is near, 1000 steps": (roots, 1 + np.abs(floats(1000))),
        "RNN of 500 steps and 64 units, both ways": (
            both_ways,
            floats(500, 64),
            0.1 * floats(64, 64),
            0.1 * floats(64, 64, seed=1),
            floats(64),
        ),
        "LSTM of 100 steps, 32x64": (lstm, floats(100, 32, 64), *weights, floats(32, 64), floats(32, 64)),
        "scan of a cond, 1000 steps": (alternating, np.float32(1.0)),
        "fori of x.at[i].set, 1000 steps": (recurrence, floats(1000)),
        "while of 50 Newton steps of 1000": (newton, np.abs(floats(1000)) + 0.1),
        "Mandelbrot 200x200, 50 steps": (mandelbrot, floats(200, 200), floats(200, 200, seed=1)),
        "jacfwd of tanh(x W) of 50": (jax.jacfwd(lambda x: jnp.tanh(x @ jnp.ones((50, 50)))), floats(50)),
        "hessian of 50": (jax.hessian(lambda x: (jnp.sin(x) * x).sum() ** 2), floats(50)),
    }


def rows(libs, family):
    for name in family(*next(iter(libs.values()))):
        yield row(libs, name, lambda jax, jnp, name=name: family(jax, jnp)[name])


def main():
    options = harness.parse_arguments(__doc__.splitlines()[0])
    libs = harness.libraries(options)
    harness.run([partial(rows, libs, family) for family in (movement, reductions, learning, numbers, loops)], options)


if __name__ == "__main__":
    main()
