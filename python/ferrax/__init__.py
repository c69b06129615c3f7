"""Composable transformations of array programs: JAX's interface over a Rust core.

    import ferrax as jax
    import ferrax.numpy as jnp

Submodules are imported when first used. Read next: `_api.py` for the transformations.
"""

import importlib as _importlib
from typing import Any as _Any

from ferrax._ferrax import Array as Array

from ferrax import errors as errors
from ferrax import tree as tree
from ferrax import tree_util as tree_util
from ferrax._api import ShapeDtypeStruct as ShapeDtypeStruct
from ferrax._api import block_until_ready as block_until_ready
from ferrax._api import clear_caches as clear_caches
from ferrax._api import closure_convert as closure_convert
from ferrax._api import copy_to_host_async as copy_to_host_async
from ferrax._api import device_get as device_get
from ferrax._api import ensure_compile_time_eval as ensure_compile_time_eval
from ferrax._api import eval_shape as eval_shape
from ferrax._api import grad as grad
from ferrax._api import hessian as hessian
from ferrax._api import jacfwd as jacfwd
from ferrax._api import jacobian as jacobian
from ferrax._api import jacrev as jacrev
from ferrax._api import jit as jit
from ferrax._api import jvp as jvp
from ferrax._api import linear_transpose as linear_transpose
from ferrax._api import linearize as linearize
from ferrax._api import make_jaxpr as make_jaxpr
from ferrax._api import named_call as named_call
from ferrax._api import named_scope as named_scope
from ferrax._api import typeof as typeof
from ferrax._api import value_and_grad as value_and_grad
from ferrax._api import vjp as vjp
from ferrax._api import vmap as vmap
from ferrax._callbacks import pure_callback as pure_callback
from ferrax._checkpoint import checkpoint as checkpoint
from ferrax._checkpoint import checkpoint_policies as checkpoint_policies
from ferrax._checkpoint import remat as remat
from ferrax._devices import default_backend as default_backend
from ferrax._devices import device_count as device_count
from ferrax._devices import device_put as device_put
from ferrax._devices import devices as devices
from ferrax._devices import host_count as host_count
from ferrax._devices import host_id as host_id
from ferrax._devices import local_device_count as local_device_count
from ferrax._devices import local_devices as local_devices
from ferrax._devices import process_count as process_count
from ferrax._devices import process_index as process_index
from ferrax._devices import process_indices as process_indices
from ferrax._stages import install as _install
from ferrax.custom_derivatives import custom_gradient as custom_gradient
from ferrax.custom_derivatives import custom_jvp as custom_jvp
from ferrax.custom_derivatives import custom_vjp as custom_vjp

_install()

_SUBMODULES = frozenset(
    ["custom_derivatives", "debug", "dtypes", "experimental", "lax", "nn", "numpy", "ops", "random", "stages"]
)


def __getattr__(name: str) -> _Any:
    if name in _SUBMODULES:
        return _importlib.import_module(f"ferrax.{name}")
    raise AttributeError(f"module 'ferrax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
