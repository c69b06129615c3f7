"""Traces in the form of XLA's profiler (`XSpace`): planes of lines of events, a protocol buffer.

Source: `xplane.proto` of OpenXLA's profiler. Read next: `profiler.py`, which notes the events.
"""

from __future__ import annotations

import collections
import os
import pathlib
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from ferrax._memory_profile import bytes_field, number_field

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileLine",
    "ProfilePlane",
    "message_fields",
    "packed_numbers",
    "written",
]

_SIGNED = 1 << 63


# ---- writing -------------------------------------------------------------------------------------------------------


class _Names:
    """The names of a plane, numbered from 1 as they are met."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.places.setdefault(name, len(self.places) + 1)

    def entries(self, field: int) -> bytes:
        """The map from numbers to names."""
        entry = lambda i, name: number_field(1, i) + bytes_field(2, number_field(1, i) + bytes_field(2, name.encode()))
        return b"".join(bytes_field(field, entry(i, name)) for name, i in self.places.items())


def _stats(field: int, values: dict[str, Any], names: _Names) -> bytes:
    out = b""
    for key, value in values.items():
        if isinstance(value, int) and -_SIGNED <= value < _SIGNED:
            held = number_field(4, value % (1 << 64))
        elif isinstance(value, float):
            held = b"\x11" + struct.pack("<d", value)
        else:
            held = bytes_field(5, str(value).encode())
        out += bytes_field(field, number_field(1, names(key)) + held)
    return out


def _plane(name: str, stats: dict[str, Any], lines: Iterable[tuple[str, list[dict[str, Any]]]] = ()) -> bytes:
    events, keys, out = _Names(), _Names(), bytes_field(2, name.encode())
    for number, (line, noted) in enumerate(lines, start=1):
        body = number_field(1, number) + bytes_field(2, line.encode())
        for e in noted:
            offset, length = round(e["ts"] * 1e6), round(e.get("dur", 0) * 1e6)
            event = number_field(1, events(e["name"])) + number_field(2, offset) + number_field(3, length)
            body += bytes_field(4, event + _stats(4, e.get("args", {}), keys))
        out += bytes_field(3, body)
    out += _stats(6, stats, keys)
    return bytes_field(1, out + events.entries(4) + keys.entries(5))


def written(events: list[dict[str, Any]], about: dict[str, Any], span: tuple[int, int]) -> bytes:
    """The protocol buffer of a trace.

    Args:
      events: events of the Chrome trace format; those of one thread are a line.
      about: what is said of the libraries.
      span: when the trace began and ended, in nanoseconds since 1970.

    >>> data = written([{"name": "f", "ts": 2.0, "dur": 1.0, "tid": 7, "args": {"n": 3}}], {"version": "1"}, (5, 9))
    >>> plane = ProfileData.from_serialized_xspace(data).find_plane_with_name("/host:CPU")
    >>> [(e.name, e.start_ns, e.duration_ns, dict(e.stats)) for line in plane.lines for e in line.events]
    [('f', 2000.0, 1000.0, {'n': 3})]
    """
    threads: dict[int, list[dict[str, Any]]] = collections.defaultdict(list)
    for event in events:
        threads[event["tid"]].append(event)
    task = {"profile_start_time": span[0], "profile_stop_time": span[1]}
    lines = ((f"python {thread}", noted) for thread, noted in threads.items())
    return (
        _plane("/host:metadata", about)
        + _plane("/host:CPU", {"process_id": os.getpid()}, lines)
        + _plane("Task Environment", task)
    )


# ---- reading -------------------------------------------------------------------------------------------------------


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 0x80:
            return value, at
    raise ValueError("the bytes are no profile or other message: a number does not end")


def message_fields(data: bytes) -> dict[int, list[Any]]:
    """The values of each field of a protocol buffer, in order."""
    out: dict[int, list[Any]] = collections.defaultdict(list)
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: Any
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}.get(kind), at)
            if size is None or at + size > len(data):
                raise ValueError(f"the bytes are no profile or other message: field {key >> 3} has no kind, or no end")
            value, at = data[at : at + size], at + size
        out[key >> 3].append(value)
    return out


def packed_numbers(values: Iterable[Any]) -> list[int]:
    """The numbers of a field that repeats: each by itself, or bytes that hold several."""
    out: list[int] = []
    for value in values:
        at = 0
        while isinstance(value, bytes) and at < len(value):
            number, at = _varint(value, at)
            out.append(number)
        if isinstance(value, int):
            out.append(value)
    return out


def _one(fields: dict[int, list[Any]], number: int, default: Any) -> Any:
    return fields[number][-1] if number in fields else default


def _text(fields: dict[int, list[Any]], number: int) -> str:
    return bytes(_one(fields, number, b"")).decode(errors="replace")


def _signed(value: int) -> int:
    return value - 2 * _SIGNED if value >= _SIGNED else value


class _Tables:
    """The names of a plane's events and of what is said of them."""

    def __init__(self, plane: dict[int, list[Any]]) -> None:
        self.events, self.stats = ({}, {}) if not plane else map(self._names, (plane[4], plane[5]))

    @staticmethod
    def _names(entries: Iterable[bytes]) -> dict[int, str]:
        pairs = ((e, message_fields(_one(e, 2, b""))) for e in map(message_fields, entries))
        return {_one(e, 1, 0): _text(named, 4) or _text(named, 2) for e, named in pairs}

    def said(self, stats: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
        """What is said, with its names."""
        for stat in map(message_fields, stats):
            (number,) = [n for n in range(2, 8) if n in stat] or (0,)
            value = _one(stat, number, None)
            if number == 2:
                (value,) = struct.unpack("<d", value)
            elif number == 4:
                value = _signed(value)
            elif number == 5:
                value = value.decode(errors="replace")
            elif number == 7:
                value = self.stats.get(value, "")
            yield self.stats.get(_one(stat, 1, 0), ""), value


class ProfileEvent:
    """An event of a line: its name, its time in nanoseconds, and what is said of it.

    >>> from ferrax._profile_data import ProfileData, written
    >>> data = written([{"name": "f", "ts": 2.0, "dur": 1.0, "tid": 7}], {}, (0, 1))
    >>> (line,) = ProfileData(data).find_plane_with_name("/host:CPU").lines
    >>> (event,) = line.events
    >>> event.name, event.start_ns, event.end_ns
    ('f', 2000.0, 3000.0)
    """

    def __init__(self, data: bytes, line_ns: int, tables: _Tables):
        self._fields, self._tables = message_fields(data), tables
        self._line_ns = line_ns

    @property
    def name(self) -> str:
        """The name of the event."""
        return self._tables.events.get(_one(self._fields, 1, 0), "")

    @property
    def start_ns(self) -> float:
        """When it began."""
        return self._line_ns + _signed(_one(self._fields, 2, 0)) / 1000

    @property
    def duration_ns(self) -> float:
        """How long it took."""
        return _signed(_one(self._fields, 3, 0)) / 1000

    @property
    def end_ns(self) -> float:
        """When it ended."""
        return self.start_ns + self.duration_ns

    @property
    def stats(self) -> Iterator[tuple[str | None, Any]]:
        """What is said of it: names and values."""
        return self._tables.said(self._fields[4])


class ProfileLine:
    """A line of a plane: the events of one thread or stream."""

    def __init__(self, data: bytes, tables: _Tables):
        self._fields, self._tables = message_fields(data), tables

    @property
    def name(self) -> str:
        """The name of the line."""
        return _text(self._fields, 11) or _text(self._fields, 2)

    @property
    def events(self) -> Iterator[ProfileEvent]:
        """Its events."""
        begin = _signed(_one(self._fields, 3, 0))
        return (ProfileEvent(e, begin, self._tables) for e in self._fields[4])


class ProfilePlane:
    """A plane of a profile: a device, or the host.

    >>> from ferrax._profile_data import ProfileData, written
    >>> [plane.name for plane in ProfileData(written([], {}, (0, 1))).planes]
    ['/host:metadata', '/host:CPU', 'Task Environment']
    """

    def __init__(self, data: bytes):
        self._fields = message_fields(data)
        self._tables = _Tables(self._fields)

    @property
    def name(self) -> str:
        """The name of the plane."""
        return _text(self._fields, 2)

    @property
    def lines(self) -> Iterator[ProfileLine]:
        """Its lines."""
        return (ProfileLine(line, self._tables) for line in self._fields[3])

    @property
    def stats(self) -> Iterator[tuple[str | None, Any]]:
        """What is said of it: names and values."""
        return self._tables.said(self._fields[6])


class ProfileData:
    """A trace that was written: planes of lines of events.

    >>> import ferrax as jax, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with jax.profiler.trace(folder), jax.profiler.TraceAnnotation("here"):
    ...         pass
    ...     (path,) = pathlib.Path(folder).rglob("*.xplane.pb")
    ...     data = jax.profiler.ProfileData.from_file(path)
    >>> host = data.find_plane_with_name("/host:CPU")
    >>> "here" in [event.name for line in host.lines for event in line.events]
    True
    """

    def __init__(self, serialized_xspace: bytes):
        self._planes = [ProfilePlane(p) for p in message_fields(serialized_xspace)[1]]

    @classmethod
    def from_file(cls, proto_file_path: os.PathLike[str] | str) -> ProfileData:
        """Reads a file `*.xplane.pb`.

        Raises:
          ValueError: the file is no such.
        """
        return cls(pathlib.Path(proto_file_path).read_bytes())

    @classmethod
    def from_serialized_xspace(cls, serialized_xspace: bytes) -> ProfileData:
        """Reads bytes.

        Raises:
          ValueError: the bytes are no profile.
        """
        return cls(bytes(serialized_xspace))

    @staticmethod
    def from_text_proto(text: str) -> ProfileData:
        """Not there: raises `NotImplementedError`."""
        raise NotImplementedError("ProfileData.from_text_proto is not implemented: profiles are read from bytes")

    @staticmethod
    def text_proto_to_serialized_xspace(text: str) -> bytes:
        """Not there: raises `NotImplementedError`."""
        raise NotImplementedError(
            "ProfileData.text_proto_to_serialized_xspace is not implemented: profiles are read from bytes"
        )

    @staticmethod
    def from_raw_cpp_ptr(capsule: Any) -> ProfileData:
        """Not there: raises `NotImplementedError`."""
        raise NotImplementedError("ProfileData.from_raw_cpp_ptr is not implemented: profiles are read from bytes")

    @property
    def planes(self) -> Iterator[ProfilePlane]:
        """The planes."""
        return iter(self._planes)

    def find_plane_with_name(self, name: str) -> ProfilePlane | None:
        """The plane of a name; None where there is none."""
        return next((p for p in self._planes if p.name == name), None)
