"""Products of operands of different dtypes: which dtype they have, and where conversions round or truncate."""

import numpy as np
import pytest

import ferrax
from tests.recorded import expected

NARROW = ["bool", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32"]
FLOATS = ["float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "complex64"]
WIDE = ["int64", "uint64", "float64", "complex128"]
LEFT, RIGHT = np.array([1.5, 2.5, 3.75, 0.5]), np.array([2.25, 3.5, 1.75, 0.75])
CONTRACTED = (([0], [0]), ([], []))


@pytest.mark.parametrize("left", NARROW + FLOATS + WIDE)
def test_which_dtype_they_have(left):
    """Whichever operand comes first: the wider one, of two as wide the one of the larger range."""

    def dtypes(jax):
        def of(right):
            operands = [jax.ShapeDtypeStruct((3,), jax.numpy.dtype(d)) for d in (left, right)]
            return str(jax.eval_shape(lambda x, y: jax.lax.dot_general(x, y, CONTRACTED), *operands).dtype)

        return [of(right) for right in NARROW + FLOATS + WIDE]

    with ferrax.enable_x64(True):
        assert dtypes(ferrax) == expected(dtypes)


@pytest.mark.parametrize("wanted", ["int8", "uint8", "int32", "float32"])
@pytest.mark.parametrize("left", ["uint8", "int8", "int32", "float16", "bfloat16", "float32"])
def test_preferred_dtypes(left, wanted):
    """Operands of two dtypes become the preferred integers first, those of one dtype afterwards."""

    def products(jax):
        jnp = jax.numpy

        def of(right):
            x, y = jnp.asarray(LEFT).astype(left), jnp.asarray(RIGHT).astype(right)
            dot = lambda x, y: jax.lax.dot_general(x, y, CONTRACTED, preferred_element_type=jnp.dtype(wanted))
            try:
                return dot(x, y), jax.jit(dot)(x, y), jax.vmap(dot)(jnp.stack([x, y.astype(left)]), jnp.stack([y, y]))
            except TypeError:
                return "refused"

        return [of(right) for right in ["uint8", "int8", "int32", "float16", "bfloat16", "float32"]]

    for ours, theirs in zip(products(ferrax), expected(products), strict=True):
        assert len(ours) == len(theirs) and (ours == "refused") == (theirs == "refused")
        if ours != "refused":
            for a, b in zip(ours, theirs, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=1e-5)
