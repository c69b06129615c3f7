"""Reductions of `jax.numpy` and `jax.nn` over mapped axes, which are given by name, against JAX."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from tests.recorded import expected

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2 / 4
AXES = {"name": "i", "name in a tuple": ("i",), "both": ("i", 0), "last first": (-1, "i")}

FUNCTIONS = {
    "sum": lambda jax, x, axis: jax.numpy.sum(x, axis),
    "sum of booleans": lambda jax, x, axis: jax.numpy.sum(x > 5, axis),
    "sum where": lambda jax, x, axis: jax.numpy.sum(x, axis, where=x > 5, initial=2),
    "sum kept": lambda jax, x, axis: x.sum(axis, keepdims=True),
    "max": lambda jax, x, axis: x.max(axis),
    "max initial": lambda jax, x, axis: jax.numpy.max(x, axis, initial=50, where=x < 30),
    "min": lambda jax, x, axis: jax.numpy.min(x, axis=axis, keepdims=True),
    "mean": lambda jax, x, axis: x.mean(axis),
    "mean where": lambda jax, x, axis: jax.numpy.mean(x, axis, where=x > 5),
    "mean of half floats": lambda jax, x, axis: x.astype("float16").mean(axis),
    "var": lambda jax, x, axis: jax.numpy.var(x, axis, ddof=1),
    "std": lambda jax, x, axis: jax.numpy.std(x, axis),
    "std where": lambda jax, x, axis: jax.numpy.std(x, axis, where=x > 5),
    "ptp": lambda jax, x, axis: jax.numpy.ptp(x, axis),
    "nansum": lambda jax, x, axis: jax.numpy.nansum(jax.numpy.where(x > 5, x, jax.numpy.nan), axis),
    "nanmean": lambda jax, x, axis: jax.numpy.nanmean(jax.numpy.where(x > 5, x, jax.numpy.nan), axis),
    "count_nonzero": lambda jax, x, axis: jax.numpy.count_nonzero(x > 5, axis),
    "softmax": lambda jax, x, axis: jax.nn.softmax(x / 9, axis),
    "log_softmax": lambda jax, x, axis: jax.nn.log_softmax(x, axis),
    "logsumexp": lambda jax, x, axis: jax.nn.logsumexp(x, axis),
    "logsumexp weighted": lambda jax, x, axis: jax.nn.logsumexp(x, axis, b=x - 4, return_sign=True)[0],
    "logmeanexp": lambda jax, x, axis: jax.nn.logmeanexp(x, axis),
    "standardize": lambda jax, x, axis: jax.nn.standardize(x, axis, algorithm="stable"),
}


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_reductions(name, axis):
    def program(jax):
        return jax.vmap(lambda x: FUNCTIONS[name](jax, x, AXES[axis]), axis_name="i")(X)

    got, wanted = program(ferrax), expected(program)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=3e-6 if got.dtype != np.float16 else 1e-3)
    compiled = ferrax.jit(lambda: program(ferrax))()
    np.testing.assert_allclose(compiled, wanted, rtol=3e-6 if got.dtype != np.float16 else 1e-3)


def test_two_names():
    def program(jax):
        rows = jax.vmap(lambda x: jax.numpy.mean(x, ("i", "j")) + x.sum("j"), axis_name="j")
        return jax.vmap(rows, axis_name="i")(X)

    np.testing.assert_allclose(program(ferrax), expected(program), rtol=2e-6)


def test_derivatives():
    def program(jax):
        return jax.grad(lambda x: (jax.vmap(lambda r: jax.numpy.var(r, ("i", 0)), axis_name="i")(x) ** 2).sum())(X)

    np.testing.assert_allclose(program(ferrax), expected(program), rtol=2e-5)


def test_what_takes_no_names():
    for reduce in (jnp.prod, jnp.any, jnp.all):
        with pytest.raises(NotImplementedError, match="over a mapped axis \\('i'\\)"):
            ferrax.vmap(lambda x, reduce=reduce: reduce(x, "i"), axis_name="i")(X)
    with pytest.raises(NameError, match="unbound axis name: q"):
        jnp.sum(X, "q")
    with pytest.raises(ValueError, match="duplicate value"):
        ferrax.vmap(lambda x: jnp.sum(x, ("i", "i")), axis_name="i")(X)
    with pytest.raises(TypeError):
        ferrax.vmap(lambda x: jnp.sort(x, "i"), axis_name="i")(X)
