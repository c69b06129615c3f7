"""Functions of the library do not trip over the strict promotion settings on legal input."""

import importlib
import operator

import numpy as np
import pytest

import ferrax as jax
from tests.numpy.library_calls import CALLS, SETUP

for name in (
    *("experimental.ode", "flatten_util", "image", "ops", "scipy.cluster.vq", "scipy.fft", "scipy.integrate"),
    *("scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.sparse.linalg"),
    *("scipy.spatial.transform", "scipy.special", "scipy.stats"),
):
    importlib.import_module(f"ferrax.{name}")

#: Calls that mix integers with floats, which a strict dtype promotion is there to refuse; JAX refuses them, too.
MIXED = {
    "jax.scipy.stats.bernoulli.logpmf(i,0.3)",
    "jax.scipy.stats.betabinom.logpmf(n,10,2.,3.)",
    "jax.scipy.stats.binom.logpmf(n,10,0.3)",
    "jax.scipy.stats.geom.logpmf(n,0.3)",
    "jax.scipy.stats.nbinom.logpmf(n,3.,0.4)",
    "jax.scipy.stats.poisson.cdf(n,2.)",
    "jax.scipy.stats.poisson.logpmf(n,2.)",
}


def names():
    namespace = {"jax": jax, "jnp": jax.numpy}
    exec(SETUP, namespace)
    return namespace


def failures(calls):
    """What the calls raise, by call."""
    namespace, found = names(), {}
    for call in calls:
        try:
            eval(call, namespace)
        except Exception as error:
            found[call] = f"{type(error).__name__}: {error}"
    return found


@pytest.mark.parametrize("part", range(8))
def test_ranks(part):
    with jax.numpy_rank_promotion("raise"):
        assert failures(CALLS[part::8]) == {}


@pytest.mark.parametrize(
    "call",
    [
        "jax.random.t(jax.random.key(0), jnp.ones(3), (2, 3))",
        "jax.random.uniform(jax.random.key(0), (2,), maxval=jnp.ones((1, 2)))",
    ],
)
def test_functions_that_combine_ranks_inside(call):
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="jax_numpy_rank_promotion='raise'"):
        eval(call, names())
    assert eval(call, names()).size


@pytest.mark.parametrize("part", range(8))
def test_dtypes(part):
    with jax.numpy_dtype_promotion("strict"):
        found = failures(CALLS[part::8])
        assert set(found) == MIXED.intersection(CALLS[part::8]), found


def test_what_the_settings_are_for_raises():
    x, y = jax.numpy.ones((2, 3)), jax.numpy.ones(3)
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank_promotion"):
        x + y
    with jax.numpy_dtype_promotion("strict"), pytest.raises(jax.dtypes.TypePromotionError):
        x + jax.numpy.arange(3)


RANKS = {
    **{name: lambda jnp, x, y, name=name: getattr(jnp, name)(x, y) for name in (
        "logaddexp", "logaddexp2", "isclose", "allclose", "vecdot", "cov", "corrcoef",
        "linspace", "geomspace", "logspace",
    )},
    "lcm": lambda jnp, x, y: jnp.lcm(x.astype(int), y.astype(int)),
    "ldexp": lambda jnp, x, y: jnp.ldexp(x, y.astype(int)),
    "matvec": lambda jnp, x, y: jnp.matvec(jnp.ones((3, 3)), x),
    "vecmat": lambda jnp, x, y: jnp.vecmat(x, jnp.ones((3, 3))),
    "solve": lambda jnp, x, y: jnp.linalg.solve(jnp.eye(3), jnp.ones((2, 3, 1))),
    "toeplitz": lambda jnp, x, y: jax.scipy.linalg.toeplitz(x, y),
}  # fmt: skip


@pytest.mark.parametrize("name", RANKS)
def test_operands_of_several_ranks_are_refused_where_that_is_asked_for(name):
    x, y = jax.numpy.ones((2, 3)), jax.numpy.ones(3)
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match=r"rank_?.?promotion"):
        RANKS[name](jax.numpy, x, y)
    with jax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion"):
        RANKS[name](jax.numpy, x, y)
    with jax.numpy_rank_promotion("raise"):
        RANKS[name](jax.numpy, x[:1], x[1:]) if name not in ("matvec", "vecmat", "solve") else None


@pytest.mark.parametrize("number", [True, np.bool_(True), np.int8(3)], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "int8", "complex64"])
@pytest.mark.parametrize(
    "f", [operator.mul, jax.numpy.add, jax.numpy.maximum, jax.numpy.where, operator.gt], ids=lambda f: f.__name__
)
def test_numbers_of_a_dtype_of_their_own_are_not_promoted(f, dtype, number):
    x = jax.numpy.ones(2, dtype)
    call = (lambda a, b: f(x.astype(bool), a, b)) if f is jax.numpy.where else f
    with jax.numpy_dtype_promotion("strict"):
        for operands in ((x, number), (number, x)):
            if np.asarray(number).dtype == dtype:
                call(*operands)
                continue
            with pytest.raises(jax.dtypes.TypePromotionError):
                call(*operands)
            with pytest.raises(jax.dtypes.TypePromotionError):
                jax.jit(call)(*operands)
