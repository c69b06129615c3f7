"""`ferrax.image` against JAX's: weights of every method, places outside, dtypes, derivatives, errors."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import image as ours
from tests.recorded import expected
from tests.support import dtype_name

METHODS = [m.name for m in ours.ResizeMethod]
CONTINUOUS = METHODS[1:]
SIZES = [(5, 9), (9, 5), (1, 4), (4, 1), (50, 13), (6, 3)]
# scale, translation
MOVES = [(1.5, 1.2), (0.4, -0.3), (-1.5, 8.2), (0.0, 1.0), (1.0, 0.0), (2.0, -3.5), (0.3, 2.2)]


def assert_dtypes_like(got, want):
    assert (dtype_name(got), got.weak_type, got.shape) == (dtype_name(want), want.weak_type, want.shape)


def pixels(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("method", METHODS)
def test_weights(method):
    mine = ours.ResizeMethod[method]
    cases = [(n, m, antialias) for n, m in SIZES for antialias in (True, False)]

    def resized(jax):
        its = jax.image.ResizeMethod[method]
        return [jax.image.resize(np.eye(n, dtype="f"), (m, n), its, a) for n, m, a in cases]

    want = expected(lambda jax: jax.jit(lambda: resized(jax))())
    for (n, m, antialias), w in zip(cases, want, strict=True):
        got = ours.resize(jnp.eye(n), (m, n), mine, antialias)
        np.testing.assert_allclose(got, w, atol=1e-5, err_msg=f"{n} {m} {antialias}")
    if method != "NEAREST":  # rows of weights add up to one
        np.testing.assert_allclose(got.sum(1), 1, atol=1e-6)


@pytest.mark.parametrize("method", CONTINUOUS)
def test_weights_of_moves(method):
    n, m = 7, 12
    # a mirrored image has areas, too: JAX gives zeros
    moves = [move for move in MOVES if method != "AREA" or move[0] >= 0]
    scale, translation = np.float32(moves).T[:, :, None]
    for antialias in (True, False):
        f = lambda lib, s, t, antialias=antialias: lib.image.scale_and_translate(
            lib.numpy.eye(n), (m, n), (0,), s, t, lib.image.ResizeMethod[method], antialias
        )
        want = expected(lambda jax: jax.jit(jax.vmap(lambda s, t: f(jax, s, t)))(scale, translation))
        got = ferrax.vmap(lambda s, t: f(ferrax, s, t))(scale, translation)
        np.testing.assert_allclose(got, want, atol=2e-5)
        for i, (s, t) in enumerate(zip(scale, translation, strict=True)):
            np.testing.assert_allclose(f(ferrax, s, t), got[i], atol=1e-6)


def test_areas_of_a_mirrored_image():
    x = jnp.asarray(pixels(6))
    mirrored = ours.scale_and_translate(x, (9,), (0,), jnp.array([-1.5]), jnp.array([9.0]), "area")
    np.testing.assert_allclose(mirrored, ours.resize(x, (9,), "area")[::-1], atol=1e-5)


@pytest.mark.parametrize("method", CONTINUOUS)
def test_derivatives(method):
    mine = ours.ResizeMethod[method]
    x, scale, translation = pixels(3, 7, 6), np.float32([1.3, 0.7]), np.float32([0.4, -0.2])
    weight = pixels(3, 9, 5, seed=1)

    def slopes(lib):
        how = lib.image.ResizeMethod[method]
        loss = lambda x, s, t: (lib.image.scale_and_translate(x, (3, 9, 5), (1, 2), s, t, how) * weight).sum()
        return lib.jit(lib.grad(loss, (0, 1, 2)))(*map(lib.numpy.asarray, (x, scale, translation)))

    got, want = slopes(ferrax), expected(slopes)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-3, atol=1e-3)
    f = lambda x: (ours.resize(x, (3, 4, 11), mine) ** 2).sum()
    _, along = ferrax.jvp(f, (jnp.asarray(x),), (jnp.ones_like(x),))
    np.testing.assert_allclose(ferrax.grad(f)(jnp.asarray(x)).sum(), along, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("method", CONTINUOUS)
def test_derivatives_where_images_stay(method):
    """At the identity, places are pixels: kernels have corners and quotients 0/0 there, but no slope is NaN."""
    f = lambda s, t: ours.scale_and_translate(jnp.ones((5, 5)), (5, 5), (0, 1), s, t, ours.ResizeMethod[method]).sum()
    for slope in ferrax.grad(f, (0, 1))(jnp.ones(2), jnp.zeros(2)):
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("shape, new", [((6,), (4,)), ((2, 5, 6), (2, 10, 3)), ((3, 4, 5, 2), (5, 4, 2, 3)), ((), ())])
@pytest.mark.parametrize("method", ["nearest", "linear", "bicubic"])
def test_ranks(shape, new, method):
    x = pixels(*shape)
    np.testing.assert_allclose(
        ours.resize(x, new, method), expected(lambda jax: jax.image.resize(x, new, method)), atol=3e-6
    )


@pytest.mark.parametrize("n, m", [(640, 1000), (1000, 333), (7, 1001), (513, 512)])
def test_nearest_in_long_axes(n, m):
    """Places by integers: `(k + 1/2) n / m` rounded down, exactly."""
    want = [(2 * k + 1) * n // (2 * m) for k in range(m)]
    np.testing.assert_array_equal(ours.resize(jnp.arange(n), (m,), "nearest"), want)
    slope = ferrax.grad(lambda x: ours.resize(x, (m,), "nearest").sum())(jnp.ones(n))
    np.testing.assert_array_equal(slope, np.bincount(want, minlength=n))


def test_linear_in_long_axes():
    """Double precision of the weights: JAX's own are off by up to 1e-4 here."""
    n, m = 1000, 3001
    place = np.clip((np.arange(m) + 0.5) * n / m - 0.5, 0, n - 1)
    x = pixels(n)
    np.testing.assert_allclose(ours.resize(x, (m,), "linear"), np.interp(place, np.arange(n), x), atol=1e-6)


