"""Activations: values, dtypes, weak types and gradients as JAX's."""

import math

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from tests import recorded
from tests.support import as_numpy, assert_same, on_xla

NAMES = [
    "celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_tanh", "identity", "leaky_relu", "log_sigmoid", "mish",
    "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid",
    "squareplus", "tanh",
]  # fmt: skip
POINTS = np.array([-1e4, -7.0, -3.0, -1.0, -0.3, -0.0, 0.0, 0.2, 1.0, 3.0, 6.0, 9.0, 1e4, np.inf, -np.inf], "float32")
RTOL = {"float32": 3e-6, "bfloat16": 2e-2, "float16": 4e-3}


def both(name, x, **kwargs):
    return recorded.both(lambda m: getattr(m.nn, name)(m.numpy.asarray(x), **kwargs))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_values(name, dtype):
    ours, theirs = both(name, POINTS.astype(jnp.dtype(dtype)))
    assert_same(ours, theirs, rtol=RTOL[dtype], atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name):
    points = POINTS[np.isfinite(POINTS)]
    slopes = recorded.both(lambda m: m.vmap(m.grad(getattr(m.nn, name)))(m.numpy.asarray(points)))
    # Slopes of tanh are 1 - tanh**2: an error of tanh's last bits stays, however small the slope is.
    atol = 4e-7 if name in ("tanh", "gelu") else 1e-7
    np.testing.assert_allclose(as_numpy(slopes[0]), as_numpy(slopes[1]), rtol=3e-6, atol=atol)


@pytest.mark.parametrize("name", NAMES)
def test_scalars_keep_weak_types(name):
    ours, theirs = recorded.both(lambda m: getattr(m.nn, name)(0.75))
    assert_same(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("name", ["relu", "relu6", "hard_tanh", "elu", "gelu", "soft_sign", "softplus", "mish"])
def test_integers(name):
    ours, theirs = both(name, np.arange(-3, 4, dtype="int32"))
    assert_same(ours, theirs, rtol=1e-6, atol=1e-7)


def test_kinks():
    assert ferrax.grad(ferrax.nn.relu)(0.0) == 0.0
    assert ferrax.grad(ferrax.nn.relu6)(0.0) == 0.0
    assert ferrax.grad(ferrax.nn.relu6)(6.0) == 0.0
    assert ferrax.grad(ferrax.grad(ferrax.nn.softplus))(0.0) == 0.25
    assert np.isfinite(ferrax.grad(ferrax.nn.elu)(1e4))


def test_parameters():
    x = POINTS[np.isfinite(POINTS)]
    for name, kwargs in [("elu", {"alpha": 0.5}), ("celu", {"alpha": 2.0}), ("leaky_relu", {"negative_slope": 0.2}),
                         ("squareplus", {"b": 1.0}), ("gelu", {"approximate": False})]:  # fmt: skip
        ours, theirs = both(name, x, **kwargs)
        assert_same(ours, theirs, rtol=3e-6, atol=1e-7)


def test_glu():
    x = np.linspace(-2, 2, 24, dtype="float32").reshape(2, 3, 4)
    for axis in (-1, 2):
        ours, theirs = both("glu", x, axis=axis)
        assert_same(ours, theirs, rtol=1e-6)
    for kind in (ValueError, AssertionError):
        with pytest.raises(kind, match="must be even"):
            ferrax.nn.glu(jnp.ones((2, 3)))


def test_aliases():
    assert ferrax.nn.swish is ferrax.nn.silu
    assert ferrax.nn.hard_swish is ferrax.nn.hard_silu


@pytest.mark.parametrize("name", ["identity", "elu", "silu", "gelu", "hard_tanh", "soft_sign"])
def test_containers_are_refused(name):
    with pytest.raises(TypeError, match="requires ndarray or scalar arguments"):
        getattr(ferrax.nn, name)([1.0, 2.0])


def test_under_jit_and_vmap():
    x = POINTS[np.isfinite(POINTS)]
    for name in NAMES:
        f = getattr(ferrax.nn, name)
        np.testing.assert_allclose(ferrax.jit(f)(x), f(jnp.asarray(x)), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(ferrax.vmap(f)(jnp.asarray(x)), f(jnp.asarray(x)), rtol=1e-6, atol=1e-7)


def tails(name):
    """An activation far below 0 in 80-bit arithmetic, where its textbook formula cancels."""
    e = np.exp
    root = np.sqrt(2 / (4 * np.arctan(np.longdouble(1))))
    logistic = lambda u: e(u) / (1 + e(u))
    return {
        "gelu": lambda x: x * logistic(2 * root * (x + np.longdouble("0.044715") * x**3)),
        "mish": lambda x: x * (e(x) * (e(x) + 2)) / (e(x) * (e(x) + 2) + 2),
        "silu": lambda x: x * logistic(x),
        "sigmoid": logistic,
        "softplus": lambda x: np.log1p(e(x)),
    }[name]


@pytest.mark.parametrize("name", ["gelu", "mish", "silu", "sigmoid", "softplus"])
def test_tails_keep_their_digits(name):
    x = np.linspace(-30 if name != "gelu" else -9, -2, 200).astype("float32")
    wide = x.astype(np.longdouble)
    step = np.longdouble(1e-6)
    slope = (tails(name)(wide + step) - tails(name)(wide - step)) / (2 * step)
    function = getattr(ferrax.nn, name)
    for program in (function, ferrax.jit(function)):
        np.testing.assert_allclose(np.asarray(program(jnp.asarray(x))), tails(name)(wide).astype("float64"), rtol=2e-5)
    found = ferrax.vmap(ferrax.grad(function))(jnp.asarray(x))
    np.testing.assert_allclose(np.asarray(found), slope.astype("float64"), rtol=1e-4)


@pytest.mark.parametrize("dtype, end", [("float32", 103), ("float64", 744)])
@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_tails_reach_the_end_of_the_range(name, dtype, end):
    x = np.linspace(-end, -60, 500, dtype=dtype)
    want = tails(name)(x.astype(np.longdouble)).astype(dtype)
    # XLA's CPU code takes what is below the normal numbers for zero
    unit = np.finfo(dtype).smallest_normal if on_xla() else np.finfo(dtype).smallest_subnormal
    least = unit * (end if name == "silu" else 2)
    function = getattr(ferrax.nn, name)
    with ferrax.enable_x64(dtype == "float64"):
        for program in (function, ferrax.jit(function)):
            np.testing.assert_allclose(np.asarray(program(jnp.asarray(x))), want, rtol=1e-6, atol=least)


def test_tails_of_exact_gelu():
    x = np.linspace(-12, -2, 50).astype("float32")
    wanted = [0.5 * float(v) * math.erfc(-float(v) * math.sqrt(0.5)) for v in x]
    found = ferrax.nn.gelu(jnp.asarray(x), approximate=False)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-5)
