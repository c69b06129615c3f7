"""Distributions of `ferrax.scipy.stats`: SciPy's values and slopes, JAX's dtypes, edges of the support, tails."""

import importlib

import jax
import mpmath
import numpy as np
import pytest
import scipy.stats

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy import stats

inf, nan = np.inf, np.nan
X = np.array([-30.0, -5, -1.5, -1, -0.25, 0, 0.3, 0.5, 1, 1.7, 2, 3, 6.5, 12, 40, 700])
K = np.arange(-2.0, 13)
Q = np.array([1e-30, 1e-9, 0.01, 0.3, 0.5, 0.6, 0.97, 1 - 1e-9])
ANGLES = np.array([0.0, 0.3, 1.5, 3.0, 3.2, 6.0, 6.28])
SCALED = [(), (1.5,), (-0.5, 2.0)]


def scaled(*shapes):
    return [shape + rest for shape in shapes for rest in SCALED]


# distribution: what its functions are asked at, and parameters
TABLE = {
    "bernoulli": (K, [(0.3,), (0.0,), (1.0,)]),
    "beta": (X, scaled((2.0, 3.0), (0.5, 0.7), (1.0, 1.0), (150.0, 2.5))),
    "betabinom": (K, [(8.0, 2.0, 3.5), (0.0, 1.0, 1.0), (5.0, 0.5, 40.0, 1.0)]),
    "binom": (K, [(8.0, 0.3), (5.0, 0.0), (5.0, 1.0), (0.0, 0.4), (5.0, 0.9, 2.0)]),
    "cauchy": (X, scaled(())),
    "chi2": (X, scaled((3.0,), (2.0,), (0.5,), (60.0,))),
    "expon": (X, scaled(())),
    "gamma": (X, scaled((2.5,), (1.0,), (0.5,), (80.0,))),
    "gennorm": (X, [(1.5,), (2.0,), (0.7,)]),
    "geom": (K, [(0.3,), (1.0,), (0.9, 2.0)]),
    "gumbel_l": (X, scaled(())),
    "gumbel_r": (X, scaled(())),
    "laplace": (X[X < 700], scaled(())),
    "logistic": (X, scaled(())),
    "nbinom": (K, [(8.0, 0.3), (2.5, 0.6), (5.0, 1.0), (5.0, 0.9, 2.0)]),
    "norm": (X, scaled(())),
    "pareto": (X, scaled((2.5,), (0.5,))),
    "poisson": (K, [(3.0,), (0.0,), (0.2, 1.0), (40.0,)]),
    "t": (X, scaled((2.5,), (1.0,), (300.0,), (1e12,))),
    "truncnorm": (X, scaled((-1.0, 2.0), (2.0, 9.0), (-8.0, -3.0), (0.25, inf), (-inf, 0.5))),
    "uniform": (X, scaled(())),
    "vonmises": (ANGLES, [(1.5,), (0.0,), (200.0,)]),
    "wrapcauchy": (ANGLES, [(0.5,), (0.99,), (1e-3,)]),
}
ELEMENTWISE = [
    (d, f) for d in TABLE for f in importlib.import_module(f"ferrax.scipy.stats.{d}").__all__ if f != "entropy"
]
every = pytest.mark.parametrize(("distribution", "name"), ELEMENTWISE)


def functions(distribution, name):
    return getattr(getattr(scipy.stats, distribution), name), getattr(getattr(stats, distribution), name)


def places(distribution, name):
    """What a function is asked at: quantiles are of probabilities."""
    grid = Q if name in ("ppf", "isf") else TABLE[distribution][0]
    if distribution == "bernoulli" and name == "cdf":
        return grid, [p for p in TABLE[distribution][1] if len(p) == 1]
    return grid, TABLE[distribution][1]


@every
def test_values_in_double(distribution, name, x64):
    theirs, mine = functions(distribution, name)
    x, parameters = places(distribution, name)
    for p in parameters:
        with np.errstate(all="ignore"):
            wanted = theirs(x, *p)
        np.testing.assert_allclose(mine(x, *p), wanted, rtol=2e-12, atol=1e-300, err_msg=f"{distribution}.{name}{p}")


