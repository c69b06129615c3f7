"""Schur forms and updates of Cholesky factors: what they satisfy, NumPy's and SciPy's eigenvalues, JAX's errors."""

import math

import numpy as np
import pytest
import scipy.linalg
from scipy.optimize import linear_sum_assignment

import ferrax
import ferrax.numpy as jnp
from ferrax.lax import linalg
from tests.recorded import both, expected
from tests.support import on_xla

DTYPES = ["float32", "float64", "complex64", "complex128"]
#: Residuals are at most this many times ε n of the norm.
MULTIPLE = 10


def random(n, dtype, batch=()):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(*batch, n, n))
    return (x + 1j * rng.normal(size=x.shape) if dtype.startswith("complex") else x).astype(dtype)


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def standard(t):
    """Whether a real matrix is triangular but for blocks of conjugate pairs in LAPACK's standard form."""
    if np.tril(t, -2).any():
        return False
    below = np.flatnonzero(np.diagonal(t, -1))
    pairs = all(t[k, k] == t[k + 1, k + 1] and t[k, k + 1] * t[k + 1, k] < 0 for k in below)
    return pairs and (np.diff(below) > 1).all()


def check(x):
    """A = Z T Zᴴ and Zᴴ Z = I within MULTIPLE ε n, T's form; gives T."""
    dtype, n = x.dtype, x.shape[-1]
    t, z = linalg.schur(x)
    (alone,) = linalg.schur(x, compute_schur_vectors=False)
    np.testing.assert_array_equal(alone, t)
    assert t.dtype == z.dtype == dtype
    t, z = np.asarray(t), np.asarray(z)
    assert t.shape == z.shape == x.shape
    wide = np.complex128 if dtype.kind == "c" else np.float64
    stacks = (y.astype(wide).reshape(math.prod(x.shape[:-2]), n, n) for y in (x, t, z))
    bound = MULTIPLE * n * np.finfo(dtype).eps
    for a, form, basis in zip(*stacks, strict=True):
        norm = np.linalg.norm(a)
        assert np.linalg.norm(basis @ form @ adjoint(basis) - a) <= bound * norm
        assert np.linalg.norm(adjoint(basis) @ basis - np.eye(n)) <= bound
        assert standard(form) if dtype.kind == "f" else not np.tril(form, -1).any()
    return t


def eigenvalues(t):
    """Those of the blocks on the diagonal of a real or complex T."""
    w = np.diagonal(t).astype(complex)
    for k in np.flatnonzero(np.diagonal(t, -1)):
        root = 1j * np.sqrt(-t[k, k + 1] * t[k + 1, k])
        w[k : k + 2] += [root, -root]
    return w


def matched(a, b):
    """The largest distance of two sets of numbers, paired as is best."""
    distances = np.abs(np.asarray(a)[:, None] - np.asarray(b)[None])
    rows, columns = linear_sum_assignment(distances)
    return distances[rows, columns].max(initial=0.0)


