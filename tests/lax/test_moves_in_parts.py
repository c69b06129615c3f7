"""Gathers and scatters that threads share out, or that keep elements in registers, beside NumPy, one by one."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

RNG = np.random.default_rng(17)
SEGMENTS = 500
#: Indices of rows: in order, in any order, few of them again and again, and with some outside.
INDICES = {
    "sorted": np.sort(RNG.integers(0, SEGMENTS, 20_000)),
    "unsorted": RNG.integers(0, SEGMENTS, 20_000),
    "few": RNG.integers(3, 5, 20_000),
    "one": np.full(20_000, SEGMENTS - 1),
    "outside": RNG.integers(-40, SEGMENTS + 40, 20_000),
}
JOINS = {
    "add": np.add.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
    "set": lambda x, index, updates: x.__setitem__(index, updates),
}


def updates_of(count, width, dtype):
    shape = (count,) if width is None else (count, width)
    if np.issubdtype(dtype, np.integer):
        return RNG.integers(-100, 100, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


def expected(join, index, updates):
    """One update after the other: NumPy's are in order, too."""
    out = np.ones((SEGMENTS, *updates.shape[1:]), updates.dtype)
    inside = (index >= 0) & (index < SEGMENTS)
    if join is JOINS["set"]:
        for i, u in zip(index[inside], updates[inside], strict=True):
            out[i] = u
    else:
        join(out, index[inside], updates[inside])
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("width", [None, 1, 15, 16, 17, 64])
@pytest.mark.parametrize("kind", INDICES)
def test_scatters_apply_updates_in_order(kind, width, dtype):
    index = INDICES[kind]
    with ferrax.enable_x64():
        updates = updates_of(len(index), width, dtype)
        for name, join in JOINS.items():
            want = expected(join, index, updates)
            scatter = ferrax.jit(
                lambda i, u, n=name: getattr(jnp.ones_like(u, shape=want.shape).at[i], n)(
                    u, wrap_negative_indices=False
                )
            )
            for _ in range(2):
                np.testing.assert_array_equal(scatter(index, updates), want, err_msg=name)


def test_not_a_number_goes_through_segments():
    index, updates = INDICES["sorted"], updates_of(20_000, None, np.float32)
    updates[RNG.integers(0, 20_000, 50)] = np.nan
    for name in ["max", "min", "add"]:
        got = getattr(jnp.ones(SEGMENTS, "float32").at[index], name)(updates)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(got, expected(JOINS[name], index, updates))


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("shape", [(1000, 300), (7, 40, 300), (3, 300), (1, 2, 300), (90, 11, 300)], ids=str)
def test_columns_are_taken_from_every_row(shape, mode):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    inside = mode == "promise_in_bounds"
    for count in [1, 15, 200, 700]:
        index = RNG.integers(0 if inside else -30, 300 if inside else 330, count)
        got = ferrax.jit(lambda x, i: jnp.take(x, i, axis=-1, mode=mode if mode != "promise_in_bounds" else None))(
            x, index
        )
        wrapped = index + 300 * (index < 0) if mode == "fill" else index
        want = x[..., np.clip(wrapped, 0, 299)]
        if mode == "fill":
            want = np.where((wrapped >= 0) & (wrapped < 300), want, np.nan)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["divide", "multiply", "power"])
def test_complex_functions_are_the_same_in_parts(name):
    x, y = (RNG.standard_normal((2, 100_000)) + 1j * RNG.standard_normal((2, 100_000))).astype(np.complex64)
    whole = ferrax.jit(getattr(jnp, name))(x, y)
    for part in [slice(0, 100), slice(40_000, 40_037), slice(99_990, None)]:
        np.testing.assert_array_equal(whole[part], getattr(jnp, name)(x[part], y[part]))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 30, 50, 101])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_tridiagonal_forms_have_the_matrix_s_eigenvalues(dtype, n, lower):
    with ferrax.enable_x64():
        x = RNG.standard_normal((n, n)) + 1j * RNG.standard_normal((n, n))
        x = (x + x.conj().T).astype(dtype) if dtype.startswith("complex") else (x.real + x.real.T).astype(dtype)
        packed, d, e, taus = lax.linalg.tridiagonal(jnp.asarray(x), lower=lower)
        form = (
            np.diag(np.asarray(d, "float64"))
            + np.diag(np.asarray(e, "float64"), 1)
            + np.diag(np.asarray(e, "float64"), -1)
        )
        tolerance = 40 * np.finfo(dtype).eps * np.abs(x).max() * n
        np.testing.assert_allclose(np.linalg.eigvalsh(form), np.linalg.eigvalsh(x), atol=tolerance)
        # The triangle that is not asked for stays as it was.
        other = np.triu if lower else np.tril
        np.testing.assert_array_equal(other(packed, 1 if lower else -1), other(x, 1 if lower else -1))
        assert taus.shape == (n - 1,)
