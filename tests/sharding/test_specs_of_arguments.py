"""What `shard_map` says of specs that differ from how explicit axes divide its arguments, against JAX."""

import numpy as np
import pytest

import ferrax
from tests.recorded import expected


def said(jax, axis_type, put):
    mesh = jax.make_mesh((1,), ("x",), axis_types=(getattr(jax.sharding.AxisType, axis_type),))
    spec = jax.sharding.PartitionSpec("x")
    f = jax.shard_map(lambda v: v * 2, mesh=mesh, in_specs=spec, out_specs=spec)
    x = np.arange(4.0, dtype=np.float32)
    if put:
        x = jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))
    out = []
    # types of arguments that no explicit axes divide say nothing in programs outside of `set_mesh`
    for call in (f, jax.jit(f)) if put or axis_type == "Auto" else (f,):
        try:
            out.append(np.asarray(call(x)).tolist())
        except ValueError as error:
            out.append(str(error).partition(". ")[0])
    return out


@pytest.mark.parametrize("put", [False, True])
@pytest.mark.parametrize("axis_type", ["Explicit", "Auto"])
def test_specs_are_those_of_the_types(axis_type, put):
    assert said(ferrax, axis_type, put) == said(pytest.importorskip("jax"), axis_type, put)


def named(jax):
    """Which argument an error of `shard_map` names, with its spec: of parameters, of `*args`, of trees."""
    mesh = jax.sharding.AbstractMesh((2,), ("i",))
    whole, ragged, spec, long = np.ones(4, np.float32), np.ones(3, np.float32), jax.P("i"), jax.P(None, "i")
    f, g = (lambda *xs: xs[0]), (lambda a, *xs: a)
    calls = [(f, spec, (ragged,)), (f, (spec, spec), (whole, ragged)), (g, (spec,) * 3, (whole, whole, ragged)),
             (g, spec, (ragged,)), (g, (spec, {"k": spec}), (whole, {"k": ragged})), (f, (spec, long), (whole, whole)),
             (g, (spec, [spec, long]), (whole, [whole, whole])), (lambda x: x, long, (whole,))]  # fmt: skip
    out = []
    for h, in_specs, args in calls:
        with pytest.raises(ValueError) as error:
            jax.eval_shape(jax.shard_map(h, mesh=mesh, in_specs=in_specs, out_specs=spec), *args)
        out.append(next(line for line in str(error.value).splitlines() if "the passed args" in line))
    return out


def test_errors_name_the_argument_and_its_spec():
    assert named(ferrax) == expected(named)


def test_transformations_outside_of_meshes_take_divided_arguments():
    jax, jnp = ferrax, ferrax.numpy
    mesh = jax.make_mesh((1,), ("x",))
    spec = jax.P("x")
    f = jax.shard_map(lambda v: v * 2, mesh=mesh, in_specs=spec, out_specs=spec)
    x = jax.device_put(jnp.arange(4.0), jax.NamedSharding(mesh, spec))
    total = lambda v: (f(v) ** 2).sum()
    want = np.asarray(8 * x)
    for gradient in (jax.grad(total), jax.grad(jax.checkpoint(total)), jax.jit(jax.grad(total)), jax.jacrev(total)):
        np.testing.assert_array_equal(gradient(x), want)
    np.testing.assert_array_equal(jax.jvp(f, (x,), (x,))[1], 2 * x)
    np.testing.assert_array_equal(jax.vmap(f)(jnp.stack([x, x])), 2 * jnp.stack([x, x]))
    np.testing.assert_array_equal(jax.lax.scan(lambda v, _: (f(v), None), x, None, 2)[0], 4 * x)
    np.testing.assert_array_equal(jax.lax.cond(True, f, lambda v: v, x), 2 * x)
