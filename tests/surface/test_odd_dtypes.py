"""Functions of `ferrax.numpy` on seldom dtypes and shapes: complex truth, one-bit integers, no observations."""

import jax
import ml_dtypes
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp

IMAGINARY = np.array([1j, 0, 1, 0.5j], np.complex64)


@pytest.mark.filterwarnings("ignore:Casting complex values")  # of JAX's fill value
@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.nonzero(x),
        lambda m, x: m.argwhere(x),
        lambda m, x: m.flatnonzero(x),
        lambda m, x: m.count_nonzero(x),
        lambda m, x: m.extract(x, m.arange(4)),
        lambda m, x: m.compress(x, m.arange(4)),
        lambda m, x: m.where(x),
        lambda m, x: m.select([x], [m.arange(4)], -1),
        lambda m, x: m.place(m.arange(4), x, m.array([9]), inplace=False),
        lambda m, x: x.astype(bool),
        lambda m, x: m.full_like(x, 1j, dtype=bool),
        lambda m, x: m.argwhere(x[0]),
    ],
)
def test_complex_numbers_without_a_real_part_are_true(call):
    got, wanted = (call(m, m.asarray(IMAGINARY)) for m in (jnp, jax.numpy))
    for a, b in zip(ferrax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "int8", "bool"])
def test_bincount(dtype):
    x = np.array([0, 1, 1], dtype)
    assert jnp.bincount(jnp.asarray(x)).tolist() == [1, 2]
    assert jnp.bincount(jnp.asarray(x), length=3).tolist() == [1, 2, 0]
    assert jnp.bincount(jnp.asarray(x[:0]), minlength=2).tolist() == [0, 0]


NARROW = {
    "float6_e2m3fn": (np.floating, 6), "float6_e3m2fn": (np.floating, 6), "float4_e2m1fn": (np.floating, 4),
    "int4": (np.signedinteger, 4), "int2": (np.signedinteger, 2), "int1": (np.signedinteger, 1),
    "uint4": (np.unsignedinteger, 4), "uint1": (np.unsignedinteger, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in NARROW if hasattr(ml_dtypes, name)])
def test_places_of_narrow_dtypes(name):
    dtype, (kind, bits) = np.dtype(getattr(ml_dtypes, name)), NARROW[name]
    for abstract in (np.floating, np.signedinteger, np.unsignedinteger, np.integer, np.inexact, np.number, np.generic):
        assert jnp.issubdtype(dtype, abstract) == issubclass(kind, abstract), abstract
        assert jnp.issubdtype(dtype, abstract) == jax.numpy.issubdtype(dtype, abstract)
    assert ferrax.dtypes.itemsize_bits(dtype) == bits
    assert jnp.isdtype(dtype, "numeric")


@pytest.mark.parametrize("shape", [(0,), (3,), (1, 3), (3, 1), (0, 3), (3, 0), (1, 0), (2, 4)])
@pytest.mark.parametrize("rowvar", [True, False])
def test_shapes_of_covariances(shape, rowvar):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    got, wanted = jnp.cov(x, rowvar=rowvar), jax.numpy.cov(x, rowvar=rowvar)
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted)


def test_covariance_of_columns_with_others():
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_allclose(jnp.cov(x, x * 2, rowvar=False), jax.numpy.cov(x, x * 2, rowvar=False))
    with pytest.raises(TypeError):
        jnp.cov(x[:1], x[:1], rowvar=False)