@pytest.fixture(autouse=True)
def wide():
    with ferrax.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_matrices_of_all_sizes(dtype):
    for n in [*range(41), 120]:
        x = random(n, dtype)
        t = check(x)
        if 0 < n <= 40:
            w = eigenvalues(t.astype("complex128" if dtype.startswith("c") else "float64"))
            size = np.linalg.norm(x)
            # Eigenvalues move by their condition numbers, which random matrices of these sizes keep below 100.
            bound = 100 * MULTIPLE * n * np.finfo(dtype).eps * size
            assert matched(w, np.linalg.eigvals(x.astype("complex128"))) <= bound
            theirs, _ = scipy.linalg.schur(x, output="complex")
            assert matched(w, np.diagonal(theirs)) <= bound


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_matrices(dtype):
    n = 12
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(random(n, dtype))
    repeated = np.diag(rng.integers(0, 3, n)).astype(dtype)
    graded = random(n, dtype) * (10.0 ** np.arange(0, -n, -1)).astype(dtype)[:, None]
    matrices = [
        np.zeros((n, n)), np.eye(n), np.ones((n, n)), np.eye(n)[::-1], np.roll(np.eye(n), 1, 0), np.eye(n, k=1),
        np.eye(n, k=-1) + np.eye(n), basis, basis @ repeated @ adjoint(basis), basis + adjoint(basis),
        basis - adjoint(basis), graded, graded.T, np.tril(basis), np.kron(np.eye(n // 2), [[0, 1], [-1, 0]]),
        np.kron(np.eye(n // 2), [[1, 1], [-1e-9, 1]]), scipy.linalg.companion(np.poly(np.arange(1, n + 1))),
        basis * 1e30, basis * 1e-30,
    ]  # fmt: skip
    for x in matrices:
        check(np.ascontiguousarray(x.astype(dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_matrices_are_their_own_forms(dtype):
    x = np.triu(random(9, dtype))
    t, z = linalg.schur(x)
    np.testing.assert_array_equal(t, x)
    np.testing.assert_array_equal(z, np.eye(9))
    t, z = linalg.schur(x[:1, :1])
    np.testing.assert_array_equal((t, z), (x[:1, :1], [[1]]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_of_two_rows_are_lapacks(dtype):
    """One block leaves no choice of order, so T is LAPACK's up to phases."""
    rng = np.random.default_rng(3)
    for x in rng.normal(size=(20, 2, 2)).astype(dtype):
        t, theirs = check(x), scipy.linalg.schur(x, output="real" if dtype[0] == "f" else "complex")[0]
        if dtype[0] == "f":
            np.testing.assert_allclose(np.abs(t), np.abs(theirs), atol=50 * np.finfo(dtype).eps)
        assert matched(np.diagonal(t), np.diagonal(theirs)) <= 50 * np.finfo(dtype).eps * np.linalg.norm(x)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_finite_gives_nan(dtype, bad):
    x = random(6, dtype, (3,))
    x[1, 2, 3] = bad
    for y in linalg.schur(x):
        y = np.asarray(y)
        assert np.isnan(y[1]).all()
        assert np.isfinite(y[[0, 2]]).all()
    assert np.isnan(np.asarray(linalg.schur(x[1, 2:3, 3:4])[0])).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_eager_jit_and_vmap_agree(dtype):
    x = random(7, dtype, (2, 3))
    check(x)
    assert linalg.schur(x[:0])[1].shape == (0, 3, 7, 7)
    if on_xla():
        pytest.skip("rounding, which batches change there, leads to another form")
    eager = linalg.schur(x)
    mapped = ferrax.vmap(ferrax.vmap(linalg.schur), in_axes=1, out_axes=1)(x)
    each = [np.stack([[np.asarray(linalg.schur(m)[k]) for m in row] for row in x]) for k in (0, 1)]
    for other in (ferrax.jit(linalg.schur)(x), mapped, each):
        for a, b in zip(eager, other, strict=True):
            np.testing.assert_array_equal(a, b)


def errors(f, *args, **kwargs):
    with pytest.raises(Exception) as caught:
        f(*args, **kwargs)
    return caught.value


@pytest.mark.parametrize("shape, dtype", [((3, 4), "float32"), ((3,), "float32"), ((3, 3), "int32")])
def test_errors_of_schur(shape, dtype):
    x = np.ones(shape, dtype)
    ours, theirs = errors(linalg.schur, x), errors(expected, lambda jax: jax.lax.linalg.schur(x))
    assert type(theirs) in type(ours).__mro__
    assert str(theirs).split(".")[0] in str(ours)


def test_what_schur_does_not_do():
    x = jnp.ones((3, 3))
    with pytest.raises(NotImplementedError, match="sort_eig_vals"):
        linalg.schur(x, sort_eig_vals=True)
    assert len(linalg.schur(x, select_callable=lambda w: w > 0)) == 2
    for transform in (lambda f: ferrax.jvp(f, (x,), (x,)), lambda f: ferrax.grad(lambda x: f(x).sum())(x)):
        with pytest.raises(NotImplementedError, match="schur"):
            transform(lambda x: linalg.schur(x)[0])
        with pytest.raises(NotImplementedError, match="cholesky_update"):
            transform(lambda x: linalg.cholesky_update(x, x[0]))


@pytest.mark.parametrize("n", [0, 1, 2, 7, 40, 120])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_updates_of_cholesky_factors(n, dtype):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, n))
    # The size of the factor of x xᵀ + n I, without sums in an order of the machine's own.
    r = np.triu(x, 1) + np.diag(math.sqrt(2 * n) + rng.random(n))
    w = rng.normal(size=n) * (rng.random(n) < 0.8)
    r, w = (np.asarray(jnp.asarray(y, dtype)) for y in (r, w))
    out = linalg.cholesky_update(r, w)
    assert (out.dtype, out.shape) == (r.dtype, r.shape)
    eps = float(jnp.finfo(dtype).eps)
    new, old, added = (np.asarray(y).astype("float64") for y in (out, r, w))
    gram = old.T @ old + np.outer(added, added)
    bound = MULTIPLE * max(n, 1) * eps
    assert np.linalg.norm(new.T @ new - gram) <= bound * np.linalg.norm(gram)
    assert np.linalg.norm(np.tril(new, -1)) <= bound * np.linalg.norm(old)
    theirs = expected(lambda jax: jax.lax.linalg.cholesky_update(r, w)).astype("float64")
    assert np.linalg.norm(new - theirs) <= bound * np.linalg.norm(old)


def test_updates_turn_whole_rows_as_jax_does():
    rng = np.random.default_rng(1)
    r, w = rng.normal(size=(5, 5)).astype("float32"), rng.normal(size=5).astype("float32")
    w[2] = 0
    cases = [(r, w), (-np.eye(5, dtype="float32"), w), (0 * r, w), (r, 0 * w), (r, w * np.nan)]
    for r, w in cases:
        ours, theirs = both(lambda jax: jax.lax.linalg.cholesky_update(r, w))
        np.testing.assert_allclose(ours, theirs, atol=2e-6)


def test_updates_in_batches():
    r, w = np.triu(random(6, "float64", (3,))), random(6, "float64")[:3]
    each = np.stack([linalg.cholesky_update(r, w) for r, w in zip(r, w)])
    np.testing.assert_array_equal(ferrax.vmap(linalg.cholesky_update)(r, w), each)
    np.testing.assert_array_equal(ferrax.jit(ferrax.vmap(linalg.cholesky_update))(r, w), each)
    shared = np.stack([linalg.cholesky_update(r[0], w) for w in w])
    np.testing.assert_array_equal(ferrax.vmap(linalg.cholesky_update, (None, 1))(r[0], w.T), shared)


ARGUMENTS = [((4, 4), (3,)), ((3, 4), (4,)), ((4, 4), (4, 4)), ((2, 4, 4), (2, 4))]


@pytest.mark.parametrize("shapes", ARGUMENTS)
def test_errors_of_shapes(shapes):
    args = [np.ones(s, "float32") for s in shapes]
    theirs = errors(expected, lambda jax: jax.lax.linalg.cholesky_update(*args))
    assert type(theirs) in type(errors(linalg.cholesky_update, *args)).__mro__


@pytest.mark.parametrize("dtypes", [("complex64", "complex64"), ("int32", "int32"), ("float32", "float16")])
def test_errors_of_dtypes(dtypes):
    args = [np.ones(s, d) for s, d in zip([(3, 3), (3,)], dtypes)]
    theirs = errors(expected, lambda jax: jax.lax.linalg.cholesky_update(*args))
    ours = errors(linalg.cholesky_update, *args)
    assert type(theirs) in type(ours).__mro__
    assert str(theirs).split(".")[0].removeprefix("lax") in str(ours)
