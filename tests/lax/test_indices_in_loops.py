"""Loops that read and write arrays at several indices a step: the bits of the same steps, one call each.

Small loops run in registers and reach arrays in memory by the numbers of their elements (`plan/registers/windows.rs`).
"""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp

STEPS = 9


def indices(c, step, count, extent):
    """Numbers that the state decides, some of them outside."""
    return (c[:count].astype(int) * 5 + jnp.arange(count) * 3 + step) % (extent + 6) - 3


def several(mode):
    def body(step, state):
        c, x = state
        i = indices(c, step, 8, 33)
        found = x.at[jnp.arange(8), i].get(mode=mode, fill_value=7 if mode == "fill" else None)
        return found * 2 - c, x

    return body


def two(mode):
    def body(step, state):
        c, x = state
        found = x.at[indices(c, step, 8, 8), indices(c, step + 1, 8, 33)].get(mode=mode)
        return c + found, x

    return body


def along_an_axis(step, state):
    c, x = state
    return c + jnp.take_along_axis(x, indices(c, step, 8, 33)[:, None], 1)[:, 0], x


def mapped(step, state):
    c, x = state
    return jax.vmap(lambda row, i, c: row[i] - c)(x, indices(c, step, 8, 33), c), x


def rows(step, state):
    c, x = state
    found = x[indices(c, step, 3, 8)]
    return c + found[0, :8] - found[2, 20:28], x


def writing(name, mode):
    def body(step, state):
        c, x = state
        at = x.at[jnp.arange(8) // 2, indices(c, step, 8, 33)]
        x = getattr(at, name)(c + step, mode=mode)
        return c * 2 - x[step % 8, 10:18], x

    return body


def mapped_writing(step, state):
    c, x = state
    x = jax.vmap(lambda row, i, c: row.at[i].set(c).at[i + 1].add(1))(x, indices(c, step, 8, 33), c)
    return c + jax.vmap(lambda row, i: row[i])(x, indices(c, step + 1, 8, 33)), x


def rows_written(step, state):
    c, x = state
    x = x.at[indices(c, step, 2, 8)].set(x[:2] + c[0])
    return c - x[3, :8], x


def twice_in_one_place(step, state):
    c, x = state
    i = indices(c, step, 8, 33) * 0 + 5
    return c + 1, x.at[0, i].add(c).at[1, i].set(c).at[2, i].max(c, mode="clip")


def many(count):
    def body(step, state):
        c, x = state
        i = (jnp.arange(count) * 7 + c[0].astype(int) + step) % 40 - 3
        x = x.at[i % 8, i].add(i.astype(x.dtype), mode="drop")
        return c + x.at[i % 8, i].get(mode="fill", fill_value=1)[:8] - x.at[i[-8:], i[-8:]].get(mode="clip"), x

    return body


def three(step, state):
    c, x = state
    y = x.reshape(4, 2, 33)
    i = indices(c, step, 8, 33)
    return c - y.at[i // 3, i % 2, i].get(mode="fill", fill_value=2), x


def windows(step, state):
    c, x = state
    i = indices(c, step, 8, 33)
    found = jax.vmap(lambda row, i: jax.lax.dynamic_slice(row, (i,), (4,)))(x, i)
    x = jax.vmap(lambda row, i, w: jax.lax.dynamic_update_slice(row, w * 2, (i + 1,)))(x, i, found)
    return c + found[:, 1], x


def one_window(step, state):
    c, x = state
    found = jax.lax.dynamic_slice(x, (c[0].astype(int) % 9 - 1, 0), (3, 33))
    return c + found[1, 4:12], jax.lax.dynamic_update_slice(x, found + 1, (step - 2, c[1].astype(int)))


BODIES = {
    **{f"many, {count}": many(count) for count in (9, 20, 64, 65)},
    "three": three,
    "windows": windows,
    "one window": one_window,
    **{f"several, {mode}": several(mode) for mode in ("clip", "fill", "promise_in_bounds")},
    **{f"two, {mode}": two(mode) for mode in ("clip", "fill")},
    "along an axis": along_an_axis,
    "mapped": mapped,
    "rows": rows,
    **{
        f"{name}, {mode}": writing(name, mode)
        for name in ("set", "add", "multiply", "min")
        for mode in ("drop", "clip")
    },
    "mapped writing": mapped_writing,
    "rows written": rows_written,
    "twice in one place": twice_in_one_place,
}


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32", "float64", "int64", "int16"])
@pytest.mark.parametrize("name", list(BODIES))
def test_a_loop_is_its_steps(name, dtype):
    body = BODIES[name]
    with jax.enable_x64(dtype in ("float64", "int64")):
        rng = np.random.default_rng(len(name))
        start = (rng.integers(0, 9, 8).astype(dtype), rng.integers(0, 99, (8, 33)).astype(dtype))
        start = jax.tree.map(jnp.asarray, start)
        looped = jax.jit(lambda state: jax.lax.fori_loop(0, STEPS, body, state))(start)
        step, state = jax.jit(body), start
        for i in range(STEPS):
            state = step(i, state)
        for got, want in zip(looped, state, strict=True):
            assert got.dtype == want.dtype == dtype
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
