"""NVIDIA's libraries where they are there: what is computed by them, and what happens without."""

import pytest

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


def test_without_libraries_kernels_compute(run):
    environment = {"FERRAX_CUBLASLT": None, "FERRAX_CUFFT": None}
    run(
        PRODUCTS
        + """
assert check(lambda x, y: jnp.sign(x @ y), whole("float32", 520, 520), whole("float32", 520, 520)) == []
assert check(lambda x: jnp.sign(jnp.fft.fft(x).real + 1000), whole("complex64", 3, 48)) == []
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
for f in (lambda: x @ x, lambda: jnp.fft.fft(x)):
    try:
        f()
    except RuntimeError as error:
        print(error)
""",
        FERRAX_CUBLASLT="/no/blas.so",
        FERRAX_CUFFT="/no/fft.so",
    )
    assert status == 0 and "NVIDIA's cuBLASLt of a version up to 12.x is wanted" in text, text
    assert "/no/blas.so: " in text and "FERRAX_CUBLASLT says where one is." in text
    assert "NVIDIA's cuFFT of a version up to 11.x is wanted" in text and "/no/fft.so: " in text
    status, text = bare(["-m", "ferrax.doctor"], JAX_PLATFORMS="cuda", FERRAX_CUFFT="/no/fft.so")
    assert status == 0 and "cuBLASLt  12.8 at " in text and "ferrax's own kernels instead" in text, text


def test_faults_of_libraries(run):
    """A call that fails, at any time, is an error, and the next run has the same result as before."""
    run(
        PRODUCTS
        + """
x, y = jax.device_put((whole("float32", 520, 520), whole("float32", 520, 520)), gpus[0])
z = jax.device_put(whole("complex64", 3, 48), gpus[0])
f = jax.jit(lambda x, y, z: (jnp.sign(x @ y), jnp.fft.fft(z)))
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
