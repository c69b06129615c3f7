"""What one call costs: eager operations, jitted calls and transformations without jit (promises P1 and P2).

Times are of the call alone, on ten float32 numbers; ratios are against NumPy and JAX in the same run.
`python benches/dispatch.py --target jax` tries the program without ferrax.
"""

from functools import partial
from itertools import pairwise

import harness
import numpy as np


def arrays(jax):
    x = np.arange(10, dtype=np.float32)
    return jax.device_put(x), jax.device_put(x + 1)


def setup(make, jax, jnp):
    return make(jax, jnp, *arrays(jax))


def eager_rows(libs):
    a, b = np.arange(10, dtype=np.float32), np.arange(10, dtype=np.float32) + 1

    def row(name, ours, numpys, **kwargs):
        contenders = {n: partial(setup, ours, *lib) for n, lib in libs.items()}
        if numpys:
            contenders["numpy"] = lambda: numpys
        return harness.Row(name, contenders, **kwargs)

    def numpy_set():
        c = a.copy()
        c[3] = 1.0
        return c

    ratio = {"against": "numpy"}
    yield row("x + y", lambda jax, jnp, x, y: lambda: x + y, lambda: a + b, target=1.0, **ratio)
    yield row("x + 1.0", lambda jax, jnp, x, y: lambda: x + 1.0, lambda: a + 1.0)
    yield row("jnp.sin(x)", lambda jax, jnp, x, y: lambda: jnp.sin(x), lambda: np.sin(a), target=1.5, **ratio)
    yield row("jnp.add(x, y)", lambda jax, jnp, x, y: lambda: jnp.add(x, y), lambda: np.add(a, b))
    yield row("x[3]", lambda jax, jnp, x, y: lambda: x[3], lambda: a[3], target=3.0, **ratio)
    yield row("x[2:5]", lambda jax, jnp, x, y: lambda: x[2:5], lambda: a[2:5])
    yield row("x.at[3].set(1.)", lambda jax, jnp, x, y: lambda: x.at[3].set(1.0), numpy_set, target=1e-6)
    yield row(
        "jnp.where(x > 3, x, y)", lambda jax, jnp, x, y: lambda: jnp.where(x > 3, x, y), lambda: np.where(a > 3, a, b)
    )
    yield row("jnp.sum(x)", lambda jax, jnp, x, y: lambda: jnp.sum(x), lambda: np.sum(a))
    yield from method_rows(row, a, b)
    yield row("jnp.asarray(numpy array)", lambda jax, jnp, x, y: lambda: jnp.asarray(a), None)
    yield row("float(x[0])", lambda jax, jnp, x, y: lambda z=x[0]: float(z), lambda z=a[0]: float(z))


def method_rows(row, a, b):
    """Methods of arrays and functions of arrays, each at most 1.5 times NumPy's time."""
    m = a.reshape(2, 5)
    # name -> the call on a module of functions, a vector, another one and a matrix
    calls = {
        "x.sum()": lambda np_, x, y, m: x.sum(),
        "x.mean()": lambda np_, x, y, m: x.mean(),
        "x.max()": lambda np_, x, y, m: x.max(),
        "x.argmax()": lambda np_, x, y, m: x.argmax(),
        "x.any()": lambda np_, x, y, m: x.any(),
        "m.sum(0)": lambda np_, x, y, m: m.sum(0),
        "x.astype(int)": lambda np_, x, y, m: x.astype(int),
        "x.T": lambda np_, x, y, m: x.T,
        "m.T": lambda np_, x, y, m: m.T,
        "x @ y": lambda np_, x, y, m: x @ y,
        "x.reshape(2, 5)": lambda np_, x, y, m: x.reshape(2, 5),
        "jnp.reshape(x, (2, 5))": lambda np_, x, y, m: np_.reshape(x, (2, 5)),
        "jnp.mean(x)": lambda np_, x, y, m: np_.mean(x),
        "jnp.max(x)": lambda np_, x, y, m: np_.max(x),
        "jnp.dot(x, y)": lambda np_, x, y, m: np_.dot(x, y),
        "jnp.matmul(m, m[0])": lambda np_, x, y, m: np_.matmul(m, m[0]),
        "jnp.concatenate([x, y])": lambda np_, x, y, m: np_.concatenate([x, y]),
        "jnp.stack([x, y])": lambda np_, x, y, m: np_.stack([x, y]),
        "jnp.zeros(10)": lambda np_, x, y, m: np_.zeros(10),
        "jnp.ones(10)": lambda np_, x, y, m: np_.ones(10),
        "jnp.arange(10)": lambda np_, x, y, m: np_.arange(10),
        "jnp.expand_dims(x, 0)": lambda np_, x, y, m: np_.expand_dims(x, 0),
        "jnp.transpose(m)": lambda np_, x, y, m: np_.transpose(m),
        "jnp.squeeze(x)": lambda np_, x, y, m: np_.squeeze(x),
        "jnp.broadcast_to(x, (3, 10))": lambda np_, x, y, m: np_.broadcast_to(x, (3, 10)),
        "jnp.clip(x, 2, 5)": lambda np_, x, y, m: np_.clip(x, 2, 5),
        "jnp.asarray(x)": lambda np_, x, y, m: np_.asarray(x),
        # of many operations: one program each
        "jnp.var(m, 0)": lambda np_, x, y, m: np_.var(m, 0),
        "jnp.median(m)": lambda np_, x, y, m: np_.median(m),
        "jnp.percentile(x, 30)": lambda np_, x, y, m: np_.percentile(x, 30),
        "jnp.cov(m)": lambda np_, x, y, m: np_.cov(m),
        "jnp.trace(m)": lambda np_, x, y, m: np_.trace(m),
        "jnp.gradient(x)": lambda np_, x, y, m: np_.gradient(x),
        "jnp.linalg.norm(m, axis=1)": lambda np_, x, y, m: np_.linalg.norm(m, axis=1),
    }
    for name, call in calls.items():
        ours = lambda jax, jnp, x, y, call=call: partial(call, jnp, x, y, jax.device_put(m))
        yield row(name, ours, partial(call, np, a, b, m), target=1.5, against="numpy")


