"""Compiled functions as bytes, and devices as groups."""

import subprocess
import sys

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax.experimental import topologies
from ferrax.experimental.serialize_executable import deserialize_and_load, serialize


def test_a_compiled_function_is_read_back():
    weights = jnp.arange(3.0)

    def f(x, *, scale):
        return {"y": jnp.sin(x) * weights * scale["s"], "n": x.sum()}

    compiled = jax.jit(f).lower(jnp.ones(3), scale={"s": 2.0}).compile()
    blob, in_tree, out_tree = serialize(compiled)
    assert (in_tree, out_tree) == (compiled.in_tree, compiled.out_tree)
    read = deserialize_and_load(blob, in_tree, out_tree)
    x = jnp.asarray([0.5, 1.0, 2.0])
    want, got = compiled(x, scale={"s": 3.0}), read(x, scale={"s": 3.0})
    assert want.keys() == got.keys()
    for key in want:
        np.testing.assert_array_equal(want[key], got[key])
    with pytest.raises(TypeError, match="input pytree"):
        read(x)


def test_donated_arguments_stay_donated():
    compiled = jax.jit(lambda x, y: (x + y, y), donate_argnums=0).lower(jnp.ones(3), jnp.ones(3)).compile()
    read = deserialize_and_load(*serialize(compiled))
    assert read.donate_argnums == (0,)
    x, y = jnp.ones(3), jnp.ones(3)
    read(x, y)
    assert x.is_deleted() and not y.is_deleted()


def test_another_process_reads_it(tmp_path):
    blob, _, _ = serialize(jax.jit(lambda x: jnp.cumsum(x) ** 2).lower(jnp.ones(4)).compile())
    file = tmp_path / "function"
    file.write_bytes(blob)
    program = (
        "import sys, ferrax as jax, ferrax.numpy as jnp\n"
        "from ferrax.experimental.serialize_executable import deserialize_and_load\n"
        "in_tree, out_tree = jax.tree.structure(((0,), {})), jax.tree.structure(0)\n"
        "f = deserialize_and_load(open(sys.argv[1], 'rb').read(), in_tree, out_tree)\n"
        "print(f(jnp.arange(4.0)).tolist())\n"
    )
    run = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[0.0, 1.0, 9.0, 36.0]"


def test_what_is_not_written_or_read():
    compiled = jax.jit(lambda x: x).lower(1.0).compile()
    blob, in_tree, out_tree = serialize(compiled)
    with pytest.raises(ValueError, match="arguments and results"):
        deserialize_and_load(blob, jax.tree.structure(((0, 0), {})), out_tree)
    with pytest.raises(ValueError):
        deserialize_and_load(blob[:-1], in_tree, out_tree)
    with pytest.raises(NotImplementedError, match="backend"):
        deserialize_and_load(blob, in_tree, out_tree, backend="cpu")
    calls = jax.jit(lambda x: jax.pure_callback(np.sin, x, x)).lower(jnp.ones(2)).compile()
    with pytest.raises(NotImplementedError, match="host_callbacks"):
        serialize(calls)


def test_topologies():
    here = topologies.get_attached_topology("cpu")
    assert here.devices == jax.devices("cpu")
    mesh = topologies.make_mesh(topologies.TopologyDescription(here.devices[:1]), (1, 1), ("x", "y"))
    assert mesh.axis_names == ("x", "y") and mesh.devices.shape == (1, 1)
    with pytest.raises(NotImplementedError, match="v4:2x2"):
        topologies.get_topology_desc("v4:2x2", "tpu")
