"""The programs that `programs.py` times, as functions of a library: name -> (function, arguments).

Each is written as its users write it, without regard to what an engine likes: batches and sizes are those of a laptop's
experiments. Arguments are NumPy arrays or trees of them, from fixed seeds.
"""

from importlib import import_module

import numpy as np
from cpu import floats


def integers(high, *shape, low=0):
    return np.random.default_rng(1).integers(low, high, shape).astype(np.int32)


def small(*shape, seed=0):
    """Weights: of a size that keeps activations near one."""
    return floats(*shape, seed=seed) / np.float32(np.sqrt(shape[0]))


def descended(jax, loss, rate=1e-3):
    """A step of gradient descent with momentum on a loss."""

    def step(params, momentum, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return jax.tree.map(lambda p, m: p - rate * m, params, momentum), momentum, value

    return step


def with_adam(jax, jnp, loss):
    """A step of Adam on a loss, with clipped gradients."""

    def step(params, first, second, count, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), grads)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, grads)
        scale = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        params = jax.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), params, first, second)
        return params, first, second, count, value

    return step


def zeros(tree):
    """Zeros beside each array of a tree."""
    if isinstance(tree, dict):
        return {k: zeros(v) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(map(zeros, tree))
    return np.zeros_like(tree)


def adam_state(params):
    return params, zeros(params), zeros(params), np.float32(0)


def networks(jax, jnp):
    nn, lax = jax.nn, jax.lax

    def classified(logits, labels):
        return -jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], 1).mean()

    def mlp(params, x, labels):
        for w, b in params[:-1]:
            x = nn.relu(x @ w + b)
        return classified(x @ params[-1][0] + params[-1][1], labels)

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def normalized(x, g, b):
        return (x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1e-5) * g + b

    def cnn(params, x, labels):
        for w, b in params["conv"]:
            x = lax.reduce_window(nn.relu(conv(x, w) + b), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return classified(x.reshape(x.shape[0], -1) @ params["out"], labels)

    def resnet(params, x, labels):
        for w1, g1, b1, w2, g2, b2 in params["blocks"]:
            x = nn.relu(x + normalized(conv(nn.relu(normalized(conv(x, w1), g1, b1)), w2), g2, b2))
        return classified(x.mean((1, 2)) @ params["out"], labels)

    def layer_norm(x, g):
        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g

    def block(x, p):
        batch, length, width = x.shape
        heads = lambda y: y.reshape(batch, length, 4, width // 4)
        y = layer_norm(x, p["g1"])
        q, k, v = (heads(y @ p[n]) for n in ("q", "k", "v"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // 4).astype(np.float32)
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v).reshape(x.shape) @ p["o"]
        return x + nn.gelu(layer_norm(x, p["g2"]) @ p["up"]) @ p["down"]

    def transformer(params, tokens):
        x = params["embed"][tokens[:, :-1]] + params["place"]
        x, _ = lax.scan(lambda x, p: (block(x, p), None), x, params["blocks"])
        logits = x @ params["embed"].T
        return -jnp.take_along_axis(nn.log_softmax(logits), tokens[:, 1:, None], 2).mean()

    def lstm(params, xs, ys):
        def cell(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ params["w"] + h @ params["u"] + params["b"], 4, -1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            return (nn.sigmoid(o) * jnp.tanh(c), c), None

        start = jnp.zeros((xs.shape[1], 64))
        (h, _), _ = lax.scan(cell, (start, start), xs)
        return ((h @ params["out"] - ys) ** 2).mean()

    def autoencoder(params, x, key):
        hidden = nn.tanh(x @ params["e1"])
        mean, spread = hidden @ params["mean"], hidden @ params["spread"]
        z = mean + jnp.exp(0.5 * spread) * jax.random.normal(jax.random.wrap_key_data(key), mean.shape)
        logits = nn.tanh(z @ params["d1"]) @ params["d2"]
        fit = (jnp.maximum(logits, 0) - logits * x + jnp.log1p(jnp.exp(-jnp.abs(logits)))).sum(-1)
        return (fit - 0.5 * (1 + spread - mean**2 - jnp.exp(spread)).sum(-1)).mean()

    def graph(params, x, senders, receivers, labels):
        for w, u in params[:-1]:
            gathered = jax.ops.segment_sum((x @ w)[senders], receivers, 2000)
            x = nn.relu(gathered + x @ u)
        return classified(x @ params[-1], labels)

    mlp_params = [(small(a, b), np.zeros(b, np.float32)) for a, b in ((784, 256), (256, 256), (256, 10))]
    cnn_params = {
        "conv": [(floats(3, 3, a, b) / 10, np.zeros(b, np.float32)) for a, b in ((1, 16), (16, 32))],
        "out": small(7 * 7 * 32, 10),
    }
    ones, none = np.ones(32, np.float32), np.zeros(32, np.float32)
    residual = [
        (floats(3, 3, 32, 32) / 17, ones, none, floats(3, 3, 32, 32, seed=1) / 17, ones, none) for _ in range(3)
    ]
    shapes = {"q": (128, 128), "k": (128, 128), "v": (128, 128), "o": (128, 128), "up": (128, 512), "down": (512, 128)}
    blocks = {n: np.stack([small(*s, seed=k) for k in range(4)]) for n, s in shapes.items()}
    blocks |= {"g1": np.ones((4, 128), np.float32), "g2": np.ones((4, 128), np.float32)}
    language = {"embed": small(128, 1000).T.copy(), "place": floats(64, 128) / 10, "blocks": blocks}
    recurrent = {"w": small(32, 256), "u": small(64, 256), "b": np.zeros(256, np.float32), "out": small(64, 1)}
    coder = {"e1": small(784, 200), "mean": small(200, 20), "spread": small(200, 20, seed=1), "d1": small(20, 200),
             "d2": small(200, 784)}  # fmt: skip
    edges = integers(2000, 2, 20_000)
    layers = [(small(64, 64), small(64, 64, seed=1)), (small(64, 64, seed=2), small(64, 64, seed=3)), small(64, 7)]
    images, labels = floats(64, 28, 28, 1), integers(10, 64)
    return {
        "MLP 784-256-256-10, Adam, batch 128": (
            with_adam(jax, jnp, mlp), *adam_state(mlp_params), floats(128, 784), integers(10, 128)),
        "CNN on 64 images 28x28, momentum": (descended(jax, cnn), cnn_params, zeros(cnn_params), images, labels),
        "residual network, 3 blocks of 16x16x16x32": (
            descended(jax, resnet), *((p := {"blocks": residual, "out": small(32, 10)}), zeros(p)),
            floats(16, 16, 16, 32), integers(10, 16)),
        "transformer, 4 layers of 128, 8x64 tokens, Adam": (
            with_adam(jax, jnp, transformer), *adam_state(language), integers(1000, 8, 65)),
        "LSTM of 50 steps, 32x64, momentum": (
            descended(jax, lstm), recurrent, zeros(recurrent), floats(50, 32, 32), floats(32, 1)),
        "variational autoencoder 784-200-20, Adam": (
            with_adam(jax, jnp, autoencoder), *adam_state(coder), np.abs(floats(100, 784)) % 1,
            np.array([0, 1], np.uint32)),
        "graph network, 2000 nodes, 20000 edges": (
            descended(jax, graph), layers, zeros(layers), floats(2000, 64), *edges, integers(7, 2000)),
    }  # fmt: skip


def learned(jax, jnp):
    """Training outside of networks' libraries, and inference."""
    lax = jax.lax

    def decoded(params, prompt):
        def attend(cache, token, place):
            x = params["embed"][token]
            keys, values = cache
            keys = lax.dynamic_update_index_in_dim(keys, x @ params["k"], place, 1)
            values = lax.dynamic_update_index_in_dim(values, x @ params["v"], place, 1)
            scores = jnp.einsum("bd,bkd->bk", x @ params["q"], keys) / 11.0
            scores = jnp.where(jnp.arange(128) <= place, scores, -jnp.inf)
            x = x + jnp.einsum("bk,bkd->bd", jax.nn.softmax(scores), values)
            return (keys, values), jnp.argmax(x @ params["embed"].T, -1).astype(jnp.int32)

        def step(state, place):
            cache, token = state
            cache, token = attend(cache, token, place)
            return (cache, token), token

        empty = jnp.zeros((8, 128, 128))
        return lax.scan(step, ((empty, empty), prompt), jnp.arange(128))[1]

    def policy(params, noise):
        def rollout(noise):
            def step(state, kick):
                x, v, angle, spin = state
                force = 10 * jnp.tanh(jnp.tanh(jnp.stack(state) @ params["w"]) @ params["out"]) + kick
                spin_rate = (9.8 * jnp.sin(angle) - jnp.cos(angle) * force) / (
                    0.5 * (4 / 3 - 0.1 * jnp.cos(angle) ** 2)
                )
                v, spin = v + 0.02 * (force - 0.05 * spin_rate * jnp.cos(angle)), spin + 0.02 * spin_rate
                return (x + 0.02 * v, v, angle + 0.02 * spin, spin), angle**2 + 0.1 * x**2

            start = (jnp.float32(0), jnp.float32(0), jnp.float32(0.1), jnp.float32(0))
            return lax.scan(step, start, noise)[1].mean()

        return jax.vmap(rollout)(noise).mean()

    def maml(params, x, y):
        def model(p, x):
            return jnp.tanh(jnp.tanh(x @ p["a"]) @ p["b"]) @ p["c"]

        def fit(p, x, y):
            return ((model(p, x) - y) ** 2).mean()

        def task(x, y):
            inner = jax.grad(fit)(params, x[:10], y[:10])
            return fit(jax.tree.map(lambda p, g: p - 0.1 * g, params, inner), x[10:], y[10:])

        return jax.vmap(task)(x, y).mean()

    def physics(params, points):
        def model(xt):
            return (jnp.tanh(jnp.tanh(xt @ params["a"]) @ params["b"]) @ params["c"])[0]

        def residual(xt):
            first = jax.grad(model)(xt)
            second = jax.hessian(model)(xt)
            return (first[1] + model(xt) * first[0] - 0.01 * second[0, 0]) ** 2

        return jax.vmap(residual)(points).mean()

    def private(params, x, y):
        def loss(params, x, y):
            return jnp.logaddexp(0.0, -y * (jnp.tanh(x @ params["a"]) @ params["c"])[0])

        grads = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, y)
        norms = jnp.sqrt(sum((g.reshape(g.shape[0], -1) ** 2).sum(1) for g in jax.tree.leaves(grads)))
        scale = jnp.minimum(1, 1 / norms)
        return jax.tree.map(lambda g: jnp.einsum("n...,n->...", g, scale) / x.shape[0], grads)

    def radiance(params, origins, directions):
        depths = jnp.linspace(1.0, 4.0, 32)
        points = origins[:, None] + depths[:, None] * directions[:, None]
        waves = jnp.concatenate([f(2.0**k * points) for k in range(4) for f in (jnp.sin, jnp.cos)], -1)
        out = jax.nn.relu(jax.nn.relu(waves @ params["a"]) @ params["b"]) @ params["c"]
        alpha = 1 - jnp.exp(-jax.nn.relu(out[..., 3]) * (3 / 32))
        clear = jnp.cumprod(1 - alpha + 1e-10, -1)
        weights = alpha * jnp.concatenate([jnp.ones_like(clear[:, :1]), clear[:, :-1]], -1)
        return ((weights[..., None] * jax.nn.sigmoid(out[..., :3])).sum(1) ** 2).mean()

    def layers(*sizes):
        return {n: small(a, b, seed=k) for k, (n, a, b) in enumerate(zip("abc", sizes[:-1], sizes[1:]))}

    text = {
        "embed": small(128, 1000).T.copy(),
        "q": small(128, 128),
        "k": small(128, 128, seed=1),
        "v": small(128, 128, seed=2),
    }
    return {
        "greedy decoding of 128 tokens, 8 rows, cache": (decoded, text, integers(1000, 8)),
        "policy gradient through 64 poles of 100 steps": (
            jax.value_and_grad(policy), {"w": small(4, 16), "out": small(16)}, floats(64, 100)),
        "meta-learning of 32 tasks, second derivatives": (
            jax.value_and_grad(maml), layers(1, 40, 40, 1), floats(32, 20, 1), floats(32, 20, 1, seed=1)),
        "physics-informed network, 500 points": (jax.value_and_grad(physics), layers(2, 20, 20, 1), floats(500, 2)),
        "private gradients, clipped by example, 256": (
            private, {"a": small(100, 50), "c": small(50, 1)}, floats(256, 100), np.sign(floats(256))),
        "radiance field, 512 rays of 32 points": (
            jax.value_and_grad(radiance), layers(24, 64, 64, 4), floats(512, 3), floats(512, 3, seed=1)),
    }  # fmt: skip


def simulations(jax, jnp):
    lax = jax.lax

    def repeated(step, count):
        return lambda *state: lax.fori_loop(0, count, lambda _, s: step(*s), state)

    def bodies(x, v):
        def force(x):
            d = x[None] - x[:, None]
            return (d / ((d**2).sum(-1, keepdims=True) + 0.01) ** 1.5).sum(1)

        v = v + 0.005 * force(x)
        x = x + 0.01 * v
        return x, v + 0.005 * force(x)

    def argon(x, v):
        def energy(x):
            d = x[:, None] - x[None]
            d = d - 10 * jnp.round(d / 10)
            r2 = (d**2).sum(-1) + 1e4 * jnp.eye(x.shape[0])
            s6 = 1 / r2**3
            return 2 * jnp.where(r2 < 6.25, s6**2 - s6, 0).sum()

        v = v - 0.001 * jax.grad(energy)(x)
        return (x + 0.001 * v) % 10, v

    def heat(u):
        inner = u[1:-1, 1:-1]
        return (u.at[1:-1, 1:-1].set(
            inner + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner)),)  # fmt: skip

    def wave(u, before):
        spread = sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u
        return 2 * u - before + 0.2 * spread, u

    def gray_scott(u, v):
        spread = lambda x: sum(jnp.roll(x, s, a) for s in (1, -1) for a in (0, 1)) - 4 * x
        uvv = u * v * v
        return u + 0.16 * spread(u) - uvv + 0.06 * (1 - u), v + 0.08 * spread(v) + uvv - 0.122 * v

    directions = np.array([(x, y) for x in (0, 1, -1) for y in (0, 1, -1)])
    weights = np.array([4 / 9 if not d.any() else 1 / 36 if d.all() else 1 / 9 for d in directions], np.float32)

    def fluid(f):
        density = f.sum(0)
        speed = jnp.einsum("kd,kxy->dxy", jnp.asarray(directions, jnp.float32), f) / density
        along = jnp.einsum("kd,dxy->kxy", jnp.asarray(directions, jnp.float32), speed)
        still = 1 + 3 * along + 4.5 * along**2 - 1.5 * (speed**2).sum(0)
        f = f - (f - jnp.asarray(weights)[:, None, None] * density * still) / 0.6
        return (jnp.stack([jnp.roll(g, (int(x), int(y)), (0, 1)) for g, (x, y) in zip(f, directions)]),)

    def life(cells):
        around = sum(jnp.roll(cells, (x, y), (0, 1)) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y)
        return (((around == 3) | ((cells == 1) & (around == 2))).astype(jnp.int32),)

    def lorenz(start):
        def slope(s):
            x, y, z = s
            return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

        def step(s, _):
            k1 = slope(s)
            k2 = slope(s + 0.005 * k1)
            k3 = slope(s + 0.005 * k2)
            k4 = slope(s + 0.01 * k3)
            return s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), s[0].mean()

        return lax.scan(step, start, None, length=500)

    def burgers(u):
        waves = jnp.fft.rfftfreq(512, 1 / 512).astype(jnp.float32)

        def step(u):
            slope = jnp.fft.irfft(1j * waves * jnp.fft.rfft(u), 512)
            return (jnp.fft.irfft(jnp.fft.rfft(u - 1e-4 * u * slope) * jnp.exp(-1e-5 * waves**2), 512),)

        return repeated(step, 200)(u)

    def options(key, spot):
        def path(price, key):
            shock = jax.random.normal(key, price.shape)
            return price * jnp.exp(0.0002 + 0.01 * shock), None

        keys = jax.random.split(jax.random.wrap_key_data(key), 50)
        value = lambda spot: jnp.maximum(lax.scan(path, jnp.full(10_000, spot), keys)[0] - 1, 0).mean()
        return jax.value_and_grad(value)(spot)

    grid = np.abs(floats(256, 256))
    return {
        "gravity of 200 bodies, 10 steps": (repeated(bodies, 10), floats(200, 3), floats(200, 3, seed=1)),
        "Lennard-Jones of 150 atoms, 10 steps": (
            repeated(argon, 10), np.argwhere(np.ones((6, 5, 5))).astype(np.float32) * 1.6, floats(150, 3)),
        "heat on 256x256, 100 steps": (repeated(heat, 100), grid),
        "wave on 256x256, 100 steps": (repeated(wave, 100), grid, grid),
        "reaction and diffusion on 256x256, 100 steps": (repeated(gray_scott, 100), grid % 1, grid % 0.5),
        "lattice Boltzmann 9x128x64, 50 steps": (
            repeated(fluid, 50), weights[:, None, None] * (1 + 0.1 * np.abs(floats(9, 128, 64)))),
        "game of life 256x256, 50 steps": (repeated(life, 50), integers(2, 256, 256)),
        "Lorenz, 1000 trajectories, 500 steps of Runge-Kutta": (lorenz, floats(3, 1000)),
        "Burgers by Fourier transforms, 200 steps of 512": (burgers, floats(512)),
        "price and delta by 10000 paths of 50 steps": (options, np.array([0, 7], np.uint32), np.float32(1)),
    }  # fmt: skip


def samplers(jax, jnp):
    lax, random = jax.lax, jax.random

    def keys(data, count):
        return random.split(random.wrap_key_data(data), count)

    def logistic(x, y):
        return lambda w: -jnp.logaddexp(0.0, -y * (x @ w)).sum() - 0.5 * (w**2).sum()

    def hamiltonian(key, start, x, y):
        density = logistic(x, y)
        slope = jax.grad(density)

        def sample(w, key):
            moving, accepting = random.split(key)
            p = random.normal(moving, w.shape)

            def leap(_, s):
                q, r = s
                r = r + 0.01 * slope(q)
                q = q + 0.02 * r
                return q, r + 0.01 * slope(q)

            q, r = lax.fori_loop(0, 10, leap, (w, p))
            gain = density(q) - density(w) + 0.5 * ((p**2).sum() - (r**2).sum())
            w = jnp.where(jnp.log(random.uniform(accepting)) < gain, q, w)
            return w, w

        return lax.scan(sample, start, keys(key, 50))[1]

    def metropolis(key, start):
        density = lambda x: -((1 - x[..., 0]) ** 2 + 100 * (x[..., 1] - x[..., 0] ** 2) ** 2) / 20

        def step(x, key):
            moving, accepting = random.split(key)
            new = x + 0.3 * random.normal(moving, x.shape)
            taken = jnp.log(random.uniform(accepting, x.shape[:-1])) < density(new) - density(x)
            return jnp.where(taken[:, None], new, x), taken.mean()

        return lax.scan(step, start, keys(key, 200))

    def ising(key, spins):
        even = (np.indices((128, 128)).sum(0) % 2).astype(bool)

        def sweep(spins, key):
            for mask, half in zip((even, ~even), random.split(key)):
                around = sum(jnp.roll(spins, s, a) for s in (1, -1) for a in (0, 1))
                up = random.uniform(half, spins.shape) < jax.nn.sigmoid(0.88 * around)
                spins = jnp.where(mask, jnp.where(up, 1, -1), spins)
            return spins, spins.mean()

        return lax.scan(sweep, spins, keys(key, 20))

    def particles(key, seen):
        def step(x, inputs):
            key, y = inputs
            moving, choosing = random.split(key)
            x = 0.9 * x + random.normal(moving, x.shape)
            weights = jax.nn.softmax(-0.5 * (y - x) ** 2)
            places = jnp.searchsorted(jnp.cumsum(weights), (jnp.arange(1000) + random.uniform(choosing)) / 1000)
            return x[jnp.clip(places, 0, 999)], (weights * x).sum()

        return lax.scan(step, jnp.zeros(1000), (keys(key, 100), seen))

    def kalman(a, c, seen):
        def step(state, y):
            m, p = state
            m, p = a @ m, a @ p @ a.T + 0.1 * jnp.eye(6)
            s = c @ p @ c.T + jnp.eye(2)
            gain = jnp.linalg.solve(s, c @ p).T
            error = y - c @ m
            fit = error @ jnp.linalg.solve(s, error) + jnp.linalg.slogdet(s)[1]
            return (m + gain @ error, p - gain @ c @ p), fit

        return lax.scan(step, (jnp.zeros(6), jnp.eye(6)), seen)[1].sum()

    def hidden(transition, emission, seen):
        def step(log_alpha, y):
            log_alpha = jax.nn.logsumexp(log_alpha[:, None] + transition, 0) + emission[:, y]
            return log_alpha, None

        return jax.nn.logsumexp(lax.scan(step, jnp.zeros(32), seen)[0])

    def langevin(key, start, x, y):
        slope = jax.grad(lambda w, x, y: logistic(x, y)(w))

        def step(w, key):
            choosing, moving = random.split(key)
            batch = random.randint(choosing, (100,), 0, x.shape[0])
            w = w + 0.0005 * slope(w, x[batch], y[batch]) * 10 + 0.03 * random.normal(moving, w.shape)
            return w, w

        return lax.scan(step, start, keys(key, 200))[1]

    key, points, sides = np.array([0, 3], np.uint32), floats(1000, 20), np.sign(floats(1000, seed=2))
    return {
        "Hamiltonian sampler, 50x10 steps of 1000x20": (hamiltonian, key, floats(20), points, sides),
        "Metropolis, 1000 chains of 200 steps": (metropolis, key, floats(1000, 2)),
        "Ising 128x128, 20 sweeps": (ising, key, np.sign(floats(128, 128)).astype(np.int32)),
        "particle filter, 1000 particles, 100 steps": (particles, key, floats(100)),
        "gradient of a Kalman filter, 6 states, 200 steps": (
            jax.value_and_grad(kalman), 0.3 * floats(6, 6), floats(2, 6), floats(200, 2)),
        "gradient of a hidden Markov model, 32 states, 200": (
            jax.value_and_grad(hidden), floats(32, 32), floats(32, 10), integers(10, 200)),
        "Langevin sampler, 200 batches of 100x20": (langevin, key, floats(20), points, sides),
    }  # fmt: skip


def solvers(jax, jnp):
    lax = jax.lax

    def process(log_scale, x, y):
        distances = ((x[:, None] - x[None]) ** 2).sum(-1)
        k = jnp.exp(-0.5 * distances * jnp.exp(-2 * log_scale)) + 0.1 * jnp.eye(x.shape[0])
        low = jnp.linalg.cholesky(k)
        alpha = jax.scipy.linalg.cho_solve((low, True), y)
        return 0.5 * y @ alpha + jnp.log(jnp.diagonal(low)).sum()

    def clusters(x, centres):
        def step(centres, _):
            distances = ((x[:, None] - centres[None]) ** 2).sum(-1)
            member = jax.nn.one_hot(distances.argmin(1), centres.shape[0])
            return (member.T @ x) / (member.sum(0)[:, None] + 1e-6), distances.min(1).mean()

        return lax.scan(step, centres, None, length=10)

    def mixture(x, means):
        def step(state, _):
            means, spread, share = state
            fit = -0.5 * (((x[:, None] - means) / spread) ** 2).sum(-1) - jnp.log(spread).sum(-1) + jnp.log(share)
            member = jax.nn.softmax(fit, -1)
            total = member.sum(0)[:, None] + 1e-6
            means = member.T @ x / total
            spread = jnp.sqrt(member.T @ x**2 / total - means**2 + 1e-3)
            return (means, spread, total[:, 0] / x.shape[0]), jax.nn.logsumexp(fit, -1).mean()

        return lax.scan(step, (means, jnp.ones_like(means), jnp.full(8, 0.125)), None, length=20)

    def transport(x, y):
        cost = ((x[:, None] - y[None]) ** 2).sum(-1)

        def step(_, s):
            f, g = s
            f = -0.1 * jax.nn.logsumexp((g - cost) / 0.1, 1)
            return f, -0.1 * jax.nn.logsumexp((f[:, None] - cost) / 0.1, 0)

        f, g = lax.fori_loop(0, 50, step, (jnp.zeros(300), jnp.zeros(300)))
        return f.mean() + g.mean()

    def conjugate(b):
        product = lambda u: 4.01 * u - sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1))
        return jax.scipy.sparse.linalg.cg(product, b, maxiter=100)[0]

    def lasso(a, y):
        def step(_, s):
            w, z, t = s
            new = z - 1e-3 * (a.T @ (a @ z - y))
            new = jnp.sign(new) * jnp.maximum(jnp.abs(new) - 1e-3, 0)
            t2 = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
            return new, new + (t - 1) / t2 * (new - w), t2

        return lax.fori_loop(0, 100, step, (jnp.zeros(200), jnp.zeros(200), 1.0))[0]

    def pagerank(senders, receivers):
        degree = jnp.bincount(senders, length=5000)

        def step(_, rank):
            flow = (rank / jnp.maximum(degree, 1))[senders]
            return 0.15 / 5000 + 0.85 * jnp.zeros(5000).at[receivers].add(flow)

        return lax.fori_loop(0, 50, step, jnp.full(5000, 1 / 5000))

    def newton(w, x, y):
        loss = lambda w: jnp.logaddexp(0.0, -y * (x @ w)).mean() + 0.01 * (w**2).sum()
        return lax.fori_loop(0, 5, lambda _, w: w - jnp.linalg.solve(jax.hessian(loss)(w), jax.grad(loss)(w)), w)

    def components(x):
        x = x - x.mean(0)
        _, s, v = jnp.linalg.svd(x, full_matrices=False)
        return x @ v[:10].T, s

    def minimum(start):
        optimize = import_module(f"{jax.__name__}.scipy.optimize")
        rosenbrock = lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        return optimize.minimize(rosenbrock, start, method="BFGS").x

    def adjoint(y0, times, rates):
        def slope(y, t, rates):
            return jnp.stack([rates[0] * y[0] - rates[1] * y[0] * y[1], rates[2] * y[0] * y[1] - rates[3] * y[1]])

        odeint = import_module(f"{jax.__name__}.experimental.ode").odeint
        return (odeint(slope, y0, times, rates) ** 2).mean()

    def marched(origins, directions):
        def distance(p):
            ball = jnp.linalg.norm((p + 2) % 4 - 2, axis=-1) - 1
            return jnp.minimum(ball, p[..., 1] + 1.5)

        def step(_, depth):
            return depth + distance(origins + depth[:, None] * directions)

        return lax.fori_loop(0, 40, step, jnp.zeros(origins.shape[0]))

    def edited(a, b):
        def row(above, char):
            change = jnp.where(b == char, 0, 1)

            def cell(left, inputs):
                up, corner, cost = inputs
                best = jnp.minimum(jnp.minimum(left, up) + 1, corner + cost)
                return best, best

            first = above[0] + 1
            rest = lax.scan(cell, first, (above[1:], above[:-1], change))[1]
            return jnp.concatenate([first[None], rest]), None

        return lax.scan(row, jnp.arange(b.shape[0] + 1), a)[0][-1]

    return {
        "Gaussian process of 300 points, gradient": (
            jax.value_and_grad(process), np.float32(0), floats(300, 4), floats(300, seed=1)),
        "k-means, 10000x8 into 16, 10 rounds": (clusters, floats(10_000, 8), floats(16, 8, seed=1)),
        "mixture of 8 Gaussians, 5000x4, 20 rounds": (mixture, floats(5000, 4), floats(8, 4, seed=1)),
        "optimal transport of 300 points, gradient": (
            jax.value_and_grad(transport), floats(300, 3), floats(300, 3, seed=1)),
        "conjugate gradients on 256x256, 100 steps": (conjugate, floats(256, 256)),
        "lasso of 500x200, 100 steps": (lasso, floats(500, 200), floats(500)),
        "ranks of 5000 pages, 50000 links, 50 rounds": (pagerank, *integers(5000, 2, 50_000)),
        "Newton's method for 50 weights, 2000 rows": (newton, floats(50), floats(2000, 50), np.sign(floats(2000))),
        "principal components of 500x100": (components, floats(500, 100)),
        # from here both find the minimum in 30 steps; from floats(20) JAX gives up at 650 after 18, ours takes 139
        "BFGS on 20 variables": (minimum, 1 + np.float32(0.1) * floats(20)),
        "predator and prey, gradient by the adjoint": (
            jax.value_and_grad(adjoint, 2), np.array([1, 1], np.float32), np.linspace(0, 5, 20, dtype=np.float32),
            np.array([1.1, 0.4, 0.1, 0.4], np.float32)),
        "marched rays, 40 steps of 20000": (
            marched, floats(20_000, 3), (d := floats(20_000, 3, seed=1)) / np.linalg.norm(d, axis=-1, keepdims=True)),
        "edit distance of 200 and 200": (edited, integers(4, 200), integers(4, 2, 200)[1]),
    }  # fmt: skip


FAMILIES = networks, learned, simulations, samplers, solvers
