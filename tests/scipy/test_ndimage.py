"""`ferrax.scipy.ndimage` against SciPy and JAX: modes, orders, dtypes, derivatives, errors."""

import numpy as np
import pytest
import scipy.ndimage

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy import ndimage as ours
from tests.recorded import both, dtype_of, expected
from tests.support import dtype_name

# what SciPy calls them
MODES = {
    "constant": "grid-constant",
    "nearest": "nearest",
    "wrap": "grid-wrap",
    "mirror": "mirror",
    "reflect": "reflect",
}


def numbers(*shape, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iub":
        return rng.integers(0, 2 if np.dtype(dtype).kind == "b" else 100, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def places(shape, count, dtype=np.float32, seed=1):
    """Places within and around an array; none half-way between pixels."""
    rng = np.random.default_rng(seed)
    return [np.round(rng.uniform(-2.5 * n, 3.5 * n, count), 2).astype(dtype) + dtype(0.003) for n in shape]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("shape", [(7,), (5, 6), (1, 3), (2, 3, 4)])
def test_values(mode, order, shape):
    x, at = numbers(*shape), places(shape, 40)
    want = scipy.ndimage.map_coordinates(x, at, order=order, mode=MODES[mode], cval=-1.5)
    f = lambda x, at: ours.map_coordinates(x, at, order, mode, -1.5)
    np.testing.assert_allclose(f(x, at), want, atol=1e-4)
    np.testing.assert_allclose(ferrax.jit(f)(x, at), want, atol=1e-4)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("place_dtype", ["float32", "int32", "float16"])
def test_dtypes(dtype, place_dtype):
    x = numbers(3, 4, dtype=dtype_of(dtype))
    at = [
        np.array([0.5, 1.25, -1, 5, 1.75]).astype(place_dtype),
        np.array([1.5, 2.5, 1, 2, 0.5]).astype(place_dtype),
    ]
    for order in (0, 1):
        want = expected(lambda jax: jax.scipy.ndimage.map_coordinates(x, at, order, cval=1))
        got = ours.map_coordinates(jnp.asarray(x), [jnp.asarray(a) for a in at], order, cval=1)
        assert (dtype_name(got), got.weak_type) == (dtype_name(want), want.weak_type)
        np.testing.assert_allclose(
            np.asarray(got).astype(np.complex64), np.asarray(want).astype(np.complex64), rtol=1e-2
        )


def test_dtypes_of_x64(x64):
    x, at = numbers(5, 6, dtype=np.float64), places((5, 6), 20, np.float64)
    got = ours.map_coordinates(x, at, 1, "reflect")
    np.testing.assert_allclose(got, scipy.ndimage.map_coordinates(x, at, order=1, mode="reflect"), atol=1e-13)
    assert ours.map_coordinates(x, [a.astype(np.float32) for a in at], 1).dtype == np.float64


def test_whole_numbers_stay_exact():
    """Integers at integers are looked up, not computed with."""
    x = jnp.array([2**31 - 1, 2**30 + 1])
    np.testing.assert_array_equal(ours.map_coordinates(x, [jnp.array([0, 1, 0])], 1), x[jnp.array([0, 1, 0])])


def test_halves():
    at = jnp.array([0.5, 1.5, 2.5, -0.5, 5.5, -0.4, 5.4])
    np.testing.assert_array_equal(ours.map_coordinates(jnp.arange(6.0), [at], 0, cval=-7), [1, 2, 3, -7, -7, 0, 5])
    np.testing.assert_array_equal(ours.map_coordinates(jnp.arange(6) * 3, [at[:3]], 1), [2, 5, 8])


def test_weak_types_and_sequences():
    assert not ours.map_coordinates(jnp.full((2, 2), 1.0), [0.5, 0.5], 1).weak_type
    assert ours.map_coordinates([[1, 2], [3, 4]], [[0.5], [0.5]], 1).tolist() == [3]
    assert ours.map_coordinates(jnp.eye(3), [jnp.ones((2, 1)), jnp.ones((1, 3))], 1).shape == (2, 3)
    assert ours.map_coordinates(jnp.eye(3), jnp.ones((2, 4, 5)), 1).shape == (4, 5)
    assert ours.map_coordinates(jnp.float32(3), [], 1) == 3


def test_not_numbers():
    at = jnp.array([np.nan, np.inf, -np.inf])
    assert np.isnan(ours.map_coordinates(jnp.arange(4.0), [at], 1)).all()
    np.testing.assert_array_equal(ours.map_coordinates(jnp.arange(4.0), [at[1:]], 0, "nearest"), [3, 0])


@pytest.mark.parametrize("mode", MODES)
def test_derivatives(mode):
    x, at = numbers(5, 6), places((5, 6), 12)

    def slopes(jax):
        loss = lambda x, at: (jax.scipy.ndimage.map_coordinates(x, at, 1, mode, 0.5) ** 2).sum()
        return jax.jit(jax.grad(loss, (0, 1)))(jax.numpy.asarray(x), [jax.numpy.asarray(a) for a in at])

    got, want = both(slopes)
    np.testing.assert_allclose(got[0], want[0], atol=1e-3)
    np.testing.assert_allclose(got[1], want[1], atol=1e-3)


def test_maps_over_images_and_places():
    x, at = jnp.asarray(numbers(3, 5, 6)), [jnp.asarray(a) for a in places((5, 6), 12)]
    f = lambda x, at: ours.map_coordinates(x, at, 1, "mirror")
    loop = jnp.stack([f(v, at) for v in x])
    np.testing.assert_allclose(ferrax.vmap(f, (0, None))(x, at), loop, atol=1e-6)
    np.testing.assert_allclose(ferrax.vmap(f, (None, 0))(x[0], at), f(x[0], at), atol=1e-6)
    with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
        for mode in MODES:
            ours.map_coordinates(jnp.ones((3, 3), "bfloat16"), at, 1, mode)
            ours.map_coordinates(jnp.ones((3, 3), "int32"), at, 1, mode)


@pytest.mark.parametrize(
    "error, match, call",
    [
        (NotImplementedError, "order<=1", lambda x, at: ours.map_coordinates(x, at, 2)),
        (NotImplementedError, "order<=1", lambda x, at: ours.map_coordinates(x, at, -1)),
        (
            NotImplementedError,
            "does not yet support mode foo",
            lambda x, at: ours.map_coordinates(x, at, 1, mode="foo"),
        ),
        (ValueError, "sequence of length input.ndim, but 1 != 2", lambda x, at: ours.map_coordinates(x, at[:1], 2)),
        (ValueError, "no elements", lambda x, at: ours.map_coordinates(x[:0], at, 1)),
        (TypeError, "real numbers", lambda x, at: ours.map_coordinates(x, [a * 1j for a in at], 1)),
        (ValueError, "roadcast", lambda x, at: ours.map_coordinates(x, [jnp.ones(2), jnp.ones(3)], 1)),
    ],
)
def test_errors(error, match, call):
    with pytest.raises(error, match=match):
        call(jnp.ones((2, 3)), [jnp.ones(3), jnp.ones(3)])
