"""Elementwise functions of float16 and bfloat16 have derivatives: in their own dtype, near those of float32."""

import jax
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from tests.fuzz.generator import FERRAX
from tests.fuzz.operations.elementwise import BINARY, LAX_BINARY, UNARY

FUNCTIONS = [(name, 1) for name in UNARY["f"]] + [(name, 2) for name in {*BINARY["f"], *LAX_BINARY["f"]}]
#: Steps, and their inverse functions, at which narrow numbers fall on another side.
POINTS = np.array([0.3125, 0.5625, 0.75]), np.array([0.625, 0.1875, 0.125])


def gradients(name, count, dtype):
    """Derivatives by all arguments: eagerly, jitted and of each row; None where the function has none."""
    function = eval(name, FERRAX)
    args = [jnp.asarray(points, dtype) for points in POINTS[:count]]
    if not jnp.issubdtype(function(*args).dtype, jnp.floating):
        return None
    gradient = ferrax.grad(lambda *a: jnp.sum(function(*a)).astype(jnp.float32), tuple(range(count)))
    try:
        return [gradient(*args), ferrax.jit(gradient)(*args), ferrax.vmap(gradient)(*args)]
    except NotImplementedError:
        return None


@pytest.mark.parametrize(("name", "count"), sorted(FUNCTIONS))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradient(name, count, dtype):
    wide, narrow = gradients(name, count, "float32"), gradients(name, count, dtype)
    assert (wide is None) == (narrow is None)
    for ours, theirs in zip(narrow or [], wide or [], strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert str(a.dtype) == dtype
            np.testing.assert_allclose(np.asarray(a, np.float32), b, rtol=0.06, atol=0.02)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_exponentials_at_infinities(name, dtype):
    points = np.array([-np.inf, -2.0, 0.0, 3.0, np.inf, np.nan])
    x, y = (points.repeat(6), np.tile(points, 6))
    ours, theirs = (
        module.vmap(module.grad(getattr(module.numpy, name), (0, 1)))(*(module.numpy.asarray(v, dtype) for v in (x, y)))
        for module in (ferrax, jax)
    )
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.dtype) == dtype
        np.testing.assert_allclose(np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=0.02, atol=1e-6)
