"""What the tests of documents share: the names that their programs use, of eight devices."""

SETUP = """
import math
import numpy as np
import ferrax as jax, ferrax.numpy as jnp
from functools import partial
from ferrax import lax
from ferrax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
from ferrax.sharding import auto_axes, explicit_axes, get_abstract_mesh, reshard
Explicit, Auto = AxisType.Explicit, AxisType.Auto
devs = jax.devices()
def mesh_of(sizes, names, kind=Explicit):
    return jax.make_mesh(sizes, names, axis_types=(kind,) * len(names), devices=devs[: math.prod(sizes)])
def near(a, b):
    return jax.tree.all(jax.tree.map(lambda a, b: a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-4), a, b))
def spec(x):
    return x.sharding.spec
def kind(x):
    return jax.typeof(x).str_short()
"""
