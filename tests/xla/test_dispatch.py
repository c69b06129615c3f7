"""Eager operations on a device of XLA: programs cached by structure, found without Python and without a trace."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._ferrax import compilation_cache_counts
from tests.dispatch import test_frames


@pytest.fixture(scope="module")
def xla():
    """The first device of the plugin."""
    return jax.devices("xla_cpu")[0]


@pytest.fixture
def compiled(tmp_path):
    """How many programs the plugin has compiled: none is found in an empty folder that keeps none."""
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 3600)
    yield lambda: sum(compilation_cache_counts(False))
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1)


@pytest.mark.parametrize("name", test_frames.CALLS)
def test_no_python_runs_in_operations_and_cached_calls(xla, name):
    if test_frames.X.device != xla:
        pytest.skip("needs the platform as the default: make test-xla")
    assert test_frames.frames(test_frames.CALLS[name]) == []


def body(carry, row):
    return carry + row, None


OPERATIONS = {
    "add": lambda x, i: x + i,
    "sine": lambda x, i: jnp.sin(x * i),
    "element": lambda x, i: x[i],
    "slice": lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)),
    "set": lambda x, i: x.at[i].set(1.0),
    "gather": lambda x, i: x[jnp.asarray([0, i])],
    "product": lambda x, i: (x * i) @ x.T,
    "sum": lambda x, i: (x + i).sum(0),
    "sort": lambda x, i: jnp.sort(x * i),
    "where": lambda x, i: jnp.where(x > i, x, 0.0),
    "solve": lambda x, i: jnp.linalg.solve(x + i * jnp.eye(4), x[0]),
    "median": lambda x, i: jnp.median(x * i),
    "gradient": lambda x, i: jax.grad(lambda x: (x * x * i).sum())(x),
    "vmap": lambda x, i: jax.vmap(lambda row: row * row.sum() + i)(x),
    "scan": lambda x, i: lax.scan(body, x[0] * i, x)[0],
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_program_is_compiled_once_for_all_values(xla, compiled, name):
    x = jax.device_put(jnp.arange(16.0).reshape(4, 4), xla)
    before, results = compiled(), []
    with jax.default_device(xla):
        results.append(OPERATIONS[name](x, 1))
        first = compiled()
        results += [OPERATIONS[name](x + i, i) for i in (2, 3)]
    extra = compiled() - first
    assert {r.device for r in results} == {xla}
    assert first > before, "nothing was compiled the first time"
    assert extra <= 1, "other values compile at most the sum that makes them"
    with jax.default_device(jax.devices("cpu")[0]):
        y = jax.device_put(x, jax.devices("cpu")[0])
        np.testing.assert_allclose(results[2], OPERATIONS[name](y + 3, 3), rtol=2e-5)
