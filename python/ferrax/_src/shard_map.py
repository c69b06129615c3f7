"""Functions over blocks of arrays."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.sharding._shard_map import Infer as Infer, shard_map as shard_map, smap as smap

__getattr__ = unprovided_names(
    __name__,
    "HashablePartial InferFromArgs ShardMapTrace ShardMapTracer _match_spec _rem_singleton "
    "_shard_map _spec_divisibility_error _spec_to_names _unmatch _unmatch_spec shard_map_p",
    "shard_map is ferrax.shard_map",
    names_of(__name__, "ferrax"),
)
