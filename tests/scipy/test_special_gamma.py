"""`ferrax.scipy.special`: gamma, beta, zeta, normal, entropy and logistic functions, and their derivatives."""

import importlib.util
import pathlib
import re

import mpmath
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.scipy import special as sp
from tests.recorded import expected
from tests.scipy import scipy_oracle

scipy_special = pytest.importorskip("scipy.special")
mpmath = pytest.importorskip("mpmath")

ROOT = pathlib.Path(__file__).parent.parent.parent
ROW = re.compile(r"^\| `(\w+)` \| ([^|]*) \| ([\d.]+) \| [\d.]+ \| ([\d.]+) \| [\d.]+ \|$", re.MULTILINE)
BOUNDS = {m[0]: (float(m[2]), float(m[3])) for m in ROW.findall((ROOT / "docs/numerics.md").read_text())}


def load():
    """The program that measures, which lies beside the benchmarks."""
    spec = importlib.util.spec_from_file_location("special", ROOT / "benches" / "special.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


errors = load()
errors.COUNT = 100


def test_every_function_has_a_row():
    assert set(errors.FUNCTIONS) <= set(BOUNDS)


@pytest.mark.parametrize("name", errors.FUNCTIONS)
def test_errors(name):
    for dtype, bound in zip(errors.DTYPES, BOUNDS[name]):
        with ferrax.enable_x64(dtype == "float64"):
            assert errors.measure(name, dtype) <= bound


# ---- JAX's results, dtypes, weak types and errors -------------------------------------------------------------------

OPERANDS = {
    "x": np.array([[0.5, 1.5, 2.0], [3.25, 0.1, 4.5]], np.float32),
    "y": np.array([0.2, 0.7, 0.9], np.float32),
    "h": np.array([0.5, 1.5], np.float16),
    "i": np.array([1, 2, 3]),
    "c": np.array([1 + 2j, 0.5 - 1j, -3.5 + 0.2j], np.complex64),
    "e": np.zeros((0, 3), np.float32),
    "f": np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan], np.float32),
    "z": np.array([0.0, 0.5, 1.0], np.float32),
}


