"""Metadata in force."""

from typing import Any

from ferrax._src._unprovided import unprovided_names
from ferrax.experimental.xla_metadata import metadata_context

__getattr__ = unprovided_names(__name__, "XlaMetadata update_metadata", "metadata is kept as texts")


def filter_nones(d: dict[str, Any]) -> dict[str, Any]:
    """The notes that are not None."""
    return {k: v for k, v in d.items() if v is not None}


def current_xla_metadata() -> dict[str, Any] | None:
    """The notes in force on this thread, None for none.

    >>> from ferrax._src.xla_metadata_lib import current_xla_metadata
    >>> from ferrax.experimental.xla_metadata import set_xla_metadata
    >>> with set_xla_metadata(a=1, b=None):
    ...     current_xla_metadata()
    {'a': 1}
    """
    return dict(metadata_context.value) or None
