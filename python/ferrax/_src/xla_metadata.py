"""Metadata of operations."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "xla_metadata_value_p _XlaMetadataWrapper",
    "metadata is not kept in programs",
    names_of(__name__, "ferrax.experimental.xla_metadata"),
)
