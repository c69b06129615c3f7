"""Rows of linear algebra and Fourier transforms; factors unique up to phases are compared by what they make up."""

import numpy as np

from tests import draws
from tests.suite.rows import numbers, row

MATRICES = ("float32", "complex64")
BATCHES = draws.sampled_from([(), (2,)])


def square(draw, dtype, n=None, batch=None):
    """Matrices with a dominant diagonal of distinct numbers, so that pivots and orders do not hang on rounding."""
    n = draw(draws.sampled_from([1, 3, 4, 9])) if n is None else n
    batch = draw(BATCHES) if batch is None else batch
    return numbers(draw, (*batch, n, n), dtype) + np.diag(4 + 2 * np.arange(n)).astype(dtype)


def adjoint(jax, x):
    return jax.numpy.swapaxes(x, -1, -2).conj()


def hermitian(jax, x):
    return x + adjoint(jax, x)


def parts(jax, z):
    """Real and imaginary parts: real functions are what differences are taken of."""
    return jax.numpy.real(z), jax.numpy.imag(z)


@row("cholesky", MATRICES, slopes=True, rtol=4e-5)
def _(draw, dtype):
    symmetrize, n = draw(draws.booleans()), draw(draws.sampled_from([1, 3, 9]))
    x = numbers(draw, (*draw(BATCHES), n, n), dtype)
    gram = lambda jax, x: x @ adjoint(jax, x) + 4 * jax.numpy.eye(n, dtype=dtype)
    return lambda jax, x: jax.lax.linalg.cholesky(gram(jax, x), symmetrize_input=symmetrize), [x]


@row("cholesky_update", ("float32",), rtol=4e-5)
def _(draw, dtype):
    n = draw(draws.sampled_from([1, 3, 9]))
    r = np.triu(numbers(draw, (n, n), dtype)) + 4 * np.eye(n, dtype=dtype)
    w = numbers(draw, (n,), dtype)
    return lambda jax, r, w: jax.numpy.triu(jax.lax.linalg.cholesky_update(r, w)), [r, w]


@row("triangular_solve", MATRICES, slopes=True, rtol=4e-5)
def _(draw, dtype):
    n, batch = draw(draws.sampled_from([1, 3, 9])), draw(BATCHES)
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    flags = {k: draw(draws.booleans()) for k in names}
    a = square(draw, dtype, n, batch)
    if flags["unit_diagonal"]:
        a = a / np.asarray(8 * n, dtype)
    shape = draw(draws.sampled_from([(n, 2), (n, 11), (n,)] if flags["left_side"] else [(2, n), (11, n), (n,)]))
    return lambda jax, a, b: jax.lax.linalg.triangular_solve(a, b, **flags), [a, numbers(draw, batch + shape, dtype)]


@row("lu", MATRICES, slopes=True, rtol=4e-5)
def _(draw, dtype):
    shape = draw(draws.sampled_from([(3, 3), (2, 4), (4, 2), (9, 9), (9, 12), (12, 9)]))
    x = numbers(draw, (*draw(BATCHES), *shape), dtype) + (5 * np.eye(*shape)[::-1]).astype(dtype)
    return lambda jax, x: tuple(jax.lax.linalg.lu(x)), [x]


@row("lu_pivots_to_permutation", ("int32",))
def _(draw, dtype):
    pivots = np.asarray([[2, 1, 3], [0, 3, 2]], "int32")[: draw(draws.integers(1, 2))]
    size = draw(draws.integers(4, 6))
    return lambda jax, p: jax.lax.linalg.lu_pivots_to_permutation(p, size), [pivots]


@row("lu_solve", MATRICES, slopes=True, rtol=4e-5)
def _(draw, dtype):
    n, batch = draw(draws.sampled_from([1, 3, 9])), draw(BATCHES)
    shape = draw(draws.sampled_from([(n, 1), (n, 10)] + [(n,)] * (not batch)))
    b = numbers(draw, (batch if len(shape) == 2 else ()) + shape, dtype)
    return lambda jax, a, b: jax.numpy.linalg.solve(a, b), [square(draw, dtype, n, batch), b]


@row("qr", MATRICES, slopes=True, rtol=4e-5)
def _(draw, dtype):
    m, n = draw(draws.sampled_from([(3, 3), (5, 2), (2, 4), (40, 35)]))
    full, pivoting = draw(draws.booleans()), draw(draws.booleans())
    # JAX's derivative with pivoting fails for batches.
    x = numbers(draw, (*(() if pivoting else draw(BATCHES)), m, n), dtype)
    x = x + (np.eye(m, n) * np.linspace(9, 5, n) * min(m, 6)).astype(dtype)

    def program(jax, x):
        q, r, *order = jax.lax.linalg.qr(x, full_matrices=full, pivoting=pivoting)
        # The columns that a full Q has in addition are anyone's choice.
        return q[..., : min(m, n)], r, *order

    return program, [x]


@row("householder_product", MATRICES, rtol=4e-5)
def _(draw, dtype):
    def program(jax, x):
        packed, taus = jax.lax.linalg.hessenberg(x)
        return jax.lax.linalg.householder_product(packed[..., 1:, :-1], taus)

    return program, [square(draw, dtype, draw(draws.sampled_from([2, 3, 9])))]


