"""The bytes of an exported function.

    magic     12 bytes   b"ferrax.expor"
    version    4 bytes   1
    header     8 bytes   length of the header
    digest    32 bytes   SHA-256 of all that follows
    header               JSON in UTF-8
    arrays               each from a multiple of 64 bytes after the header's end, in C order

Integers are little endian and unsigned. Of each array, the header's `arrays` has the shape, the dtype and the offset.
Two kinds of header stand in such files: that of a program has its text in the exact form that ferrax prints and
reads, which refers to the arrays; that of a function has the fields of `Exported`, and its arrays of bytes are files
themselves, the program's and, where it can be differentiated, its pullback's. A reader checks every length before it
uses it, and a program as one that a stranger has written; reading runs no code of the file. Read next:
`_exported.py`.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["pack", "unpack"]

_MAGIC = b"ferrax.expor"
_VERSION = 1
_FRONT = struct.Struct("<12sIQ32s")
_ALIGNMENT = 64


def _aligned(n: int) -> int:
    return -(-n // _ALIGNMENT) * _ALIGNMENT


def pack(header: dict[str, Any], arrays: list[Any]) -> bytearray:
    """The bytes of a file.

    Args:
      header: what JSON can say.
      arrays: NumPy arrays; the header's field `arrays` is made here.
    """
    places, offset = [], 0
    for a in arrays:
        places.append({"shape": list(a.shape), "dtype": a.dtype.name, "offset": offset})
        offset = _aligned(offset + a.nbytes)
    text = json.dumps({**header, "arrays": places}, separators=(",", ":")).encode()
    body = bytearray(text.ljust(_aligned(len(text)), b" "))
    length = len(body)
    for a, place in zip(arrays, places, strict=True):
        body.extend(b"\0" * (length + place["offset"] - len(body)))
        body.extend(np.ascontiguousarray(a).tobytes())
    return bytearray(_FRONT.pack(_MAGIC, _VERSION, length, hashlib.sha256(body).digest())) + body


def unpack(blob: bytes | bytearray) -> tuple[dict[str, Any], list[Any]]:
    """The header and the arrays of a file.

    Raises:
      ValueError: the bytes are no file of a version that is known here, or are damaged.
    """
    data = bytes(blob)
    if len(data) < _FRONT.size or not data.startswith(_MAGIC):
        raise ValueError("the bytes are no function that ferrax exported")
    _, version, length, digest = _FRONT.unpack_from(data)
    if version != _VERSION:
        raise ValueError(
            f"the file has version {version} of the format; this release of ferrax reads version {_VERSION}"
        )
    body = memoryview(data)[_FRONT.size :]
    if length > len(body) or hashlib.sha256(body).digest() != digest:
        raise ValueError("the file is damaged: its parts do not have the length or the digest that it says")
    try:
        header = json.loads(bytes(body[:length]).decode())
        arrays = [_array(body[length:], place) for place in header.pop("arrays")]
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the file is malformed: {type(error).__name__}: {error}") from None
    return header, arrays


def _array(data: memoryview, place: dict[str, Any]) -> Any:
    shape, offset, name = place["shape"], place["offset"], place["dtype"]
    sizes = [offset, *shape]
    if not all(type(n) is int and 0 <= n < 2**48 for n in sizes) or len(shape) > 64:
        raise ValueError(f"the file is malformed: an array of shape {shape} at {offset}")
    dtype = np.dtype(getattr(ml_dtypes, name)) if _is_narrow(name) else np.dtype(str(name))
    if dtype.hasobject or (dtype.kind in "SUVmM" and not _is_narrow(name)):
        raise ValueError(f"the file is malformed: an array of dtype {name!r}")
    count = math.prod(shape)
    if offset + count * dtype.itemsize > len(data):
        raise ValueError("the file is malformed: an array reaches beyond its end")
    # a copy, since programs keep their constants aligned
    return np.frombuffer(data, dtype, count, offset).reshape(shape).copy()


def _is_narrow(name: Any) -> bool:
    return isinstance(name, str) and name in _NARROW


_NARROW = frozenset(n for n, v in vars(ml_dtypes).items() if isinstance(v, type) and issubclass(v, np.generic))
