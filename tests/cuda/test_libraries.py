"""NVIDIA's libraries where they are there: what is computed by them, and what happens without."""

import pytest

from tests.cuda import fake

#: Products of whole numbers, exact in every dtype: operands in every order, batches, ragged extents.
PRODUCTS = """
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)

def whole(dtype, *shape):
    x = rng.integers(-3, 4, shape).astype(np.float32)
    return jnp.asarray(x + 1j * rng.integers(-3, 4, shape) if "complex" in dtype else x).astype(dtype)

def check(f, *args):
    want = np.asarray(jax.jit(f)(*jax.device_put(args, cpu)))
    got = np.asarray(jax.jit(f)(*jax.device_put(args, gpus[0])))
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype
    return driver.ran()
"""

TRANSFORMS = """
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)

def check(f, x, called=True):
    want = np.asarray(jax.jit(f)(jax.device_put(x, cpu)))
    got = np.asarray(jax.jit(f)(jax.device_put(x, gpus[0])))
    bound = 1e-12 if want.dtype in (np.float64, np.complex128) else 2e-6
    assert np.abs(got - want).max() <= bound * np.abs(want).max(), (f, x.shape)
    assert got.dtype == want.dtype
    assert driver.ran() == ["transform"] * called

def complex_numbers(*shape, dtype=np.complex64):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)

def real(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"])
def test_products_of_every_order(run, dtype):
    run(
        PRODUCTS
        + f"""
dtype = {dtype!r}
product = ["product"]
assert check(lambda x, y: x @ y, whole(dtype, 520, 520), whole(dtype, 520, 528)) == product
assert check(lambda x, y: x @ y.T, whole(dtype, 520, 520), whole(dtype, 528, 520)) == product
assert check(lambda x, y: x.T @ y, whole(dtype, 520, 520), whole(dtype, 520, 528)) == product
assert check(lambda x, y: x.T @ y.T, whole(dtype, 520, 520), whole(dtype, 528, 520)) == product
# lengths of no whole pieces, batches, and batches between other axes
assert check(lambda x, y: x @ y, whole(dtype, 513, 521), whole(dtype, 521, 517)) == product
assert check(lambda x, y: x @ y, whole(dtype, 3, 360, 360), whole(dtype, 3, 360, 360)) == product
heads = whole(dtype, 2, 264, 3, 64), whole(dtype, 2, 1400, 3, 64)
assert check(lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), *heads) == product
assert check(lambda x, y: x @ y, whole(dtype, 64, 64), whole(dtype, 64, 64)) == []
"""
    )


def test_precision_says_what_is_rounded_to_tf32(run):
    run(
        PRODUCTS
        + """
x, y = whole("float32", 520, 520), whole("float32", 520, 520)
for precision in ("high", "default", "tensorfloat32", lax.Precision.HIGH, lax.DotAlgorithmPreset.TF32_TF32_F32):
    assert check(lambda x, y: jnp.matmul(x, y, precision=precision), x, y) == ["product in TF32"], precision
for precision in (None, "highest", "float32", ("high", "highest"), lax.DotAlgorithmPreset.F32_F32_F32):
    assert check(lambda x, y: jnp.matmul(x, y, precision=precision), x, y) == ["product"], precision
with jax.default_matmul_precision("tensorfloat32"):
    assert check(lambda x, y: x @ y, x, y) == ["product in TF32"]
    grads = check(jax.grad(lambda x, y: (x @ y).sum()), x, y)
    assert set(grads) <= {"product in TF32"}