@row("ormqr", MATRICES, rtol=4e-5)
def _(draw, dtype):
    n, batch = draw(draws.sampled_from([3, 9])), draw(BATCHES)
    left, transpose = draw(draws.booleans()), draw(draws.booleans())

    def program(jax, x, c):
        packed, taus = jax.lax.linalg.hessenberg(x)
        return jax.lax.linalg.ormqr(packed[..., 1:, :-1], taus, c, left=left, transpose=transpose)

    c = numbers(draw, batch + ((n - 1, 5) if left else (5, n - 1)), dtype)
    return program, [square(draw, dtype, n, batch), c]


@row("hessenberg", MATRICES, rtol=4e-5)
def _(draw, dtype):
    return lambda jax, x: jax.lax.linalg.hessenberg(x), [square(draw, dtype)]


@row("tridiagonal", MATRICES, rtol=4e-5, seed=8)
def _(draw, dtype):
    lower = draw(draws.booleans())

    def program(jax, x):
        packed, d, e, taus = jax.lax.linalg.tridiagonal(hermitian(jax, x), lower=lower)
        # The other triangle is anyone's choice.
        half = jax.numpy.tril if lower else jax.numpy.triu
        return half(packed), d, e, taus

    return program, [square(draw, dtype)]


@row("tridiagonal_solve", MATRICES, slopes=True, rtol=4e-5)
def _(draw, dtype):
    n, batch = draw(draws.sampled_from([3, 7])), draw(BATCHES)
    dl, du = numbers(draw, (*batch, n), dtype), numbers(draw, (*batch, n), dtype)
    d = numbers(draw, (*batch, n), dtype, "above1") + np.asarray(6, dtype)
    # The entries outside the matrix are zero: JAX's derivative counts them.
    dl[..., 0] = du[..., -1] = 0
    b = numbers(draw, (*batch, n, 2), dtype)
    return lambda jax, *xs: jax.lax.linalg.tridiagonal_solve(*xs), [dl, d, du, b]


@row("eigh", MATRICES, slopes=True, rtol=1e-4)
def _(draw, dtype):
    lower, symmetrize = draw(draws.booleans()), draw(draws.booleans())

    def program(jax, x):
        v, w = jax.lax.linalg.eigh(hermitian(jax, x), lower=lower, symmetrize_input=symmetrize)
        return w, jax.numpy.abs(v) ** 2, (v * (w * w)[..., None, :]) @ adjoint(jax, v)

    return program, [square(draw, dtype) / np.asarray(16, dtype)]


@row("svd", MATRICES, slopes=True, rtol=1e-4)
def _(draw, dtype):
    m, n = draw(draws.sampled_from([(3, 3), (4, 2), (2, 4), (9, 5)]))
    vectors = draw(draws.booleans())
    x = numbers(draw, (*draw(BATCHES), m, n), dtype) + (np.eye(m, n) * np.linspace(24, 6, n)).astype(dtype)
    x = x / np.asarray(12, dtype)

    def program(jax, x):
        if not vectors:
            return jax.lax.linalg.svd(x, compute_uv=False)
        u, s, vh = jax.lax.linalg.svd(x, full_matrices=False)
        return s, jax.numpy.abs(u) ** 2, jax.numpy.abs(vh) ** 2, (u * (s * s)[..., None, :]) @ vh

    return program, [x]


@row("eig", MATRICES, slopes=True, rtol=1e-4)
def _(draw, dtype):
    def program(jax, x):
        w = jax.lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
        # Symmetric functions of the eigenvalues: their order is anyone's choice.
        return [parts(jax, jax.numpy.sum(w**k, -1)) for k in (1, 2)]

    return program, [square(draw, dtype) / np.asarray(6, dtype)]


@row("schur", MATRICES, rtol=1e-4)
def _(draw, dtype):
    vectors = draw(draws.booleans())

    def program(jax, x):
        t, *z = jax.lax.linalg.schur(x, compute_schur_vectors=vectors)
        # The order of the eigenvalues and the phases of the vectors are anyone's choice.
        traces = [parts(jax, jax.numpy.trace(p, axis1=-2, axis2=-1)) for p in (t, t @ t)]
        return traces, [parts(jax, z @ t @ adjoint(jax, z)) for z in z]

    return program, [square(draw, dtype) / np.asarray(6, dtype)]


@row("fft", MATRICES, slopes=True, rtol=4e-5)
def _(draw, dtype):
    lengths = draw(draws.sampled_from([(5,), (6,), (1,), (4, 6), (2, 3), (3, 2, 5)]))
    kinds = ["FFT", "IFFT", "IRFFT"] if dtype.startswith("complex") else ["RFFT"]
    kind = draw(draws.sampled_from(kinds))
    shape = (*lengths[:-1], lengths[-1] // 2 + 1) if kind == "IRFFT" else lengths
    x = numbers(draw, (*draw(BATCHES), *shape), dtype)
    return lambda jax, x: parts(jax, jax.lax.fft(x, kind, lengths)), [x]
