"""Requests that lose bits or imaginary parts warn at the user's line, once a line; callbacks keep their word."""

import re
import warnings

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax

X, C, K = jnp.ones(3), jnp.ones(3) + 1j, jax.random.key(0)
F, I = np.float64, np.int64
TRUNCATED = r"Explicitly requested dtype (float64|int64|uint64|complex128) requested in {} is not available"

WIDE = {
    "zeros": lambda: jnp.zeros(3, F),
    "ones": lambda: jnp.ones(3, "float64"),
    "full": lambda: jnp.full(3, 1.0, F),
    "empty": lambda: jnp.empty(3, F),
    "zeros_like": lambda: jnp.zeros_like(X, F),
    "full_like": lambda: jnp.full_like(X, 1, dtype=F),
    "arange": lambda: jnp.arange(3, dtype=I),
    "linspace": lambda: jnp.linspace(0, 1, 3, dtype=F),
    "geomspace": lambda: jnp.geomspace(1, 2, 3, dtype=F),
    "eye": lambda: jnp.eye(3, dtype=F),
    "tri": lambda: jnp.tri(3, dtype=F),
    "identity": lambda: jnp.identity(3, F),
    "array": lambda: jnp.array([1.0], F),
    "asarray": lambda: jnp.asarray(1.0, "complex128"),
    "indices": lambda: jnp.indices((2, 2), dtype=I),
    "astype": lambda: X.astype("uint64"),
    "view": lambda: jnp.ones(4).view(I),
    "convert_element_type": lambda: lax.convert_element_type(X, F),
    "bitcast_convert_type": lambda: lax.bitcast_convert_type(jnp.ones((3, 1 + jax.config.jax_enable_x64)), I),
    "sum": lambda: jnp.sum(X, dtype=F),
    "prod": lambda: X.prod(dtype=F),
    "mean": lambda: jnp.mean(X, dtype=F),
    "std": lambda: jnp.std(X, dtype=F),
    "cumsum": lambda: jnp.cumsum(X, dtype=F),
    "nansum": lambda: jnp.nansum(X, dtype=F),
    "trace": lambda: jnp.trace(jnp.eye(3), dtype=F),
    "stack": lambda: jnp.stack([X], dtype=F),
    "concatenate": lambda: jnp.concatenate([X], dtype=F),
    "matmul": lambda: jnp.matmul(X, X, preferred_element_type=F),
    "einsum": lambda: jnp.einsum("i,i", X, X, preferred_element_type=F),
    "argmax": lambda: lax.argmax(X, 0, I),
    "iota": lambda: lax.iota(I, 3),
    "normal": lambda: jax.random.normal(K, (3,), F),
    "uniform": lambda: jax.random.uniform(K, (3,), F),
    "randint": lambda: jax.random.randint(K, (3,), 0, 9, I),
    "bits": lambda: jax.random.bits(K, (3,), np.uint64),
    "gamma": lambda: jax.random.gamma(K, 1.0, (3,), F),
    "one_hot": lambda: jax.nn.one_hot(jnp.arange(3), 3, dtype=F),
    "glorot_uniform|variance_scaling": lambda: jax.nn.initializers.glorot_uniform()(K, (3, 3), F),
}
SILENT = [
    lambda: (jnp.zeros(3, float), jnp.arange(3, dtype=int), X.astype(complex), jnp.sum(X, dtype=float)),
    lambda: (jnp.asarray(np.ones(3)), X + np.float64(1), jnp.sin(np.ones(3)), jnp.array([np.int64(1)])),
    lambda: (jax.random.normal(K, (3,), float), jax.random.randint(K, (3,), 0, 9), jnp.searchsorted(X, X)),
    lambda: (C.astype(bool), C.real.astype(np.float16), jnp.abs(C), C.astype(np.complex64), jnp.std(C)),
    lambda: (jnp.linalg.norm(C), jnp.fft.ifft(C), jnp.nonzero(X), jnp.unique(X), jnp.histogram(X)),
    lambda: jax.ShapeDtypeStruct((3,), F),
]
IMAGINARY = [
    lambda: jnp.asarray(C, np.float32),
    lambda: jnp.array(np.array([1j]), dtype="int32"),
    lambda: lax.convert_element_type(C, np.float32),
    lambda: X.at[0].set(1j),
    lambda: jnp.sum(C, dtype=np.float32),
    lambda: jnp.mean(C, dtype=np.float32),
    lambda: jnp.cumsum(C, dtype=np.float32),
    lambda: jnp.concatenate([C], dtype=np.float32),
    lambda: jnp.full(3, 1j, np.float32),
    lambda: jnp.insert(X, 0, 1j),
]


