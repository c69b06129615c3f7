"""Every program of `programs.py` gives on ferrax what it gives on JAX: structure, dtypes, weak types, values."""

import numpy as np
import pytest
from programs import PROGRAMS

from tests.recorded import both

# JAX makes these gradients strongly typed although the differentiated argument is weakly typed.
WEAK_TYPES_DIFFER = {"scan_cumulative"}


def plain(jax, program):
    """What a program gives: leaves, their dtypes, shapes and weak types, and the text of the structure."""
    leaves, tree = jax.tree.flatten(program(jax, jax.numpy))
    avals = [jax.typeof(x) for x in leaves]
    return leaves, [(np.dtype(a.dtype), tuple(a.shape), bool(a.weak_type)) for a in avals], str(tree)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name):
    (got, got_types, got_tree), (want, want_types, want_tree) = both(plain, PROGRAMS[name])
    assert got_tree == want_tree
    for a, b, of_a, of_b in zip(got, want, got_types, want_types, strict=True):
        assert of_a[:2] == of_b[:2]
        assert of_a == of_b or name in WEAK_TYPES_DIFFER
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)
