"""The live arrays of the process as a profile in pprof's format, a protocol buffer that is written here by hand.

Source: `profile.proto` of pprof. Arrays of one shape, dtype and device are one sample, whose single frame names them:
where arrays were made is not known.
"""

from __future__ import annotations

import collections
import gzip
from collections.abc import Iterable
from typing import Any

from ferrax import _devices

__all__ = ["bytes_field", "live_memory_profile", "memory_profile", "number_field"]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number_field(field: int, value: int) -> bytes:
    """A field of a protocol buffer that is a number."""
    return _varint(field << 3) + _varint(value)


def bytes_field(field: int, value: bytes) -> bytes:
    """A field of a protocol buffer that is bytes, a text or a message."""
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _packed(field: int, values: Iterable[int]) -> bytes:
    return bytes_field(field, b"".join(map(_varint, values)))


class _Strings:
    """The table of strings, the first of which is empty."""

    def __init__(self) -> None:
        self.places = {"": 0}

    def __call__(self, text: str) -> int:
        return self.places.setdefault(text, len(self.places))


def memory_profile(arrays: Iterable[Any]) -> bytes:
    """A profile with a number of arrays and their bytes for each shape, dtype and device.

    Args:
      arrays: arrays that are not deleted.

    Returns:
      The compressed protocol buffer.

    >>> import ferrax.numpy as jnp
    >>> gzip.decompress(memory_profile([jnp.ones(3)])).count(b"float32[3]")
    1
    """
    groups: dict[tuple[str, str], list[int]] = collections.defaultdict(lambda: [0, 0])
    for x in arrays:
        count = groups[f"{x.dtype}[{','.join(map(str, x.shape))}]", str(x.device)]
        count[0] += 1
        count[1] += x.nbytes
    strings, out, tail = _Strings(), bytearray(), bytearray()
    for kind, unit in (("allocations", "count"), ("space", "bytes")):
        out += bytes_field(1, number_field(1, strings(kind)) + number_field(2, strings(unit)))
    for i, ((what, device), counts) in enumerate(sorted(groups.items()), start=1):
        labels = [
            bytes_field(3, number_field(1, strings(key)) + number_field(2, strings(text)))
            for key, text in (("kind", "buffer"), ("device", device))
        ]
        out += bytes_field(2, _packed(1, [i]) + _packed(2, counts) + b"".join(labels))
        tail += bytes_field(4, number_field(1, i) + bytes_field(4, number_field(1, i)))
        tail += bytes_field(5, number_field(1, i) + number_field(2, strings(what)) + number_field(3, strings(what)))
    out += tail
    default = number_field(14, strings("space"))
    for text in strings.places:
        out += bytes_field(6, text.encode())
    return gzip.compress(bytes(out + default))


def live_memory_profile(backend: str | None) -> bytes:
    """The profile of the arrays that are alive on a platform's devices."""
    return memory_profile(_devices.live_arrays(backend))
