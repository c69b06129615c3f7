"""Functions of matrices."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "funm",
    "ferrax.scipy.linalg.funm is what there is",
    names_of(__name__, "ferrax.scipy.linalg"),
)
