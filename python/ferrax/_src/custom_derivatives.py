"""Functions with derivative rules of their own."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "optimize_remat_of_custom_vjp_fwd remat_opt_p",
    "what custom rules keep is the core's",
    names_of(__name__, "ferrax.custom_derivatives"),
)
