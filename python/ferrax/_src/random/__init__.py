"""Random numbers."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "PRNGSpec PRNGSpecDesc",
    "generators are named by text or are PRNGImpl",
    names_of(__name__, "ferrax.random", "ferrax.extend.core.primitives"),
)
