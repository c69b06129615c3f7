"""A user's program, with the annotations that users write: it runs, and type checkers find nothing in it."""

from functools import partial
from typing import NamedTuple

import numpy as np

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.typing import ArrayLike


class Layer(NamedTuple):
    """A dense layer."""

    weights: jax.Array
    bias: jax.Array


Params = list[Layer]


def init(key: jax.Array, sizes: list[int]) -> Params:
    """Layers of a multilayer perceptron."""
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        Layer(jax.random.normal(k, (m, n)) * jnp.sqrt(2 / m), jnp.zeros(n))
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


@jax.custom_vjp
def clipped(x: jax.Array) -> jax.Array:
    """x, with gradients of size one at most."""
    return x


def clipped_fwd(x: jax.Array) -> tuple[jax.Array, None]:
    return clipped(x), None


def clipped_bwd(_: None, g: jax.Array) -> tuple[jax.Array]:
    return (jnp.clip(g, -1, 1),)


clipped.defvjp(clipped_fwd, clipped_bwd)


def predict(params: Params, x: jax.Array) -> jax.Array:
    """Logits of one example."""
    for layer in params[:-1]:
        x = jax.nn.gelu(x @ layer.weights + layer.bias)
    last = params[-1]
    return clipped(x @ last.weights + last.bias)


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    """Mean cross entropy."""
    logits = jax.vmap(predict, in_axes=(None, 0))(params, x)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
    return -picked.mean()


@partial(jax.jit, donate_argnums=0)
def train(params: Params, x: jax.Array, y: jax.Array) -> tuple[Params, jax.Array]:
    """One step of gradient descent."""
    value, grads = jax.value_and_grad(loss)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), value


@jax.jit
def running(x: jax.Array) -> jax.Array:
    """Sums of the elements so far, capped."""

    def step(total: jax.Array, item: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = lax.cond(total > 10, lambda t: t, lambda t: t + item, total)
        return total, total

    return lax.scan(step, jnp.float32(0), x)[1]


@jax.jit(static_argnames="order")
def smooth(x: ArrayLike, order: int = 2) -> jax.Array:
    """x without its high frequencies."""
    spectrum = jnp.fft.rfft(jnp.asarray(x))
    return jnp.fft.irfft(spectrum.at[order:].set(0), n=np.size(x))


def whiten(x: jax.Array) -> jax.Array:
    """Rows with the unit matrix as their covariance."""
    centered = x - x.mean(axis=0, keepdims=True)
    u, _, vt = jnp.linalg.svd(centered, full_matrices=False)
    return jnp.sqrt(x.shape[0]) * (u @ vt)


def main() -> float:
    """Trains, and uses a little of everything."""
    key = jax.random.key(0)
    x = jax.random.normal(key, (32, 4))
    y = jnp.where(x[:, 0] > 0, 1, 0)
    params = init(key, [4, 16, 2])
    first = last = loss(params, x, y)
    for _ in range(20):
        params, last = train(params, x, y)
    assert last < first
    total: jax.Array = running(jnp.arange(8.0))[-1]
    assert smooth(np.ones(8, np.float32), order=1).shape == (8,)
    assert bool(jnp.allclose(whiten(x).T @ whiten(x) / 32, jnp.eye(4), atol=1e-3))
    hessian = jax.hessian(lambda v: jnp.sum(v**4))(jnp.ones(3))
    text: str = train.lower(params, x, y).as_text()
    assert text and hessian[0, 0] == 12
    leaves, tree = jax.tree_util.tree_flatten(params)
    assert tree.num_leaves == len(leaves)
    on_device = jax.device_put(total, jax.devices()[0])
    return float(jnp.add(on_device, jnp.add.reduce(jnp.ones(3))).item())


if __name__ == "__main__":
    print(main())
