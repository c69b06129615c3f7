"""Numbers of the dtypes that ml_dtypes adds to NumPy, as operands."""

import ml_dtypes
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

FLOATS = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3b11fnuz", "float4_e2m1fn"]
INTEGERS = ["int4", "uint4", "int2", "uint2"]


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_numbers_are_read_by_value(name):
    dtype = getattr(ml_dtypes, name)
    for value in (0, 1, -2 if not name.startswith("u") else 3):
        x = dtype(value)
        for made in (
            jnp.asarray(x),
            jnp.array(x),
            jnp.full((), x),
            ferrax.jit(lambda x=x: jnp.asarray(x))(),
            lax.neg(lax.neg(x)),
        ):
            assert made.dtype == np.dtype(dtype)
            assert float(made) == value
        pair = jnp.asarray(np.array([x, x]))
        assert jnp.where(jnp.array([True, False]), x, pair).astype("float32").tolist() == [value, value]


@pytest.mark.parametrize("name", FLOATS)
def test_limits_take_the_place_of_infinities(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    limits = ml_dtypes.finfo(dtype)
    x = np.array([np.inf, -np.inf, 1, np.nan]).astype(dtype)
    wanted = x.astype("float32")
    wanted = np.where(np.isnan(wanted), 0, np.clip(wanted, float(limits.min), float(limits.max)))
    np.testing.assert_array_equal(np.asarray(jnp.nan_to_num(jnp.asarray(x))).astype("float32"), wanted)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("n", [5, 40, 300, 5000])
def test_largest_of_infinities(name, n):
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    x[rng.random(n) < 0.3] = np.inf
    x[rng.random(n) < 0.3] = -np.inf
    x = x.astype(dtype)
    k = min(n, 64)
    order = np.argsort(-x.astype("float32"), kind="stable")[:k]
    for program in (lambda x: lax.top_k(x, k), ferrax.jit(lambda x: lax.top_k(x, k))):
        values, places = program(jnp.asarray(x))
        np.testing.assert_array_equal(np.asarray(values).astype("float32"), x[order].astype("float32"))
        np.testing.assert_array_equal(np.asarray(places), order)
