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

__all__ = ["live_memory_profile", "memory_profile"]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, values)))


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
        out += _bytes(1, _number(1, strings(kind)) + _number(2, strings(unit)))
    for i, ((what, device), counts) in enumerate(sorted(groups.items()), start=1):
        labels = [
            _bytes(3, _number(1, strings(key)) + _number(2, strings(text)))
            for key, text in (("kind", "buffer"), ("device", device))
        ]
        out += _bytes(2, _packed(1, [i]) + _packed(2, counts) + b"".join(labels))
        tail += _bytes(4, _number(1, i) + _bytes(4, _number(1, i)))
        tail += _bytes(5, _number(1, i) + _number(2, strings(what)) + _number(3, strings(what)))
    out += tail
    default = _number(14, strings("space"))
    for text in strings.places:
        out += _bytes(6, text.encode())
    return gzip.compress(bytes(out + default))


def live_memory_profile(backend: str | None) -> bytes:
    """The profile of the arrays that are alive on a platform's devices."""
    return memory_profile(_devices.live_arrays(backend))