@every
def test_derivatives_in_single(distribution, name):
    """First and second derivatives of float32 are those of float64, where functions compute in float64 inside, too."""
    if (distribution, name) == ("bernoulli", "ppf"):
        pytest.skip("a step function")
    _, mine = functions(distribution, name)
    p = max(places(distribution, name)[1], key=len)
    x = 0.3 if name in ("ppf", "isf") else 1.0 if distribution == "bernoulli" else 3.0

    def slopes(dtype):
        arguments = [dtype(v) for v in (x, *p)]
        first = ferrax.jacfwd(mine, tuple(range(len(arguments))))(*arguments)
        chosen = 0 if distribution not in CONTINUOUS else CONTINUOUS[distribution][0]
        return [float(v) for v in (*first, ferrax.grad(ferrax.grad(mine, chosen), chosen)(*arguments))]

    got = slopes(np.float32)
    with ferrax.enable_x64(True):
        wanted = slopes(np.float64)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-6 * np.abs(wanted).max())


@every
def test_values_in_single(distribution, name):
    theirs, mine = functions(distribution, name)
    x, parameters = places(distribution, name)
    x = x.astype(np.float32)[x.astype(np.float32) != 1.0] if name in ("ppf", "isf") else x.astype(np.float32)
    for p in parameters:
        p = tuple(np.float32(v) for v in p)
        with np.errstate(all="ignore"):
            wanted = theirs(x.astype(float), *(float(v) for v in p))
        got = np.asarray(mine(x, *p))
        assert got.dtype == np.float32
        # neither of numbers that are none in single precision
        near = ~((np.abs(wanted) < 2e-38) | (np.abs(wanted) > 3e38) & np.isfinite(wanted))
        np.testing.assert_allclose(got[near], wanted[near], rtol=8e-6, err_msg=f"{distribution}.{name}{p}")


# arguments of discrete distributions by which SciPy's functions can be differentiated; of the others by all
CONTINUOUS = {"bernoulli": [1], "betabinom": [2, 3], "binom": [2], "geom": [1], "nbinom": [1, 2], "poisson": [1]}


@every
def test_derivatives(distribution, name, x64):
    """Against central differences of SciPy's function, in the argument and in all parameters."""
    if (distribution, name) == ("bernoulli", "ppf"):
        pytest.skip("a step function")
    theirs, mine = functions(distribution, name)
    x, parameters = places(distribution, name)
    parameters = max(parameters, key=len)
    if x is Q:
        x = x[2:-1]
    else:
        x = x[(x > 0.2) & (x < 6)] + (0 if distribution in CONTINUOUS else 0.01)
    arguments = [x, *(np.full(len(x), float(p)) for p in parameters)]
    chosen = CONTINUOUS.get(distribution, range(len(arguments)))
    gradients = ferrax.grad(lambda *args: mine(*args).sum(), argnums=tuple(chosen))(*arguments)
    for i, gradient in zip(chosen, gradients, strict=True):
        step = 1e-5 * np.maximum(np.abs(arguments[i]), 0.1)
        if name in ("ppf", "isf") and i == 0:
            step = np.minimum(x, 1 - x) * 1e-4
        above, below = ([*arguments[:i], arguments[i] + s, *arguments[i + 1 :]] for s in (step, -step))
        with np.errstate(all="ignore"):
            wanted = (theirs(*above) - theirs(*below)) / (2 * step)
        smooth = np.isfinite(wanted)
        assert np.isfinite(gradient).all()
        scale = np.abs(wanted[smooth]).max()
        np.testing.assert_allclose(
            gradient[smooth], wanted[smooth], rtol=2e-5, atol=1e-6 * scale, err_msg=f"{distribution}.{name} by {i}"
        )


# ---- supports, NaN, dtypes, transformations ------------------------------------------------------------------------

# beyond the ends, on them, and at infinity
EDGES = {
    "beta": ([-inf, -0.5, 0, 1, 1.5, inf], (2.0, 3.0)),
    "chi2": ([-inf, -0.5, 0, inf], (3.0,)),
    "expon": ([-inf, -0.5, 0, inf], ()),
    "gamma": ([-inf, -0.5, 0, inf], (1.0,)),
    "pareto": ([-inf, -0.5, 1, inf], (2.0,)),
    "truncnorm": ([-inf, -1.5, -1, 2, 2.5, inf], (-1.0, 2.0)),
    "uniform": ([-inf, -0.5, 0, 1, 1.5, inf], ()),
}