DTYPES = ["bool", "int8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64", "int4", "float8_e4m3fn"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["nearest", "area"])
def test_dtypes(dtype, method):
    x = np.arange(16).reshape(4, 4) % 2
    want = expected(lambda jax: jax.image.resize(jax.numpy.asarray(x).astype(dtype), (2, 3), method))
    got = ours.resize(jnp.asarray(x).astype(dtype), (2, 3), method)
    assert_dtypes_like(got, want)
    np.testing.assert_allclose(np.asarray(got).astype(np.complex64), np.asarray(want).astype(np.complex64), rtol=0.07)
    if method == "area":
        same = ours.resize(jnp.asarray(x).astype(dtype), (4, 4), method)
        assert same.dtype == got.dtype


@pytest.mark.parametrize("value", [3, 3.0, True])
def test_weak_types(value):
    for method in ("nearest", "linear"):
        want = expected(lambda jax: jax.image.resize(value, (), method))
        assert_dtypes_like(ours.resize(value, (), method), want)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32", "float64", "uint64", "complex128", "float16"])
def test_dtypes_of_x64(x64, dtype):
    x = np.arange(9).reshape(3, 3)
    want = expected(lambda jax: jax.image.resize(jax.numpy.asarray(x, dtype), (2, 5), "linear"))
    got = ours.resize(jnp.asarray(x, dtype), (2, 5), "linear")
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol={"float64": 1e-14, "complex128": 1e-14}.get(dtype, 1e-3))


