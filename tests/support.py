"""Comparing ferrax with its oracle: values, dtypes, shapes and weak types."""

import ml_dtypes
import numpy as np

import ferrax


def on_xla():
    """Whether a client of XLA computes by default: `make test-xla`."""
    return ferrax.default_backend() not in ("cpu", "interpreter")


def dtype_name(x):
    """The dtype's name: the same for NumPy's, ml_dtypes' and ferrax's objects."""
    return str(x.dtype)


def as_numpy(x):
    """A NumPy array that holds the values exactly; narrow floats widen to float32."""
    a = np.asarray(x)
    return a.astype(np.float32) if a.dtype.kind == "V" or a.dtype.name.startswith(("bfloat", "float8", "float4")) else a


def ulps(ours, theirs, floor=0.0):
    """The largest distance of two arrays in units in the last place of our array's dtype.

    Args:
        ours: an array of a dtype that NumPy or ml_dtypes knows.
        theirs: an array of the same values; numbers that are not finite must be the same ones.
        floor: the least magnitude whose unit counts, for results in which terms cancel.
    """
    if not np.issubdtype(as_numpy(ours).dtype, np.inexact):
        np.testing.assert_array_equal(np.asarray(ours), theirs)
        return 0.0
    if as_numpy(ours).dtype.kind == "c":
        a, b = np.asarray(ours), np.asarray(theirs)
        return max(ulps(a.real, b.real, floor), ulps(a.imag, b.imag, floor))
    info = ml_dtypes.finfo(np.asarray(ours).dtype)
    a, b = as_numpy(ours).astype(np.float64), as_numpy(theirs).astype(np.float64)
    finite = np.isfinite(b)
    np.testing.assert_array_equal(np.where(finite & np.isfinite(a), 0, a), np.where(finite, 0, b))
    least = max(floor, float(info.smallest_normal))
    unit = np.exp2(np.floor(np.log2(np.maximum(np.abs(b[finite]), least)))) * float(info.eps)
    return float(np.max(np.abs(a[finite] - b[finite]) / unit, initial=0.0))


def assert_same(ours, theirs, rtol=0.0, atol=0.0, weak=True):
    """Asserts that an array equals the oracle's.

    Args:
        ours: a ferrax array.
        theirs: JAX's array, or a recorded one.
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


#: How far on XLA two forms of one program may lie apart (eager, jitted, mapped, differentiated), in units of the
#: largest number or of 1: its compiler fuses what is compiled together. docs/numerics.md states it.
XLA_FORMS = 40


def assert_forms_same(ours, theirs):
    """Asserts that two forms of one program computed the same numbers, tree by tree.

    That is: the same bits on an engine of ours, and of integers and truth values on XLA, whose floats are within
    `XLA_FORMS`.
    """
    a, b = ferrax.tree.leaves(ours), ferrax.tree.leaves(theirs)
    assert len(a) == len(b), f"{len(a)} leaves, not {len(b)}"
    for x, y in zip(a, b):
        kinds = [np.dtype(z.dtype) for z in (x, y) if not ferrax.dtypes.issubdtype(z.dtype, ferrax.dtypes.extended)]
        if not on_xla() or not all(ferrax.numpy.issubdtype(k, np.inexact) for k in kinds):
            assert_same(x, y, weak=False)
        else:
            assert (dtype_name(x), tuple(x.shape)) == (dtype_name(y), tuple(y.shape))
            assert_near(x, y)


def assert_near(ours, theirs):
    """Asserts that floats of one dtype are within `XLA_FORMS`; those that are not finite are the same."""
    a, b = as_numpy(ours), as_numpy(theirs)
    finite = np.isfinite(b)
    largest = np.max(np.abs(b[finite]), initial=1.0)
    bound = XLA_FORMS * float(ml_dtypes.finfo(np.asarray(ours).dtype).eps) * float(largest)
    np.testing.assert_allclose(a, b, rtol=0.0, atol=bound)


def assert_trees_same(ours, theirs, **kwargs):
    """`assert_same` leaf by leaf; the two trees flatten to as many leaves."""
    import ferrax

    a, b = ferrax.tree.leaves(ours), ferrax.tree.leaves(theirs)
    assert len(a) == len(b), f"{len(a)} leaves, not {len(b)}"
    for x, y in zip(a, b):
        assert_same(x, y, **kwargs)
