"""Rewrites that keep bits (the first table of docs/rewrites.md) keep them for awkward numbers of every dtype."""

import ml_dtypes
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from tests.fuzz.compare import describe, same_bits

FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["int8", "uint16", "int32", "uint32", "int64"]
REAL = [*INTEGERS, *FLOATS]
NUMBERS = [*REAL, *COMPLEX]
AWKWARD = [0.0, -0.0, 1.0, -1.5, 3.0, -7.0, np.inf, -np.inf, np.nan]


def awkward(dtype):
    """A matrix of 81 numbers: for complex ones, every pair of parts."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        ends = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 5]
        return np.array(ends * 9, dtype).reshape(9, 9)
    if dtype.kind == "c":
        pairs = np.empty((9, 9), dtype)
        pairs.real, pairs.imag = np.array(AWKWARD)[:, None], np.array(AWKWARD)
        return pairs
    return np.array(AWKWARD * 9, dtype).reshape(9, 9)


def number(x, value):
    return jnp.asarray(value, x.dtype)


REWRITES = {
    "neg neg": (lambda x: jnp.negative(jnp.negative(x)), NUMBERS),
    "conj conj": (lambda x: jnp.conj(jnp.conj(x)), COMPLEX),
    "not not": (lambda x: jnp.invert(jnp.invert(x)), INTEGERS),
    "rev rev": (lambda x: jnp.flip(jnp.flip(x, 0), 0), NUMBERS),
    "sign sign": (lambda x: jnp.sign(jnp.sign(x)), NUMBERS),
    "floor floor": (lambda x: lax.floor(lax.floor(x)), FLOATS),
    "ceil ceil": (lambda x: lax.ceil(lax.ceil(x)), FLOATS),
    "round round": (lambda x: lax.round(lax.round(x)), FLOATS),
    "abs abs": (lambda x: jnp.abs(jnp.abs(x)), NUMBERS),
    "x + -0": (lambda x: (x + number(x, -0.0), number(x, -0.0) + x), NUMBERS),
    "x + 0": (lambda x: (x + number(x, 0), number(x, 0) + x), NUMBERS),
    "x + (-0 - 0i)": (lambda x: x + number(x, complex(-0.0, -0.0)), COMPLEX),
    "x - 0": (lambda x: (x - number(x, 0), number(x, 0) - x), NUMBERS),
    "x - -0": (lambda x: x - number(x, -0.0), NUMBERS),
    "x * 1": (lambda x: (x * number(x, 1), number(x, 1) * x, x * 1), NUMBERS),
    "x / 1": (lambda x: lax.div(x, number(x, 1)), NUMBERS),
    "x ** 1": (lambda x: lax.integer_pow(x, 1), NUMBERS),
    "select of equal cases": (lambda x: lax.select_n(x == x, x, x), NUMBERS),
    "select by a literal": (lambda x: jnp.where(True, x, x + 1), NUMBERS),
    "convert": (lambda x: lax.convert_element_type(x, x.dtype), NUMBERS),
    "convert wide and back": (lambda x: x.astype(jnp.float64).astype(x.dtype), FLOATS),
    "convert narrow and back": (lambda x: x.astype(jnp.float16).astype(x.dtype), REAL),
    "convert to complex and back": (lambda x: x.astype(jnp.complex128).real.astype(x.dtype), FLOATS),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, x.dtype), REAL),
    "reduction over no axes": (lambda x: (jnp.sum(x, axis=()), jnp.prod(x, axis=()), jnp.max(x, axis=())), NUMBERS),
    "concatenate one": (lambda x: jnp.concatenate([x]), NUMBERS),
    "remainder": (lambda x: (lax.rem(x, jnp.flip(x)), lax.div(x, jnp.flip(x))), INTEGERS),
    "equal operations": (lambda x: (jnp.sin(x), jnp.sin(x)), FLOATS),
}


@pytest.mark.embedded  # XLA has rewrites of its own
@pytest.mark.parametrize("name", REWRITES)
def test_bits(name):
    function, dtypes = REWRITES[name]
    with ferrax.enable_x64(True):
        for dtype in dtypes:
            x = jnp.asarray(awkward(dtype))
            eager, jitted = (ferrax.tree.leaves(f(x)) for f in (function, ferrax.jit(function)))
            for a, b in zip(jitted, eager, strict=True):
                assert same_bits(a, b), f"{dtype}: {describe(a, b)}"