@scipy_oracle.cases("""
sp.gammaln(f)
sp.gammaln(2)
sp.gammaln(c)
sp.gammaln([1.0])
sp.gamma(f)
sp.gamma(c)
sp.gamma(h)
sp.gamma(2)
sp.loggamma(c)
sp.loggamma(-1.5)
sp.gammasgn(f)
sp.gammasgn(c)
sp.factorial(f)
sp.factorial(i)
sp.factorial(3, exact=True)
sp.digamma(f)
sp.digamma(c)
sp.polygamma(2, x)
sp.polygamma(i, y)
sp.polygamma(1.5, x)
sp.polygamma(-1, x)
sp.polygamma(1, c)
sp.multigammaln(x + 2, 2)
sp.multigammaln(3.0, 2.5)
sp.multigammaln(i + 2, jnp.array(2))
sp.zeta(x + 1.5, y)
sp.zeta(2, i)
sp.beta(x, y)
sp.beta(f, 1.0)
sp.beta(2, 3)
sp.beta(c, 1.0)
sp.betaln(x, i)
sp.betaln(2, 0.5)
sp.betainc(x, x, y)
sp.betainc(h, h, h - 0.4)
sp.betainc(1, 2, 0.5)
sp.betainc(f, 1.0, 0.5)
sp.betainc(1.0, f, 0.5)
sp.betainc(1.0, 2.0, f)
sp.betainc(z, z, 0.5)
sp.betainc(c, c, c)
sp.betainc(x, y, [0.1])
sp.gammainc(x, y)
sp.gammainc(f, 1.0)
sp.gammaincc(1.0, f)
sp.gammaincc(h, h)
sp.gammainc(x, x[:, :2])
sp.comb(5, i)
sp.comb(x + 3, y)
sp.comb(i, i, repetition=True)
sp.comb(f, 1.0)
sp.poch(x, y)
sp.poch(2, 3)
sp.poch(c, 1.0)
sp.bernoulli(12)
sp.bernoulli(-1)
sp.bernoulli(2.5)
jit(sp.bernoulli)(3)
sp.erf(f)
sp.erf(c)
sp.erfc(y)
sp.erfinv(f)
sp.erfinv(h / 2)
sp.ndtr(f)
sp.ndtr(2)
sp.ndtr(h)
sp.ndtr([1.0, 2.0])
sp.ndtr(0.5)
sp.ndtri(z)
sp.ndtri(f)
sp.ndtri(h)
sp.ndtri(0.3)
sp.log_ndtr(f)
sp.log_ndtr(-y * 30)
sp.log_ndtr(y, 30)
sp.log_ndtr(y, 31)
sp.log_ndtr(y, -1)
sp.log_ndtr(y, 2.0)
sp.log_ndtr(i)
sp.logit(z)
sp.logit(c)
sp.logit(h)
sp.logit(f)
sp.expit(f)
sp.expit(c)
sp.expit(True)
sp.xlogy(z, z)
sp.xlogy(f, f[:, None])
sp.xlogy(c, c)
sp.xlogy(2, 3)
sp.xlog1py(-z, -z)
sp.xlog1py(f, f[:, None])
sp.xlogy(y, x[:, :2])
sp.entr(f)
sp.entr(2)
sp.entr(c)
sp.rel_entr(z, z[:, None])
sp.kl_div(z, z[:, None])
sp.kl_div(x, i)
sp.rel_entr(c, c)
sp.boxcox(z, z)
sp.boxcox(f, 1.0)
sp.boxcox(c, 2.0)
sp.boxcox1p(f, 1.0)
sp.boxcox1p(h, h)
sp.softmax(x)
sp.softmax(x, axis=0)
sp.softmax(x, 0)
sp.log_softmax(x)
sp.log_softmax(x, axis=(0, 1))
sp.logsumexp(x, axis=1, b=y, return_sign=True)
sp.i0(x)
sp.i0e(f)
sp.i1(h)
sp.i1e(2)
sp.i0(c)
sp.gamma(e)
sp.betainc(e, 1.0, 0.5)
sp.gammainc(e, y)
sp.ndtri(e)
lax.betainc(1.0, 2.0, y)
lax.betainc(1, 2, y)
lax.betainc(x, y, y)
lax.betainc(x[:1], x, x / 9)
lax.igamma(1, y)
lax.igamma(x, y)
lax.igamma(y, h)
lax.igamma_grad_a(y, y)
lax.igamma_grad_a(1.0, y)
lax.igamma_grad_a(h, h)
lax.igamma_grad_a(y, h)
lax.igamma_grad_a(f, 1.0)
lax.igamma_grad_a(1, 2)
lax.random_gamma_grad(y, y)
grad(lambda v: sp.gammainc(v, y).sum())(2.0)
grad(lambda v: sp.gammaincc(2.0, v).sum())(y)
grad(lambda v: sp.betainc(2.0, 3.0, v).sum())(y)
grad(lambda v: sp.zeta(v + 1.5, 2.0).sum())(y)
grad(lambda v: sp.zeta(2.5, v).sum())(y)
grad(lambda v: sp.polygamma(2, v).sum())(y)
grad(lambda v: sp.poch(2.0, v).sum())(y)
grad(lambda v: sp.kl_div(z, v).sum())(y)
grad(lambda v: sp.rel_entr(v, y).sum())(z)
grad(lambda v: sp.entr(v).sum())(y)
grad(lambda v: sp.comb(v + 3, 2.0).sum())(y)
grad(lambda v: sp.logit(v).sum())(y)
""")
def test_like_jax(text):
    scipy_oracle.compare(text, "special", OPERANDS, rtol=4e-5)


# ---- derivatives ----------------------------------------------------------------------------------------------------

