"""`ferrax.scipy.stats` of vectors and samples: multivariate distributions, mode, ranks, sem, gaussian_kde."""

import importlib
import warnings

import jax
import jax.scipy.stats
import numpy as np
import pytest
import scipy.stats

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy import stats

inf, nan = np.inf, np.nan


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_tables_have_the_names_of_their_files():
    for file, names in stats._LATER.items():
        assert names.split() == importlib.import_module(f"ferrax.scipy.stats.{file}").__all__
    assert {*dir(stats)} >= {"norm", "mode", "gaussian_kde"}


# ---- vectors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pdf", "logpdf"])
def test_dirichlet(name, x64):
    theirs, mine = getattr(scipy.stats.dirichlet, name), getattr(stats.dirichlet, name)
    alpha = np.array([0.4, 2.0, 7.5])
    x = np.random.default_rng(0).dirichlet(alpha, 5).T
    wanted = theirs(x, alpha)
    np.testing.assert_allclose(mine(x, alpha), wanted, rtol=1e-12)
    np.testing.assert_allclose(mine(x[:-1], alpha), wanted, rtol=1e-10)
    np.testing.assert_allclose(mine(x[:, 0], alpha), wanted[0], rtol=1e-12)
    zero = -inf if name == "logpdf" else 0
    for off in ([0.2, 0.2, 0.2], [-0.2, 0.7, 0.5], [0.0, 0.5, 0.5], [0.5, 0.5, 0.001]):
        assert float(mine(np.array(off), alpha)) == zero
    assert np.isfinite(ferrax.grad(mine, 1)(np.array([-0.2, 0.7, 0.5]), alpha)).all()
    if name == "logpdf":
        slope = ferrax.grad(mine, 1)(x[:, 0], alpha)
        step = 1e-6 * np.eye(3)
        differences = [(theirs(x[:, 0], alpha + s) - theirs(x[:, 0], alpha - s)) / 2e-6 for s in step]
        np.testing.assert_allclose(slope, differences, rtol=1e-6)


def test_dirichlet_shapes():
    for x, alpha in [(np.ones(3) / 3, np.ones((3, 2))), (np.ones(3) / 3, 2.0), (np.ones(5) / 5, np.ones(3))]:
        with pytest.raises(ValueError, match="dirichlet"):
            stats.dirichlet.logpdf(x, alpha)
    out = stats.dirichlet.logpdf(np.array([0.25, 0.75], np.float16), np.ones(2, np.float16))
    assert (out.dtype, float(out)) == (jnp.float16, 0)


def test_multinomial(x64):
    p = np.array([0.2, 0.3, 0.5])
    x = np.array([[1, 2, 3], [2, 2, 2], [6, 0, 0]])
    for name in ("pmf", "logpmf"):
        theirs, mine = getattr(scipy.stats.multinomial, name), getattr(stats.multinomial, name)
        np.testing.assert_allclose(mine(x, 6, p), theirs(x, 6, p), rtol=1e-12)
        np.testing.assert_allclose(mine(x, np.array([6, 7, 6]), p), theirs(x, [6, 7, 6], p), rtol=1e-12)
        assert float(mine(np.array([3, 4, -1]), 6, p)) == (0 if name == "pmf" else -inf)
        without = theirs([3, 3, 0], 6, [0.5, 0.5, 0])
        np.testing.assert_allclose(mine(np.array([3, 3, 0]), 6, np.array([0.5, 0.5, 0])), without, rtol=1e-12)
    np.testing.assert_allclose(ferrax.grad(stats.multinomial.logpmf, 2)(x[0], 6, p), x[0] / p, rtol=1e-12)
    one = stats.multinomial.logpmf(x[0], 6, p)
    np.testing.assert_allclose(ferrax.vmap(stats.multinomial.logpmf, (0, None, None))(x, 6, p)[0], one)
    for counts, n in [(np.ones(3), 3), (x[0], 6.0)]:
        with pytest.raises(ValueError, match="must be integers"):
            stats.multinomial.logpmf(counts, n, p)
    assert stats.multinomial.logpmf(x[0].astype(np.int8), 6, p.astype(np.float16)).dtype == jnp.float16


COVARIANCE = np.array([[2.0, 0.3, -0.4], [0.3, 1.0, 0.1], [-0.4, 0.1, 0.5]])


