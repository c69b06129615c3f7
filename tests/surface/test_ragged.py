"""Ragged and scaled products against JAX."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.test_util import check_grads
from tests import recorded


def floats(*shape):
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


# lhs, rhs, group sizes, dot dimension numbers, ragged axis, group axes
CASES = {
    "rows": (floats(7, 4), floats(3, 4, 5), [2, 0, 4], ((1,), (1,)), ((), ()), 0, [0]),
    "batched rows": (floats(2, 7, 4), floats(3, 2, 4, 5), [1, 2, 3], ((2,), (2,)), ((0,), (1,)), 1, [0]),
    "sizes of each batch": (
        floats(7, 2, 4), floats(2, 4, 3, 5), [[1, 2, 3], [7, 0, 0]], ((2,), (1,)), ((1,), (0,)), 0, [2],
    ),
    "second free axis": (
        floats(2, 5, 4), floats(4, 3, 5), [[1, 2, 2], [0, 5, 0]], ((2,), (0,)), ((), ()), 1, [1],
    ),
    "contracted": (floats(6, 4), floats(6, 5), [2, 0, 3], ((0,), (0,)), ((), ()), 0, []),
    "batched contracted": (
        floats(4, 2, 6), floats(6, 5, 2), [[1, 2], [4, 2]], ((2,), (0,)), ((1,), (2,)), 2, [],
    ),
    "second contracted": (
        floats(3, 6, 4), floats(6, 3, 5), [[1, 2], [4, 2], [0, 0]], ((0, 1), (1, 0)), ((), ()), 1, [],
    ),
    "batch": (floats(6, 2, 4), floats(6, 4, 3), [2, 4], ((2,), (1,)), ((0,), (0,)), 0, []),
}  # fmt: skip


def both(name, transform=lambda library, f: f):
    lhs, rhs, sizes, contract, batch, ragged, groups = CASES[name]
    sizes = np.asarray(sizes, np.int32)

    def product(library):
        numbers = library.lax.RaggedDotDimensionNumbers((contract, batch), [ragged], groups)

        def f(a, b):
            a, b, c = map(library.numpy.asarray, (a, b, sizes))
            return library.lax.ragged_dot_general(a, b, c, numbers)

        return transform(library, f)(lhs, rhs)

    return recorded.both(product)


def close(got, wanted):
    for a, b in zip(ferrax.tree.leaves(got), ferrax.tree.leaves(wanted), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_products_like_jax(name):
    close(*both(name))


@pytest.mark.parametrize("name", [name for name in CASES if "contracted" not in name and name != "batch"])
def test_gradients_like_jax(name):
    close(*both(name, lambda lib, f: lib.jit(lib.grad(lambda a, b: (f(a, b) ** 2).sum(), argnums=(0, 1)))))


@pytest.mark.parametrize("name", ["batched contracted", "second contracted", "batch"])
def test_gradients_that_jax_has_not(name):
    def against_differences(library, f):
        if library is ferrax:
            return lambda a, b: check_grads(f, (a, b), order=1, atol=1e-2, rtol=1e-2)
        return lambda a, b: None

    both(name, against_differences)


def test_ragged_dot_under_vmap():
    lhs, rhs = floats(4, 7, 3), floats(2, 3, 5)
    sizes = np.asarray([[1, 6], [7, 0], [2, 2], [0, 0]], np.int32)
    got = ferrax.vmap(lax.ragged_dot, in_axes=(0, None, 0))(lhs, rhs, sizes)
    loop = lambda jax: [jax.lax.ragged_dot(*map(jax.numpy.asarray, (a, rhs, s))) for a, s in zip(lhs, sizes)]
    wanted = np.stack(recorded.expected(loop))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_dtypes():
    lhs, rhs, sizes = jnp.ones((3, 2), "bfloat16"), jnp.ones((2, 2, 4), "bfloat16"), jnp.array([1, 1], "uint8")
    assert lax.ragged_dot(lhs, rhs, sizes).dtype == jnp.bfloat16
    wide = lax.ragged_dot(lhs, rhs, sizes, preferred_element_type="float32")
    assert wide.dtype == jnp.float32 and wide[:, 0].tolist() == [2, 2, 0]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (dict(group_sizes=[1.0]), TypeError, "integer"),
        (dict(group_sizes=3), TypeError, "rank of group_sizes"),
        (dict(group_sizes=[[1, 2]]), TypeError, "to have shape"),
        (dict(group_sizes=[1, 2, 3]), TypeError, "size to be 3, got 2"),
        (dict(group_offset=[0]), NotImplementedError, "group_offset"),
    ],
)
def test_mistakes(change, error, text):
    arguments = dict(lhs=jnp.ones((3, 2)), rhs=jnp.ones((2, 2, 4)), group_sizes=[1, 2]) | change
    arguments["group_sizes"] = jnp.asarray(arguments["group_sizes"])
    with pytest.raises(error, match=text):
        lax.ragged_dot(**arguments)


def test_mistakes_in_the_axes():
    numbers = lax.RaggedDotDimensionNumbers
    x, sizes = jnp.ones((3, 3)), jnp.array([1, 2])
    plain = (((1,), (0,)), ((), ()))
    for wrong, text in [
        (numbers(plain, [0, 1], []), "exactly one lhs ragged"),
        (numbers(plain, [2], []), "nonnegative"),
        (numbers(plain, [0], []), "exactly one rhs group dimension"),
        (numbers(plain, [1], [1]), "zero group dimensions"),
        (numbers(plain, [0], [0]), "distinct"),
    ]:
        with pytest.raises(TypeError, match=text):
            lax.ragged_dot_general(x, x, sizes, wrong)


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_scaled_products_like_jax(dtype):
    lhs, rhs = floats(2, 3, 8).astype(jnp.float8_e4m3fn), floats(2, 8, 5).astype(jnp.float8_e4m3fn)
    rng = np.random.default_rng(6)
    left, right = np.exp2(rng.integers(-2, 3, (2, 3, 4))), np.exp2(rng.integers(-2, 3, (2, 2, 5)))
    left, right = left.astype(jnp.float8_e8m0fnu), right.astype(jnp.float8_e8m0fnu)
    for scales in (dict(lhs_scale=left, rhs_scale=right), dict(rhs_scale=right)):
        out = recorded.both(
            lambda library: library.lax.scaled_dot(
                library.numpy.asarray(lhs), library.numpy.asarray(rhs), preferred_element_type=dtype,
                **{k: library.numpy.asarray(v) for k, v in scales.items()},
            )
        )  # fmt: skip
        assert out[0].dtype == out[1].dtype and out[0].shape == out[1].shape
        np.testing.assert_allclose(*(np.asarray(o, np.float32) for o in out), rtol=1e-2)


def test_mistakes_in_scales():
    x = jnp.ones((4, 4))
    with pytest.raises(TypeError, match="1-rank"):
        lax.scaled_dot(x[0], x[0])
    with pytest.raises(TypeError, match="has rank 1"):
        lax.scaled_dot(x, x, lhs_scale=x[0])
    with pytest.raises(TypeError, match="twice at least"):
        lax.scaled_dot(x, x, lhs_scale=x)
    with pytest.raises(TypeError, match="does not match scale"):
        lax.scaled_dot(x, x, lhs_scale=jnp.ones((2, 2)))
