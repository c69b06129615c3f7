"""Hypergeometric functions against mpmath: transformed regions, whole differences of parameters, slopes, edges."""

import itertools

import jax
import numpy as np
import pytest
import scipy.special
from mpmath import mp

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy import special
from tests.scipy.special_oracle import assert_transforms, distance, slopes

INF, NAN = np.inf, np.nan


def grid(*axes):
    return [v.ravel() for v in np.meshgrid(*axes)]


CONFLUENT = {
    "positive": (grid([0.3, 1, 2.5, 6], [0.4, 1, 3, 7.5], [-30, -8, -0.5, 1e-3, 2, 20]), 200),
    "far": (grid([0.3, 1, 2.5, 6], [0.4, 1, 3, 7.5], [-1e6, -600, -60, 55, 300, 700]), 300),
    "polynomials": (grid([-4, -1, 0], [0.4, 1, 3, 7.5], [-60, -8, -0.5, 2, 5.5]), 300),
    "negative": (grid([-3.3, -0.5], [-1.5, 0.7, 4], [-10, -1, 1, 6]), 500),
}
GAUSSIAN = {
    "positive": (grid([0.3, 1, 2.5], [0.5, 2, 4], [0.4, 1, 3, 7.5], [-0.9, -0.3, 0.2, 0.7, 0.95]), 100),
    "left": (grid([0.3, 1, 2.5], [0.5, 2, 4], [0.4, 3, 7.5], [-1e9, -50, -3, -1]), 300),
    "near 1": (grid([0.3, 1, 2.5], [0.5, 2, 4], [0.4, 1, 3, 7.5], [1 - 1e-3, 1 - 1e-6]), 300),
    "polynomials": (grid([-4, -1, 0], [0.5, 2, 4], [0.4, 3, 7.5], [-5, -0.5, 0.4, 2.5]), 300),
    "negative": (grid([-3.3, -0.5], [-1.2, 2], [-1.5, 0.7, 4], [-2, -0.6, 0.5, 0.9]), 500),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("region", CONFLUENT)
def test_confluent(region, dtype):
    operands, bound = CONFLUENT[region]
    assert distance(special.hyp1f1, mp.hyp1f1, operands, dtype) <= (0.6 if dtype == np.float32 else bound)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("region", GAUSSIAN)
def test_gaussian(region, dtype):
    operands, bound = GAUSSIAN[region]
    got = distance(special.hyp2f1, lambda *v: mp.re(mp.hyp2f1(*v)), operands, dtype)
    assert got <= (0.6 if dtype == np.float32 else bound)


@pytest.mark.parametrize(
    "operands",
    [(0.5, 1.5, 2.0), (1.2, 2.5, -3.0), (-1.5, 2.0, 4.0), (2.3, 3.0, -100.0), (1.0, 1.0, 0.5), (-2.0, 3.0, 0.7)]
    + [(1.0, 1.0, -60.0), (2.0, 1.0, -100.0), (-2.0, 3.0, 60.0)],
)
def test_confluent_slopes(operands):
    for position in range(3):
        orders = (1, 2) if position == 2 else (1,)
        got, wanted = slopes(special.hyp1f1, mp.hyp1f1, operands, position, orders)
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


@pytest.mark.parametrize(
    "operands",
    [(0.5, 1.5, 2.0, 0.3), (1.0, 1.0, 2.0, 0.9), (1.2, 0.7, 2.5, -3.0), (-2.0, 1.3, 2.0, 0.4), (-2.0, 1.3, 2.0, -0.4)]
    + [(0.0, 1.0, 2.0, 0.3)],
)
def test_gaussian_slopes(operands):
    for position in range(4):
        orders = (1, 2) if position == 3 else (1,)
        got, wanted = slopes(special.hyp2f1, mp.hyp2f1, operands, position, orders)
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-12)


def test_slope_of_a_polynomial_beyond_1(x64):
    """There the function exists for that one parameter only."""
    assert np.isnan(ferrax.grad(special.hyp2f1)(-2.0, 1.3, 2.0, 3.0))
    np.testing.assert_allclose(ferrax.grad(special.hyp2f1, 3)(-2.0, 1.3, 2.0, 3.0), 1.69, rtol=1e-14)


def test_slopes_at_isolated_and_infinite_values(x64):
    assert np.isnan(ferrax.grad(special.hyp1f1)(-1.0, -3.0, 0.5))
    assert np.isnan(ferrax.grad(special.hyp2f1)(-1.0, 2.0, -3.0, 0.5))
    assert np.isnan(ferrax.grad(special.hyp2f1)(1.0, 1.0, 2.0, 1.0))
    assert ferrax.grad(special.hyp1f1, 2)(0.0, 0.0, 0.5) == 0
    mixed = ferrax.grad(ferrax.grad(special.hyp1f1, 2))(0.0, 2.0, 0.7)
    np.testing.assert_allclose(mixed, special.hyp1f1(1.0, 3.0, 0.7) / 2, rtol=1e-14)


