"""Slices of references."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "Indexer Slice ds dslice",
    "references take slices of Python",
)