#: Points where all functions of a row are smooth, an operand a line.
POINTS = {
    "one": [np.array([0.3, 0.8, 1.7, 4.2])],
    "negative": [np.array([-0.4, -1.7, 0.6, 12.5])],
    "unit": [np.array([0.1, 0.45, 0.6, 0.93])],
    "two": [np.array([0.3, 2.5, 7.0, 30.0]), np.array([0.4, 1.8, 9.0, 25.0])],
    "zeta": [np.array([1.3, 2.5, 7.0, 4.0]), np.array([0.4, 1.8, 9.0, 2.0])],
    "comb": [np.array([3.3, 5.0, 9.5, 30.0]), np.array([0.4, 1.8, 4.0, 25.0])],
    "beta": [np.array([0.3, 2.5, 7.0, 300.0]), np.array([0.4, 1.8, 90.0, 250.0]), np.array([0.2, 0.7, 0.05, 0.56])],
}
SMOOTH = {
    "gamma": "negative", "gammaln": "negative", "digamma": "negative", "factorial": "one", "zeta": "zeta",
    "beta": "two", "betaln": "two", "gammainc": "two", "gammaincc": "two", "betainc": "beta", "comb": "comb",
    "poch": "two", "erfinv": "unit", "ndtr": "negative", "log_ndtr": "negative", "ndtri": "unit", "logit": "unit",
    "expit": "negative", "xlogy": "two", "xlog1py": "two", "entr": "one", "rel_entr": "two", "kl_div": "two",
    "boxcox": "two", "boxcox1p": "two", "i0": "negative", "i1": "negative",
}  # fmt: skip


def differences(function, operands, k):
    """The derivative by operand k: Richardson's extrapolation of central differences."""
    step = 2e-3 * np.maximum(np.abs(operands[k]), 0.1)

    def central(h):
        moved = [[x + s * h if i == k else x for i, x in enumerate(operands)] for s in (1, -1)]
        return (np.asarray(function(*moved[0])) - np.asarray(function(*moved[1]))) / (2 * h)

    coarse, middle, fine = (central(step / 2**i) for i in range(3))
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    return (16 * second - first) / 15


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name):
    """The first and second derivative by every operand, the latter as a difference of the former."""
    with ferrax.enable_x64(True):
        function, operands = getattr(sp, name), POINTS[SMOOTH[name]]
        for k in range(len(operands)):
            slope = ferrax.jit(ferrax.grad(lambda *args: function(*args).sum(), k))
            bend = ferrax.jit(ferrax.grad(lambda *args: slope(*args).sum(), k))
            got, twice = np.asarray(slope(*operands)), np.asarray(bend(*operands))
            np.testing.assert_allclose(got, differences(function, operands, k), rtol=2e-8, atol=1e-9)
            np.testing.assert_allclose(twice, differences(slope, operands, k), rtol=2e-7, atol=1e-8)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "betainc", "zeta", "beta", "kl_div"])
def test_forward_reverse_and_mixed(name):
    with ferrax.enable_x64(True):
        function, operands = getattr(sp, name), [jnp.asarray(x[1]) for x in POINTS[SMOOTH[name]]]
        every = tuple(range(len(operands)))
        slopes = ferrax.grad(function, every)(*operands)
        for k in every:
            direction = [jnp.asarray(float(i == k)) for i in every]
            tangent = ferrax.jvp(function, tuple(operands), tuple(direction))[1]
            np.testing.assert_allclose(tangent, slopes[k], rtol=1e-14)
        hessian = np.array(ferrax.jit(ferrax.hessian(function, every))(*operands))
        np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["gammainc", "betainc", "poch", "ndtri", "log_ndtr", "boxcox"])
def test_float32_derivatives_are_rounded_once(name):
    operands = [x.astype(np.float32) for x in POINTS[SMOOTH[name]]]
    every = tuple(range(len(operands)))
    slopes = lambda: ferrax.jit(ferrax.grad(lambda *args: getattr(sp, name)(*args).sum(), every))
    got = [np.asarray(x) for x in slopes()(*operands)]
    with ferrax.enable_x64(True):
        want = [np.asarray(x) for x in slopes()(*(x.astype(np.float64) for x in operands))]
    for one, other in zip(got, want):
        assert one.dtype == np.float32
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(one, other.astype(np.float32), rtol=2.5e-7)


