"""Errors of ferrax never show its own frames; those of libraries stay."""

from ferrax.extend.source_info_util import register_exclusion as register_exclusion


def api_boundary(fun):  # type: ignore[no-untyped-def]
    """The function itself."""
    return fun
