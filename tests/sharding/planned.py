"""Steps divided over a mesh of 2 x 4 devices, for `test_plan.py`.

`python planned.py` compiles them with JAX for eight CPU devices, and prints the bytes of the collective operations that
XLA's partitioner has put into each, by kind.
"""

from __future__ import annotations

import json
import math
import os
import re

SIZES, NAMES = (2, 4), ("x", "y")


def steps(jax, mesh):
    """For each name a function, its arguments, and the shardings of its results."""
    import importlib

    jnp = importlib.import_module(jax.__name__ + ".numpy")
    sharding = importlib.import_module(jax.__name__ + ".sharding")
    P = sharding.PartitionSpec

    def array(shape, *spec, dtype="float32"):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding.NamedSharding(mesh, P(*spec)))

    def trained(loss):
        return lambda w, *x: jax.tree.map(lambda a, b: a - 0.1 * b, w, jax.grad(loss)(w, *x))

    def mlp(w, x):
        for up, down in w:
            x = x + jax.nn.gelu(x @ up) @ down
        return (x**2).mean()

    def attention(w, x):
        q, k, v = (jnp.einsum("bsd,dhe->bshe", x, w[name]) for name in "qkv")
        weights = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k))
        mixed = jnp.einsum("bhqk,bkhe->bqhe", weights, v)
        return (jnp.einsum("bqhe,hed->bqd", mixed, w["o"]) ** 2).mean()

    def scanned(w, x):
        h, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w[0]) @ w[1], None), x, w)
        return (h**2).mean()

    def rows(table, i):
        return (table[i] ** 2).mean()

    def normalized(x):
        return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)

    x = array((1024, 512), "x")
    projections = {name: array((512, 8, 64), None, "y", None) for name in "qkv"}
    tokens = array((16, 128), "x", dtype="int32")

    def weights(*specs):
        shapes = ((512, 2048), (2048, 512))
        return [tuple(array(shape, *spec) for shape, spec in zip(shapes, specs, strict=True))]

    return {
        "data": (trained(mlp), weights((), ()), x),
        "tensor": (trained(mlp), weights((None, "y"), ("y", None)), x),
        "both": (trained(mlp), weights(("x", "y"), ("y", "x")), x),
        "attention": (trained(attention), {**projections, "o": array((8, 64, 512), "y")}, array((8, 128, 512), "x")),
        "rows in parts": (trained(rows), array((4096, 512), "y"), tokens),
        "rows": (trained(rows), array((4096, 512)), tokens),
        "scanned": (
            trained(scanned),
            (array((6, 512, 2048), None, None, "y"), array((6, 2048, 512), None, "y", None)),
            x,
        ),
        "normalized": (normalized, array((64, 512), "x", "y")),
    }


def main():
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    from jax.sharding import AxisType

    mesh = jax.make_mesh(SIZES, NAMES, axis_types=(AxisType.Auto,) * 2)
    found = {}
    for name, (step, *args) in steps(jax, mesh).items():
        results = jax.tree.map(lambda a: a.sharding, args[0])
        text = jax.jit(step, out_shardings=results).lower(*args).compile().as_text()
        bytes_of = {}
        for shapes, kind in re.findall(r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all)\(", text):
            sizes = (math.prod(map(int, filter(None, s.split(",")))) for s in re.findall(r"f32\[([\d,]*)\]", shapes))
            bytes_of[kind] = bytes_of.get(kind, 0) + 4 * sum(sizes)
        found[name] = bytes_of
    print(json.dumps(found))


if __name__ == "__main__":
    main()
