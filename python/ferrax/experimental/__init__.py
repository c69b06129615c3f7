"""Experimental functions of JAX's: `io_callback`, and the modules beside this file."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._callbacks import io_callback as io_callback
from ferrax._extended_dtypes import primal_tangent_dtype as primal_tangent_dtype
from ferrax._high_values import cur_qdd as cur_qdd
from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.experimental._extended_arrays import EArray as EArray
    from ferrax.experimental import array_serialization as array_serialization
    from ferrax.experimental import buffer_callback as buffer_callback
    from ferrax.experimental import checkify as checkify
    from ferrax.experimental import colocated_python as colocated_python
    from ferrax.experimental import compilation_cache as compilation_cache
    from ferrax.experimental import compute_on as compute_on
    from ferrax.experimental import control_deps as control_deps
    from ferrax.experimental import custom_partitioning as custom_partitioning
    from ferrax.experimental import fused as fused
    from ferrax.experimental import hijax as hijax
    from ferrax.experimental import jet as jet
    from ferrax.experimental import key_reuse as key_reuse
    from ferrax.experimental import layout as layout
    from ferrax.experimental import mesh_utils as mesh_utils
    from ferrax.experimental import multihost_utils as multihost_utils
    from ferrax.experimental import ode as ode
    from ferrax.experimental import pallas as pallas
    from ferrax.experimental import pjit as pjit
    from ferrax.experimental import profiler as profiler
    from ferrax.experimental import random as random
    from ferrax.experimental import rnn as rnn
    from ferrax.experimental import roofline as roofline
    from ferrax.experimental import scheduling_groups as scheduling_groups
    from ferrax.experimental import serialize_executable as serialize_executable
    from ferrax.experimental import shard_alike as shard_alike
    from ferrax.experimental import shard_map as shard_map
    from ferrax.experimental import source_mapper as source_mapper
    from ferrax.experimental import sparse as sparse
    from ferrax.experimental import topologies as topologies
    from ferrax.experimental import xla_metadata as xla_metadata

_SUBMODULES = """
array_serialization
buffer_callback
checkify
colocated_python
compilation_cache
compute_on
control_deps
custom_partitioning
fused
hijax
jet
key_reuse
layout
mesh_utils
multihost_utils
ode
pallas
pjit
profiler
random
rnn
roofline
scheduling_groups
serialize_executable
shard_alike
shard_map
sparse
topologies
xla_metadata
"""

_defer(globals(), {"_extended_arrays": "EArray"}, _SUBMODULES)
