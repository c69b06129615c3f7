"""Minima by L-BFGS."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "_minimize_lbfgs",
    "ferrax.scipy.optimize.minimize is what there is",
    names_of(__name__, "ferrax.scipy.optimize"),
)
