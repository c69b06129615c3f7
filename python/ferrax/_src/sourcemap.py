"""Positions of generated text in sources."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "Mappings MappingsGenerator Segment SourceMap deserialize_mappings serialize_mappings",
    "ferrax lowers programs to no MLIR",
)
