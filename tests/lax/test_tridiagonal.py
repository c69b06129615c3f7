"""Tridiagonal systems with perturbed pivots: exact solutions, matrices that are singular, slopes and batches."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrix(dl, d, du):
    n = d.shape[-1]
    return sum(
        np.asarray(x)[..., None] * np.eye(n, k=k, dtype=d.dtype)[at]
        for x, k, at in ((d, 0, ...), (dl, -1, ...), (du, 1, ...))
    )


@pytest.mark.parametrize("shape", [(1,), (2,), (6,), (2, 3, 7)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_exchanged_for_larger_pivots(dtype, shape, x64):
    rng = np.random.default_rng(3)
    dl, du, b = (rng.integers(1, 9, size).astype(dtype) for size in (shape, shape, (*shape, 2)))
    d = rng.integers(-1, 2, shape).astype(dtype)
    d[..., 0] = 0 if shape[-1] % 2 == 0 else 1
    x = lax.linalg.tridiagonal_solve(dl, d, du, b, perturb_singular=True)
    assert x.dtype == dtype and x.shape == b.shape
    left = np.abs(matrix(dl, d, du) @ np.asarray(x) - b)
    assert (left <= 100 * np.finfo(dtype).eps * np.max(np.abs(x), axis=-2, keepdims=True)).all()


def test_singular_systems_have_finite_solutions(x64):
    one = jnp.ones(4)
    d = jnp.array([1.0, 2.0, 2.0, 1.0])  # the constant vector is mapped to zero
    x = lax.linalg.tridiagonal_solve(-one, d, -one, one[:, None], perturb_singular=True)
    assert np.isfinite(x).all() and abs(x).min() > 1e14
    np.testing.assert_allclose(x / x[0], jnp.ones((4, 1)), rtol=1e-12)
    assert not np.isfinite(lax.linalg.tridiagonal_solve(-one, d, -one, one[:, None])).all()
    zero = jnp.zeros(3)
    assert np.isfinite(lax.linalg.tridiagonal_solve(zero, zero, zero, jnp.ones((3, 1)), perturb_singular=True)).all()


def test_slopes_and_batches_of_perturbed_solutions(x64):
    rng = np.random.default_rng(1)
    dl, du, b = (jnp.asarray(rng.integers(1, 5, s), "float64") for s in (5, 5, (5, 2)))
    d = jnp.asarray(rng.integers(9, 12, 5), "float64")

    def solve(*args):
        return lax.linalg.tridiagonal_solve(*args, perturb_singular=True)

    ferrax.test_util.check_grads(solve, (dl, d, du, b), 2, atol=1e-4, rtol=1e-4)
    rows = jnp.stack([d, d + 1])
    batched = ferrax.vmap(solve, (None, 0, None, None))(dl, rows, du, b)
    np.testing.assert_allclose(batched, jnp.stack([solve(dl, row, du, b) for row in rows]), rtol=1e-13)
    np.testing.assert_allclose(ferrax.jit(solve)(dl, d, du, b), solve(dl, d, du, b), rtol=1e-13)
