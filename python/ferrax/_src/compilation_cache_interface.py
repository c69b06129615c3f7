"""What keeps compiled programs."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "CacheInterface",
    "the cache on disk is the core's",
)