@pytest.mark.parametrize(
    ("distribution", "name"), [(d, f) for d, f in ELEMENTWISE if d in EDGES and f not in ("ppf", "isf")]
)
def test_edges_of_supports(distribution, name, x64):
    theirs, mine = functions(distribution, name)
    x, p = EDGES[distribution]
    with np.errstate(all="ignore"):
        wanted = theirs(x, *p)
    wanted[np.isnan(wanted)] = -inf if name == "logpdf" else 0  # SciPy's densities at infinity
    np.testing.assert_allclose(mine(np.array(x), *p), wanted, rtol=1e-12, atol=1e-15)
    # what `where` leaves out has no part in derivatives
    off = np.array([v for v in x if np.isfinite(v) and v not in (0, 1, -1, 2)])
    full = [np.full(len(off), v) for v in (*p, 0.0, 1.0)]
    argnums = tuple(range(len(full) + 1))
    gradients = ferrax.grad(lambda *args: jnp.where(jnp.isfinite(f := mine(*args)), f, 0).sum(), argnums)(off, *full)
    # the scale and the shape of the whole density are in it nowhere else
    np.testing.assert_array_equal(np.array(gradients), 0)


@every
def test_nan_goes_through(distribution, name):
    _, mine = functions(distribution, name)
    parameters = max(places(distribution, name)[1], key=len)
    start = 0.3 if name in ("ppf", "isf") else 1.0 if distribution == "bernoulli" else 3.0
    for i in range(1 + len(parameters)):
        arguments = [start, *parameters]
        arguments[i] = nan
        assert np.isnan(mine(*arguments)), f"argument {i}"


@pytest.mark.parametrize(("distribution", "name"), [(d, f) for d, f in ELEMENTWISE if f in ("ppf", "isf")])
def test_quantiles(distribution, name, x64):
    """At the ends of [0, 1], and of what is no probability."""
    theirs, mine = functions(distribution, name)
    p = max(places(distribution, name)[1], key=len)
    got = np.asarray(mine(np.array([-0.1, 0.0, 1.0, 1.1]), *p))
    wanted = theirs(np.array([-0.1, 0.0, 1.0, 1.1]), *p)
    if distribution == "bernoulli":
        wanted[1] = 0  # as JAX: the smallest value that there is
    np.testing.assert_array_equal(got, wanted)


def kind(module, function, signature):
    """What dtype, shape and weak type a result has, or the class of the error."""
    arguments = [module.ShapeDtypeStruct(*a) if isinstance(a, tuple) else a for a in signature]
    try:
        out = module.eval_shape(function, *arguments)
    except (TypeError, ValueError) as error:
        return type(error).__name__
    return str(out.dtype), out.shape, getattr(out, "weak_type", False)


@pytest.mark.parametrize("distribution", TABLE)
def test_dtypes(distribution):
    module = importlib.import_module(f"jax.scipy.stats.{distribution}")
    for name in getattr(stats, distribution).__all__:
        _, parameters = places(distribution, name)
        n = 0 if name == "entropy" else len(parameters[0])
        for signature in [
            (0.5, *[0.5] * n),
            (((3,), "float32"), *[0.5] * n),
            (((3, 1), "int32"), *[((2,), "float32")] * n),
            (((3,), "int8"), *[((), "int16")] * n),
            (((2, 1), "float32"), *[((3,), "float32")] * n),
        ]:
            wanted = kind(jax, getattr(module, name), signature)
            if "TypeError" in wanted:
                continue  # norm.ppf takes no integers in JAX
            got = kind(ferrax, getattr(getattr(stats, distribution), name), signature)
            assert got[:2] == wanted[:2], f"{name}{signature}"
            mixed = len({isinstance(a, tuple) for a in signature}) == 2 or "int" in str(signature)
            assert mixed or got[2] == wanted[2], f"{name}{signature}"
        if n:
            with pytest.raises(TypeError, match=f"{name}|requires ndarray"):
                getattr(getattr(stats, distribution), name)([1.0, 2.0], *[0.5] * n)


