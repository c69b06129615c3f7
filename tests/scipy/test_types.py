"""Types and shapes of what `ferrax.scipy` and linear algebra give: weak types, containers, arrays without elements."""

import functools
import importlib

import numpy as np
import pytest

import ferrax
from tests.recorded import expected


def arguments(jax, kind):
    """An argument of one kind, by its name."""
    jnp = jax.numpy
    half, three = jnp.asarray(0.5), jnp.asarray(3)
    return {
        "weak floats": lambda: jnp.broadcast_to(half, (3,)),
        "weak integers": lambda: jnp.broadcast_to(three, (3,)),
        "integers": lambda: jnp.arange(3),
        "bools": lambda: jnp.array([True, False, True]),
        "a number": lambda: 0.25,
    }[kind]()


def types(jax, name, calls):
    """Dtype, shape and weak type of what functions of one module of `scipy` give for arguments of each kind."""
    module = importlib.import_module(f"{jax.__name__}.scipy.{name}")
    out = []
    for (function, *extra), kind in calls:
        f = functools.reduce(getattr, function.split("."), module)
        shape = jax.eval_shape(lambda x, f=f, extra=extra: f(x, *extra), arguments(jax, kind))
        out += [(leaf.dtype.name, leaf.shape, bool(leaf.weak_type)) for leaf in jax.tree.leaves(shape)]
    return out


KINDS = ["weak floats", "weak integers", "integers", "bools", "a number"]
DISTRIBUTIONS = [
    ("bernoulli.pmf", 0.4), ("bernoulli.cdf", 0.4), ("beta.logpdf", 2.0, 3), ("beta.cdf", 2.0, 3),
    ("betabinom.pmf", 5, 2.0, 3.0), ("binom.pmf", 5, 0.5), ("cauchy.pdf",), ("cauchy.cdf", 1, 2), ("chi2.pdf", 3),
    ("expon.pdf",), ("expon.cdf", 1, 2), ("gamma.pdf", 2), ("gamma.cdf", 2), ("gamma.sf", 2), ("gamma.logsf", 2.0),
    ("gennorm.pdf", 1.5), ("geom.pmf", 0.5), ("gumbel_l.cdf",), ("gumbel_r.pdf", 1, 2), ("laplace.cdf",),
    ("logistic.pdf",), ("logistic.cdf",), ("logistic.sf", 1, 2), ("nbinom.pmf", 5, 0.5), ("norm.pdf",),
    ("norm.logpdf", 1, 2), ("norm.cdf", 1, 2), ("pareto.pdf", 2.0), ("pareto.logcdf", 2), ("poisson.pmf", 2),
    ("poisson.cdf", 2), ("t.pdf", 3.0), ("truncnorm.pdf", -1, 1), ("uniform.pdf",), ("uniform.cdf", 1, 2),
    ("vonmises.pdf", 2.0), ("wrapcauchy.pdf", 0.5),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_weak_types_of_distributions(kind):
    calls = [(call, kind) for call in DISTRIBUTIONS]
    assert types(ferrax, "stats", calls) == expected(types, "stats", calls)


@pytest.mark.parametrize("kind", KINDS)
def test_weak_types_of_special_functions(kind):
    calls = [(call, kind) for call in [("logit",), ("rel_entr", 0.5), ("rel_entr", 1), ("kl_div", 0.5), ("kl_div", 1)]]
    assert types(ferrax, "special", calls) == expected(types, "special", calls)


def test_weak_types_of_special_matrices():
    calls = [(call, "weak floats") for call in [("companion",), ("hankel",), ("convolution_matrix", 4), ("toeplitz",)]]
    assert types(ferrax, "linalg", calls) == expected(types, "linalg", calls)


def slopes(jax):
    """Derivatives of the relative entropy by numbers of Python's."""
    special = importlib.import_module(f"{jax.__name__}.scipy.special")
    functions = [lambda a: special.rel_entr(a, 0.5), lambda a: special.rel_entr(1, a), lambda a: special.kl_div(a, 0.5)]
    return [jax.grad(f)(0.3) for f in functions]


def test_slopes_of_relative_entropy_by_numbers():
    for ours, theirs in zip(slopes(ferrax), expected(slopes), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        assert ours.weak_type == theirs.weak_type


def containers(jax):
    """Which containers hold the parts of factorizations, and shapes of those of no elements."""
    linalg, jnp = importlib.import_module(f"{jax.__name__}.scipy.linalg"), jax.numpy
    a = jnp.array([[4.0, 1, 2], [1, 3, 0], [2, 0, 5]])
    factors = [
        linalg.schur(a), linalg.schur(a, output="complex"), linalg.hessenberg(a, calc_q=True), linalg.lu(a),
        jax.lax.linalg.schur(a), jax.lax.linalg.hessenberg(a), jax.lax.linalg.tridiagonal(a), linalg.polar(a),
    ]  # fmt: skip
    shapes = [x.shape for x in linalg.polar(jnp.zeros((0, 0)))]
    orders = (None, 1, -2, "fro", "nuc", np.inf)
    return [type(x).__name__ for x in factors], shapes + [
        jnp.linalg.cond(jnp.zeros((0, 3, 3)), p).shape for p in orders
    ]


def test_containers_and_matrices_without_elements():
    assert containers(ferrax) == expected(containers)


def test_polar_decomposition_of_no_rows():
    u, p = ferrax.scipy.linalg.polar(ferrax.numpy.zeros((0, 3)))
    assert u.shape == (0, 3)
    np.testing.assert_array_equal(p, np.zeros((3, 3)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_errors_name_the_dtype_that_is_not_there(dtype):
    x = ferrax.numpy.eye(2, dtype=dtype)
    with pytest.raises(NotImplementedError, match=dtype):
        ferrax.scipy.linalg.polar(x)
    with pytest.raises(NotImplementedError, match=dtype):
        ferrax.scipy.linalg.solve_sylvester(x, x, x)


def places(jax):
    """Interpolated values at places that are a tuple of numbers or arrays, or an array."""
    jnp = jax.numpy
    make = importlib.import_module(f"{jax.__name__}.scipy.interpolate").RegularGridInterpolator
    numbers = make((jnp.arange(4.0), jnp.arange(6.0)), jnp.arange(24.0).reshape(4, 6))
    vectors = make((jnp.arange(4.0), jnp.arange(6.0)), jnp.arange(48.0).reshape(4, 6, 2))
    at = [(0.5, 0.5), (jnp.float32(1), 2), (jnp.ones(3), 0.5), jnp.array([0.5, 1.5])]
    return [f(x) for f in (numbers, vectors) for x in at]


def test_places_of_numbers():
    for ours, theirs in zip(places(ferrax), expected(places), strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
