"""Calls that suites of libraries make at the edges of functions: no dtype, no mesh, no rows, keys among arrays."""

import os
import subprocess
import sys

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import dtypes, lax, random
from ferrax.experimental import checkify

X = jnp.arange(4.0)
KEY = random.key(0)

# --- no dtype is the dtype of floats


def test_no_dtype_is_that_of_floats():
    for x64 in (False, True):
        with ferrax.enable_x64(x64):
            floats = np.dtype("float64" if x64 else "float32")
            assert dtypes.canonicalize_dtype(None) == dtypes.result_type(None) == jnp.result_type(None) == floats
            assert jnp.result_type(None, np.int8) == floats == jnp.result_type(None, 1)
            assert dtypes.result_type(None, return_weak_type_flag=True) == (floats, False)


# --- the sharding in an array's type, without a mesh, asks for nothing

MADE = {
    "normal": lambda s: random.normal(KEY, (4,), out_sharding=s),
    "bits": lambda s: random.bits(KEY, (4,), out_sharding=s),
    "zeros": lambda s: jnp.zeros((4,), out_sharding=s),
    "full": lambda s: lax.full((4,), 1.0, sharding=s),
    "reshape": lambda s: jnp.reshape(X, (2, 2), out_sharding=s),
    "dot": lambda s: jnp.dot(X, X, out_sharding=s),
    "einsum": lambda s: jnp.einsum("i,i->i", X, X, out_sharding=s),
    "iota": lambda s: lax.broadcasted_iota("int32", (2, 2), 0, out_sharding=s),
    "broadcast": lambda s: jnp.broadcast_to(X, (2, 4), out_sharding=s),
    "get": lambda s: X.at[0].get(out_sharding=s),
}


@pytest.mark.parametrize("name", MADE)
def test_a_sharding_without_a_mesh_asks_for_nothing(name):
    wanted = MADE[name](None)
    np.testing.assert_array_equal(MADE[name](ferrax.typeof(X).sharding), wanted)
    traced = ferrax.jit(lambda x: MADE[name](ferrax.typeof(x).sharding))(X)
    np.testing.assert_array_equal(traced, wanted)
    assert traced.sharding == wanted.sharding


def test_shards_without_a_mesh_are_whole():
    assert ferrax.typeof(X).sharding.shard_shape((4,)) == (4,)


PUT = {
    "with_sharding_constraint": lambda s: lax.with_sharding_constraint(X, s),
    "in_shardings": lambda s: ferrax.jit(jnp.sin, in_shardings=s)(X),
    "out_shardings": lambda s: ferrax.jit(jnp.sin, out_shardings=s)(X),
}


@pytest.mark.parametrize("name", PUT)
def test_it_is_no_place(name):
    with pytest.raises(ValueError, match="empty NamedSharding"):
        PUT[name](ferrax.typeof(X).sharding)


# --- no rows


@pytest.mark.parametrize("shape", [(0, 2, 3), (0, 1, 1), (3, 2, 3)])
@pytest.mark.parametrize("jit", [False, True])
def test_slices_of_no_rows(shape, jit):
    x = jnp.ones(shape)
    i = jnp.zeros(shape[0], int)
    rows = {
        "slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (1, shape[2])), (shape[0], 1, shape[2])),
        "index": (lambda x, i: x[i], (shape[0], shape[2])),
        "update": (lambda x, i: lax.dynamic_update_slice(x, x[:1], (i, i)), shape),
        "set": (lambda x, i: x.at[i].set(2.0), shape),
        "grad": (ferrax.grad(lambda x, i: lax.dynamic_slice(x, (i, i), (1, shape[2])).sum()), shape),
    }
    for f, wanted in rows.values():
        mapped = ferrax.vmap(f)
        assert (ferrax.jit(mapped) if jit else mapped)(x, i).shape == wanted


# --- keys among arrays