@every
def test_small_dtypes(distribution, name):
    """bfloat16 and float16, where there is a result, are roundings of it."""
    _, mine = functions(distribution, name)
    x, parameters = places(distribution, name)
    p = [np.float16(v) for v in parameters[0]]
    x = x[(x > 0.01) & (x < 20)].astype(np.float16)
    if distribution == "norm" and name not in ("pdf", "logpdf"):
        with pytest.raises(TypeError, match="float16 is not supported"):
            mine(x, *p)
        return
    got, wanted = mine(x, *p), np.asarray(mine(x.astype(np.float32), *(np.float32(v) for v in p)))
    assert got.dtype == np.float16
    normal = (np.abs(wanted) > 1e-4) & (np.abs(wanted) < 6e4)
    np.testing.assert_allclose(np.asarray(got, np.float32)[normal], wanted[normal], rtol=4e-2)


@pytest.mark.parametrize("distribution", TABLE)
def test_transformations(distribution, x64):
    """One program, one call, and a call for each element give one result; so do shapes that broadcast, strictly."""
    module = getattr(stats, distribution)
    for name in module.__all__:
        x, parameters = (X[3:], [()]) if name == "entropy" else places(distribution, name)
        p = tuple(jnp.asarray(v) for v in parameters[0])
        function = getattr(module, name)
        together = function(jnp.asarray(x), *p)
        each = ferrax.vmap(lambda v, function=function, p=p: function(v, *p))(jnp.asarray(x))
        np.testing.assert_allclose(each, together, rtol=1e-14)
        np.testing.assert_allclose([float(function(v, *p)) for v in x[-3:]], together[-3:], rtol=1e-14)
        with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
            np.testing.assert_allclose(ferrax.jit(function)(jnp.asarray(x)[None], *p), together[None], rtol=1e-14)


# ---- tails -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        (lambda: stats.cauchy.sf(1e15), lambda: mpmath.atan(mpmath.mpf(10) ** -15) / mpmath.pi),
        (lambda: stats.cauchy.logcdf(1e12), lambda: mpmath.log1p(-mpmath.atan(mpmath.mpf(10) ** -12) / mpmath.pi)),
        (lambda: stats.cauchy.ppf(1e-12), lambda: -mpmath.cot(mpmath.pi * mpmath.mpf(1e-12))),
        (lambda: stats.expon.logcdf(1e-30), lambda: mpmath.log(1e-30)),
        (lambda: stats.expon.logcdf(50.0), lambda: mpmath.log1p(-mpmath.exp(-50))),
        (lambda: stats.gumbel_r.logsf(800.0), lambda: mpmath.mpf(-800)),
        (lambda: stats.gumbel_l.logcdf(-800.0), lambda: mpmath.mpf(-800)),
        (lambda: stats.logistic.sf(700.0), lambda: 1 / (1 + mpmath.exp(700))),
        (lambda: stats.pareto.logcdf(1e12, 1.5), lambda: mpmath.log1p(-(mpmath.mpf(10) ** -18))),
        (lambda: stats.norm.logsf(1e5), lambda: mpmath.log(mpmath.erfc(1e5 / mpmath.sqrt(2)) / 2)),
        (lambda: stats.norm.isf(1e-300), lambda: -mpmath.findroot(lambda z: mpmath.ncdf(z) / 1e-300 - 1, -37)),
        (lambda: stats.truncnorm.logpdf(31.0, 30.0, 32.0), lambda: truncated_log_density(31, 30, 32)),
        (lambda: stats.truncnorm.logcdf(-30.5, -32.0, -30.0), lambda: mpmath.log(mass(-32, -30.5) / mass(-32, -30))),
        (lambda: stats.t.logpdf(2.0, 1e8), lambda: student(2, 10**8)),
        (lambda: stats.gamma.logcdf(300.0, 2.5), lambda: mpmath.log1p(-mpmath.gammainc(2.5, 300, regularized=True))),
        (lambda: stats.beta.logsf(0.2, 900.0, 2.0), lambda: mpmath.log1p(-mpmath.betainc(900, 2, 0, 0.2, True))),
        (lambda: stats.vonmises.logpdf(1e-9, 1e6), lambda: mises(1e-9, 10**6)),
        (lambda: stats.wrapcauchy.pdf(0.0, 1 - 2.0**-40), lambda: (2 - mpmath.mpf(2) ** -40) * 2**40 / (2 * mpmath.pi)),
    ],
)
def test_tails(got, wanted, x64):
    with mpmath.workdps(60):
        wanted = float(wanted())
    np.testing.assert_allclose(float(got()), wanted, rtol=2e-13)