# convolutions on the matrix units are kernels of ours; features that come in no whole pieces keep them from those
def convolution(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
for dtype, ran in (("float32", ["product"]), ("bfloat16", []), ("float16", [])):
    assert check(convolution, whole(dtype, 8, 32, 32, 64), whole(dtype, 3, 3, 64, 64)) == ran
for dtype, ran in (("float32", "product"), ("bfloat16", "product in TF32"), ("float16", "product in TF32")):
    assert check(convolution, whole(dtype, 8, 32, 32, 63), whole(dtype, 3, 3, 63, 68)) == [ran]
half = whole("bfloat16", 520, 520)
assert check(lambda x, y: jnp.matmul(x, y, preferred_element_type="float32"), half, half) == ["product"]
"""
    )


def test_products_in_loops_and_beside_kernels(run):
    run(
        PRODUCTS
        + """
def f(x, y):
    return lax.fori_loop(0, 2, lambda i, x: jnp.sign(x @ y) + i, x) + 1
assert check(f, whole("float32", 520, 520), whole("float32", 520, 520)) == ["product"] * 2
# a program that runs often has graphs of what is between its calls
g = jax.jit(lambda x, y: jnp.sign(jnp.sort(x, 0) @ y) + x)
x, y = jax.device_put((whole("float32", 520, 520), whole("float32", 520, 520)), gpus[0])
results = [np.asarray(g(x, y)) for _ in range(5)]
assert all((r == results[0]).all() for r in results)
"""
    )


def test_transforms(run):
    run(
        TRANSFORMS
        + """
for z, r in ((np.complex64, np.float32), (np.complex128, np.float64)):
    check(jnp.fft.fft, complex_numbers(3, 48, dtype=z))
    check(jnp.fft.ifft, complex_numbers(3, 49, dtype=z))
    check(jnp.fft.rfft, real(3, 48, dtype=r))
    check(jnp.fft.rfft, real(2, 3, 49, dtype=r))
    # ends of halved lines may have imaginary parts, which do not count
    check(jnp.fft.irfft, complex_numbers(3, 33, dtype=z))
    check(lambda x: jnp.fft.irfft(x, 65), complex_numbers(3, 33, dtype=z))
    check(jnp.fft.fft2, complex_numbers(2, 6, 40, dtype=z))
    check(jnp.fft.ifftn, complex_numbers(4, 5, 36, dtype=z))
    check(jnp.fft.rfftn, real(4, 5, 36, dtype=r))
    check(jnp.fft.irfftn, complex_numbers(4, 5, 19, dtype=z))
    check(lambda x: jnp.fft.fft(x, axis=0), complex_numbers(48, 3, dtype=z))
check(jnp.fft.fft, complex_numbers(3, 16), called=False)
# an argument keeps its elements though the library writes over what it reads
x = jax.device_put(complex_numbers(3, 33), gpus[0])
before = np.asarray(x)
jnp.fft.irfft(x).block_until_ready()
assert (np.asarray(x) == before).all()
y = jax.jit(lambda x: (jnp.fft.irfft(x), x * 2))(x)
assert (np.asarray(y[1]) == before * 2).all()
"""
    )


FACTORS = """
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)

def matrix(dtype, *shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if "complex" in dtype else x).astype(dtype)

def positive(dtype, n, *batch):
    x = matrix(dtype, *batch, n, n)
    return x @ np.swapaxes(x, -1, -2).conj() + np.eye(n, dtype=dtype)

def on_gpu(f, *args):
    driver.ran()
    results = jax.tree.map(np.asarray, jax.jit(f)(*jax.device_put(args, gpus[0])))
    assert all(np.dtype(r.dtype).char == np.dtype(w.dtype).char and r.shape == w.shape for r, w in
               zip(jax.tree.leaves(results), jax.tree.leaves(jax.eval_shape(f, *args)))), f
    return results, driver.ran()

def close(got, want, scale=None):
    bound = 1e-11 if got.dtype in (np.float64, np.complex128) else 1e-4
    assert np.abs(got - want).max() <= bound * (np.abs(want).max() if scale is None else scale)

