"""Programs that are traced and cut."""

from ferrax._ferrax import ClosedJaxpr, Jaxpr
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax._src.interpreters._programs import (
    convert_constvars_jaxpr as convert_constvars_jaxpr,
    convert_invars_to_constvars as convert_invars_to_constvars,
    move_binders_to_back as move_binders_to_back,
    move_binders_to_front as move_binders_to_front,
    partial_eval_jaxpr_nounits as partial_eval_jaxpr_nounits,
)


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A program without constants as one that has been given them."""
    return ClosedJaxpr(jaxpr, [])


__getattr__ = unprovided_names(
    __name__,
    "DynamicJaxprTrace Offloadable Recompute RecomputeType Saveable forwarding_rules inline_jaxpr_into_trace "
    "lower_jaxpr partial_eval_jaxpr_custom trace_to_subjaxpr_nounits tracers_to_jaxpr",
    "programs are traced and split by the core",
    names_of(__name__, "ferrax.interpreters.partial_eval"),
)
