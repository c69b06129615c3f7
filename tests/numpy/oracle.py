"""Comparison of ferrax.numpy with jax.numpy, expression by expression.

A case is the text of an expression over the names of a numpy module and over named operands, such as "sum(x, axis=0)".
It is evaluated once with ferrax's functions and arrays and once with JAX's, whose results are recorded
(`tests/recorded.py`); results must agree in structure, shape, dtype, weak type and values, and errors in their class.
"""

import warnings

import numpy as np
import pytest

import ferrax
from tests.recorded import Answer, expected

OPERANDS = {
    "x": np.array([[0.5, -1.5, 2.0], [3.25, 0.0, -4.5]], np.float32),
    "y": np.array([[1.0, 2.0, -3.0], [0.25, 5.0, 1.5]], np.float32),
    "v": np.array([3.0, 1.0, 2.5, -1.0], np.float32),
    "w": np.array([0.0, 1.0, 2.0, 4.0], np.float32),
    "m": np.array([[2.0, 1.0], [0.5, -3.0]], np.float32),
    "t": np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4),
    "u": np.linspace(-1, 3, 16, dtype=np.float32).reshape(2, 4, 2),
    "h": np.array([0.5, -1.5, 2.0, 8.0], np.float16),
    "i": np.array([3, 1, 2, 1, 3, 3], np.int32),
    "j": np.array([[1, -2, 3], [4, 0, -6]], np.int32),
    "k": np.array([5, 3, 9], np.int32),
    "b": np.array([[True, False, True], [False, False, True]]),
    "q": np.array([1, 2, 200], np.uint8),
    "s": np.array([-3, 100, 7], np.int8),
    "c": np.array([[1 + 2j, -1j, 0.5], [2, 1 - 1j, -3]], np.complex64),
    "n": np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, -2.0]], np.float32),
    "a": np.array([[np.nan, np.nan], [1.0, np.nan]], np.float32),
    "f": np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan], np.float32),
    "z": np.zeros((0, 3), np.float32),
    "e": np.zeros((0,), np.float32),
    "o": np.array(2.5, np.float32),
}


def namespace(package, operands):
    module = package.numpy
    names = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    names.update(jnp=module, np=np, lax=package.lax, **operands)
    return names


def result(package, text, jitted=False):
    """The value of an expression with the functions of `ferrax` or `jax`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        operands = {k: package.numpy.asarray(a) for k, a in OPERANDS.items()}
        code = compile(text, "<case>", "eval")
        function = lambda arrays: eval(code, namespace(package, arrays))
        return package.jit(function)(operands) if jitted else function(operands)


def outcome(call, *args):
    """("value", result) or ("error", exception) of a call."""
    try:
        return "value", call(*args)
    except Exception as error:
        return "error", error


def leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key])]
    return [value]


def structure(value):
    """The shape of nested lists and tuples; a named tuple counts as a tuple."""
    if isinstance(value, (list, tuple)):
        return [structure(item) for item in value], isinstance(value, tuple)
    return None


def assert_same_leaf(mine, theirs, text, rtol, weak):
    if not hasattr(theirs, "dtype"):
        assert mine == theirs or mine != mine, f"{text}: {mine!r} instead of {theirs!r}"
        return
    got, want = np.asarray(mine), np.asarray(theirs)
    assert got.shape == want.shape, f"{text}: shape {got.shape} instead of {want.shape}"
    assert got.dtype == want.dtype, f"{text}: dtype {got.dtype} instead of {want.dtype}"
    if weak and isinstance(theirs, Answer):
        assert bool(mine.weak_type) == bool(theirs.weak_type), f"{text}: weak type {mine.weak_type}"
    if want.dtype.kind in "biu":
        assert np.array_equal(got, want), f"{text}:\n{got}\ninstead of\n{want}"
        return
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    width = np.asarray(theirs).dtype.itemsize
    tolerance = rtol * {1: 1e5, 2: 3e3}.get(width, 1)
    scale = max(1.0, float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=text)


def assert_same(mine, theirs, text, rtol=3e-6, weak=False):
    assert structure(mine) == structure(theirs), f"{text}: {mine!r} instead of {theirs!r}"
    for one, other in zip(leaves(mine), leaves(theirs)):
        assert_same_leaf(one, other, text, rtol, weak)


def compare(text, jitted=False, rtol=3e-6, weak=False):
    """Holds ferrax's value or error of an expression against JAX's."""
    kind, theirs = outcome(expected, result, text, jitted)
    mine_kind, mine = outcome(result, ferrax, text, jitted)
    if kind == "error":
        assert mine_kind == "error", f"{text}: {mine!r} instead of {type(theirs).__name__}: {theirs}"
        wanted = {c.__name__ for c in type(theirs).__mro__}
        assert type(mine).__name__ in wanted, (
            f"{text}: {type(mine).__name__}: {mine}\ninstead of {type(theirs).__name__}: {theirs}"
        )
        return
    if mine_kind == "error":
        raise AssertionError(f"{text}: {type(mine).__name__}: {mine}") from mine
    assert_same(mine, theirs, text, rtol, weak)


def cases(text):
    """The expressions of a block of text, one a line, as pytest's parameters."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return pytest.mark.parametrize("text", [line for line in lines if line and not line.startswith("#")])