def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_factorizations(run, dtype):
    run(
        FACTORS
        + f"""
dtype = {dtype!r}
letter = dict(float32="S", float64="D", complex64="C", complex128="Z")[dtype]
reflections = letter + ("orgqr" if dtype.startswith("float") else "ungqr")
# a Cholesky factor: one triangle is read, zeros stand above
for a in (positive(dtype, 64), positive(dtype, 70, 2, 2)):
    l, ran = on_gpu(lambda a: lax.linalg.cholesky(a, symmetrize_input=False), np.tril(a))
    assert ran == ["potrf"] * (a.size // a.shape[-1] ** 2)
    close(l @ adjoint(l), a)
    assert (np.triu(l, 1) == 0).all()
# what has none is NaN below the diagonal, alone in its batch
a = positive(dtype, 64, 3)
a[1, 40, 40] = -1
l, _ = on_gpu(jnp.linalg.cholesky, a)
assert np.isnan(np.tril(l[1])[np.tril_indices(64)]).all()
assert (np.triu(l, 1) == 0).all() and np.isfinite(l[[0, 2]]).all()
# L, U and exchanges, of matrices of every form and of singular ones
for a in (matrix(dtype, 20, 20), matrix(dtype, 3, 16, 25), matrix(dtype, 25, 17), np.ones((18, 18), dtype)):
    (lu, pivots, order), ran = on_gpu(lax.linalg.lu, a)
    assert ran == ["getrf"] * (a.size // (a.shape[-1] * a.shape[-2]))
    k = min(a.shape[-2:])
    l = np.tril(lu, -1)[..., :k] + np.eye(a.shape[-2], k, dtype=dtype)
    close(l @ np.triu(lu)[..., :k, :], np.take_along_axis(a, order[..., None], -2))
    want = np.asarray(lax.linalg.lu_pivots_to_permutation(jnp.asarray(pivots), a.shape[-2]))
    assert (order == want).all()
(x, ran) = on_gpu(jnp.linalg.solve, matrix(dtype, 24, 24), matrix(dtype, 24, 3))
assert ran == ["getrf"]
# Q and R, thin and whole
for shape, mode in (((30, 20), "reduced"), ((30, 20), "complete"), ((2, 16, 21), "reduced")):
    a = matrix(dtype, *shape)
    (q, r), ran = on_gpu(lambda a: jnp.linalg.qr(a, mode), a)
    batch = a.size // (a.shape[-1] * a.shape[-2])
    assert ran == ["geqrf"] * batch + [reflections] * batch, ran
    close(q @ r, a)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape[:-2] + (q.shape[-1],) * 2))
    assert (np.tril(r, -1) == 0).all()
# eigenvalues: either triangle, one matrix and many
for a in (positive(dtype, 20), positive(dtype, 5, 40)):
    for lower in (True, False):
        half = np.tril(a) if lower else np.triu(a)
        (v, w), ran = on_gpu(lambda a: lax.linalg.eigh(a, lower=lower, symmetrize_input=False), half)
        assert ran == (["syevd"] if a.ndim == 2 else ["syevBatched"])
        close(a @ v, v * w[..., None, :], np.abs(w).max())
        assert (np.diff(w) >= 0).all()
# singular values of matrices of every form
for a in (matrix(dtype, 20, 20), matrix(dtype, 2, 25, 17), matrix(dtype, 16, 23)):
    for whole in (False, True):
        (u, s, vh), ran = on_gpu(lambda a: jnp.linalg.svd(a, full_matrices=whole), a)
        assert ran == ["gesvd"] * (a.size // (a.shape[-1] * a.shape[-2]))
        k = s.shape[-1]
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a)
        for q in (u, adjoint(vh)):
            close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape[:-2] + (q.shape[-1],) * 2))
    s, ran = on_gpu(lambda a: jnp.linalg.svd(a, compute_uv=False), a)
    assert set(ran) == {{"gesvd"}}
    close(s, np.linalg.svd(a, compute_uv=False))
# many small matrices, and small ones, are programs of ours
assert on_gpu(jnp.linalg.svd, matrix(dtype, 4, 4))[1] == []
"""
    )


def test_factorizations_in_programs(run):
    """In loops and under derivatives; what fails to converge; donated matrices; and memory that is the program's."""
    run(
        FACTORS
        + """
a = positive("float64", 64)
def f(a):
    l = lax.fori_loop(0, 3, lambda i, x: jnp.linalg.cholesky(x @ x.T), a)
    return l, jax.grad(lambda a: jnp.linalg.slogdet(a)[1])(a)
(l, slope), ran = on_gpu(f, a)
assert ran == ["potrf"] * 3 + ["getrf"], ran
close(slope, np.linalg.inv(a).T)
want = a
for _ in range(3):
    want = np.linalg.cholesky(want @ want.T)
close(l, want)
# the argument stays, but for one that is given away
x = jax.device_put(a, gpus[0])
g = jax.jit(lambda a: jnp.linalg.cholesky(a) + a)
close(np.asarray(g(x)), np.linalg.cholesky(a) + a)
assert (np.asarray(x) == a).all()
h = jax.jit(lambda a: lax.linalg.cholesky(a, symmetrize_input=False), donate_argnums=0)
close(np.asarray(h(jnp.array(x))), np.linalg.cholesky(a))
with jax.default_device(gpus[0]):
    assert h.lower(a).compile().memory_analysis().temp_size_in_bytes >= 1024
driver.set("diverges", 1)
(v, w), _ = on_gpu(lambda a: lax.linalg.eigh(a), positive("float32", 20, 3))
assert np.isnan(v[2]).all() and np.isnan(w[2]).all() and np.isfinite(v[:2]).all() and np.isfinite(w[:2]).all()
"""
    )