def warned(program):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        program()
    assert {w.filename for w in seen} <= {__file__}
    return seen


@pytest.mark.parametrize("name", WIDE)
def test_64_bits(name):
    program = WIDE[name]
    (seen,) = warned(program)
    assert seen.category is UserWarning
    assert seen.lineno == program.__code__.co_firstlineno
    assert re.match(TRUNCATED.format(f"({name})"), str(seen.message))
    assert "jax_enable_x64" in str(seen.message)
    with jax.enable_x64(True):
        assert warned(program) == []


@pytest.mark.parametrize("program", SILENT)
def test_silence(program):
    assert warned(program) == []


def test_under_transformations():
    def wide(x):
        return jnp.zeros(3, F) + x.astype(F)

    for program in (lambda: jax.jit(wide)(X), lambda: jax.vmap(wide)(X), lambda: jax.jvp(wide, (X,), (X,))):
        assert len(warned(program)) == 2


def test_once_a_line():
    """Python's filters decide; the registry is that of the user's module."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            jnp.zeros(3, F)
            jnp.zeros(3, F)
    assert len(seen) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="float64"):
            jnp.zeros(3, F)


@pytest.mark.parametrize("program", IMAGINARY)
def test_imaginary_parts(program):
    seen = [w for w in warned(program) if w.category is not FutureWarning]
    assert [w.category for w in seen] == [np.exceptions.ComplexWarning]
    assert "imaginary part" in str(seen[0].message)


def test_astype_of_complex():
    for program in (
        lambda: C.astype(np.float32),
        lambda: jnp.astype(C, int),
        lambda: jax.jit(lambda c: c.astype("f4"))(C),
    ):
        (seen,) = warned(program)
        assert seen.category is DeprecationWarning
        assert "jnp.real or jnp.imag" in str(seen.message)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("announced", "returned", "got"),
    [
        (np.int32, 1.7, "float32"),
        (np.int32, 2.0, "float32"),
        (np.float32, 3, "int32"),
        (np.float32, 1j, "complex64"),
        (np.bool_, 1, "int32"),
        (np.int32, True, "bool"),
        (np.uint8, np.int32(3), "int32"),
        (np.float16, np.float32(3), "float32"),
        (np.float32, np.float16(3), "float16"),
    ],
)
def test_callbacks_return_what_they_announced(announced, returned, got, jit):
    def f(x):
        return jax.pure_callback(lambda x: returned, jax.ShapeDtypeStruct((), announced), x)

    with pytest.raises(jax.errors.JaxRuntimeError, match="Incorrect output dtype for return value #0") as caught:
        np.asarray((jax.jit(f) if jit else f)(1.0))
    assert f"Expected: {np.dtype(announced)}, Actual: {got}" in str(caught.value)
    assert "lambda" in str(caught.value)


def test_callbacks_may_return_64_bits():
    for dtype, value in [(np.float32, np.float64(1.5)), (np.int32, 7), (np.complex64, 1j)]:
        out = jax.jit(lambda x, d=dtype, v=value: jax.pure_callback(lambda x: v, jax.ShapeDtypeStruct((), d), x))(0)
        assert out.dtype == dtype
        assert out == value
    for announced in (jax.ShapeDtypeStruct((), F), jax.core.ShapedArray((), F)):
        with pytest.raises(ValueError, match="cannot specify 64-bit types when `jax_enable_x64` is disabled"):
            jax.pure_callback(np.sin, announced, 1.0)
