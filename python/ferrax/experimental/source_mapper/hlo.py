"""Maps of texts in HLO."""

from ferrax.experimental.source_mapper._texts import hlo_sourcemap as parse_hlo_dump

__all__ = ["parse_hlo_dump"]


def _parse_hlo_new_format(lines: list[str]) -> object:
    """The map of a text's lines, whose places are in tables before the program."""
    return parse_hlo_dump("\n".join(lines))


_parse_hlo_old_format = _parse_hlo_new_format