def test_confluent_edges(x64):
    a, b, x = np.array(
        list(itertools.product([1, -1, -2, 0.5, -2.5, NAN], [0.0, 1, -1, -3, 0.5, -2.5], [1, -1.5, NAN]))
    ).T
    np.testing.assert_allclose(special.hyp1f1(a, b, x), scipy.special.hyp1f1(a, b, x), rtol=1e-12)
    # SciPy does not end for some of these: the limits are the signs of Γ(b)/Γ(a) and of Γ(b)/Γ(b - a).
    a, b = np.array([1.0, 1.0, 0.5, -0.5, -1.5, -1.0, -2.0]), np.array([1.0, 0.5, 2.0, 1.0, 2.0, 2.0, 2.0])
    np.testing.assert_array_equal(special.hyp1f1(a, b, INF), [INF, INF, INF, -INF, INF, -INF, INF])
    np.testing.assert_array_equal(special.hyp1f1(a, b, -INF), [0, 0, 0, INF, INF, INF, INF])
    np.testing.assert_array_equal(special.hyp1f1(0.0, jnp.array([0.0, -2.0]), 3.0), [1, 1])


def test_gaussian_edges(x64):
    axes = [1.0, -1, -2, 0.5, -2.5], [1.0, -1, 0.5], [1, 0.5, 3], [0.0, 1, -1, -5]
    a, b, c, x = np.array(list(itertools.product(*axes))).T
    np.testing.assert_allclose(special.hyp2f1(a, b, c, x), scipy.special.hyp2f1(a, b, c, x), rtol=1e-11)


@pytest.mark.parametrize(
    ("operands", "wanted"),
    [
        ((1.0, 2.0, 3.0, NAN), NAN), ((1.0, 1.0, 2.0, 1.0), INF), ((1.0, 1.0, 2.0, 1.5), INF),
        ((0.0, 1.0, 2.0, INF), 1),
        ((1.0, 2.0, 3.0, -INF), 0), ((1.0, 1.0, 0.0, 0.5), INF), ((1.0, 1.0, -2.0, -0.5), INF),
        ((1.0, 1.0, 0.0, 0.0), 1),
        ((-1.0, 1.0, -1.0, 3.0), 4), ((-1.0, -1.0, -2.0, 2.0), 0), ((-1.0, 2.0, -3.0, 0.5), 4 / 3),
        ((-2.0, 1.0, -1.0, 0.5), INF),
        ((-1.0, 2.0, 4.0, INF), -INF), ((-2.0, 1.0, 2.0, 3.0), 1),
    ],
)  # fmt: skip
def test_gaussian_conventions(operands, wanted, x64):
    np.testing.assert_allclose(special.hyp2f1(*operands), wanted, rtol=1e-14, atol=1e-15)


def test_transforms_and_dtypes():
    a, x = jnp.array([0.5, 2.0, 1.0]), jnp.array([0.25, -1.5, 0.9])
    assert_transforms(lambda a, x: special.hyp1f1(a, a + 1, x), a, x)
    assert_transforms(lambda a, x: special.hyp2f1(a, a, a + 1, x), a, x)
    for name, operands in (("hyp1f1", (0.5, 1, 2.0)), ("hyp2f1", (1, 2.0, 3, 0.5))):
        got, want = (jax.eval_shape(getattr(jax.scipy.special, name), *operands), getattr(special, name)(*operands))
        assert (got.shape, got.dtype, got.weak_type) == (want.shape, want.dtype, want.weak_type)
    assert special.hyp2f1(1.0, 2.0, np.zeros((2, 1)) + 3, np.zeros(3)).shape == (2, 3)
    assert special.hyp1f1(1.0, 2.0, np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(ValueError, match="complex"):
        special.hyp1f1(1j, 2.0, 1.0)
    with pytest.raises(TypeError, match="complex"):
        special.hyp2f1(1j, 2.0, 1.0, 0.5)


def test_elements_do_not_depend_on_each_other():
    rng = np.random.default_rng(0)
    a, b, c = (rng.uniform(0.1, 5, 1003).astype(np.float32) for _ in range(3))
    x = np.concatenate([rng.uniform(0, 1, 1000), [0.9999, -60, 700]]).astype(np.float32)
    for function, operands in ((special.hyp2f1, (a, b, c, x)), (special.hyp1f1, (a, b, x))):
        together = np.asarray(ferrax.jit(function)(*operands))
        for i in [*range(0, 1003, 111), 1000, 1001, 1002]:
            np.testing.assert_array_equal(together[i], np.asarray(function(*(v[i] for v in operands))))
