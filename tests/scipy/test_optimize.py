"""`ferrax.scipy.optimize` on the functions that SciPy and JAX test with, against their known minima and JAX."""

import jax.numpy
import jax.scipy.optimize
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy.optimize import OptimizeResults, minimize

LIMITED = "l-bfgs-experimental-do-not-rely-on-this"
methods = pytest.mark.parametrize("method", ["BFGS", LIMITED])


def rosenbrock(np):
    return lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(np):
    return lambda p: (p[0] ** 2 + p[1] - 11) ** 2 + (p[0] + p[1] ** 2 - 7) ** 2


def matyas(np):
    return lambda p: 0.26 * (p[0] ** 2 + p[1] ** 2) - 0.48 * p[0] * p[1]


def eggholder(np):
    return lambda p: (
        -(p[1] + 47) * np.sin(np.sqrt(np.abs(p[0] / 2 + p[1] + 47)))
        - p[0] * np.sin(np.sqrt(np.abs(p[0] - (p[1] + 47))))
    )


# function, start, minimum, and whether JAX gets there
CASES = [
    (rosenbrock, [-1.2, 1.0], [1, 1], False),
    (rosenbrock, [0.0] * 5, [1] * 5, False),
    (himmelblau, [0.0, 0.0], [3, 2], False),
    (himmelblau, [5.0, 5.0], None, True),
    (matyas, [1.0, 1.0], [0, 0], True),
    (eggholder, [100.0, 100.0], None, True),
]


@methods
@pytest.mark.parametrize(("function", "start", "minimum", "same"), CASES)
def test_minima(function, start, minimum, same, method, x64):
    result = minimize(function(jnp), jnp.array(start), method=method)
    assert isinstance(result, OptimizeResults)
    assert float(result.fun) == float(function(jnp)(result.x))
    np.testing.assert_allclose(result.jac, ferrax.grad(function(jnp))(result.x))
    assert bool(result.success) == (int(result.status) == 0)
    if minimum is not None:
        np.testing.assert_allclose(result.x, minimum, atol=2e-4)
    if same and method == "BFGS":
        wanted = jax.scipy.optimize.minimize(function(jax.numpy), jax.numpy.array(start), method=method)
        np.testing.assert_allclose(result.x, wanted.x, rtol=1e-6)
        np.testing.assert_allclose(result.hess_inv, wanted.hess_inv, rtol=1e-3)
        assert [int(result.nit), int(result.nfev), int(result.njev)] == [
            int(wanted.nit), int(wanted.nfev), int(wanted.njev)
        ]  # fmt: skip


@methods
def test_single_precision_and_integers(method):
    result = minimize(lambda x: jnp.sum((x - 2) ** 4 + x**2), jnp.array([5, 7]), method=method)
    assert result.x.dtype == jnp.float32
    np.testing.assert_allclose(result.x, [1.2] * 2, atol=0.1)
    assert float(jnp.max(jnp.abs(result.jac))) < 1e-3


def test_complex_points():
    target = jnp.array([1 + 2j, -3j], dtype="complex64")
    result = minimize(lambda z: jnp.sum(jnp.abs(z - target) ** 2), jnp.zeros(2, "complex64"), method=LIMITED)
    np.testing.assert_allclose(result.x, target, atol=1e-5)
    with pytest.raises(TypeError, match="needs a real x0"):
        minimize(lambda z: jnp.sum(jnp.abs(z)), jnp.zeros(2, "complex64"), method="BFGS")


@methods
def test_arguments_and_options(method):
    quadratic = lambda x, a, b: jnp.sum((x - a) ** 2 * b)
    a, b = jnp.array([1.0, 2.0]), jnp.array([1.0, 30.0])
    result = minimize(quadratic, jnp.zeros(2), (a, b), method=method.upper())
    np.testing.assert_allclose(result.x, a, atol=1e-5)
    assert result.success and result.nit > 1
    few = minimize(quadratic, jnp.zeros(2), (a, b), method=method, options={"maxiter": 1})
    assert not few.success and few.status == 1 and few.nit <= 2
    loose = minimize(quadratic, jnp.zeros(2), (a, b), method=method, tol=1e3)
    assert loose.success and loose.nit == 0 and loose.nfev == 1
    loose = minimize(quadratic, jnp.zeros(2), (a, b), method=method, options={"gtol": 130.0, "norm": 2})
    assert loose.success and loose.nit == 0


@methods
def test_compiled_and_mapped(method):
    solve = lambda start: minimize(himmelblau(jnp), start, method=method)
    starts = jnp.array([[0.0, 0.0], [5.0, 5.0], [-2.0, 3.0]])
    one_by_one = [solve(x) for x in starts]
    for form in (ferrax.vmap(solve), ferrax.jit(ferrax.vmap(solve))):
        together = form(starts)
        np.testing.assert_allclose(together.x, np.stack([r.x for r in one_by_one]), atol=1e-3)


def test_limits_of_lbfgs():
    f, x = rosenbrock(jnp), jnp.array([-1.2, 1.0])
    assert minimize(f, x, method=LIMITED, options={"maxfun": 5}).status == 2
    assert minimize(f, x, method=LIMITED, options={"maxgrad": 5}).status == 3
    assert minimize(f, x, method=LIMITED, options={"ftol": 1e3}).status == 4
    assert minimize(f, x, method=LIMITED, options={"maxls": 0}).status == 5
    assert minimize(f, x, method=LIMITED, options={"maxcor": 2}).hess_inv is None


def test_refusals():
    f = lambda x: jnp.sum(x**2)
    with pytest.raises(ValueError, match="Method Nelder-Mead not recognized"):
        minimize(f, jnp.zeros(2), method="Nelder-Mead")
    with pytest.raises(TypeError, match=r"args argument to jax\.scipy\.optimize\.minimize must be a tuple"):
        minimize(f, jnp.zeros(2), [1], method="BFGS")
    with pytest.raises(ValueError, match=r"shape \(n,\)"):
        minimize(f, jnp.zeros((2, 2)), method="BFGS")
    with pytest.raises(TypeError, match="foo"):
        minimize(f, jnp.zeros(2), method="BFGS", options={"foo": 1})


@methods
def test_a_function_without_minimum_ends(method):
    result = minimize(lambda x: jnp.sum(x), jnp.zeros(2), method=method)
    assert not result.success and result.status > 0


@methods
def test_strict_settings(method):
    with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
        result = minimize(lambda x: jnp.sum((x - 1.0) ** 2), jnp.zeros(3), method=method)
    np.testing.assert_allclose(result.x, np.ones(3), atol=1e-5)