def test_derivatives_at_edges():
    for function, log in ((sp.xlogy, 1.0), (sp.xlog1py, 0.0)):
        start = log - 1
        assert [float(ferrax.grad(function, 1)(0.0, y)) for y in (start, 1.0, 2.0)] == [0, 0, 0]
        assert float(ferrax.grad(function)(0.0, start)) == -np.inf
    assert [float(ferrax.grad(sp.entr)(x)) for x in (0.0, 1.0)] == [np.inf, -1]
    assert float(ferrax.grad(sp.boxcox, 1)(2.0, 0.0)) == pytest.approx(np.log(2) ** 2 / 2, rel=1e-6)
    assert float(ferrax.grad(sp.kl_div)(0.0, 1.0)) == -1
    assert [float(ferrax.grad(sp.betainc, 2)(a, 2.0, 0.0)) for a in (0.5, 1.0, 3.0)] == [np.inf, 2, 0]
    assert [float(ferrax.grad(sp.gammainc, 1)(a, 0.0)) for a in (0.5, 1.0, 3.0)] == [np.inf, 1, 0]
    assert float(ferrax.grad(sp.log_ndtr)(-1e20)) == np.float32(1e20)
    assert float(ferrax.grad(sp.i0)(0.0)) == 0 and float(ferrax.grad(sp.i1)(0.0)) == 0.5


def test_whole_results():
    n = np.arange(19.0)
    with ferrax.enable_x64(True):
        assert np.array_equal(sp.factorial(n), scipy_special.factorial(n))
        assert np.array_equal(sp.gamma(n[1:]), scipy_special.factorial(n[:-1]))
        top, bottom = np.meshgrid(np.arange(40.0), np.arange(40.0))
        assert np.array_equal(sp.comb(top, bottom), np.round(scipy_special.comb(top, bottom)))
        numbers = np.asarray(sp.bernoulli(258))
        for k in (2, 20, 100, 258):
            assert float(numbers[k]) == pytest.approx(float(mpmath.bernoulli(k)), rel=2e-16)
        assert np.isinf(np.asarray(sp.bernoulli(262))[[260, 262]]).all()


# ---- beyond JAX -----------------------------------------------------------------------------------------------------


def test_riemann_zeta():
    x = np.array([-40.5, -7.0, -2.001, -2.0, -1.0, 0.0, 0.5, 0.999, 1.0, 1.001, 2.0, 30.0, 200.0, np.inf])
    want = [float(mpmath.zeta(v)) if np.isfinite(v) and v != 1 else (np.inf if v == 1 else 1.0) for v in x]
    with ferrax.enable_x64(True):
        np.testing.assert_allclose(sp.zeta(x), want, rtol=2e-14, atol=0)
        slope = ferrax.vmap(ferrax.grad(sp.zeta))(x[[0, 2, 5, 6, 10]])
        want = [float(mpmath.zeta(v, 1, 1)) for v in x[[2, 5, 6, 10]]]
        np.testing.assert_allclose(slope[1:], want, rtol=1e-12)


def test_pochhammer_at_poles():
    z = np.array([-3.0, -3.0, -3.0, -3.0, 0.0, 0.0, 1.0, -2.0])
    m = np.array([2.0, 3.0, 5.0, -2.0, 0.0, -2.0, -1.0, 0.5])
    assert np.asarray(sp.poch(z, m)).tolist() == [6, -6, 0, np.float32(0.05), 1, 0.5, np.inf, 0]


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [
        (2.0, 3e-9, 0.99), (0.4, 1e-7, 0.999999), (1e-7, 0.4, 1e-9), (1e-6, 2e-6, 0.6), (5.0, 1e-3, 0.7),
        (2e9, 3e9, 0.4), (2e9, 3e9, 0.39999), (1e12, 5.0, 1 - 4e-12), (700.0, 1e-2, 0.9), (3.0, 1e8, 2e-8),
        (1e-4, 1e4, 1e-7),
    ],
)  # fmt: skip
def test_betainc_of_extreme_parameters(a, b, x):
    """Against Boost's, which SciPy calls, within what that promises for large parameters."""
    with ferrax.enable_x64(True):
        for p, q, y in ((a, b, x), (b, a, 1 - x)):
            want = scipy_special.betainc(p, q, y)
            assert float(sp.betainc(p, q, y)) == pytest.approx(want, rel=2e-13 if max(a, b) < 1e9 else 1e-10)
            assert all(np.isfinite(float(g)) for g in ferrax.grad(sp.betainc, (0, 1, 2))(p, q, y))


