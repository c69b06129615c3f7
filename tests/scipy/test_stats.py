"""`ferrax.scipy.stats`: distributions against SciPy's values, and against JAX's dtypes and what it does off the support."""

import functools
import importlib

import jax
import numpy as np
import pytest
import scipy.stats
from mpmath import mp, mpf

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

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
    "truncnorm": (X, scaled((-1.0, 2.0), (2.0, 9.0), (-8.0, -3.0), (0.2, inf), (-inf, 0.5))),
    "uniform": (X, scaled(())),
    "vonmises": (ANGLES, [(1.5,), (0.0,), (200.0,)]),
    "wrapcauchy": (ANGLES, [(0.5,), (0.99,), (1e-3,)]),
}
ELEMENTWISE = [
    (d, f) for d in TABLE for f in importlib.import_module(f"ferrax.scipy.stats.{d}").__all__ if f != "entropy"
]
every = pytest.mark.parametrize(("distribution", "name"), ELEMENTWISE)


def functions(distribution, name):
    return (
        getattr(getattr(scipy.stats, distribution), name),
        getattr(importlib.import_module(f"ferrax.scipy.stats.{distribution}"), name),
    )


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
        np.testing.assert_allclose(mine(x, *p), wanted, rtol=2e-11, atol=1e-300, err_msg=f"{distribution}.{name}{p}")


# single precision: the error of the arguments' rounding, magnified by logarithms and exponentials
LOOSE = {
    "gumbel_l": 2e-5,
    "gumbel_r": 2e-5,
    "vonmises": 5e-5,
    "truncnorm": 1e-4,
    "t": 2e-5,
    "chi2": 2e-5,
    "gamma": 2e-5,
}


@every
def test_values_in_single(distribution, name):
    theirs, mine = functions(distribution, name)
    x, parameters = places(distribution, name)
    x = x.astype(np.float32)
    for p in parameters:
        p = tuple(np.float32(v) for v in p)
        with np.errstate(all="ignore"):
            wanted = theirs(x.astype(float), *(float(v) for v in p))
        got = np.asarray(mine(x, *p))
        assert got.dtype == np.float32
        # neither of numbers that are none in single precision
        near = ~((np.abs(wanted) < 2e-38) | (np.abs(wanted) > 3e38) & np.isfinite(wanted))
        np.testing.assert_allclose(
            got[near], wanted[near], rtol=LOOSE.get(distribution, 4e-6), err_msg=f"{distribution}.{name}{p}"
        )


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
    if x is not Q:
        x = x[(x > 0.2) & (x < 6)] + (0 if distribution in CONTINUOUS else 0.01)
    arguments = [x, *(np.full(len(x), float(p)) for p in parameters)]
    chosen = CONTINUOUS.get(distribution, range(len(arguments)))
    gradients = ferrax.grad(lambda *args: mine(*args).sum(), argnums=tuple(chosen))(*arguments)
    for i, gradient in zip(chosen, gradients, strict=True):
        step = 1e-5 * np.maximum(np.abs(arguments[i]), 0.1)
        if x is Q and i == 0:
            step = np.minimum(Q, 1 - Q) * 1e-4
        above, below = ([*arguments[:i], arguments[i] + s, *arguments[i + 1 :]] for s in (step, -step))
        with np.errstate(all="ignore"):
            wanted = (theirs(*above) - theirs(*below)) / (2 * step)
        smooth = np.isfinite(wanted)
        assert np.isfinite(gradient).all()
        scale = np.abs(wanted[smooth]).max()
        np.testing.assert_allclose(
            gradient[smooth], wanted[smooth], rtol=2e-5, atol=1e-6 * scale, err_msg=f"{distribution}.{name} by {i}"
        )
