"""Systems and eigenvalues of sparse matrices against NumPy's."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax.experimental import sparse
from ferrax.experimental.sparse import linalg
from tests.sparse.layouts import dense_array


def system(n, dtype="float32", seed=0):
    dense = dense_array((n, n), dtype, seed) + 5 * n * np.eye(n, dtype=dtype)
    mat = sparse.CSR.fromdense(dense)
    return dense, (mat.data, mat.indices, mat.indptr)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_solve(dtype, columns):
    dense, arrays = system(6, dtype)
    b = dense_array((6, *columns), dtype, seed=1)
    wanted = np.linalg.solve(dense, b)
    for reorder in range(4):
        np.testing.assert_allclose(linalg.spsolve(*arrays, b, reorder=reorder), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.jit(linalg.spsolve)(*arrays, b), wanted, rtol=1e-5, atol=1e-6)


def test_derivatives_and_maps_of_solutions():
    dense, (data, *rest) = system(5)
    b = dense_array((5,), seed=1)
    jax.test_util.check_grads(
        lambda d, b: linalg.spsolve(d, *rest, b),
        (data, b),
        order=1,
        modes=("fwd", "rev"),
        eps=1e-2,
        atol=1e-2,
        rtol=1e-2,
    )
    many = jax.vmap(lambda b: linalg.spsolve(data, *rest, b))(jnp.stack([b, 2 * b]))
    np.testing.assert_allclose(many[1], np.linalg.solve(dense, 2 * b), rtol=1e-5, atol=1e-6)


def test_systems_that_are_refused():
    _, (data, indices, indptr) = system(5)
    with pytest.raises(ValueError, match="does not go with indptr"):
        linalg.spsolve(data, indices, indptr, jnp.ones(4))
    with pytest.raises(ValueError, match="one length"):
        linalg.spsolve(data[1:], indices, indptr, jnp.ones(5))
    with pytest.raises(ValueError, match="reorder=4"):
        linalg.spsolve(data, indices, indptr, jnp.ones(5), reorder=4)
    n = 20000
    with pytest.raises(NotImplementedError, match="at most 16384 rows"):
        linalg.spsolve(jnp.ones(n), jnp.arange(n), jnp.arange(n + 1), jnp.ones(n))


def hermitian(n, values, dtype, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else 0)
    q = np.linalg.qr(q)[0]
    return ((q * values) @ q.conj().T).astype(dtype)


SPECTRA = {
    "geometric": lambda n: 1.5 ** np.arange(n)[::-1].clip(0, 30),
    "linear": lambda n: np.arange(n, 0, -1.0),
    "negative": lambda n: -np.arange(1.0, n + 1),
    "repeated": lambda n: np.where(np.arange(n) < 3, 10.0, 1.0),
    "clustered": lambda n: np.where(np.arange(n) < 4, 10 + 0.01 * np.arange(n), np.linspace(0, 5, n)),
    "low rank": lambda n: np.where(np.arange(n) < 2, 5.0, 0.0),
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("k", [1, 3])
def test_eigenvalues(name, k):
    n = 30
    values = SPECTRA[name](n)
    with jax.enable_x64(True):
        matrix = hermitian(n, values, "float64")
        start = np.random.default_rng(1).standard_normal((n, k))
        theta, vectors, steps = linalg.lobpcg_standard(matrix, start, m=200)
        wanted = np.sort(values)[::-1][:k]
        np.testing.assert_allclose(theta, wanted, rtol=1e-8, atol=1e-8 * np.abs(values).max())
        residual = matrix @ np.asarray(vectors) - np.asarray(vectors) * np.asarray(theta)
        assert np.linalg.norm(residual) <= 1e-6 * np.abs(values).max()
        np.testing.assert_allclose(np.asarray(vectors).T @ vectors, np.eye(k), atol=1e-10)
        assert 0 < int(steps) <= 200


def test_eigenvalues_of_all_kinds():
    n, k = 24, 2
    dense = hermitian(n, np.arange(1.0, n + 1), "float32")
    start = jnp.asarray(np.random.default_rng(1).standard_normal((n, k)), "float32")
    for matrix in (dense, lambda x: jnp.dot(dense, x), sparse.BCOO.fromdense(dense), sparse.CSR.fromdense(dense)):
        theta, vectors, _ = linalg.lobpcg_standard(matrix, start)
        assert theta.dtype == vectors.dtype == np.float32
        np.testing.assert_allclose(theta, [24, 23], rtol=1e-5)
    theta = jax.jit(lambda a, x: linalg.lobpcg_standard(a, x, m=80)[0])(dense, start)
    np.testing.assert_allclose(theta, [24, 23], rtol=1e-5)
    assert int(linalg.lobpcg_standard(dense, start, m=3)[2]) == 3
    assert int(linalg.lobpcg_standard(dense, start, tol=1e-2)[2]) < int(linalg.lobpcg_standard(dense, start)[2])
    dense = hermitian(n, np.arange(1.0, n + 1), "complex64")
    theta, vectors, _ = linalg.lobpcg_standard(dense, start.astype("complex64"))
    assert theta.dtype == np.float32 and vectors.dtype == np.complex64
    np.testing.assert_allclose(theta, [24, 23], rtol=1e-5)


@pytest.mark.parametrize(
    "matrix, shape, text",
    [
        (np.eye(20), (20, 4), r"search dim \* 5 < matrix dim \(got 20, 20\)"),
        (np.eye(20), (20, 0), "must have search dim > 0"),
        (np.eye(5), (20, 2), r"must be \(20, 20\) matrix A"),
        (lambda x: x[:3], (20, 2), r"must be \(20, 20\) matrix A"),
        (lambda x: x.astype("float16"), (20, 2), "same dtypes"),
    ],
)
def test_searches_that_are_refused(matrix, shape, text):
    with pytest.raises(ValueError, match=text):
        linalg.lobpcg_standard(matrix, jnp.ones(shape))


def test_measures_of_searches():
    n, k, steps = 30, 3, 15
    matrix = hermitian(n, np.arange(n), "float32")
    start = jnp.asarray(np.random.default_rng(1).standard_normal((n, k)), "float32")
    theta, vectors, count, measures = linalg._lobpcg_standard_matrix(matrix, start, steps, 0.0, debug=True)
    assert int(count) == steps
    assert measures["lambda history"].shape == measures["residual history"].shape == (steps, k)
    np.testing.assert_array_equal(measures["lambda history"][-1], theta)
    lengths = np.asarray(theta) + np.linalg.norm(matrix @ vectors, axis=0)
    residual = np.linalg.norm(matrix @ vectors - vectors * theta, axis=0) / (10 * n * lengths)
    np.testing.assert_allclose(measures["adjusted residual max"][-1], residual.max(), rtol=0.1, atol=1e-8)
    assert not measures["X zeros"].any() and (measures["basis rank"] <= 3 * k).all()
    assert (measures["X orth"] < 1e-6).all()
    plain = linalg._lobpcg_standard_callable(lambda x: jnp.dot(matrix, x), start, steps, None)
    assert len(plain) == 3 and int(plain[2]) <= steps
