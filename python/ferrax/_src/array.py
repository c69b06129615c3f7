"""The class of arrays, and how they are put together."""

from ferrax import make_array_from_callback as make_array_from_callback
from ferrax._ferrax import ArrayImpl as ArrayImpl
from ferrax.sharding._shards import Shard as Shard