@pytest.mark.parametrize("b", [100.0, 1000.0, 1e4, 1e6])
@pytest.mark.parametrize("a", [0.0, -0.5, -1.5, -20.25, 1e-30, 0.5])
def test_beta_of_a_large_number_and_one_that_is_not(a, b):
    with ferrax.enable_x64(True):
        want = float(mpmath.beta(a, b)) if a else np.inf
        assert float(sp.beta(a, b)) == pytest.approx(want, rel=1e-14)
        assert float(sp.beta(b, a)) == float(sp.beta(a, b))
    assert float(sp.beta(-0.0, b)) == -np.inf


@pytest.mark.parametrize(
    ("a", "x", "want"),
    [
        (7038.188508407377, 10271.275254763514, 2.0717104998719360e-251),
        (9910.764119238390, 12858.742732032899, 4.5689702621535121e-162),
        (2027.5355547536951, 3987.339006502809, 2.2225479322870353e-258),
    ],
)
def test_gammaincc_of_far_tails(a, x, want):
    """Powers of e^(a - x) leave the range before the function does: values of mpmath with 60 digits."""
    with ferrax.enable_x64(True):
        for program in (sp.gammaincc, ferrax.jit(sp.gammaincc)):
            assert float(program(jnp.float64(a), jnp.float64(x))) == pytest.approx(want, rel=3e-14)


def test_gamma_slopes_of_extreme_parameters():
    """A large sample moves by 1 + z / (2 √a), where z is its distance from the mean in deviations."""
    with ferrax.enable_x64(True):
        a, z = np.array([1e8, 1e12, 1e15]), np.array([-2.0, 0.5, 3.0])
        x = a + z * np.sqrt(a)
        np.testing.assert_allclose(lax.random_gamma_grad(a, x), 1 + z / (2 * np.sqrt(a)), atol=3 / 1e8)
        # P(a, x) is x^a / Γ(a + 1) for small x
        small = np.array([1e-3, 1e-2])
        want = -1e-200 * (np.log(1e-200) - scipy_special.digamma(small + 1)) / small
        np.testing.assert_allclose(lax.random_gamma_grad(small, np.full(2, 1e-200)), want, rtol=1e-13)


def test_complex_log_gamma():
    rng = np.random.default_rng(5)
    z = (rng.normal(size=60) + 1j * rng.normal(size=60)) * 10.0 ** rng.uniform(-1, 1.5, 60)
    z = np.concatenate([z, [-0.5 + 0j, complex(-1.5, -0.0), -3.7 + 1e-8j, 1e-3j]])
    with ferrax.enable_x64(True):
        np.testing.assert_allclose(sp.loggamma(z), scipy_special.loggamma(z), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(sp.gamma(z), scipy_special.gamma(z), rtol=1e-11)
        slope = ferrax.grad(sp.loggamma, holomorphic=True)(1 + 2j)
        assert complex(slope) == pytest.approx(complex(scipy_special.digamma(1 + 2j)), rel=1e-13)
    assert sp.loggamma(z.astype(np.complex64)).dtype == np.complex64


# ---- transformations and settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SMOOTH, "polygamma", "gammasgn", "loggamma"])
def test_jit_eager_and_rows_agree(name):
    function = getattr(sp, name)
    operands = [x.astype(np.float32) for x in POINTS[SMOOTH.get(name, "one")]]
    operands = [np.ones(4, np.int32), *operands] if name == "polygamma" else operands
    eager = np.asarray(function(*operands))
    assert np.array_equal(eager, ferrax.jit(function)(*operands), equal_nan=True)
    assert np.array_equal(eager, ferrax.vmap(function)(*operands), equal_nan=True)
    rows = [np.asarray(function(*(x[i] for x in operands))) for i in range(4)]
    assert np.array_equal(eager, rows, equal_nan=True)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["gamma", "betaln", "betainc", "gammainc", "boxcox", "logit", "xlogy", "kl_div", "i1"])
def test_narrow_floats_are_rounded_once(name, dtype):
    operands = [jnp.asarray(x, dtype) for x in POINTS[SMOOTH[name]]]
    wide = getattr(sp, name)(*(x.astype(np.float32) for x in operands))
    got = getattr(sp, name)(*operands)
    assert got.dtype == dtype
    assert np.array_equal(np.asarray(got), np.asarray(wide.astype(dtype)), equal_nan=True)