def mass(a, b):
    a, b = (a, b) if a > 0 else (-b, -a)
    return (mpmath.erfc(a / mpmath.sqrt(2)) - mpmath.erfc(b / mpmath.sqrt(2))) / 2


def truncated_log_density(z, a, b):
    return mpmath.log(mpmath.npdf(z) / mass(a, b))


def student(x, df):
    df = mpmath.mpf(df)
    peak = mpmath.loggamma((df + 1) / 2) - mpmath.loggamma(df / 2) - mpmath.log(df * mpmath.pi) / 2
    return peak - (df + 1) / 2 * mpmath.log1p(x**2 / df)


def mises(x, kappa):
    return kappa * mpmath.cos(mpmath.mpf(x)) - mpmath.log(2 * mpmath.pi * mpmath.besseli(0, kappa))


@pytest.mark.parametrize(
    ("single", "double"),
    [
        (lambda: stats.poisson.logpmf(1000100, np.float32(1e6)), lambda: scipy.stats.poisson.logpmf(1000100, 1e6)),
        (lambda: stats.binom.logpmf(5003, 10000, np.float32(0.5)), lambda: scipy.stats.binom.logpmf(5003, 10000, 0.5)),
        (lambda: stats.gamma.logpdf(np.float32(1e5), 1e5), lambda: scipy.stats.gamma.logpdf(1e5, 1e5)),
        (lambda: stats.t.logpdf(np.float32(1.0), 5e3), lambda: scipy.stats.t.logpdf(1.0, 5e3)),
        (lambda: stats.gamma.logsf(np.float32(700.0), 2.5), lambda: scipy.stats.gamma.logsf(700, 2.5)),
        (lambda: stats.gamma.logcdf(np.float32(2.0**-70), 2.5), lambda: scipy.stats.gamma.logcdf(2.0**-70, 2.5)),
        (lambda: stats.gamma.logcdf(np.float32(40.0), 2.5), lambda: scipy.stats.gamma.logcdf(40, 2.5)),
    ],
)
def test_large_logarithms_cancel_in_double(single, double):
    got = single()
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, double(), rtol=2e-7)


def test_slopes_in_tails():
    """1 - exp(-z) is 1 to the last bit, and its slope is not zero."""
    np.testing.assert_allclose(ferrax.grad(stats.expon.cdf)(60.0), np.exp(-60.0), rtol=1e-6)
    np.testing.assert_allclose(ferrax.grad(stats.pareto.cdf)(1e6, 2.0), 2e-18, rtol=1e-5)
    np.testing.assert_allclose(ferrax.grad(stats.norm.logsf)(1e4), -1e4, rtol=1e-6)
    # derivatives by both bounds when the support is half a line
    loc, scale = ferrax.grad(lambda m, s: stats.truncnorm.logpdf(1.0, (0 - m) / s, inf, m, s), (0, 1))(0.3, 2.0)
    assert np.isfinite(loc) and np.isfinite(scale)
    assert float(ferrax.grad(stats.truncnorm.logpdf, 2)(1.0, 0.5, inf)) == 0


