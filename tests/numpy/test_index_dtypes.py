"""Indices of every integer dtype, at and beyond its ends: what is beyond an axis stays there, eagerly and under jit."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

NARROW = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
WIDE = ["int64", "uint64"]
X = np.arange(10, dtype=np.float32)


@pytest.fixture(autouse=True, params=NARROW + WIDE)
def dtype(request):
    with ferrax.enable_x64(request.param in WIDE):
        yield request.param


def places(dtype):
    """Indices of a dtype: inside, at the end, beyond it, and the numbers at the dtype's own ends and in its middle."""
    info = np.iinfo(dtype)
    ends = [info.max, info.max - 3, info.max // 2 + 1, info.min]
    inside = [0, 3, 9, 10, 100] + ([-1, -3] if info.min < 0 else [])
    if info.bits == 64:
        inside += [2**31, 2**32 + 3, 2**33 - 2]
    return np.array(inside + ends, dtype)


def counted(i, size, window=1):
    """Where an index is, clamped; negative ones count from the end first."""
    i = int(i)
    return min(max(i + size if i < 0 else i, 0), size - window)


def is_inside(i, size):
    return -size <= int(i) < size


def everywhere(program, *args):
    """The results eagerly, under jit, and of constants under jit."""
    yield program(*args)
    yield ferrax.jit(program)(*args)
    yield ferrax.jit(lambda: program(*args))()


def test_reads(dtype):
    i = places(dtype)
    clamped = X[[counted(k, 10) for k in i]]
    filled = np.where([is_inside(k, 10) for k in i], clamped, np.nan)
    for found in everywhere(lambda x, i: x[i], jnp.asarray(X), jnp.asarray(i)):
        np.testing.assert_array_equal(np.asarray(found), clamped)
    for found in everywhere(lambda x, i: x.at[i].get(mode="fill"), jnp.asarray(X), jnp.asarray(i)):
        np.testing.assert_array_equal(np.asarray(found), filled)
    for found in everywhere(lambda x, i: jnp.take(x, i), jnp.asarray(X), jnp.asarray(i)):
        np.testing.assert_array_equal(np.asarray(found), filled)
    for found in everywhere(lambda x, i: jnp.take_along_axis(x, i, 0), jnp.asarray(X), jnp.asarray(i)):
        np.testing.assert_array_equal(np.asarray(found), filled)
    for found in everywhere(lambda x, i: ferrax.vmap(lambda k: x[k])(i), jnp.asarray(X), jnp.asarray(i)):
        np.testing.assert_array_equal(np.asarray(found), clamped)
    stacked = lambda x, i: jnp.stack([x[i[k]] for k in range(len(i))])
    for found in everywhere(stacked, jnp.asarray(X), jnp.asarray(i)):
        np.testing.assert_array_equal(np.asarray(found), clamped)


def test_updates(dtype):
    for k in places(dtype):
        dropped, clamped = X.copy(), X.copy()
        clamped[counted(k, 10)] += 5
        if is_inside(k, 10):
            dropped[int(k)] += 5
        i = jnp.asarray(np.array([k]))
        for found in everywhere(lambda x, i: x.at[i].add(5), jnp.asarray(X), i):
            np.testing.assert_array_equal(np.asarray(found), dropped)
        for found in everywhere(lambda x, i: x.at[i].add(5, mode="clip"), jnp.asarray(X), i):
            np.testing.assert_array_equal(np.asarray(found), clamped)


def test_windows(dtype):
    i = places(dtype)
    starts = [counted(k, 10, 2) for k in i]
    sliced = lambda x, i: jnp.stack([lax.dynamic_slice(x, (i[k],), (2,)) for k in range(len(i))])
    for found in everywhere(sliced, jnp.asarray(X), jnp.asarray(i)):
        np.testing.assert_array_equal(np.asarray(found), [X[s : s + 2] for s in starts])
    looped = lambda x, i: lax.scan(lambda c, k: (c, lax.dynamic_slice(x, (k,), (2,))), 0, i)[1]
    for found in everywhere(looped, jnp.asarray(X), jnp.asarray(i)):
        np.testing.assert_array_equal(np.asarray(found), [X[s : s + 2] for s in starts])
    mapped = lambda x, i: ferrax.vmap(lambda k: lax.dynamic_slice(x, (k,), (2,)))(i)
    for found in everywhere(mapped, jnp.asarray(X), jnp.asarray(i)):
        np.testing.assert_array_equal(np.asarray(found), [X[s : s + 2] for s in starts])
    update = lambda x, i: ferrax.vmap(lambda k: lax.dynamic_update_slice(x, -jnp.ones(2, x.dtype), (k,)))(i)
    wanted = np.stack([X] * len(i))
    for row, s in zip(wanted, starts):
        row[s : s + 2] = -1
    for found in everywhere(update, jnp.asarray(X), jnp.asarray(i)):
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("other", ["int8", "int32", "uint8", "uint32"])
def test_windows_at_starts_of_two_dtypes(dtype, other):
    x = np.arange(600, dtype=np.float32).reshape(200, 3)
    for k in places(dtype):
        a, b = counted(k, 200, 2), 1
        args = (jnp.asarray(x), jnp.asarray(k), jnp.asarray(np.array(1, other)))
        for found in everywhere(lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 2)), *args):
            np.testing.assert_array_equal(np.asarray(found), x[a : a + 2, b : b + 2])
        for found in everywhere(lambda x, i, j: x[i, j], *args):
            np.testing.assert_array_equal(np.asarray(found), x[counted(k, 200), 1])
        wanted = x.copy()
        wanted[a : a + 2, b : b + 2] = -1
        for found in everywhere(lambda x, i, j: lax.dynamic_update_slice(x, -jnp.ones((2, 2), x.dtype), (i, j)), *args):
            np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("dtype", [None, "int32"])
def test_programs_of_traced_indices_like_jax(dtype):
    """Python integers are compared before they lose their weak type."""
    import jax
    import jax.numpy as theirs

    def programs(lib, jnp):
        x, i = jnp.zeros((10, 3)), 3 if dtype is None else jnp.array(3, dtype)
        yield lib.make_jaxpr(lambda x, i: x[i])(x[0], i)
        yield lib.make_jaxpr(lambda x, i: x[i, i])(x, i)
        yield lib.make_jaxpr(lambda x, i: lib.lax.dynamic_slice(x, (i, i), (2, 1)))(x, i)

    for ours, wanted in zip(programs(ferrax, jnp), programs(jax, theirs), strict=True):
        assert str(ours) == str(wanted)
