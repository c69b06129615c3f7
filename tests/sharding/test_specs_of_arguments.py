"""What `shard_map` says of specs that differ from how explicit axes divide its arguments, against JAX."""

import numpy as np
import pytest

import ferrax


def said(jax, axis_type, put):
    mesh = jax.make_mesh((1,), ("x",), axis_types=(getattr(jax.sharding.AxisType, axis_type),))
    spec = jax.sharding.PartitionSpec("x")
    f = jax.shard_map(lambda v: v * 2, mesh=mesh, in_specs=spec, out_specs=spec)
    x = np.arange(4.0, dtype=np.float32)
    if put:
        x = jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))
    out = []
    for call in (f, jax.jit(f)):
        try:
            out.append(np.asarray(call(x)).tolist())
        except ValueError as error:
            out.append(str(error).partition(". ")[0])
    return out


@pytest.mark.parametrize("put", [False, True])
@pytest.mark.parametrize("axis_type", ["Explicit", "Auto"])
def test_specs_are_those_of_the_types(axis_type, put):
    assert said(ferrax, axis_type, put) == said(pytest.importorskip("jax"), axis_type, put)
