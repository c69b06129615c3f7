"""Programs evaluated equation by equation from Python give the same program again."""

import re

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._evaluate import evaluate

X = jnp.linspace(0.1, 1.0, 16).reshape(4, 4)
V = X[0]
KEY = jax.random.key(0)


@jax.custom_jvp
def doubled(x):
    return jnp.sin(x)


doubled.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), 2 * tangents[0]))


@jax.custom_vjp
def tripled(x):
    return jnp.sin(x)


tripled.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (3 * ct * x,))


@jax.custom_batching.custom_vmap
def mapped(x):
    return x + 1


@mapped.def_vmap
def _(axis_size, in_batched, x):
    return 10 * x, True


def across(x):
    return (
        lax.psum(x, "i") + lax.pmax(x, "i"),
        lax.all_gather(x, "i"),
        lax.axis_index("i"),
        lax.ppermute(x, "i", [(0, 1)]),
        lax.psum_scatter(x, "i"),
        lax.all_to_all(x, "i", 0, 0),
    )


PROGRAMS = {
    "elementwise": lambda x: lax.erf_inv(lax.atan2(x, x)) + lax.rsqrt(x) ** 3 - lax.clamp(0.1, x, 0.5),
    "integers": lambda x: lax.population_count(x.astype(int)) << 2 | ~x.astype(int),
    "argmax": lambda x: (lax.argmax(x, 1, np.int32), jnp.argmin(x)),
    "convolution": lambda x: lax.conv_general_dilated(
        x[None, None], x[None, None], (1, 2), "SAME", rhs_dilation=(2, 1), precision="highest"
    ),
    "dot_general": lambda x: lax.dot_general(x, x, (((0,), (1,)), ((), ())), precision="highest"),
    "gather": lambda x: x.at[jnp.array([0, 9])].get(mode="fill", fill_value=3.5),
    "scatter": lambda x: x.at[jnp.array([0, 1])].set(2.0).at[0].add(1.0).at[1].multiply(V).at[2].min(0.3),
    "reduce_window": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
    "own reduce_window": lambda x: lax.reduce_window(x, 0.0, lambda a, b: a + 2 * b, (2, 2), (1, 1), "SAME"),
    "own reduce": lambda x: lax.reduce(x, 0.0, lambda a, b: a + 2 * b, (0,)),
    "reductions": lambda x: (jnp.sum(x), jnp.max(x, 0), jnp.prod(x, 1), jnp.any(x > 0)),
    "cumulative": lambda x: lax.cumlogsumexp(lax.cumsum(x, 1), 0, reverse=True),
    "sort": lambda x: (lax.sort((x, -x), dimension=1, num_keys=2), lax.top_k(x, 2)),
    "rounding": lambda x: lax.round(
        lax.reduce_precision(x, 5, 10).astype(jnp.bfloat16), lax.RoundingMethod.TO_NEAREST_EVEN
    ),
    "shapes": lambda x: lax.pad(lax.rev(x.T, (0,)).reshape(2, 8), 0.0, ((1, 1, 0), (0, -1, 1))),
    "joining": lambda x: (lax.split(x, (1, 3)), lax.concatenate([x, x], 0), jnp.tile(x, (2, 1)), lax.tile(x, (2, 3))),
    "iota": lambda x: x + lax.broadcasted_iota(x.dtype, x.shape, 1),
    "eigen": lambda x: (lax.linalg.eigh(x), lax.linalg.svd(x), lax.linalg.qr(x)),
    "solving": lambda x: (jnp.linalg.solve(x + jnp.eye(4), V), lax.linalg.triangular_solve(x, x, lower=True)),
    "general": lambda x: (lax.linalg.eig(x), lax.linalg.schur(x), lax.linalg.hessenberg(x), lax.linalg.tridiagonal(x)),
    "names": lambda x: lax.optimization_barrier(jax.ad_checkpoint.checkpoint_name(x, "7")),
    "fft": lambda x: (jnp.fft.fft(x), jnp.fft.irfft(x, 5)),
    "bits": lambda x: lax.bitcast_convert_type(x, jnp.int32),
    "dynamic": lambda x: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (1, 0), (1, 2)), (1, 1)),
    "linear_solve": lambda x: lax.custom_linear_solve(lambda v: x @ v, x[0], lambda mv, b: b, symmetric=True),
    "keys": lambda x: jax.random.key_data(
        jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(jax.random.key_data(KEY)), 3))
    ),
    "samples": lambda x: jax.random.normal(jax.random.key(1), (3,)),
    "across": jax.vmap(across, axis_name="i"),
    "jit": jax.jit(lambda x: jax.jit(jnp.sin)(x) + 1),
    "cond": lambda x: lax.cond(x[0, 0] > 0, lambda y: y * x, lambda y: y, x),
    "switch": lambda x: lax.switch(2, [lambda y: y, jnp.sin, lambda y: y + x], x),
    "while": lambda x: lax.while_loop(lambda y: y[0, 0] < 3 * jnp.sum(x), lambda y: y + x, x),
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, y: y * x + i, x),
    "scan": lambda x: lax.scan(lambda c, y: (c + y @ V, c * x), 0.0, x, reverse=True),
    "custom_jvp": lambda x: doubled(x) * jax.nn.relu(x),
    "custom_vjp": lambda x: tripled(x) * x,
    "custom_vmap": lambda x: mapped(x) * x,
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(x @ x), policy=jax.checkpoint_policies.dots_saveable),
    "callback": lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, x, x, vmap_method="expand_dims"),
    "grad": jax.grad(lambda x: jnp.sum(lax.fori_loop(0, 3, lambda i, y: tripled(y) * doubled(x), x))),
}