@pytest.mark.parametrize("jit", [False, True])
def test_checks_name_keys(jit):
    def f(keys, x):
        checkify.check(jnp.all(x > 0), "{keys} {x}", keys=keys, x=x)
        return ferrax.vmap(lambda k: random.normal(k))(keys)

    checked = checkify.checkify(f)
    checked = ferrax.jit(checked) if jit else checked
    keys = random.split(KEY, 3)
    error, out = checked(keys, X + 1)
    assert error.get() is None and out.shape == (3,)
    error, _ = checked(keys, X)
    assert "key<fry>" in error.get() and "0. 1. 2. 3." in error.get()


def test_checks_with_keys_in_branches_and_loops():
    def f(key, n):
        def body(i, key):
            key = random.fold_in(key, i)
            checkify.check(i < 2, "at {i}: {key}", i=i, key=key)
            return key

        return lax.cond(n > 0, lambda k: lax.fori_loop(0, 3, body, k), lambda k: k, key)

    error, _ = checkify.checkify(f)(KEY, 1)
    assert error.get().startswith("at 2: ")
    assert checkify.checkify(f)(KEY, 0)[0].get() is None


def test_arrays_full_of_keys():
    for made in (jnp.full((2,), 0, KEY.dtype), jnp.full((2,), KEY), jnp.full((2,), 0, dtype=KEY.dtype)):
        assert made.dtype == KEY.dtype and made.shape == (2,)
    np.testing.assert_array_equal(random.key_data(jnp.full(2, 0, KEY.dtype)), np.zeros((2, 2), "uint32"))


# --- mapped arguments and branches


def test_none_among_arguments_of_pmap_has_no_axis():
    f = ferrax.pmap(lambda x, none, tree: (x + tree["a"], none, tree), in_axes=(0, None, 0))
    out, none, tree = f(X[:1], None, {"a": X[1:2], "b": None})
    assert out.tolist() == [1.0] and none is None and tree["b"] is None
    assert ferrax.pmap(lambda x, none: (x, none))(X[:1], None)[1] is None
    shared, none = ferrax.pmap(lambda x: (x, None), out_axes=(None, 0))(X[:1])
    assert shared.shape == () and none is None
    with pytest.raises(ValueError, match="tree prefix"):
        ferrax.pmap(lambda x: x, in_axes=((0, 0),))((X[:1],))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_branch_that_is_there_twice_is_traced_once(count):
    traced = []

    def f(x):
        traced.append(x)
        return x + 1

    def g(x):
        traced.append(x)
        return x - 1

    assert ferrax.lax.cond(False, f, f, 0) == 1 and len(traced) == 1
    branches = [f, g] * count
    assert [int(lax.switch(i, branches, 5)) for i in range(len(branches))] == [6, 4] * count
    assert len(traced) == 1 + 2  # later calls find the programs
    np.testing.assert_array_equal(ferrax.vmap(lambda i: lax.switch(i, [f, g, f], 5))(jnp.arange(3)), [6, 4, 6])


# --- processes of their own


def run(code):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_masked_arrays_of_numpy_can_be_imported_after():
    """`numpy.ma` goes through NumPy's table of dtypes, where narrow ones load on the way."""
    code = """
import sys, ferrax, numpy as np
assert "ml_dtypes" not in sys.modules
import numpy.ma
for x in np.sctypeDict.values():
    np.dtype(x)
print(np.ma.masked_array([1, 2], [True, False]).sum(), np.dtype("bfloat16"), np.dtype("int4"))
"""
    assert run(code) == ["2", "bfloat16", "int4"]


def test_backends_are_there_once_devices_are_looked_at():
    code = """
import os, ferrax
from ferrax._src import xla_bridge
print(xla_bridge.backends_are_initialized(), list(xla_bridge._backends))
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
print(len(ferrax.devices("cpu")), xla_bridge.backends_are_initialized(), "cpu" in xla_bridge._backends)
"""
    assert run(code) == ["False", "[]", "3", "True", "True"]
