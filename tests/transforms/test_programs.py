"""Every program of `programs.py` gives on ferrax what it gives on JAX: structure, dtypes, weak types, values."""

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest
from programs import PROGRAMS

import ferrax
import ferrax.numpy as ferrax_numpy

# JAX makes these gradients strongly typed although the differentiated argument is weakly typed.
WEAK_TYPES_DIFFER = {"scan_cumulative"}


def plain(tree):
    """Namedtuples and library classes aside: a JAX tree of leaves."""
    return jax.tree.flatten(tree)


def describe(x):
    aval = ferrax.typeof(x) if isinstance(x, ferrax.Array) else jax.typeof(x)
    return np.dtype(aval.dtype), tuple(aval.shape), bool(aval.weak_type)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name):
    want, want_tree = plain(PROGRAMS[name](jax, jax_numpy))
    got, got_tree = plain(PROGRAMS[name](ferrax, ferrax_numpy))
    assert str(got_tree) == str(want_tree)
    for a, b in zip(got, want, strict=True):
        assert describe(a)[:2] == describe(b)[:2]
        assert describe(a) == describe(b) or name in WEAK_TYPES_DIFFER
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)
