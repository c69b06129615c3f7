"""Taylor series of functions: against derivatives one inside of the other, of which there are few, and against JAX."""

import math

import jax
import numpy as np
import pytest
from jax.experimental.jet import jet as oracle

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.experimental.jet import fact, jet, zero_series

ORDER = 4
RNG = np.random.default_rng(0)
SERIES = [RNG.normal(size=3) for _ in range(ORDER)]
BASE = np.array([0.3, 0.5, 0.7])


def nested(f, x, series):
    """Derivatives of f along the curve with these derivatives."""

    def curve(t):
        return jnp.asarray(x) + sum(c * t ** (k + 1) / math.factorial(k + 1) for k, c in enumerate(series))

    outs, g = [], lambda t: f(curve(t))
    for _ in range(len(series) + 1):
        outs.append(g(0.0))
        g = (lambda g: lambda t: ferrax.jvp(g, (t,), (1.0,))[1])(g)
    return outs


M = RNG.normal(size=(3, 3))
FUNCTIONS = {
    "abs": lambda x: jnp.abs(x - 0.4),
    "acos": jnp.arccos,
    "acosh": lambda x: jnp.arccosh(x + 1),
    "asin": jnp.arcsin,
    "asinh": jnp.arcsinh,
    "atan": jnp.arctan,
    "atan2": lambda x: lax.atan2(jnp.sin(x), x - 1),
    "atanh": jnp.arctanh,
    "cbrt": jnp.cbrt,
    "clamp": lambda x: lax.clamp(0.4, x * x, 0.3 + x),
    "complex": lambda x: jnp.abs(jnp.exp(lax.complex(x, x * x)) * (1 + 2j)) + jnp.imag(lax.complex(x, x)),
    "conv": lambda x: lax.conv_general_dilated(x[None, None], (x * x)[None, None], (1,), "SAME"),
    "cumsum": lambda x: jnp.cumsum(x * x),
    "cumprod": jnp.cumprod,
    "digamma": lax.digamma,
    "div": lambda x: jnp.sin(x) / (1 + x * x) + 2 / x - x / 3,
    "dot": lambda x: jnp.sin(M @ x) @ x,
    "dynamic": lambda x: lax.dynamic_update_slice(x, lax.dynamic_slice(x * x, (1,), (1,)), (0,)),
    "erf": lambda x: lax.erf(x) * lax.erfc(2 * x),
    "erf_inv": lax.erf_inv,
    "exp": lambda x: jnp.exp(jnp.exp(x)) + jnp.exp2(x) + jnp.expm1(x),
    "fft": lambda x: jnp.real(jnp.fft.fft(x * x)),
    "gather": lambda x: (x * x)[jnp.array([2, 0])],
    "filled gather": lambda x: (x * x).at[jnp.array([2, 7])].get(mode="fill", fill_value=3.0),
    "integer_pow": lambda x: x**5 + x**-3,
    "log": lambda x: jnp.log(jnp.log1p(x)),
    "logistic": lambda x: ferrax.nn.sigmoid(x) + ferrax.nn.softplus(x),
    "max": lambda x: jnp.maximum(x, 0.6) + jnp.minimum(x * x, x - 0.2),
    "pow": lambda x: x**2.5 + 2.0**x + x**x,
    "prod": jnp.prod,
    "reductions": lambda x: jnp.max(x * x) + jnp.min(jnp.cos(x)) + jnp.mean(x) + ferrax.nn.logsumexp(x),
    "rem": lambda x: (x * 5) % (x + 0.4),
    "rsqrt": lambda x: lax.rsqrt(x) + jnp.sqrt(x),
    "scatter": lambda x: x.at[jnp.array([0, 1])].set(jnp.sin(x[:2])).at[2].add(x[0] * x[1]),
    "select": lambda x: jnp.where(x > 0.4, jnp.sin(x), x * x * x),
    "shapes": lambda x: jnp.pad(jnp.concatenate([x, x * x]).reshape(2, 3).T[::-1], 1, constant_values=2.0),
    "softmax": ferrax.nn.softmax,
    "sort": lambda x: jnp.sort(-x * x),
    "tan": lambda x: jnp.tan(x) + jnp.tanh(x) + jnp.sinh(x) * jnp.cosh(x),
    "trigonometric": lambda x: jnp.sin(x) * jnp.cos(x * x),
    "constants": lambda x: jnp.floor(x) + jnp.sign(x) + lax.stop_gradient(x * x) + jnp.arange(3.0),
    "cond": lambda x: lax.cond(x[0] > 0, lambda v: jnp.sin(v), lambda v: v, x),
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, v: v * x + i, x),
    "scan": lambda x: lax.scan(lambda c, v: (c * v, jnp.sin(c)), 1.0, x)[1],
    "while": lambda x: lax.while_loop(lambda v: v[1] < 4, lambda v: (v[0] * x, v[1] + 1), (x, 0))[0],
    "jit": ferrax.jit(lambda x: ferrax.checkpoint(jnp.sin)(x) * x),
    "matrix inverse": lambda x: jnp.linalg.inv(jnp.diag(x) + M * 0.1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_series_are_derivatives_along_the_curve(name):
    f = FUNCTIONS[name]
    with ferrax.enable_x64(True):
        want = nested(f, BASE, SERIES)
        value, series = ferrax.jit(lambda x, s: jet(f, (x,), (s,)))(BASE, SERIES)
        for one, other in zip([value, *series], want, strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_like_jax():
    def f(np_, x, y):
        z = np_.tanh(x @ y) * np_.exp(-x) / (1 + y**2)
        return {"a": z, "b": [np_.sum(z) ** 3, np_.maximum(x, y)]}

    x, y = (RNG.normal(size=3).astype(np.float32) for _ in range(2))
    xs, ys = ([RNG.normal(size=3).astype(np.float32) for _ in range(3)] for _ in range(2))
    for scaled in (True, False):
        theirs = jax.jit(
            lambda s=scaled: oracle(lambda x, y: f(jax.numpy, x, y), (x, y), (xs, ys), factorial_scaled=s)
        )()
        ours = jet(lambda x, y: f(jnp, x, y), (x, y), (xs, ys), factorial_scaled=scaled)
        assert str(jax.tree.structure(theirs)) == str(ferrax.tree.structure(ours))
        for one, other in zip(ferrax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


def test_results_without_slope():
    value, series = jet(lambda x: (x > 1, jnp.floor(x), 3.0), (2.5,), ((1.0, 0.0),))
    assert value[0] and value[1:] == (2.0, 3.0)
    assert [[float(t) for t in terms] for terms in series] == [[0.0, 0.0]] * 3


def test_arguments_that_do_not_move():
    x, y = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    _, series = jet(lambda x, y: x * y * y, (x, y), ([jnp.ones(2), jnp.zeros(2)], zero_series))
    np.testing.assert_array_equal(series, [y * y, [0.0, 0.0]])
    np.testing.assert_allclose(fact(np.arange(5.0)), [1, 1, 2, 6, 24], rtol=1e-5)


def test_no_terms():
    assert jet(jnp.sin, (0.0,), ((),)) == (0.0, [])


def test_powers_at_zero():
    _, series = jet(lambda x: x**3, (0.0,), ((1.0, 0.0, 0.0),))
    assert series == [0.0, 0.0, 6.0]


def test_the_cost_grows_with_the_square_of_the_order():
    def equations(order):
        return len(ferrax.make_jaxpr(lambda x: jet(lambda x: jnp.tanh(jnp.sin(x)), (x,), ((1.0,) * order,)))(1.0).eqns)

    assert equations(16) < 5 * equations(8)


def test_transformed():
    def third(x):
        return jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]

    np.testing.assert_allclose(ferrax.vmap(third)(jnp.arange(3.0)), -np.cos(np.arange(3.0)), rtol=1e-6)
    np.testing.assert_allclose(ferrax.grad(third)(0.5), np.sin(0.5), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jet(jnp.add, (1.0, 1.0), ((1.0,), ())), ValueError, "inconsistent lengths"),
        (lambda: jet(lambda x: x, ({"a": 1.0},), ((1.0,),)), ValueError, "primal value at position 0 is not an array"),
        (lambda: jet(lambda x: x, (1.0,), (({"a": 1.0},),)), ValueError, "term 0 for argument 0 is not an array"),
        (lambda: jet(lambda x: x, (1.0,), ((jnp.ones(2),),)), ValueError, "argument's shape"),
        (lambda: jet(lambda x: x, (1.0,), ((1.0,), (1.0,))), ValueError, "1 primals and 2 series"),
    ],
)
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()
