"""Folders of files that are bounded."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(__name__, "LRUCache _ATIME_SUFFIX _CACHE_SUFFIX", "the cache on disk is the core's")
