"""Jitted functions and shardings inside of them."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "JitWrapped _cpp_pjit _cpp_pjit_cache_explicit_attributes _cpp_pjit_cache_fun_only _infer_params "
    "_parse_jit_arguments _pjit_lower _resolve_and_lower layout_constraint_p make_jit reshard_p",
    "jitted functions are the core's",
    names_of(__name__, "ferrax.experimental.pjit", "ferrax.sharding", "ferrax.lax", "ferrax.extend.core.primitives"),
)
