"""Metadata of operations."""

from ferrax._src._public import names_of
from ferrax.experimental.xla_metadata import (
    XlaMetadataContextManager as XlaMetadataContextManager,
    xla_metadata_value_p as xla_metadata_value_p,
)

__getattr__ = names_of(__name__, "ferrax.experimental.xla_metadata")