@pytest.mark.parametrize(
    ("x", "mean", "cov"),
    [
        (random(3), random(3, seed=1), COVARIANCE),
        (random(4, 3), random(3, seed=1), COVARIANCE),
        (random(2, 4, 3), np.zeros(3), COVARIANCE),
        (random(4, 3), random(3, seed=1), 1.7),
        (random(4, 1), np.zeros(1), np.array([[2.0]])),
        (random(0, 3), np.zeros(3), COVARIANCE),
    ],
)
def test_multivariate_normal(x, mean, cov, x64):
    for name in ("pdf", "logpdf"):
        wanted = getattr(scipy.stats.multivariate_normal, name)(x, mean, cov)
        got = getattr(stats.multivariate_normal, name)(x, mean, cov)
        np.testing.assert_allclose(np.reshape(got, np.shape(wanted)), wanted, rtol=1e-12)
        assert got.shape == x.shape[:-1]


def test_multivariate_normal_of_batches(x64):
    """Means and covariances for each of some vectors, and numbers as independent normal variables."""
    x, mean, cov = random(5, 1, 3), random(4, 3, seed=1), COVARIANCE + np.eye(3) * np.arange(4)[:, None, None]
    wanted = [[scipy.stats.multivariate_normal.logpdf(v[0], m, c) for m, c in zip(mean, cov, strict=True)] for v in x]
    function = stats.multivariate_normal.logpdf
    np.testing.assert_allclose(function(x, mean, cov), wanted, rtol=1e-12)
    mapped = ferrax.vmap(ferrax.vmap(function, (None, 0, 0)), (0, None, None))(x[:, 0], mean, cov)
    np.testing.assert_allclose(mapped, wanted, rtol=1e-12)
    np.testing.assert_allclose(function(x, 0.5, 4.0), scipy.stats.norm.logpdf(x, 0.5, 2.0), rtol=1e-12)
    with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
        np.testing.assert_allclose(function(x, mean, cov), wanted, rtol=1e-12)
    assert np.isnan(function(np.ones(2), np.zeros(2), np.ones((2, 2))))


def test_multivariate_normal_slopes(x64):
    x, mean = random(3), random(3, seed=1)
    by_x, by_mean, by_cov = ferrax.grad(stats.multivariate_normal.logpdf, (0, 1, 2))(x, mean, COVARIANCE)
    inverse = np.linalg.inv(COVARIANCE)
    away = inverse @ (x - mean)
    np.testing.assert_allclose(by_x, -away, rtol=1e-10)
    np.testing.assert_allclose(by_mean, away, rtol=1e-10)
    symmetric = (np.asarray(by_cov) + np.asarray(by_cov).T) / 2
    np.testing.assert_allclose(symmetric, (np.outer(away, away) - inverse) / 2, rtol=1e-9)


def test_multivariate_normal_errors():
    function = stats.multivariate_normal.logpdf
    for shapes in [((2,), (3,), (2, 2)), ((2,), (2,), (3, 3)), ((2,), (2,), (2,)), ((5,), (1,), (1, 1))]:
        with pytest.raises(ValueError, match="multivariate_normal"):
            function(*(np.ones(s) for s in shapes))
    with pytest.raises(NotImplementedError, match="allow_singular"):
        function(np.ones(2), np.zeros(2), np.eye(2), allow_singular=True)
    with pytest.raises(TypeError, match="ndarray or scalar"):
        function([1.0, 2.0], np.zeros(2), np.eye(2))


# ---- samples -------------------------------------------------------------------------------------------------------

ARRAYS = [
    np.array([3, 1, 2, 2, 1]),
    np.array([[1, 2, 2], [3, 2, 1], [1, 5, 1]]),
    np.array([[1.0, nan, 2], [nan, nan, 1], [3, 1, 1]]),
    np.round(random(4, 5, 6)),
    np.array([True, False, True]),
    np.array([2.5, -inf, inf, -inf]),
    np.array(7),
    np.array([-0.0, 0.0, 1.0]),
]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("array", ARRAYS, ids=[str(a.dtype) + str(a.shape) for a in ARRAYS])
def test_mode(array, keepdims):
    for axis in [None, *range(-1, array.ndim)]:
        got = stats.mode(array, axis, keepdims=keepdims)
        values = (
            np.moveaxis(np.atleast_1d(array), axis, -1) if axis is not None and array.ndim else array.reshape(1, -1)
        )
        found, counts = [], []
        for row in values.reshape(-1, values.shape[-1]):
            unique, number = np.unique(row, return_counts=True)
            found.append(unique[np.argmax(number)])
            counts.append(number.max())
        np.testing.assert_array_equal(np.ravel(got.mode), np.array(found, got.mode.dtype))
        np.testing.assert_array_equal(np.ravel(got.count), counts)
        assert got.mode.dtype == jnp.asarray(array).dtype and got.count.dtype == jnp.int32
        if axis is None:
            assert got.mode.shape == (1,) * array.ndim * keepdims
        elif array.ndim:
            assert got.mode.shape == array.any(axis=axis, keepdims=keepdims).shape


