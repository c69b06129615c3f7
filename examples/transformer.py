"""Trains a small transformer on several devices: data parallel and tensor parallel at once.

The model predicts the characters of a text, its own source without another. Devices form a mesh of two axes:
sequences of a batch are divided over `data`, the matrices of attention and of the hidden layers over `model`. The
training step is written for whole arrays: where each of them lies is said once, where it is made, and `jit` does the
rest. At the end the program prints the loss, and where every array lives.

    python examples/transformer.py --mesh 4x2
    python examples/transformer.py --mesh 2x4 --platform xla_cpu

Devices may be those of several processes, on one machine or many, each of which runs the program (on plugins of XLA
that move data between processes, and on JAX):

    python examples/transformer.py --platform cuda --coordinator first-machine:12345 --process 0/2
    python examples/transformer.py --platform cuda --coordinator first-machine:12345 --process 1/2

The same code runs on ferrax and, with `--backend jax`, on JAX.
"""

import argparse
import importlib
import math
import os
import pathlib
import time

import numpy as np


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--backend", choices=["ferrax", "jax"], default="ferrax", help="the library to run on")
    parser.add_argument("--platform", help="the platform to run on; the library's first without it")
    parser.add_argument("--mesh", default="4x2", help="devices that share the batch, and the matrices: DATAxMODEL")
    parser.add_argument("--process", default="0/1", help="which process this is of how many that share the devices")
    parser.add_argument("--coordinator", default="localhost:12345", help="address of process 0, for the others")
    parser.add_argument("--steps", type=int, default=60, help="training steps")
    parser.add_argument("--batch", type=int, default=16, help="sequences of a step")
    parser.add_argument("--length", type=int, default=64, help="characters of a sequence")
    parser.add_argument("--layers", type=int, default=2, help="layers of the model")
    parser.add_argument("--width", type=int, default=64, help="numbers that stand for a character")
    parser.add_argument("--heads", type=int, default=4, help="heads of attention")
    parser.add_argument("--rate", type=float, default=3e-3, help="Adam's learning rate")
    parser.add_argument("--text", type=pathlib.Path, default=pathlib.Path(__file__), help="the text to learn")
    return parser.parse_args(argv)


def specs(P):
    """How the arrays of the model are divided, by name: columns or rows of a matrix over `model`."""
    return {
        "embedding": P(None, "model"),
        "places": P(None, "model"),
        "query": P(None, "model"),
        "key": P(None, "model"),
        "value": P(None, "model"),
        "mixed": P("model", None),
        "up": P(None, "model"),
        "down": P("model", None),
        "scale": P(),
    }


def shapes(options, letters):
    """Shapes of the arrays of the model."""
    width, hidden = options.width, 4 * options.width
    square = (width, width)
    layer = {"query": square, "key": square, "value": square, "mixed": square}
    layer |= {"up": (width, hidden), "down": (hidden, width), "scale": (2, width)}
    layers = [dict(layer) for _ in range(options.layers)]
    return {"embedding": (letters, width), "places": (options.length, width), "layers": layers, "scale": (width,)}


def is_shape(x):
    return isinstance(x, tuple)


