"""Initializers give JAX's numbers."""

import numpy as np
import pytest

import ferrax
from tests import recorded
from tests.support import assert_same

PLAIN = ["uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "lecun_uniform", "lecun_normal",
         "he_uniform", "he_normal"]  # fmt: skip


def both(make, shape, *args):
    return recorded.both(lambda m: make(m.nn.initializers)(m.random.key(3), shape, *args))


def assert_close(ours, theirs):
    """Within the six units of truncated normal numbers (docs/numerics.md); the others are exact."""
    assert_same(ours, theirs, rtol=6 * 2.0**-23, weak=False)


@pytest.mark.parametrize("name", PLAIN)
def test_values(name):
    assert_close(*both(lambda i: getattr(i, name)(), (3, 5)))


def test_variance_scaling():
    for mode, distribution in [("fan_in", "normal"), ("fan_out", "uniform"), ("fan_geo_avg", "truncated_normal")]:
        make = lambda i: i.variance_scaling(2.0, mode, distribution, in_axis=0, out_axis=-1, batch_axis=1)
        assert_close(*both(make, (3, 2, 4)))


@pytest.mark.parametrize("distribution", ["truncated_normal", "normal", "uniform"])
def test_complex(distribution):
    make = lambda i: i.variance_scaling(2.0, "fan_avg", distribution, dtype="complex64")
    assert_same(*both(make, (3, 2)), rtol=1e-5, weak=False)


def test_constants():
    for name in ("zeros", "ones"):
        assert_same(*both(lambda i: getattr(i, name), (2, 3), "bfloat16"), weak=False)
    assert_same(*both(lambda i: i.constant(3), (2, 3)), weak=False)


def test_aliases():
    i = ferrax.nn.initializers
    assert i.xavier_normal is i.glorot_normal and i.xavier_uniform is i.glorot_uniform
    assert i.kaiming_normal is i.he_normal and i.kaiming_uniform is i.he_uniform


def test_mistakes():
    i = ferrax.nn.initializers
    key = ferrax.random.key(0)
    with pytest.raises(ValueError, match="Must be at least 2D"):
        i.glorot_normal()(key, (3,))
    with pytest.raises(ValueError, match="invalid mode"):
        i.variance_scaling(1.0, "x", "normal")(key, (3, 2))
    with pytest.raises(ValueError, match="invalid distribution"):
        i.variance_scaling(1.0, "fan_in", "x")(key, (3, 2))


def test_orthogonal():
    for name, shape in (("orthogonal", (3, 5)), ("delta_orthogonal", (3, 2, 4))):
        init = getattr(ferrax.nn.initializers, name)()
        x = np.asarray(init(ferrax.random.key(0), shape))
        x = x if name == "orthogonal" else x[1]
        np.testing.assert_allclose(x @ x.T, np.eye(len(x)), atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 0), (0, 2, 3)])
def test_orthogonal_of_nothing(shape):
    assert ferrax.nn.initializers.orthogonal()(ferrax.random.key(0), shape).shape == shape