def test_mode_without_elements_and_errors():
    for array in (np.zeros(0), np.zeros((0, 3)), np.zeros((3, 0))):
        wanted = jax.scipy.stats.mode(array)
        got = stats.mode(array)
        for mine, theirs in zip(got, wanted, strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
    for policy, error in [("omit", NotImplementedError), ("raise", NotImplementedError), ("x", ValueError)]:
        with pytest.raises(error, match="nan_policy"):
            stats.mode(np.ones(3), nan_policy=policy)
        with pytest.raises(error, match="nan_policy"):
            stats.rankdata(np.ones(3), nan_policy=policy)
    with pytest.raises(ValueError, match="axis 5 is out of bounds"):
        stats.mode(np.ones((2, 2)), axis=5)
    with pytest.raises(TypeError, match="ndarray or scalar"):
        stats.mode([1, 2, 2])
    assert stats.mode(3).mode.weak_type


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_rankdata(method, x64):
    for array in ARRAYS:
        for axis in [None, *range(array.ndim)]:
            got = stats.rankdata(array, method, axis=axis)
            wanted = scipy.stats.rankdata(array, method, axis=axis)
            np.testing.assert_array_equal(got, wanted)
            assert got.dtype == jnp.float64 and got.shape == wanted.shape
    rows = np.round(random(4, 7))
    together = ferrax.vmap(lambda row: stats.rankdata(row, method))(rows)
    np.testing.assert_array_equal(together, stats.rankdata(rows, method, axis=1))


def test_rankdata_dtypes_and_errors():
    assert stats.rankdata(np.ones(3, np.float16)).dtype == jnp.float32
    assert stats.rankdata(np.zeros((3, 0)), axis=0).shape == (3, 0)
    np.testing.assert_array_equal(stats.rankdata(np.array([1j, 2, 0])), [2, 3, 1])
    with pytest.raises(ValueError, match="unknown method"):
        stats.rankdata(np.ones(3), "middle")
    with pytest.raises(ValueError, match="out of bounds"):
        stats.rankdata(np.ones(3), axis=1)


@pytest.mark.parametrize("policy", ["propagate", "omit"])
def test_sem(policy, x64):
    for array in (ARRAYS[1], ARRAYS[2], ARRAYS[3]):
        for axis in (0, 1, None):
            for ddof in (0, 1):
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = scipy.stats.sem(array, axis, ddof, policy)
                got = stats.sem(array, axis, ddof, policy)
                # SciPy wants two samples, also where their variance is defined for one
                several = np.sum(~np.isnan(array), axis=axis) > 1
                np.testing.assert_allclose(got[several], np.ma.filled(wanted, nan)[several], rtol=1e-13)
                kept = stats.sem(array, axis, ddof, policy, keepdims=True)
                assert kept.shape == array.sum(axis=axis, keepdims=True).shape
                np.testing.assert_array_equal(np.ravel(kept), np.ravel(got))


def test_sem_dtypes_and_errors():
    assert stats.sem(np.ones(3, np.float16)).dtype == jnp.float16
    assert stats.sem(np.array([True, False])).dtype == jnp.float32
    assert stats.sem(np.ones(3, np.complex64)).dtype == jnp.complex64
    assert np.isnan(stats.sem(np.zeros(0))) and np.isnan(stats.sem(np.ones(1)))
    with pytest.raises(ValueError, match="not supported"):
        stats.sem(np.ones(3), nan_policy="raise")
    slope = ferrax.grad(lambda x: stats.sem(x))(np.array([1.0, 2.0, 4.0], np.float32))
    np.testing.assert_allclose(slope, [-0.25198, -0.062994, 0.314970], rtol=1e-4)


# ---- gaussian_kde --------------------------------------------------------------------------------------------------

LINE = np.array([1.0, 0.25, 0.0, 0.3, 1.1, 2.25, 4.0])
PLANE = np.stack([LINE, np.sin(LINE * 3)])
WEIGHTS = np.arange(1.0, 8)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("method", [None, "scott", "silverman", 0.4, lambda kde: float(kde.neff) ** -0.3])
@pytest.mark.parametrize("data", [LINE, PLANE], ids=["line", "plane"])
def test_gaussian_kde(data, method, weights, x64):
    theirs, mine = scipy.stats.gaussian_kde(data, method, weights), stats.gaussian_kde(data, method, weights)
    assert (mine.d, mine.n) == (theirs.d, theirs.n)
    for name in ("neff", "dataset", "weights", "covariance", "inv_cov"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-10, err_msg=name)
    points = random(*data.shape[:-1], 5, seed=2)
    for name in ("evaluate", "pdf", "logpdf", "__call__"):
        np.testing.assert_allclose(getattr(mine, name)(points), getattr(theirs, name)(points), rtol=1e-11)
    np.testing.assert_allclose(mine.integrate_kde(mine), theirs.integrate_kde(theirs), rtol=1e-11)
    mean, spread = np.zeros(mine.d) + 0.2, np.eye(mine.d) * 1.5
    wanted = theirs.integrate_gaussian(mean, spread)
    np.testing.assert_allclose(mine.integrate_gaussian(mean, spread), wanted, rtol=1e-11)
    if mine.d == 1:
        np.testing.assert_allclose(mine.integrate_box_1d(0.1, 2), theirs.integrate_box_1d(0.1, 2), rtol=1e-11)
        np.testing.assert_allclose(mine.integrate_gaussian(0.2, 1.5), wanted, rtol=1e-11)


def test_gaussian_kde_is_a_pytree():
    kde = stats.gaussian_kde(PLANE.astype(np.float32), weights=WEIGHTS.astype(np.float32))
    assert len(ferrax.tree.leaves(kde)) == 5
    point = np.array([0.5, 0.1], np.float32)
    once = kde(point)
    np.testing.assert_allclose(ferrax.jit(lambda k, x: k(x))(kde, point), once, rtol=1e-6)
    np.testing.assert_array_equal(ferrax.tree.map(lambda x: x, kde)(point), once)
    slope = ferrax.grad(lambda k, x: k.logpdf(x)[0], 1)(kde, point)
    step = 1e-3
    wanted = [float(kde.logpdf(point + s)[0] - kde.logpdf(point - s)[0]) / (2 * step) for s in step * np.eye(2)]
    np.testing.assert_allclose(slope, wanted, rtol=5e-3)
    with pytest.raises(AttributeError):
        kde.neff = 3
    assert kde(np.array([0.5, 0.1])).dtype == jnp.float32
    # far away the density underflows, and its logarithm does not
    assert float(kde(point * 1e3)[0]) == 0 and np.isfinite(kde.logpdf(point * 1e3)).all()


@pytest.mark.parametrize("data", [LINE, PLANE], ids=["line", "plane"])
def test_gaussian_kde_samples_are_those_of_jax(data):
    data = data.astype(np.float32)
    got = stats.gaussian_kde(data, weights=WEIGHTS).resample(ferrax.random.key(3), (4,))
    wanted = jax.scipy.stats.gaussian_kde(data, weights=WEIGHTS).resample(jax.random.key(3), (4,))
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6)
    raw = stats.gaussian_kde(data, weights=WEIGHTS).resample(ferrax.random.PRNGKey(3), (4,))
    np.testing.assert_array_equal(raw, got)
    assert stats.gaussian_kde(data).resample(ferrax.random.key(0), (2, 3)).shape == (
        *np.atleast_2d(data).shape[:1],
        2,
        3,
    )


