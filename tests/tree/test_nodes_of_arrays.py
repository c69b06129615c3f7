"""A node whose constructor takes nothing but arrays is a value of every transformation.

Libraries register classes that check what they are made of (operators of linear algebra look at their rank). What the
transformations need to know of a structure they do not find out by building it of something else.
"""

from typing import Any

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import export, lax


@jax.tree_util.register_pytree_node_class
class Row:
    """Numbers along one axis at least."""

    def __init__(self, x: Any):
        if len(x.shape) == 0:
            raise ValueError(f"a row has an axis, got {x!r}")
        self.x = x

    def tree_flatten(self) -> Any:
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> "Row":
        return cls(*children)


def double(row: Row) -> Row:
    return Row(row.x * 2)


def first(row: Row) -> Row:
    return Row(row.x[0])


def of_one(row: Row) -> Row:
    return Row(row.x[None])


MESH = jax.make_mesh((1,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
HERE = jax.sharding.SingleDeviceSharding(jax.devices()[0])
WHOLE = jax.sharding.NamedSharding(MESH, jax.P())

CALLS = {
    "scan": lambda r: lax.scan(lambda c, _: (double(c), None), r, None, length=1)[0],
    "scan over rows": lambda r: first(lax.scan(lambda c, x: (c, double(x)), 0, of_one(r))[1]),
    "fori_loop": lambda r: lax.fori_loop(0, 1, lambda _, s: double(s), r),
    "map": lambda r: first(lax.map(double, of_one(r))),
    "derivative": lambda r: jax.jvp(lambda s: lax.scan(lambda c, _: (double(c), c), s, length=1)[0], (r,), (r,))[1],
    "in_shardings": lambda r: jax.jit(double, in_shardings=HERE)(r),
    "out_shardings": lambda r: jax.jit(double, out_shardings=WHOLE)(r),
    "constraint": lambda r: double(lax.with_sharding_constraint(r, WHOLE)),
    "shard_map": lambda r: jax.shard_map(double, mesh=MESH, in_specs=jax.P("a"), out_specs=jax.P("a"))(r),
    "pmap": lambda r: first(jax.pmap(double)(of_one(r))),
    "export": lambda r: Row(export.export(jax.jit(lambda s: double(s).x))(r).call(r)),
    "lower": lambda r: jax.jit(double).lower(r).compile()(r),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_transformations_build_nodes_of_arrays_alone(call: Any) -> None:
    given = Row(jnp.arange(3.0))
    np.testing.assert_array_equal(call(given).x, [0, 2, 4])


def test_a_body_that_gives_no_pair_is_named_whatever_its_result_is() -> None:
    with pytest.raises(TypeError, match="scan body output must be a pair"):
        lax.scan(lambda c, _: double(c), Row(jnp.ones(2)), None, length=1)
