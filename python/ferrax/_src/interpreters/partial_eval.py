"""Programs that are traced and cut."""

from ferrax._ferrax import ClosedJaxpr, Jaxpr
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A program without constants as one that has been given them."""
    return ClosedJaxpr(jaxpr, [])


__getattr__ = unprovided_names(
    __name__,
    "DynamicJaxprTrace JaxprTracer Offloadable Recompute RecomputeType Saveable convert_constvars_jaxpr "
    "convert_invars_to_constvars custom_partial_eval_rules dce_jaxpr_consts dce_rules forwarding_rules "
    "inline_jaxpr_into_trace lower_jaxpr move_binders_to_front partial_eval_jaxpr_custom "
    "partial_eval_jaxpr_custom_rules partial_eval_jaxpr_nounits trace_to_subjaxpr_nounits "
    "tracers_to_jaxpr",
    "programs are traced and split by the core",
    names_of(__name__, "ferrax.interpreters.partial_eval"),
)