def test_eigenvalues_by_a_version_that_takes_one_matrix_at_a_time(run, tmp_path):
    content = fake.LIBRARY.read_bytes()
    assert b"\0cusolverDnXsyevBatched\0" in content
    older = tmp_path / "libcuda.so.1"
    older.write_bytes(content.replace(b"\0cusolverDnXsyevBatched\0", b"\0cusolverDnXsyevBatche!\0"))
    environment = {name: str(older) for name in fake.environment() if name.startswith("FERRAX_")}
    run(
        FACTORS
        + """
a = positive("float64", 20, 3)
(v, w), ran = on_gpu(lambda a: lax.linalg.eigh(a), a)
assert ran == ["syevd"] * 3
close(a @ v, v * w[..., None, :], np.abs(w).max())
# more than that are a program of ours
assert on_gpu(lambda a: lax.linalg.eigh(a), positive("float64", 3, 20))[1] == []
""",
        **environment,
    )


def test_without_libraries_kernels_compute(run):
    environment = {"FERRAX_CUBLASLT": None, "FERRAX_CUFFT": None, "FERRAX_CUSOLVER": None}
    run(
        PRODUCTS
        + """
assert check(lambda x, y: jnp.sign(x @ y), whole("float32", 520, 520), whole("float32", 520, 520)) == []
assert check(lambda x: jnp.sign(jnp.fft.fft(x).real + 1000), whole("complex64", 3, 48)) == []
assert check(lambda x: jnp.sign(jnp.linalg.cholesky(x @ x.T + 1000 * jnp.eye(64))), whole("float64", 64, 64)) == []
""",
        **environment,
    )


def test_a_library_that_is_named_has_to_be_there(bare):
    status, text = bare(
        """
import ferrax as jax, ferrax.numpy as jnp
gpu = jax.devices("cuda")[0]
x = jax.device_put(jnp.ones((520, 520)), gpu)
print((x + 1).sum())
for f in (lambda: x @ x, lambda: jnp.fft.fft(x), lambda: jnp.linalg.qr(x)):
    try:
        f()
    except RuntimeError as error:
        print(error)
""",
        FERRAX_CUBLASLT="/no/blas.so",
        FERRAX_CUFFT="/no/fft.so",
        FERRAX_CUSOLVER="/no/solver.so",
    )
    assert status == 0 and "NVIDIA's cuBLASLt of a version up to 12.x is wanted" in text, text
    assert "/no/blas.so: " in text and "FERRAX_CUBLASLT says where one is." in text
    assert "NVIDIA's cuFFT of a version up to 11.x is wanted" in text and "/no/fft.so: " in text
    assert "NVIDIA's cuSOLVER of a version up to 11.x is wanted" in text and "/no/solver.so: " in text
    status, text = bare(["-m", "ferrax.doctor"], JAX_PLATFORMS="cuda", FERRAX_CUFFT="/no/fft.so")
    assert status == 0 and "cuSOLVER  11.7 at " in text and "cuBLASLt  12.8 at " in text, text
    assert "ferrax's own kernels instead" in text


def test_faults_of_libraries(run):
    """A call that fails, at any time, is an error, and the next run has the same result as before."""
    run(
        PRODUCTS
        + """
x, y = jax.device_put((whole("float32", 520, 520), whole("float32", 520, 520)), gpus[0])
z = jax.device_put(whole("complex64", 3, 48), gpus[0])
a = jax.device_put(jnp.eye(64) * 2, gpus[0])
f = jax.jit(lambda x, y, z: (jnp.sign(x @ y), jnp.fft.fft(z), jnp.linalg.cholesky(a)))
want = [np.asarray(a) for a in f(x, y, z)]
failures = 0
for call in range(1, 200):
    driver.fail(call, 3)
    calls = driver.get("calls")
    try:
        got = [np.asarray(a) for a in f(x, y, z)]
    except Exception as error:
        failures += 1
        assert type(error).__name__ in ("JaxRuntimeError", "RuntimeError", "MemoryError"), repr(error)
    else:
        assert all((a == b).all() for a, b in zip(got, want))
    if driver.get("calls") - calls < call:
        break
assert failures > 5
driver.fail(0, 0)
got = [np.asarray(a) for a in f(x, y, z)]
assert all((a == b).all() for a, b in zip(got, want))
# where the library has no way of computing a product, kernels of ours do
driver.set("ways", 0)
driver.ran()
assert (np.asarray(jax.jit(lambda x, y, z: (jnp.sign(x @ y) * 2, jnp.fft.fft(z)))(x, y, z)[0]) == want[0] * 2).all()
assert driver.ran() == []
"""
    )
