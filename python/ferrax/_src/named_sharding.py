"""Shardings by names of mesh axes."""

from ferrax._src._public import names_of
from ferrax.sharding._named import DuplicateSpecError as DuplicateSpecError

__getattr__ = names_of(__name__, "ferrax.sharding")