def test_strict_settings():
    matrix = jnp.ones((2, 3)) / 2
    with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
        for name, kind in SMOOTH.items():
            function, count = getattr(sp, name), len(POINTS[kind])
            ferrax.grad(lambda x: function(*[x] * count).sum())(matrix)
        with pytest.raises(ValueError, match="rank"):
            sp.beta(matrix, jnp.ones(3))
        with pytest.raises(ferrax.dtypes.TypePromotionError):
            sp.beta(matrix, jnp.ones((2, 3), np.int32))


# ---- samples --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("gamma", (2.5,)), ("gamma", (0.3,)), ("loggamma", (0.7,)), ("beta", (2.0, 3.0)), ("chisquare", (3.0,)),
     ("t", (3.0,)), ("f", (3.0, 4.0))],
)  # fmt: skip
def test_samples_move_with_their_parameters(name, parameters):
    """JAX's slopes, of JAX's samples."""
    total = lambda package: lambda *a: getattr(package.random, name)(package.random.key(7), *a, shape=(16,)).sum()
    every = tuple(range(len(parameters)))
    got = ferrax.grad(total(ferrax), every)(*parameters)
    want = expected(lambda jax: jax.grad(total(jax), every)(*parameters))
    np.testing.assert_allclose(np.array(got), np.array(want), rtol=5e-5)


def test_log_samples_of_tiny_parameters():
    """Where the samples underflow, those of the logarithms keep their slope: log x is log(u) / a there."""
    key, a = ferrax.random.key(3), 1e-3
    sample, slope = ferrax.jvp(lambda a: ferrax.random.loggamma(key, a, (8,)), (a,), (1.0,))
    small = np.asarray(sample) < -100
    assert small.any()
    np.testing.assert_allclose(np.asarray(slope)[small], -np.asarray(sample)[small] / a, rtol=1e-2)


def test_dirichlet_slopes_sum_to_zero():
    jacobian = ferrax.jacobian(lambda a: ferrax.random.dirichlet(ferrax.random.key(1), a))(jnp.array([0.5, 1.0, 2.0]))
    np.testing.assert_allclose(np.asarray(jacobian).sum(0), 0, atol=1e-6)
    assert (np.diag(np.asarray(jacobian)) > 0).all()


@pytest.mark.parametrize(
    "name", ["gamma", "factorial", "beta", "betaln", "poch", "log_ndtr", "rel_entr", "kl_div", "betainc"]
)
def test_elements_that_take_long_change_no_other(name):
    usual = np.array([0.3, 1.5, 2.0, 4.5], np.float32)
    odd = np.array([-0.5, 0, 1e7, -60, np.inf, np.nan, 1e-30, 1e38], np.float32)
    count = {"gamma": 1, "factorial": 1, "log_ndtr": 1, "betainc": 3}.get(name, 2)
    function = ferrax.jit(getattr(sp, name))
    grids = [np.concatenate([usual, odd])] * min(count, 2) + [np.array([0.2, 0.75], np.float32)] * (count - 2)
    operands = [x.ravel() for x in np.meshgrid(*grids)]
    together = np.asarray(function(*operands))
    alone = np.array([np.asarray(function(*row)) for row in zip(*operands, strict=True)])
    np.testing.assert_array_equal(together.view(np.int32)[together == together], alone.view(np.int32)[alone == alone])
    with ferrax.enable_x64(True), np.errstate(all="ignore"):
        wide = np.asarray(getattr(sp, name)(*(x.astype(np.float64) for x in operands))).astype(np.float32)
    np.testing.assert_allclose(together, wide, rtol=4e-7, atol=1e-7)


def test_relative_entropy_of_far_numbers():
    p, q = np.array([1e30, 1e-44, 3e38, 1e-45, 1.0], np.float32), np.array([1e-30, 3e38, 1e-45, 1e-45, 1.0], np.float32)
    with np.errstate(all="ignore"):
        want = (p.astype(float) * (np.log(p.astype(float)) - np.log(q.astype(float)))).astype(np.float32)
    np.testing.assert_allclose(sp.rel_entr(p, q), want, rtol=5e-7)
