"""Which mesh axes split which array axes."""

from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.sharding")
