"""Linear algebra and Fourier transforms against JAX, and what factors must satisfy."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from tests.numpy.oracle import cases, compare
from tests.recorded import both
from tests.support import on_xla

SYSTEMS = """
linalg.cholesky(x @ x.T + eye(2))
linalg.cholesky(x @ x.T + eye(2), upper=True)
linalg.cholesky(-eye(3))
linalg.cholesky(x)
linalg.cholesky(eye(3, dtype='int32'))
linalg.solve(m, x)
linalg.solve(m, x[:, 0])
linalg.solve(m, t[:, :2])
linalg.solve(x, v)
linalg.solve(m, v)
linalg.solve(zeros((2, 2)), ones(2))
linalg.inv(m)
linalg.inv(x)
linalg.inv(eye(2, dtype='int32'))
linalg.inv(zeros((0, 0)))
linalg.det(m)
linalg.det(t[:, :2, :2])
linalg.det(u @ u.mT + eye(4))
linalg.det(x)
linalg.det(zeros((0, 0)))
linalg.slogdet(m)
linalg.slogdet(zeros((2, 2)))
linalg.slogdet(m + 1j * eye(2))
linalg.slogdet(x)
linalg.tensorinv(eye(6).reshape(2, 3, 6))
linalg.tensorinv(eye(4).reshape(4, 2, 2), ind=1)
linalg.tensorinv(eye(2), ind=0)
linalg.tensorsolve(eye(6).reshape(2, 3, 6) + 1, x)
linalg.matrix_rank(x)
linalg.matrix_rank(ones((3, 3)))
linalg.matrix_rank(v)
linalg.matrix_rank(x, tol=5.)
linalg.pinv(x)
linalg.pinv(ones((3, 2)))
linalg.pinv(m + m.T, hermitian=True)
linalg.pinv(v)
linalg.cond(m)
linalg.cond(m, -2)
linalg.cond(m, 1)
linalg.cond(x, 1)
linalg.cond(m, 'nuc')
linalg.lstsq(x.T, k.astype('float32'))[0]
linalg.lstsq(ones((3, 2)), x.T)[2]
linalg.lstsq(v, v)
linalg.norm(x, 2)
linalg.norm(x, 'nuc')
linalg.norm(t, -2, axis=(2, 0), keepdims=True)
linalg.svdvals(x)
linalg.svd(x, compute_uv=False)
linalg.svd(v)
linalg.eigvalsh(m)
linalg.eigvalsh(m, UPLO='X')
linalg.eigh(x)
linalg.eigvals(array([[3., 1.], [0., 3.]]))
linalg.eig(v)
linalg.qr(x, mode='r')
linalg.qr(x, mode='foo')
linalg.qr(x)
linalg.qr(t, mode='complete').R
sort_complex(roots(array([1., -6., 11., -6.])))
poly(m)
polyfit(arange(4.), v, 1)
polyfit(arange(4.), v, 1, cov=True)
polyfit(arange(4.), v, 1, w=w + 1, full=True)[0]
"""

TRANSFORMS = """
fft.fft(x)
fft.fft(x, n=5)
fft.fft(x, axis=0, norm='ortho')
fft.fft(x, n=0)
fft.fft(x, axis=5)
fft.fft(x, norm='foo')
fft.fft(i)
fft.fft(h)
fft.ifft(c, norm='forward')
fft.rfft(x)
fft.rfft(c)
fft.irfft(c)
fft.irfft(c, n=5, norm='ortho')
fft.hfft(c)
fft.ihfft(x)
fft.fftn(t)
fft.fftn(t, s=(2, 5))
fft.fftn(t, s=(2, 5), axes=(0,))
fft.fftn(t, axes=(0, 0))
fft.ifftn(t, axes=(2, 0))
fft.rfftn(t)
fft.irfftn(t, s=(4, 5), axes=(0, 1))
fft.fft2(x)
fft.irfft2(c, s=(2, 4))
fft.rfft2(t, axes=(0, 1))
fft.fftfreq(5, 0.5)
fft.rfftfreq(6)
fft.fftshift(x)
fft.ifftshift(x, axes=1)
lax.fft(i, 'rfft', (6,))
lax.fft(x, 'what', (3,))
"""


@cases(SYSTEMS)
def test_systems(text):
    if on_xla() and "zeros" in text:
        pytest.skip("which numbers of singular systems are infinite depends on the order of operations")
    compare(text, rtol=2e-5)


@cases(TRANSFORMS)
def test_transforms(text):
    compare(text, rtol=1e-5)


def inverse_halves(jax, sign, norm, n):
    """Numbers whose transforms have imaginary parts of zero, and the signs of all parts."""
    x = sign * np.array([[1, 3, 5, 7], [2, 0, 0, -2]], np.float32)
    out = np.asarray(jax.numpy.fft.ihfft(x, n=n, norm=norm))
    return np.signbit(out.real), np.signbit(out.imag), np.abs(out)


@pytest.mark.parametrize("n", [None, 2])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("sign", [1, -1, 0])
def test_signs_of_halves_of_transforms(sign, norm, n):
    if on_xla():
        pytest.skip("which zeros a transform gives is the compiler's")
    for ours, theirs in zip(*both(inverse_halves, sign, norm, n), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def matrices(rows, columns, dtype, batch=(3,)):
    rng = np.random.default_rng(rows * 100 + columns)
    x = rng.normal(size=(*batch, rows, columns))
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=x.shape)
    return x.astype(dtype)


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def close(a, b, dtype):
    a, b = np.asarray(a), np.asarray(b)
    tolerance = 2e-4 if dtype in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(a, np.broadcast_to(b, a.shape), atol=tolerance * max(1.0, float(np.abs(b).max())))


DTYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = [1, 3, 8, 9, 70, 300]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_make_up_the_matrix(n, dtype):
    """Sizes on both sides of every change of algorithm, single and in batches."""
    with ferrax.enable_x64(True):
        for batch in [(), (2,)]:
            x = matrices(n, n, dtype, batch)
            gram = x @ adjoint(x) + n * np.eye(n, dtype=dtype)
            lower = np.asarray(ferrax.lax.linalg.cholesky(gram))
            close(lower @ adjoint(lower), gram, dtype)
            close(np.triu(lower, 1), 0.0, dtype)
            close(gram @ np.asarray(jnp.linalg.solve(gram, x)), x, dtype)
            w, v = map(np.asarray, jnp.linalg.eigh(gram))
            close(gram @ v, v * w[..., None, :], dtype)
            w, left, right = map(np.asarray, ferrax.lax.linalg.eig(x))
            close(x @ right, right * w[..., None, :], dtype)
            close(adjoint(left) @ x, w[..., :, None] * adjoint(left), dtype)


@pytest.mark.parametrize("n", [5, 33, 41, 100])
@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_values_of_low_rank_are_in_order(n, dtype):
    """Solvers by divide and conquer leave some behind values that are zero."""
    i = np.arange(n)
    low = {
        "ones": np.ones((n, n)),
        "rank two": np.outer(i % 3, i % 5) + np.outer(i % 2, np.ones(n)),
        "blocks": np.kron(np.eye(n // 2 + 1), [[2, 1], [1, 2]])[:n, :n],
    }
    with ferrax.enable_x64(True):
        for name, x in low.items():
            x = x.astype(dtype)
            u, s, vh = map(np.asarray, jnp.linalg.svd(x))
            assert (np.diff(s) <= 0).all(), name
            close((u * s) @ vh, x, dtype)
            close(adjoint(u) @ u, np.eye(n), dtype)
            close(jnp.linalg.svd(x, compute_uv=False), s, dtype)
            w = np.asarray(jnp.linalg.eigvalsh(x + adjoint(x)))
            assert (np.diff(w) >= 0).all(), name


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (2, 5), (12, 9), (9, 12), (150, 130)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_of_any_shape(shape, dtype):
    m, n = shape
    k = min(shape)
    with ferrax.enable_x64(True):
        x = matrices(m, n, dtype)
        lu, _, order = map(np.asarray, ferrax.lax.linalg.lu(x))
        lower = np.tril(lu[..., :k], -1) + np.eye(m, k)
        close(lower @ np.triu(lu[..., :k, :]), np.take_along_axis(x, order[..., None].astype(int), -2), dtype)
        for full in (False, True):
            q, r = map(np.asarray, ferrax.lax.linalg.qr(x, full_matrices=full))
            close(q @ r, x, dtype)
            close(adjoint(q) @ q, np.eye(q.shape[-1]), dtype)
            u, s, vh = map(np.asarray, jnp.linalg.svd(x, full_matrices=full))
            close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, dtype)
            close(adjoint(u) @ u, np.eye(u.shape[-1]), dtype)
            close(vh @ adjoint(vh), np.eye(vh.shape[-2]), dtype)
        q, r, order = map(np.asarray, ferrax.lax.linalg.qr(x, full_matrices=False, pivoting=True))
        close(q @ r, np.take_along_axis(x, order[..., None, :].astype(int), -1), dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 7), (7, 2), (5, 8), (4, 12)])
def test_singular_vectors_move_with_their_matrix(shape, dtype):
    rng = np.random.default_rng(5)
    with ferrax.enable_x64(True):
        for _ in range(20):
            x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype == np.complex64 else 0)
            for a, b in zip(*(jnp.linalg.svd(x.astype(dtype) * by, full_matrices=False) for by in (1, 1.0001))):
                np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_what_is_not_finite_gives_nan():
    x = jnp.full((3, 3), jnp.nan)
    for f in (jnp.linalg.eigvalsh, jnp.linalg.svdvals, jnp.linalg.eigvals):
        assert np.isnan(np.asarray(f(x))).all()


def test_gradient_of_the_determinant_where_it_is_zero():
    x = np.random.default_rng(0).normal(size=(4, 4)).astype("float32")
    x[3] = x[0] + x[1]
    minor = lambda i, j: np.linalg.det(np.delete(np.delete(x.astype("float64"), i, 0), j, 1))
    cofactors = [[(-1) ** (i + j) * minor(i, j) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(ferrax.grad(jnp.linalg.det)(jnp.asarray(x)), cofactors, atol=1e-4)


def test_missing_derivatives_say_so():
    x = jnp.eye(3) + 1
    with pytest.raises(NotImplementedError, match="eigenvectors"):
        ferrax.jvp(jnp.linalg.eig, (x,), (x,))
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        ferrax.jvp(jnp.linalg.svd, (x[:2],), (x[:2],))


@pytest.mark.parametrize("shape, axes", [((), (0,)), ((2, 2), (2,)), ((2, 2), (-3,))])
def test_axes_that_tensorsolve_cannot_move(shape, axes):
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.linalg.tensorsolve(jnp.zeros(shape), jnp.ones(2), axes)


@pytest.mark.parametrize("x", [1.3e-34, -3e30, 0.0, np.inf, np.nan])
def test_the_norm_of_one_number_is_its_magnitude(x):
    norm = jnp.linalg.norm
    wanted = np.abs(np.float32(x))
    for got in (
        norm(jnp.float32(x)),
        norm(jnp.full((1, 1), x)),
        norm(jnp.full(1, x), 2),
        ferrax.jit(norm)(jnp.float32(x)),
    ):
        assert got.shape == ()
        np.testing.assert_array_equal(got, wanted)
    rows = norm(jnp.full((3, 1), x), axis=1, keepdims=True)
    np.testing.assert_array_equal(rows, np.full((3, 1), wanted))
    slope = ferrax.grad(norm)(jnp.float32(x))
    np.testing.assert_array_equal(slope, np.sign(x) if x and np.isfinite(x) else np.nan)
