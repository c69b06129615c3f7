"""`ferrax.scipy.sparse.linalg` against dense solutions and JAX: trees, operators, tolerances, derivatives."""

import jax
import jax.scipy.sparse.linalg as jax_sp
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
import ferrax.scipy.sparse.linalg as sp
from ferrax.test_util import check_grads

RNG = np.random.default_rng(3)
N = 6
X = RNG.normal(size=(N, N))
POSITIVE = X @ X.T + N * np.eye(N)
GENERAL = X + 2 * N * np.eye(N)
COMPLEX = GENERAL + 1j * RNG.normal(size=(N, N))
HERMITIAN = COMPLEX @ COMPLEX.conj().T
B = RNG.normal(size=N)

METHODS = {
    "cg": (sp.cg, jax_sp.cg, POSITIVE, HERMITIAN),
    "bicgstab": (sp.bicgstab, jax_sp.bicgstab, GENERAL, COMPLEX),
    "gmres": (sp.gmres, jax_sp.gmres, GENERAL, COMPLEX),
    "gmres, incremental": (
        lambda *a, **k: sp.gmres(*a, solve_method="incremental", **k),
        lambda *a, **k: jax_sp.gmres(*a, solve_method="incremental", **k),
        GENERAL,
        COMPLEX,
    ),
}
each = pytest.mark.parametrize("name", METHODS)


def close(ours, theirs, rtol=1e-4):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=rtol, atol=rtol)


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_solutions(name, dtype, x64):
    method, theirs, real, complex_ = METHODS[name]
    a = (complex_ if np.dtype(dtype).kind == "c" else real).astype(dtype)
    b = B.astype(dtype)
    tol = 1e-6 if np.dtype(dtype).itemsize in (4, 8) and dtype != np.float64 else 1e-12
    x, _ = method(a, b, tol=tol)
    assert x.dtype == dtype
    close(x, np.linalg.solve(a, b), 100 * tol)
    close(x, theirs(a, b, tol=tol)[0], 100 * tol)


@each
def test_operators(name):
    method, _, a, _ = METHODS[name]
    a, b = jnp.asarray(a, dtype="float32"), jnp.asarray(B, dtype="float32")

    class Product:
        shape = a.shape

        def __matmul__(self, x):
            return a @ x

    wanted = np.linalg.solve(a, b)
    for operator in (np.asarray(a), a, lambda x: a @ x, Product()):
        close(method(operator, b)[0], wanted, 1e-3)
    close(method(a, b, jnp.ones(N))[0], wanted, 1e-3)
    inverse = jnp.linalg.inv(a)
    close(method(a, b, M=inverse, maxiter=2)[0], wanted, 1e-3)
    close(method(a, b, M=lambda x: inverse @ x, maxiter=2)[0], wanted, 1e-3)
    close(ferrax.jit(lambda b: method(a, b)[0])(b), wanted, 1e-3)
    batch = jnp.stack([b, 2 * b, 0 * b])
    close(ferrax.vmap(lambda b: method(a, b)[0])(batch), np.stack([wanted, 2 * wanted, 0 * wanted]), 1e-3)


@each
def test_trees(name):
    method = METHODS[name][0]
    b = {"u": jnp.ones((2, 3)), "v": [jnp.arange(4.0)]}
    x, _ = method(lambda t: {"u": 2 * t["u"], "v": [4 * t["v"][0] + t["u"].sum() * 0]}, b)
    close(x["u"], np.full((2, 3), 0.5))
    close(x["v"][0], np.arange(4) / 4)
    with pytest.raises(ValueError, match="matching tree structure"):
        method(lambda t: t, b, jnp.ones(3))
    with pytest.raises(ValueError, match="matching shapes"):
        method(lambda t: t, jnp.ones(2), jnp.ones(3))


@each
def test_no_more_work_than_asked_for(name):
    method, theirs, a, _ = METHODS[name]
    a, b = a.astype(np.float32), B.astype(np.float32)
    for arguments in ({"maxiter": 1, "tol": 0.0}, {"tol": 0.2}, {"atol": 1.0}, {"maxiter": 0}):
        if name.startswith("gmres"):
            arguments = {**arguments, "restart": 2}
        x = method(a, b, **arguments)[0]
        if name == "gmres, incremental" and arguments.get("maxiter") is None:
            # JAX adds a part of the next vector where it stops in a cycle
            assert 1e-3 < np.linalg.norm(b - a @ x) <= max(0.2 * np.linalg.norm(b), 1.0)
        else:
            close(x, theirs(a, b, **arguments)[0], 2e-4)
    # a system that is already solved, and one without a right-hand side
    close(method(a, b, np.linalg.solve(a, b))[0], np.linalg.solve(a, b))
    close(method(a, np.zeros(N, np.float32))[0], np.zeros(N))


@each
def test_derivatives(name, x64):
    method, _, a, _ = METHODS[name]

    def solve(a, b):
        return method(lambda x: a @ x, b, tol=1e-14)[0]

    check_grads(solve, (jnp.asarray(a), jnp.asarray(B)), 2, atol=1e-4, rtol=1e-4)
    slopes = ferrax.grad(lambda a, b: solve(a, b).sum() ** 2, (0, 1))(jnp.asarray(a), jnp.asarray(B))
    wanted = jax.grad(lambda a, b: jax.numpy.linalg.solve(a, b).sum() ** 2, (0, 1))(a, B)
    for ours, theirs in zip(slopes, wanted):
        close(ours, theirs, 1e-8)


@each
def test_refusals(name):
    method = METHODS[name][0]
    with pytest.raises(ValueError, match="square matrix"):
        method(np.ones((2, 3), np.float32), np.ones(3, np.float32))
    with pytest.raises(TypeError, match="function or ndarray"):
        method(3.0, np.ones(3, np.float32))


def test_gmres_restarts_and_tells_failures():
    a, b = GENERAL.astype(np.float32), B.astype(np.float32)
    for method in ("batched", "incremental"):
        x, info = sp.gmres(a, b, restart=2, solve_method=method)
        close(x, np.linalg.solve(a, b), 1e-3)
        assert int(info) == 0
        assert int(sp.gmres(a * np.nan, b, solve_method=method)[1]) == -1
    # a permutation, for which shorter spaces have no part of the solution
    shift = np.roll(np.eye(N, dtype=np.float32), 1, 0)
    for method in ("batched", "incremental"):
        close(sp.gmres(shift, b, solve_method=method)[0], np.linalg.solve(shift, b), 1e-4)
    with pytest.raises(ValueError, match="invalid solve_method"):
        sp.gmres(a, b, solve_method="foo")


def test_spaces_that_are_exhausted():
    a, b = np.diag([1.0, 1, 1, 2, 2, 2]).astype(np.float32), np.ones(N, np.float32)
    for method in ("batched", "incremental"):
        close(sp.gmres(a, b, tol=1e-6, solve_method=method)[0], b / np.diag(a), 1e-5)


@each
def test_strict_settings(name):
    method, _, a, _ = METHODS[name]
    a, b = jnp.asarray(a, dtype="float32"), jnp.asarray(B, dtype="float32")
    with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
        method(a, b), ferrax.grad(lambda b: method(a, b)[0].sum())(b)


@each
def test_nan_reaches_the_solution(name):
    method, _, a, _ = METHODS[name]
    assert np.isnan(np.asarray(method(a.astype(np.float32) * np.nan, np.ones(N, np.float32))[0])).any()
