"""Comparing ferrax with its oracle: values, dtypes, shapes and weak types."""

import numpy as np


def dtype_name(x):
    """The dtype's name: the same for NumPy's, ml_dtypes' and ferrax's objects."""
    return str(x.dtype)


def as_numpy(x):
    """A NumPy array that holds the values exactly; narrow floats widen to float32."""
    a = np.asarray(x)
    return a.astype(np.float32) if a.dtype.kind == "V" or a.dtype.name.startswith(("bfloat", "float8", "float4")) else a


def assert_same(ours, theirs, rtol=0.0, atol=0.0, weak=True):
    """Asserts that an array equals the oracle's.

    Args:
        ours: a ferrax array.
        theirs: JAX's array.
        rtol: relative tolerance; 0 asks for equal bits (NaNs equal each other).
        atol: absolute tolerance.
        weak: whether weak types are compared too.
    """
    assert dtype_name(ours) == dtype_name(theirs), f"dtype {ours.dtype}, not {theirs.dtype}"
    assert tuple(ours.shape) == tuple(theirs.shape), f"shape {ours.shape}, not {theirs.shape}"
    if weak and hasattr(theirs, "weak_type"):
        assert ours.weak_type == theirs.weak_type, f"weak_type {ours.weak_type}, not {theirs.weak_type}"
    a, b = as_numpy(ours), as_numpy(theirs)
    if rtol == 0.0 and atol == 0.0:
        np.testing.assert_array_equal(a, b)
    else:
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def assert_trees_same(ours, theirs, **kwargs):
    """`assert_same` leaf by leaf; the two trees flatten to as many leaves."""
    import jax

    import ferrax

    a, b = ferrax.tree.leaves(ours), jax.tree.leaves(theirs)
    assert len(a) == len(b), f"{len(a)} leaves, not {len(b)}"
    for x, y in zip(a, b):
        assert_same(x, y, **kwargs)
