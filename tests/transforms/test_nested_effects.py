"""What loops inside loops, branches and maps show and write: every call, whether or not the inner loop has results."""

import jax as reference
import numpy as np
import pytest

import ferrax

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def each(jax, note, row):
    """A loop without results over a row."""
    jax.lax.scan(lambda c, e: (c, jax.debug.callback(note, e)), (), row)


def written(jax, note, row):
    jax.experimental.io_callback(note, None, row[0], ordered=True)


PROGRAMS = {
    "map of map": lambda jax, note: lambda x: jax.vmap(jax.vmap(lambda v: jax.debug.callback(note, v)))(x),
    "map of map of map": lambda jax, note: (
        lambda x: jax.vmap(jax.vmap(jax.vmap(lambda v: jax.debug.callback(note, v))))(x[None])
    ),
    "map of a loop": lambda jax, note: lambda x: jax.vmap(lambda row: each(jax, note, row))(x),
    "loop of loop": lambda jax, note: lambda x: jax.lax.scan(lambda c, row: (c, each(jax, note, row)), (), x)[0],
    "loop of loop of loop": lambda jax, note: (
        lambda x: jax.lax.scan(
            lambda c, block: (c, jax.lax.scan(lambda c, row: (c, each(jax, note, row)), (), block)[1]), (), x[None]
        )[0]
    ),
    "while of loop": lambda jax, note: (
        lambda x: jax.lax.fori_loop(0, 2, lambda i, c: (each(jax, note, x[i]), c + 1)[1], 0)
    ),
    "loop of what is the same": lambda jax, note: (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, c: (each(jax, note, x[1]), c + 1)[1], 0)
    ),
    "branch of loop": lambda jax, note: (
        lambda x: jax.lax.cond(x[0, 0] < 1, lambda: each(jax, note, x[1]), lambda: each(jax, note, x[0]))
    ),
    "loop of writes": lambda jax, note: (
        lambda x: jax.lax.fori_loop(
            0, 2, lambda i, c: (jax.lax.scan(lambda c, r: (c, written(jax, note, r)), (), x), c + 1)[1], 0
        )
    ),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_call(name, jit):
    found = []
    for jax in (reference, ferrax):
        seen = []
        f = PROGRAMS[name](jax, lambda v, seen=seen: seen.append(float(v)))
        (jax.jit(f) if jit else f)(jax.numpy.asarray(X))
        jax.effects_barrier()
        found.append(seen)
    assert len(found[0]) > 2
    if "map" in name:  # whose order is nobody's promise
        found = [sorted(seen) for seen in found]
    assert found[1] == found[0]
