"""Functions that are transformed in steps."""

from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.extend.linear_util")