def test_second_derivatives_where_branches_meet(x64):
    """Logistic, Laplace, Cauchy: what is made of a tail on each side has the slope of one function."""
    for function, second in [
        (stats.logistic.logpdf, -0.5),
        (stats.norm.logpdf, -1.0),
        (stats.cauchy.logpdf, -2.0),
        (stats.gennorm.logpdf, None),
    ]:
        if second is None:
            np.testing.assert_allclose(ferrax.hessian(lambda x: stats.gennorm.logpdf(x, 2.0))(0.7), -2.0)
        else:
            np.testing.assert_allclose(ferrax.hessian(function)(0.0), second, rtol=1e-12)
    assert float(ferrax.grad(stats.laplace.cdf)(0.0)) == 0.5
    np.testing.assert_allclose(ferrax.grad(stats.gennorm.cdf)(0.0, 1.5), stats.gennorm.pdf(0.0, 1.5), rtol=1e-12)
    np.testing.assert_allclose(ferrax.grad(stats.cauchy.logcdf)(0.0), 2 / np.pi)


# ---- what JAX does with numbers that are no integers, and with parameters that are none ---------------------------


@pytest.mark.parametrize(
    ("distribution", "x", "parameters"),
    [
        ("bernoulli", [0.5, 2.0], (0.3,)),
        ("binom", [0.5, 4.5, 5.5, 6.0], (5.0, 0.3)),
        ("nbinom", [0.5, 4.5], (5.0, 0.3)),
        ("geom", [0.5, 4.5], (0.3,)),
        ("poisson", [0.5, 4.0], (3.0,)),
        ("betabinom", [0.5, 4.5, 5.5], (5.0, 2.0, 3.0)),
        ("norm", [0.5], (0.0, -2.0)),
        ("t", [0.5], (3.0, 0.0, -2.0)),
        ("beta", [0.5, 2.0], (-1.0, 1.0)),
        ("wrapcauchy", [0.5], (1.5,)),
        ("vonmises", [0.5], (-1.0,)),
        ("truncnorm", [0.5], (1.0, -1.0)),
    ],
)
def test_as_jax(distribution, x, parameters):
    name = "logpmf" if distribution in CONTINUOUS else "logpdf"
    theirs = getattr(importlib.import_module(f"jax.scipy.stats.{distribution}"), name)
    mine = getattr(getattr(stats, distribution), name)
    x = np.array(x, np.float32)
    np.testing.assert_allclose(mine(x, *parameters), jax.jit(theirs)(x, *parameters), rtol=1e-5)


def test_entropy_of_poisson(x64):
    mu = np.array([0.0, 1e-8, 0.3, 5.0, 40.0, 99.0, 101.0, 1e6])
    got = stats.poisson.entropy(mu)
    with mpmath.workdps(40):
        wanted = [float(poisson_entropy(m)) for m in mu[:-1]] + [np.log(2 * np.pi * np.e * 1e6) / 2 - 1e-6 / 12]
    np.testing.assert_allclose(got, wanted, rtol=3e-13)
    np.testing.assert_array_equal(stats.poisson.entropy(np.array([-1.0, inf, nan])), [nan, inf, nan])
    step = 1e-5
    slope = (got_at(5.0 + step) - got_at(5.0 - step)) / (2 * step)
    np.testing.assert_allclose(ferrax.grad(stats.poisson.entropy)(5.0), slope, rtol=1e-8)
    assert stats.poisson.entropy(np.ones(2), np.ones((3, 1))).shape == (3, 2)


def got_at(mu):
    return float(stats.poisson.entropy(mu))


def poisson_entropy(mu):
    if mu == 0:
        return mpmath.mpf(0)
    mu = mpmath.mpf(mu)
    masses = [mpmath.exp(k * mpmath.log(mu) - mu - mpmath.loggamma(k + 1)) for k in range(300)]
    return -mpmath.fsum(p * mpmath.log(p) for p in masses)


@pytest.mark.parametrize("name", ["cdf", "sf", "logcdf", "logsf"])
@pytest.mark.parametrize("x", [-1.0, 0.0, -np.inf])
def test_forward_slopes_below_the_support(name, x):
    for law, shape in ((stats.gamma, 0.8), (stats.gamma, 2.0), (stats.chi2, 1.0)):
        function = getattr(law, name)
        value, slope = ferrax.jvp(lambda x, f=function, a=shape: f(x, a), (x,), (1.0,))
        assert value == function(x, shape) == {"cdf": 0, "sf": 1, "logcdf": -np.inf, "logsf": 0}[name] and slope == 0
