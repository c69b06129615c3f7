"""Helpers for programs with references."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "eval_jaxpr_p hoist_consts_to_refs",
    "references are discharged by the core",
)