def jit_rows(libs):
    def row(name, make, **kwargs):
        return harness.Row(name, {n: partial(setup, make, *lib) for n, lib in libs.items()}, **kwargs)

    def call(jax, jnp, x, y):
        f = jax.jit(lambda x: x + 1)
        f(x)
        return lambda: f(x)

    def call_two(jax, jnp, x, y):
        f = jax.jit(lambda x, y: jnp.sin(x) * y + 1)
        f(x, y)
        return lambda: f(x, y)

    def call_dict(jax, jnp, x, y):
        f = jax.jit(lambda tree: jax.tree.map(lambda leaf: leaf + 1, tree))
        tree = {f"key{i:03d}": x for i in range(100)}
        f(tree)
        return lambda: f(tree)

    def flatten(jax, jnp, x, y):
        tree = {f"key{i:03d}": x for i in range(100)}
        return lambda: jax.tree.leaves(tree)

    yield row("jitted call", call, target=0.6e-6)
    yield row("jitted call of two arguments", call_two)
    yield row("jitted call with a dict of 100 leaves", call_dict, target=15e-6)
    yield row("tree.leaves of a dict of 100", flatten)


def mlp(jax, jnp):
    """A small network's parameters, its loss and a batch."""
    rng = np.random.default_rng(0)
    sizes = [64, 32, 16, 10]
    params = [
        {"w": jax.device_put(rng.normal(size=(m, n)).astype(np.float32) / 8), "b": jnp.zeros(n)}
        for m, n in pairwise(sizes)
    ]
    x = jax.device_put(rng.normal(size=(8, 64)).astype(np.float32))
    y = jax.device_put(rng.normal(size=(8, 10)).astype(np.float32))

    def loss(params, x, y):
        for layer in params[:-1]:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return jnp.sum((x @ params[-1]["w"] + params[-1]["b"] - y) ** 2)

    return params, loss, x, y


def transform_rows(libs):
    def row(name, make, **kwargs):
        return harness.Row(name, {n: partial(make, *lib) for n, lib in libs.items()}, **kwargs)

    def grad_scalar(jax, jnp):
        g = jax.grad(lambda x: jnp.sin(x) * x + 1.0)
        x = jnp.float32(2.0)
        return lambda: g(x)

    def grad_mlp(jax, jnp):
        params, loss, x, y = mlp(jax, jnp)
        g = jax.value_and_grad(loss)
        return lambda: g(params, x, y)

    def vmap(jax, jnp):
        x, y = arrays(jax)
        f = jax.vmap(lambda x, y: jnp.sin(x) * y)
        return lambda: f(x, y)

    def jvp(jax, jnp):
        x, y = arrays(jax)
        return lambda: jax.jvp(lambda x: jnp.sin(x) * x, (x,), (y,))

    def chain(jax, jnp, n):
        def f(x):
            for _ in range(n):
                x = jnp.sin(x)
            return x

        g = jax.grad(f)
        x = jnp.float32(1.0)
        return lambda: g(x)

    yield row("grad of 3 scalar operations, no jit", grad_scalar, target=10e-6)
    yield row("value_and_grad of an MLP, no jit", grad_mlp, target=100e-6)
    yield row("vmap of 2 operations, no jit", vmap, target=10e-6)
    yield row("jvp of 2 operations, no jit", jvp)
    yield row("grad of a chain of 20, per operation", partial(chain, n=20), calls=20)
    yield row("grad of a chain of 400, per operation", partial(chain, n=400), calls=400)


def main():
    options = harness.parse_arguments(__doc__.splitlines()[0])
    libs = harness.libraries(options)
    harness.run([partial(rows, libs) for rows in (eager_rows, jit_rows, transform_rows)], options)


if __name__ == "__main__":
    main()