def build(jax, jnp, options, mesh):
    """The model's functions: `init(key, letters)`, which puts arrays where they live, and `step(state, tokens)`."""
    sharding = importlib.import_module(f"{options.backend}.sharding")
    P, NamedSharding = sharding.PartitionSpec, sharding.NamedSharding
    divided = specs(P)

    def init(key, letters):
        wanted = shapes(options, letters)
        names = [path[-1].key for path, _ in jax.tree_util.tree_leaves_with_path(wanted, is_leaf=is_shape)]
        leaves, tree = jax.tree.flatten(wanted, is_leaf=is_shape)

        def array(key, name, shape):
            if name == "scale":
                return jnp.ones(shape)
            return jax.random.normal(key, shape) / math.sqrt(shape[0] if name not in ("embedding", "places") else 50)

        arrays = [array(*each) for each in zip(jax.random.split(key, len(leaves)), names, leaves)]
        there = [NamedSharding(mesh, divided[name]) for name in names]
        params = jax.tree.unflatten(tree, jax.device_put(arrays, there))
        # twice, as each is donated
        mean, square = (jax.tree.map(lambda p: jax.device_put(jnp.zeros(p.shape), p.sharding), params) for _ in "ms")
        count = jax.device_put(jnp.zeros(()), NamedSharding(mesh, P()))
        return {"params": params, "mean": mean, "square": square, "step": count}

    def norm(x, scale):
        return scale * x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)

    def attention(layer, x):
        heads = lambda name: (x @ layer[name]).reshape(*x.shape[:2], options.heads, -1)
        query, key, value = map(heads, ("query", "key", "value"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(query.shape[-1])
        past = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        weights = jax.nn.softmax(jnp.where(past, scores, -1e9), axis=-1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, value).reshape(x.shape) @ layer["mixed"]

    def network(params, tokens):
        x = params["embedding"][tokens] + params["places"][: tokens.shape[1]]
        for layer in params["layers"]:
            x = x + attention(layer, norm(x, layer["scale"][0]))
            x = x + jax.nn.relu(norm(x, layer["scale"][1]) @ layer["up"]) @ layer["down"]
        return norm(x, params["scale"]) @ params["embedding"].T

    def loss(params, tokens):
        logits = network(params, tokens[:, :-1])
        right = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1)[..., 0]
        return (jax.nn.logsumexp(logits, axis=-1) - right).mean()

    def step(state, tokens):
        """One step of Adam; gives the new state and the loss before it."""
        value, grads = jax.value_and_grad(loss)(state["params"], tokens)
        t = state["step"] + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], grads)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], grads)

        def update(p, m, s):
            return p - options.rate * (m / (1 - 0.9**t)) / (jnp.sqrt(s / (1 - 0.99**t)) + 1e-8)

        params = jax.tree.map(update, state["params"], mean, square)
        return {"params": params, "mean": mean, "square": square, "step": t}, value

    def compiled(state):
        """The step, whose results live where the state does."""
        there = jax.tree.map(lambda x: x.sharding, state)
        return jax.jit(step, donate_argnums=0, out_shardings=(there, NamedSharding(mesh, P())))

    return init, compiled, NamedSharding(mesh, P("data", None))


def batches(options, text):
    """The letters of a text, and for each step the sequences that it learns from."""
    letters = sorted(set(text))
    numbers = np.array([letters.index(c) for c in text], np.int32)
    rng = np.random.default_rng(0)
    for _ in range(options.steps):
        starts = rng.integers(0, len(numbers) - options.length - 1, options.batch)
        yield numbers[starts[:, None] + np.arange(options.length + 1)]


def where(jax, state):
    """A line for each array of the model: its name, how it is divided, and what a device has of it."""
    for path, x in jax.tree_util.tree_leaves_with_path(state["params"]):
        part, devices = x.addressable_shards[0].data, len(x.sharding.device_set)
        name = jax.tree_util.keystr(path)
        yield f"{name:24} {x.shape!s:12} {x.sharding.spec!s:24} {part.shape!s:12} on each of {devices} devices"


def main(argv=None):
    options = parse_arguments(argv)
    data, model = (int(n) for n in options.mesh.split("x"))
    process, processes = (int(n) for n in options.process.split("/"))
    # read when the library first looks at its devices
    flag = f"--xla_force_host_platform_device_count={data * model // processes}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()
    jax = importlib.import_module(options.backend)
    jnp = importlib.import_module(f"{options.backend}.numpy")
    axis = importlib.import_module(f"{options.backend}.sharding").AxisType.Auto
    if processes > 1:
        jax.distributed.initialize(options.coordinator, processes, process)
    devices = jax.devices(options.platform)[: data * model]
    mesh = jax.make_mesh((data, model), ("data", "model"), axis_types=(axis, axis), devices=devices)
    text = options.text.read_text(encoding="utf-8")
    init, compiled, rows = build(jax, jnp, options, mesh)
    state = init(jax.random.key(0), len(set(text)))
    step, losses, start = compiled(state), [], time.perf_counter()
    for tokens in batches(options, text):
        state, value = step(state, jax.device_put(tokens, rows))
        losses.append(value)
    losses = [float(v) for v in losses]
    seconds = time.perf_counter() - start
    if process == 0:
        print(f"{options.backend}: {len(losses)} steps on {data} x {model} devices in {seconds:.1f} s")
        print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
        print(*where(jax, state), sep="\n")
    return losses


if __name__ == "__main__":
    main()