def again(f, x):
    """The function's program, made anew from its equations."""
    program = jax.make_jaxpr(f)(x)
    return program, lambda x: evaluate(program, [x], lambda equation, values: None)


# the same text but for addresses of functions, letters in the functions of scatters, and sums of derivatives
def text(program):
    plain = re.sub(r"update_jaxpr=\{.*?\}", "", re.sub(r" at 0x\w+", "", str(program)))
    return plain.replace("add_any", "add")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_made_anew_is_the_same_program(name):
    program, run = again(PROGRAMS[name], X)
    assert text(jax.make_jaxpr(run)(X)) == text(program)
    for one, other in zip(run(X), program.eval(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rules_stay_with_programs():
    for f in (doubled, tripled, jax.nn.relu):
        _, run = again(lambda x, f=f: jnp.sum(jax.jit(f)(x)), jnp.zeros(3))
        want = jax.grad(lambda x, f=f: jnp.sum(f(x)))(jnp.zeros(3))
        np.testing.assert_array_equal(jax.grad(lambda x, run=run: run(x)[0])(jnp.zeros(3)), want)
    _, run = again(mapped, 1.0)
    np.testing.assert_array_equal(jax.vmap(run)(jnp.ones(2))[0], [10.0, 10.0])


def test_effects_are_bound_again():
    seen = []
    _, run = again(lambda x: jax.experimental.io_callback(lambda v: seen.append(float(v)), None, x, ordered=True), 2.0)
    run(5.0)
    jax.effects_barrier()
    assert seen == [5.0]


def test_a_rule_replaces_equations_inside_of_programs():
    def half(equation, values):
        return [values[0] / 2] if equation.primitive.name == "sin" else None

    def f(x):
        y = lax.cond(x > 0, jnp.sin, jnp.cos, x)
        return lax.fori_loop(0, 2, lambda i, v: jax.jit(jnp.sin)(v), y)

    program = jax.make_jaxpr(f)(1.0)
    assert float(evaluate(program, [8.0], half)[0]) == 1.0
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        evaluate(program, [1.0, 2.0], half)
