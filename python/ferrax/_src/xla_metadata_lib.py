"""Metadata in force."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "XlaMetadata current_xla_metadata update_metadata filter_nones",
    "metadata is not kept in programs",
)
