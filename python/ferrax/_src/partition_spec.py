"""Which mesh axes split which array axes."""

from ferrax._src._public import names_of
from ferrax.sharding import PartitionSpec as PartitionSpec

P = PartitionSpec

__getattr__ = names_of(__name__, "ferrax.sharding")