def test_gaussian_kde_errors():
    line, plane = stats.gaussian_kde(LINE), stats.gaussian_kde(PLANE)
    for call, error, text in [
        (lambda: stats.gaussian_kde(LINE, "wide"), ValueError, "bw_method"),
        (lambda: stats.gaussian_kde(LINE, np.ones(2)), ValueError, "bw_method"),
        (lambda: stats.gaussian_kde(np.ones(1)), ValueError, "several elements"),
        (lambda: stats.gaussian_kde(np.ones((2, 3, 4))), ValueError, "two axes"),
        (lambda: stats.gaussian_kde(LINE, weights=np.ones(2)), ValueError, "weights"),
        (lambda: stats.gaussian_kde(LINE, weights=np.ones((7, 1))), ValueError, "weights"),
        (lambda: stats.gaussian_kde(LINE + 1j), NotImplementedError, "complex data"),
        (lambda: stats.gaussian_kde(list(LINE)), TypeError, "ndarray or scalar"),
        (lambda: line(np.array([1j])), NotImplementedError, "complex coordinates"),
        (lambda: line(np.ones((2, 1))), ValueError, "dimension 2"),
        (lambda: plane(np.ones(3)), ValueError, "dimension 1"),
        (lambda: plane.integrate_box_1d(0, 1), ValueError, "1D"),
        (lambda: line.integrate_box_1d(np.zeros(2), 1), ValueError, "numbers"),
        (lambda: line.integrate_kde(plane), ValueError, "dimensionality"),
        (lambda: line.integrate_gaussian(np.zeros(2), 1.0), ValueError, "mean"),
        (lambda: plane.integrate_gaussian(np.zeros(2), np.eye(3)), ValueError, "covariance"),
        (lambda: line.integrate_box(0, 1), NotImplementedError, "1D"),
        (lambda: line.set_bandwidth(1), NotImplementedError, "bandwidth"),
    ]:
        with pytest.raises(error, match=text):
            call()
