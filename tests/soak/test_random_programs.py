"""Ten thousand random programs, one after the other, in one process: results are right and nothing is left behind.

Each program is a chain of operations on a few small arrays, drawn from a seeded generator: elementwise, shapes,
reductions, products, sorts, indexing, loops and branches. Every one runs under `jit`; some are run eagerly too (the
bits must be the same under strict numerics), differentiated or mapped. `FERRAX_SOAK` says how many.
"""

import gc
import os
import random

import numpy as np

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

PROGRAMS = int(os.environ.get("FERRAX_SOAK", "10000"))
SHAPES = [(), (1,), (7,), (16,), (33,), (3, 5), (8, 8), (5, 1), (2, 3, 4)]
UNARY = [jnp.sin, jnp.tanh, jnp.abs, jnp.negative, jnp.floor, jnp.square, lambda x: jnp.exp(-jnp.abs(x)), jnp.sign,
         lambda x: jnp.log1p(jnp.abs(x)), lambda x: x * 0.5 + 1, ferrax.nn.relu, ferrax.nn.sigmoid]  # fmt: skip
BINARY = [jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum, jnp.arctan2,
          lambda x, y: jnp.where(x > y, x, y * 2), lambda x, y: x / (1 + jnp.abs(y))]  # fmt: skip
REDUCTIONS = [jnp.sum, jnp.max, jnp.min, jnp.mean, jnp.prod, jnp.var]


def unary(rng, x):
    f = rng.choice(UNARY)
    return lambda v: f(v[x])


def binary(rng, x, y):
    f = rng.choice(BINARY)
    return lambda v: f(v[x], v[y])


def reduction(rng, x, shape):
    f, axis, keep = rng.choice(REDUCTIONS), rng.choice([None, *range(len(shape))]), rng.random() < 0.5
    return lambda v: f(v[x], axis=axis, keepdims=keep)


def movement(rng, x, shape):
    axis = rng.randrange(len(shape))
    order = rng.sample(range(len(shape)), len(shape))
    low = rng.randrange(shape[axis])
    return rng.choice([
        lambda v: v[x].reshape(-1), lambda v: jnp.transpose(v[x], order), lambda v: jnp.flip(v[x], axis),
        lambda v: jnp.concatenate([v[x], v[x]], axis), lambda v: lax.slice_in_dim(v[x], low, shape[axis], axis=axis),
        lambda v: jnp.pad(v[x], 1), lambda v: jnp.roll(v[x], 1, axis), lambda v: jnp.expand_dims(v[x], axis),
    ])  # fmt: skip


def ordering(rng, x, shape):
    axis = rng.randrange(len(shape))
    return rng.choice([
        lambda v: jnp.sort(v[x], axis), lambda v: jnp.argsort(v[x], axis).astype(jnp.float32),
        lambda v: jnp.cumsum(v[x], axis), lambda v: jnp.argmax(v[x], axis).astype(jnp.float32),
        lambda v: lax.cummax(v[x], axis),
    ])  # fmt: skip


def indexing(rng, x, shape):
    at = np.array([rng.randrange(shape[0]) for _ in range(4)])
    return rng.choice([
        lambda v: v[x][at], lambda v: jnp.take(v[x], jnp.asarray(at), axis=0), lambda v: v[x].at[at].add(1.5),
        lambda v: v[x].at[0].set(0.25), lambda v: lax.dynamic_slice_in_dim(v[x], jnp.int32(at[0]), 1),
        lambda v: v[x][::-1],
    ])  # fmt: skip


def product(rng, x, shape):
    if len(shape) == 1:
        return rng.choice([lambda v: v[x] @ v[x], lambda v: jnp.outer(v[x][:8], v[x][:8])])
    return lambda v: jnp.matmul(v[x], jnp.swapaxes(v[x], -1, -2)) * 0.1


def loop(rng, x):
    n, f = rng.randrange(6), rng.choice(UNARY[:3])
    return rng.choice([
        lambda v: lax.fori_loop(0, n, lambda i, c: f(c) + i * 0.1, v[x]),
        lambda v: lax.scan(lambda c, t: (f(c) + t, c * t), v[x], jnp.arange(float(n)))[0],
        lambda v: lax.scan(lambda c, t: (c * 0.5, f(c) + t), v[x], jnp.arange(float(n)))[1],
        lambda v: lax.cond(jnp.sum(v[x]) > 0, f, lambda c: c - 1, v[x]),
        lambda v: lax.while_loop(lambda c: jnp.max(jnp.abs(c[0]), initial=0.0) > 1, lambda c: (c[0] * 0.4, c[1] + 1),
                                 (v[x], 0))[0],
    ])  # fmt: skip


def draw_step(rng, shapes):
    """One operation on the values so far, which are known by shape."""
    x = rng.randrange(len(shapes))
    shape = shapes[x]
    kinds = [unary, unary, loop]
    if shape and 0 not in shape:
        kinds += [reduction, movement, ordering, indexing, product]
    same = [i for i, s in enumerate(shapes) if s == shape or s == ()]
    kind = rng.choice([*kinds, binary, binary])
    if kind is binary:
        return binary(rng, x, rng.choice(same))
    return kind(rng, x) if kind in (unary, loop) else kind(rng, x, shape)


def draw_program(rng):
    """A function of a list of arrays, and its arguments as NumPy arrays."""
    values = np.random.default_rng(rng.randrange(1 << 30))
    args = [values.normal(size=rng.choice(SHAPES)).astype(np.float32) for _ in range(rng.randrange(1, 4))]
    shapes, steps = [a.shape for a in args], []
    for _ in range(rng.randrange(2, 9)):
        step = draw_step(rng, shapes)
        structs = [ferrax.ShapeDtypeStruct(s, jnp.float32) for s in shapes]
        out = ferrax.eval_shape(step, structs)
        if out.size > 2000:
            continue
        assert out.dtype == jnp.float32
        shapes.append(out.shape)
        steps.append(step)

    def program(*args):
        known = list(args)
        for step in steps:
            known.append(step(known))
        return known[len(args) :][-3:]

    return program, args


def run_one(rng, seed):
    program, args = draw_program(rng)
    compiled = ferrax.jit(program)
    results = compiled(*args)
    if seed % 4 == 0:
        for a, b in zip(results, program(*map(jnp.asarray, args)), strict=True):
            np.testing.assert_array_equal(a, b)
    if seed % 8 == 1:
        total = ferrax.jit(lambda *args: sum(jnp.sum(r) for r in program(*args)))
        slopes = ferrax.grad(total)(*map(jnp.asarray, args))
        assert slopes.shape == args[0].shape
    if seed % 8 == 2:
        rows = ferrax.vmap(compiled)(*[np.stack([a, a]) for a in args])
        for row, alone in zip(rows, results, strict=True):
            np.testing.assert_allclose(row[0], alone, rtol=1e-4, atol=1e-5)


def held():
    gc.collect()
    ferrax.clear_caches()
    return ferrax.devices()[0].memory_stats()["bytes_in_use"], len(ferrax.live_arrays())


def test_random_programs_are_right_and_leave_nothing():
    with ferrax.strict_numerics(True):
        run_one(random.Random(0), 0)
        before = held()
        for seed in range(PROGRAMS):
            try:
                run_one(random.Random(seed), seed)
            except Exception as e:
                e.add_note(f"program {seed}")
                raise
    assert held() == before
