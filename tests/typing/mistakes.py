"""Mistakes, one on each line that is marked: type checkers name each of these lines, and no other. Never run."""

import ferrax as jax
import ferrax.nump as misspelt  # mistake
import ferrax.numpy as jnp


@jax.jit
def scale(x: jax.Array, by: float) -> jax.Array:
    return x * by


def square(x: jax.Array) -> jax.Array:
    return x * x


x = jnp.ones(3)
jnp.sine(x)  # mistake
jax.vmapp(square)  # mistake
jnp.sin("x")  # mistake
jnp.sum(x, axes=0)  # mistake
jnp.zeros()  # mistake
jnp.add(x)  # mistake
scale(x)  # mistake
scale(x, "2")  # mistake
scale(x, factor=2.0)  # mistake
jax.grad(square)()  # mistake
value, slope, rest = jax.value_and_grad(square)(x)  # mistake
x.shap  # mistake
x.reshpae(3, 1)  # mistake
x[0] = 1.0  # mistake
jax.vmap(3)  # mistake
jax.jit(square, inline="yes")  # mistake
jax.nn.relus(x)  # mistake
jnp.linalg.nrom(x)  # mistake
jax.random.normal(jax.random.key(0), 2, size=3)  # mistake
jax.lax.sin(x, approximately=True)  # mistake
scale.lowered(x, 2.0)  # mistake
text: str = jnp.mean(x)  # mistake
