"""Indices of references."""

from ferrax import ds as ds
from ferrax._src._unprovided import unprovided_names

dslice = ds

__getattr__ = unprovided_names(
    __name__, "DimIndexer IntIndexer NDIndexer Slice", "indices of references are those of arrays here"
)
