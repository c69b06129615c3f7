"""Derivative rules of primitives that users make."""

from ferrax._ferrax import LinearizeTracer as LinearizeTracer
from ferrax._primitives import primitive_linearizations as primitive_linearizations
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax._src.interpreters._programs import backward_pass as backward_pass, jvp_jaxpr as jvp_jaxpr
from ferrax.experimental._hi_primitives import GradAccum as GradAccum, NullAccum as NullAccum

__getattr__ = unprovided_names(
    __name__,
    "LinearizeTrace RefAccum ValAccum backward_pass3 "
    "closed_backward_pass custom_lin_p fancy_transposes linear_jvp linear_transpose2 "
    "linearize_jaxpr replace_internal_symbolic_zeros",
    "programs are differentiated by the core",
    names_of(__name__, "ferrax.interpreters.ad"),
)
