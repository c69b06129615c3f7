"""Programs of jaxtyping: annotations of shapes and dtypes, checked."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Complex, Float, Float32, Int, Key, PRNGKeyArray, PyTree, Shaped, jaxtyped


def instances():
    x = jnp.ones((2, 3))
    checks = [
        isinstance(x, Float[Array, "2 3"]),
        isinstance(x, Float32[Array, "a b"]),
        isinstance(x, Int[Array, "2 3"]),
        isinstance(x, Float[Array, "3 2"]),
        isinstance(x.astype(jnp.bfloat16), Float[Array, "..."]),
        isinstance(jnp.ones(2, bool), Bool[Array, "2"]),
        isinstance(jnp.ones(2, complex), Complex[Array, "n"]),
        isinstance(jax.random.key(0), Key[Array, ""]),
        isinstance(jax.random.key(0), PRNGKeyArray),
        isinstance(3.0, ArrayLike),
        isinstance(x, Shaped[Array, "*batch 3"]),
    ]
    return jnp.array(checks)


def trees():
    tree = {"a": jnp.ones(2), "b": (jnp.ones(2), jnp.ones(2))}
    return jnp.array([isinstance(tree, PyTree[Float[Array, "2"]]), isinstance(tree, PyTree[Int[Array, "2"]])])


def consistent():
    def checker(function):  # as a run-time type checker does
        hints = function.__annotations__

        def wrapped(*args):
            for name, value in zip(hints, args):
                if not isinstance(value, hints[name]):
                    raise TypeError(name)
            return function(*args)

        return wrapped

    @jaxtyped(typechecker=None)
    @checker
    def dot(x: Float[Array, "n"], y: Float[Array, "n"]):  # noqa: F821
        return jnp.sum(x * y)

    try:
        dot(jnp.ones(2), jnp.ones(3))
    except TypeError:
        bad = True
    return dot(jnp.ones(2), jnp.ones(2)), jnp.array(bad)


def traced():
    @jax.jit
    def f(x):
        assert isinstance(x, Float[Array, "3"])
        return jax.grad(lambda y: jnp.sum(y**2) if isinstance(y, Float[Array, "3"]) else 0.0)(x)

    return f(jnp.arange(3.0)), jax.vmap(lambda r: jnp.array(isinstance(r, Float[Array, "3"])))(jnp.ones((2, 3)))


PROGRAMS = {f.__name__: f for f in (instances, trees, consistent, traced)}
