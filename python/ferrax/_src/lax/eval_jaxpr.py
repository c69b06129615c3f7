"""Programs as operations."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "eval_jaxpr_p",
    "programs are evaluated by ferrax.core.eval_jaxpr",
)