def test_under_strict_settings():
    with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
        for method in CONTINUOUS:
            for dtype in ("bfloat16", "int32", "float32"):
                x = jnp.ones((4, 4), dtype)
                ours.resize(x, (2, 3), ours.ResizeMethod[method], antialias=False)
                ours.scale_and_translate(
                    x, (8, 8), (0, 1), jnp.ones(2), jnp.ones(2), ours.ResizeMethod[method], antialias=False
                )


def test_transforms():
    x = jnp.asarray(pixels(3, 8, 8))
    f = lambda x: ours.resize(x, (5, 11), "lanczos3")
    np.testing.assert_allclose(ferrax.vmap(f)(x), ours.resize(x, (3, 5, 11), "lanczos3"), atol=1e-6)
    np.testing.assert_allclose(ferrax.jit(f)(x[0]), f(x[0]), atol=1e-7)
    np.testing.assert_allclose(
        ours.resize(x, (3, 4, 4), "linear", precision="default"), ours.resize(x, (3, 4, 4), "linear"), atol=1e-6
    )


WORDS = """
nearest linear bilinear trilinear triangle lanczos3 lanczos5 cubic bicubic tricubic cubic-pytorch bicubic-pytorch area
"""


@pytest.mark.parametrize("word", WORDS.split())
def test_words(word):
    assert ours.ResizeMethod.from_string(word).name == expected(
        lambda jax: jax.image.ResizeMethod.from_string(word).name
    )


def test_methods():
    methods = lambda jax: [(m.name, m.value) for m in jax.image.ResizeMethod]
    assert methods(ferrax) == expected(methods)


@pytest.mark.parametrize(
    "error, match, call",
    [
        (ValueError, "Unknown resize method", lambda x: ours.resize(x, (4, 2), "foo")),
        (ValueError, "Unknown resize method", lambda x: ours.resize(x, (4, 2), "LINEAR")),
        (TypeError, "string or a ResizeMethod", lambda x: ours.resize(x, (4, 2), 1)),
        (ValueError, "must have length equal to the number of dimensions", lambda x: ours.resize(x, (4,), "linear")),
        (TypeError, "nonnegative", lambda x: ours.resize(x, (4, -1), "linear")),
        (TypeError, "concrete values of integer type", lambda x: ours.resize(x, (4, 2.5), "linear")),
        (ValueError, "no pixels", lambda x: ours.resize(x[:0], (4, 2), "linear")),
        (ValueError, "no pixels", lambda x: ours.resize(x[:0], (4, 2), "nearest")),
        (TypeError, "requires ndarray or scalar", lambda x: ours.resize([[1.0, 2.0]], (1, 4), "linear")),
        (ValueError, "Nearest neighbor resampling", lambda x: move(x, method="nearest")),
        (ValueError, "out of bounds", lambda x: move(x, axes=(0, 2))),
        (ValueError, "twice", lambda x: move(x, axes=(0, 0))),
        (ValueError, "one entry for each", lambda x: move(x, scale=jnp.ones(1))),
        (ValueError, "not in spatial_dims", lambda x: move(x, axes=(0,), scale=jnp.ones(1), by=jnp.ones(1))),
        (TypeError, "requires ndarray or scalar", lambda x: move(x, scale=[2.0, 2.0])),
    ],
)
def test_errors(error, match, call):
    with pytest.raises(error, match=match):
        call(jnp.ones((4, 4)))


def move(x, axes=(0, 1), scale=None, by=None, method="linear"):
    scale = jnp.ones(2) if scale is None else scale
    return ours.scale_and_translate(x, (8, 8), axes, scale, jnp.ones(2) if by is None else by, method)


def test_empty_results():
    assert ours.resize(jnp.ones((4, 4)), (4, 0), "linear").shape == (4, 0)
    assert ours.resize(jnp.ones((4, 0)), (2, 0), "nearest").shape == (2, 0)
    none = ours.scale_and_translate(jnp.ones((4, 4), int), (4, 4), (), jnp.ones(0), jnp.ones(0), "linear")
    assert none.shape == (4, 4) and none.dtype == jnp.float32
