"""Source maps: which places of sources the parts of generated text come from.

Source: ECMA-426, the format of source maps, version 3. A line of text has segments, of 1, 4 or 5 integers, each the
difference from the same integer of the segment before; an integer is written in digits of base 64, lowest first.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

Segment = tuple[int, ...]
Mappings = Sequence[Sequence[Segment]]

_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_BITS, _MORE = 5, 32  # of a digit's six bits, the highest says whether another digit follows
_LENGTHS = (1, 4, 5)


def encode_vlq(value: int) -> bytes:
    """An integer in digits: its sign is the lowest bit.

    >>> encode_vlq(-17), encode_vlq(0)
    (b'jB', b'A')
    """
    left = abs(value) << 1 | (value < 0)
    digits = bytearray()
    while True:
        low, left = left % _MORE, left >> _BITS
        digits.append(_DIGITS[low | (_MORE if left else 0)])
        if not left:
            return bytes(digits)


def decode_vlq(enc: Iterable[int]) -> int:
    """The integer whose digits come next: what follows them is left in an iterator.

    Raises:
      StopIteration: the digits end before the integer does.
      KeyError: a byte is no digit.
    """
    digits, value, shift = iter(enc), 0, 0
    while True:
        digit = _VALUES[next(digits)]
        value |= (digit % _MORE) << shift
        shift += _BITS
        if digit < _MORE:
            return -(value >> 1) if value & 1 else value >> 1


def encode_segment(seg: Segment) -> bytes:
    """A segment's integers, one after the other."""
    return b"".join(map(encode_vlq, seg))


def decode_segment(enc: Iterable[int]) -> Segment:
    """The integers of a segment.

    Raises:
      ValueError: they are not 1, 4 or 5, or the last one does not end.
    """
    left, found = bytes(enc), []
    digits = iter(left)
    for _ in range(sum(_VALUES[d] < _MORE for d in left)):
        found.append(decode_vlq(digits))
    if len(found) not in _LENGTHS or next(digits, None) is not None:
        raise ValueError(f"a segment has 1, 4 or 5 integers, got {left!r}")
    return tuple(found)


def serialize_mappings(mappings: Mappings) -> str:
    """The segments of all lines as text.

    >>> serialize_mappings([[(0,)], [], [(2, 0, 1, -1)]])
    'A;;EACD'
    """
    return b";".join(b",".join(map(encode_segment, line)) for line in mappings).decode("ascii")


def deserialize_mappings(mappings_str: str) -> Mappings:
    """The segments of each line of a text of `serialize_mappings`."""
    lines = mappings_str.encode("ascii").split(b";")
    return [[decode_segment(seg) for seg in line.split(b",")] if line else [] for line in lines]


#: What JSON calls the fields of a map.
_JSON = {"sources_content": "sourcesContent"}


@dataclasses.dataclass(frozen=True)
class SourceMap:
    """A map: the sources, their text, names that they use, and the segments of each line."""

    version: int
    sources: Sequence[str]
    sources_content: Sequence[str]
    names: Sequence[str]
    mappings: Mappings

    @classmethod
    def from_json(cls, json_data: str) -> SourceMap:
        """The map that a text of JSON describes."""
        data = json.loads(json_data)
        fields: dict[str, Any] = {f.name: data[_JSON.get(f.name, f.name)] for f in dataclasses.fields(cls)}
        return cls(**fields | {"mappings": deserialize_mappings(fields["mappings"])})

    def to_json(self) -> str:
        """The map as JSON."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        fields["mappings"] = serialize_mappings(self.mappings)
        return json.dumps({_JSON.get(name, name): value for name, value in fields.items()})


class MappingsGenerator:
    """Collects the segments of lines, given by absolute places, as differences."""

    def __init__(self) -> None:
        self._lines: list[list[Segment]] = []
        self._last = [0] * max(_LENGTHS)

    def new_group(self) -> None:
        """Starts a line: columns count from its beginning."""
        self._lines.append([])
        self._last[0] = 0

    def new_segment(self, *seg: int) -> None:
        """Adds a segment to the line.

        Args:
          seg: the column, or column, source, line and column there, or these and a name's number.

        Raises:
          RuntimeError: no line has been started.
          AssertionError: there are not 1, 4 or 5 integers.
        """
        if not self._lines:
            raise RuntimeError("No current group. Forgot to call new_group()?")
        if len(seg) not in _LENGTHS:
            raise AssertionError("invalid segment")
        self._lines[-1].append(tuple(new - old for new, old in zip(seg, self._last, strict=False)))
        self._last[: len(seg)] = seg

    def mappings(self) -> Mappings:
        """The segments of each line."""
        return self._lines
