"""Programs of chex: dataclasses, assertions, variants of a function."""

import chex
import jax
import jax.numpy as jnp
import numpy as np


@chex.dataclass
class State:
    x: chex.Array
    n: chex.Numeric


def dataclasses():
    s = State(x=jnp.arange(3.0), n=2)
    doubled = jax.tree_util.tree_map(lambda v: 2 * v, s)
    return (
        doubled,
        s.replace(n=5),
        jax.jit(lambda s: s.x * s.n)(s),
        jax.grad(lambda s: (s.x**2).sum() * s.n, allow_int=False)(State(x=jnp.arange(3.0), n=2.0)),
    )


def assertions():
    x = jnp.ones((2, 3))
    chex.assert_shape(x, (2, None))
    chex.assert_rank([x, x], 2)
    chex.assert_type(x, float)
    chex.assert_equal_shape([x, x])
    chex.assert_trees_all_close({"a": x}, {"a": x + 1e-9}, rtol=1e-5)
    chex.assert_trees_all_equal_shapes({"a": x}, {"a": 2 * x})
    chex.assert_tree_all_finite({"a": x})
    chex.assert_scalar_positive(3.0)
    chex.assert_axis_dimension(x, 1, 3)
    chex.assert_trees_all_equal_structs((1, 2), (3, 4))
    failed = 0
    for check in (
        lambda: chex.assert_shape(x, (3, 2)),
        lambda: chex.assert_tree_all_finite(x / 0),
        lambda: chex.assert_rank(x, 1),
        lambda: chex.assert_trees_all_close(x, x + 1),
        lambda: chex.assert_type(x, int),
    ):
        try:
            check()
        except AssertionError:
            failed += 1
    return jnp.array(failed)


def traces():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def f(x):
        return x + 1

    out = [f(1.0), f(2.0)]
    try:
        f(jnp.ones(2))
    except AssertionError:
        return out, jnp.array(1)
    return out, jnp.array(0)


def fake():
    with chex.fake_jit():
        seen = []

        @jax.jit
        def f(x):
            seen.append(float(x))
            return x * 2

        out = f(3.0)
    return out, jnp.array(seen)


def numeric():
    x = jnp.linspace(0.1, 0.9, 3)
    chex.assert_numerical_grads(lambda x: jnp.sum(jnp.sin(x)), (x,), order=1, rtol=1e-2, atol=1e-2)
    return chex.Dimensions(B=2, N=3)["BN"][0], jnp.asarray(
        np.array(chex.params_product(((1,), (2,)), ((3,),)), dtype=int)
    )


PROGRAMS = {f.__name__: f for f in (dataclasses, assertions, traces, fake, numeric)}
