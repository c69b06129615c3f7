"""Programs as bytes."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "_SERIALIZATION_VERSION deserialize serialize",
    "Exported.serialize and ferrax.export.deserialize have ferrax's own format",
)
