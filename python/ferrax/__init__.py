"""Composable transformations of array programs: JAX's interface over a Rust core.

    import ferrax as jax
    import ferrax.numpy as jnp

Files load when one of their names is asked for (`_lazy.py`). Read next: `_api.py` and `_derivatives.py` for the
transformations.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._ferrax import Array as Array, Device as Device, dtype_object as _dtype_object

from ferrax._boundary import install as _install_finder
from ferrax._lazy import defer as _defer
from ferrax._members import defer_all as _defer_members
from ferrax._narrow import name_for_numpy as _name_for_numpy
from ferrax._plugins import install as _install_plugins, register_plugin as register_plugin
from ferrax.config import (
    allow_f16_reductions as allow_f16_reductions,
    auto_pcast as auto_pcast,
    array_garbage_collection_guard as array_garbage_collection_guard,
    check_tracer_leaks as check_tracer_leaks,
    checking_leaks as checking_leaks,
    check_captures as check_captures,
    check_indices as check_indices,
    check_where as check_where,
    config as config,
    debug_infs as debug_infs,
    debug_key_reuse as debug_key_reuse,
    debug_nans as debug_nans,
    default_device as default_device,
    default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl,
    disable_jit as disable_jit,
    enable_checks as enable_checks,
    enable_custom_prng as enable_custom_prng,
    enable_x64 as enable_x64,
    explain_cache_misses as explain_cache_misses,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
    legacy_prng_key as legacy_prng_key,
    log_compiles as log_compiles,
    no_execution as no_execution,
    no_retrace as no_retrace,
    no_tracing as no_tracing,
    numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    safe_where as safe_where,
    softmax_custom_jvp as softmax_custom_jvp,
    strict_numerics as strict_numerics,
    thread_guard as thread_guard,
    threefry_partitionable as threefry_partitionable,
    transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from ferrax.version import __version__ as __version__, __version_info__ as __version_info__

#: The dtype of tangents of integers: it holds no information.
float0 = _dtype_object("float0")

_install_plugins()
_install_finder()
_name_for_numpy()
_defer_members()

if _TYPE_CHECKING:
    from ferrax import ad as ad
    from ferrax import ad_checkpoint as ad_checkpoint
    from ferrax import api_util as api_util
    from ferrax import core as core
    from ferrax import custom_batching as custom_batching
    from ferrax import custom_derivatives as custom_derivatives
    from ferrax import debug as debug
    from ferrax import distributed as distributed
    from ferrax import dlpack as dlpack
    from ferrax import doctor as doctor
    from ferrax import dtypes as dtypes
    from ferrax import errors as errors
    from ferrax import example_libraries as example_libraries
    from ferrax import experimental as experimental
    from ferrax import export as export
    from ferrax import extend as extend
    from ferrax import ffi as ffi
    from ferrax import flatten_util as flatten_util
    from ferrax import image as image
    from ferrax import interpreters as interpreters
    from ferrax import lax as lax
    from ferrax import lib as lib
    from ferrax import monitoring as monitoring
    from ferrax import nn as nn
    from ferrax import numpy as numpy
    from ferrax import ops as ops
    from ferrax import plan as plan
    from ferrax import profiler as profiler
    from ferrax import random as random
    from ferrax import ref as ref
    from ferrax import scipy as scipy
    from ferrax import sharding as sharding
    from ferrax import stages as stages
    from ferrax import test_util as test_util
    from ferrax import tree as tree
    from ferrax import tree_util as tree_util
    from ferrax import typing as typing
    from ferrax import version as version
    from ferrax._shape_dtype import ShapeDtypeStruct as ShapeDtypeStruct
    from ferrax._api import block_until_ready as block_until_ready
    from ferrax._api import clear_caches as clear_caches
    from ferrax._api import closure_convert as closure_convert
    from ferrax._api import copy_to_host_async as copy_to_host_async
    from ferrax._api import device_get as device_get
    from ferrax._api import effects_barrier as effects_barrier
    from ferrax._api import ensure_compile_time_eval as ensure_compile_time_eval
    from ferrax._api import eval_shape as eval_shape
    from ferrax._api import jit as jit
    from ferrax._api import make_jaxpr as make_jaxpr
    from ferrax._api import typeof as typeof
    from ferrax._api import vmap as vmap
    from ferrax._names import named_call as named_call
    from ferrax._names import named_scope as named_scope
    from ferrax._callbacks import pure_callback as pure_callback
    from ferrax._checkpoint import checkpoint as checkpoint
    from ferrax._checkpoint import checkpoint_policies as checkpoint_policies
    from ferrax._checkpoint import remat as remat
    from ferrax._derivatives import grad as grad
    from ferrax._derivatives import hessian as hessian
    from ferrax._derivatives import jacfwd as jacfwd
    from ferrax._derivatives import jacobian as jacobian
    from ferrax._derivatives import jacrev as jacrev
    from ferrax._derivatives import jvp as jvp
    from ferrax._derivatives import linear_transpose as linear_transpose
    from ferrax._derivatives import linearize as linearize
    from ferrax._derivatives import value_and_grad as value_and_grad
    from ferrax._derivatives import vjp as vjp
    from ferrax._devices import default_backend as default_backend
    from ferrax._devices import device_count as device_count
    from ferrax._devices import device_memory_stats as device_memory_stats
    from ferrax._devices import device_put as device_put
    from ferrax._devices import devices as devices
    from ferrax._devices import host_count as host_count
    from ferrax._devices import host_id as host_id
    from ferrax._devices import host_ids as host_ids
    from ferrax._devices import live_arrays as live_arrays
    from ferrax._devices import local_device_count as local_device_count
    from ferrax._devices import local_devices as local_devices
    from ferrax._devices import process_count as process_count
    from ferrax._devices import process_index as process_index
    from ferrax._devices import process_indices as process_indices
    from ferrax._environment import print_environment_info as print_environment_info
    from ferrax._linearized import fwd_and_bwd as fwd_and_bwd
    from ferrax._sharded import NamedSharding as NamedSharding
    from ferrax._sharded import P as P
    from ferrax._sharded import Shard as Shard
    from ferrax._sharded import make_array_from_callback as make_array_from_callback
    from ferrax._sharded import make_array_from_process_local_data as make_array_from_process_local_data
    from ferrax._sharded import make_array_from_single_device_arrays as make_array_from_single_device_arrays
    from ferrax._sharded import make_mesh as make_mesh
    from ferrax._sharded import memory as memory
    from ferrax._sharded import pmap as pmap
    from ferrax._sharded import reshard as reshard
    from ferrax._sharded import set_mesh as set_mesh
    from ferrax._sharded import shard_map as shard_map
    from ferrax._sharded import smap as smap
    from ferrax._slices import ds as ds
    from ferrax._user_contexts import make_user_context as make_user_context
    from ferrax.custom_derivatives import custom_gradient as custom_gradient
    from ferrax.custom_derivatives import custom_jvp as custom_jvp
    from ferrax.custom_derivatives import custom_vjp as custom_vjp
    from ferrax.ref import Ref as Ref
    from ferrax.ref import empty_ref as empty_ref
    from ferrax.ref import free_ref as free_ref
    from ferrax.ref import freeze as freeze
    from ferrax.ref import new_ref as new_ref


_DEFERRED = {
    "_api": (
        "block_until_ready clear_caches closure_convert copy_to_host_async device_get effects_barrier "
        "ensure_compile_time_eval eval_shape jit make_jaxpr typeof vmap"
    ),
    "_callbacks": "pure_callback",
    "_checkpoint": "checkpoint checkpoint_policies remat",
    "_derivatives": ("grad hessian jacfwd jacobian jacrev jvp linear_transpose linearize value_and_grad vjp"),
    "_devices": (
        "default_backend device_count device_memory_stats device_put devices host_count host_id host_ids live_arrays "
        "local_device_count local_devices process_count process_index process_indices"
    ),
    "_environment": "print_environment_info",
    "_linearized": "fwd_and_bwd",
    "_names": "named_call named_scope",
    "_shape_dtype": "ShapeDtypeStruct",
    "_sharded": (
        "make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays "
        "make_mesh memory NamedSharding P pmap reshard set_mesh Shard shard_map smap"
    ),
    "_slices": "ds",
    "_user_contexts": "make_user_context",
    "custom_derivatives": "custom_gradient custom_jvp custom_vjp",
    "ref": "empty_ref free_ref freeze new_ref Ref",
}

_SUBMODULES = """
_src
ad
ad_checkpoint
api_util
core
custom_batching
custom_derivatives
debug
distributed
dlpack
doctor
dtypes
errors
example_libraries
experimental
export
extend
ffi
flatten_util
image
interpreters
lax
lib
monitoring
nn
numpy
ops
plan
profiler
random
ref
scipy
sharding
stages
test_util
tree
tree_util
typing
version
"""

_defer(globals(), _DEFERRED, _SUBMODULES)
