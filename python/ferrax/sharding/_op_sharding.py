"""Shardings as HLO's messages: a protocol buffer that says into which tiles an array is cut.

Source: `OpSharding` of OpenXLA's `xla_data.proto`. Read next: `_hlo.py` for what HLO says in words.
"""

from __future__ import annotations

import copy
import enum
from collections.abc import Iterable
from typing import Any, ClassVar

from ferrax._memory_profile import bytes_field, number_field
from ferrax._profile_data import message_fields, packed_numbers
from ferrax.sharding._hlo import HloSharding, replicated

__all__ = ["OpSharding", "hlo_sharding_of", "message_of"]


class _Type(enum.IntEnum):
    """Kinds of shardings."""

    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    OTHER = 3
    MANUAL = 4
    UNKNOWN = 5
    UNREDUCED = 6


class _ShardGroupType(enum.IntEnum):
    """How arrays that are sharded together are."""

    AS = 0
    LIKE = 1


#: The fields that are lists of numbers, and those that are one number.
_LISTS = {
    "tile_assignment_dimensions": 3,
    "tile_assignment_devices": 4,
    "last_tile_dims": 8,
    "iota_reshape_dims": 9,
    "iota_transpose_perm": 10,
}
_NUMBERS: dict[str, tuple[int, Any]] = {
    "type": (1, _Type),
    "replicate_on_last_tile_dim": (6, bool),
    "is_shard_group": (11, bool),
    "shard_group_id": (12, int),
    "shard_group_type": (13, _ShardGroupType),
}


class OpSharding:
    """A message that says how an array is spread over devices; its fields can be set.

    Attributes:
      type: the kind, of `OpSharding.Type`.
      tile_assignment_dimensions: number of tiles along each axis.
      tile_assignment_devices: the device of each tile.
      last_tile_dims: kinds of the last numbers of tiles that count groups of devices.
      iota_reshape_dims: sizes of the iota of devices, where no device is listed.
      iota_transpose_perm: which of these axes is which after the iota is transposed.
      replicate_on_last_tile_dim: whether the last number of tiles counts copies.
      is_shard_group: whether arrays are sharded together.
      shard_group_id: which ones.
      shard_group_type: how.
      tuple_shardings: the messages of a tuple's parts.

    >>> from ferrax.sharding._op_sharding import OpSharding
    >>> message = OpSharding()
    >>> message.type, message.tile_assignment_dimensions = OpSharding.Type.OTHER, [2]
    >>> message.SerializeToString()
    b'\\x08\\x03\\x1a\\x01\\x02'
    """

    Type: ClassVar[Any] = _Type
    ShardGroupType: ClassVar[Any] = _ShardGroupType

    def __init__(self) -> None:
        for name, (_, kind) in _NUMBERS.items():
            setattr(self, name, kind(0))
        for name in _LISTS:
            setattr(self, name, [])
        self.tuple_shardings: list[OpSharding] = []

    def SerializeToString(self) -> bytes:
        """The message's bytes; fields without a value are left out."""
        parts: list[tuple[int, Any]] = [(field, int(getattr(self, name))) for name, (field, _) in _NUMBERS.items()]
        parts += [(field, _packed(getattr(self, name))) for name, field in _LISTS.items()]
        written = {f: number_field(f, v) if isinstance(v, int) else bytes_field(f, v) for f, v in parts if v}
        written[5] = b"".join(bytes_field(5, part.SerializeToString()) for part in self.tuple_shardings)
        return b"".join(written[f] for f in sorted(written))

    def ParseFromString(self, serialized: bytes) -> None:
        """Takes the fields that bytes have.

        Raises:
          ValueError: the bytes are no message.
        """
        found = message_fields(serialized)
        for name, (field, kind) in _NUMBERS.items():
            if field in found:
                setattr(self, name, kind(found[field][-1]))
        for name, field in _LISTS.items():
            if field in found:
                setattr(self, name, packed_numbers(found[field]))
        for part in found.get(5, ()):
            inner = OpSharding()
            inner.ParseFromString(part)
            self.tuple_shardings.append(inner)

    def clone(self) -> OpSharding:
        """A copy."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        said = [(name, getattr(self, name)) for name in (*_NUMBERS, *_LISTS, "tuple_shardings")]
        return f"OpSharding({', '.join(f'{name}={value!r}' for name, value in said if value)})"


def _packed(numbers: Iterable[Any]) -> bytes:
    return b"".join(number_field(0, int(n))[1:] for n in numbers)


def hlo_sharding_of(message: Any) -> HloSharding:
    """What HLO says of a sharding, from its message.

    Args:
      message: an `OpSharding`.

    Raises:
      NotImplementedError: it is of a kind that shardings of arrays here are not: one device's, manual, unreduced.
      ValueError: its devices do not fit its tiles.

    >>> from ferrax.sharding._op_sharding import OpSharding
    >>> hlo_sharding_of(OpSharding())
    {replicated}
    """
    if message.type == _Type.REPLICATED:
        return replicated()
    groups = list(message.last_tile_dims)
    if message.type != _Type.OTHER or groups not in ([], [_Type.REPLICATED]):
        kinds = ", ".join(_Type(kind).name for kind in (message.type, *groups))
        raise NotImplementedError(f"HloSharding.from_proto: shardings of kind {kinds} are not there")
    last = bool(message.replicate_on_last_tile_dim or groups)
    if last and set(message.tile_assignment_dimensions[:-1]) <= {1}:
        return replicated()
    return HloSharding(
        message.tile_assignment_dimensions,
        message.iota_reshape_dims,
        message.iota_transpose_perm,
        last,
        message.tile_assignment_devices or None,
    )


def message_of(sharding: HloSharding) -> OpSharding:
    """The message of what HLO says of a sharding.

    Args:
      sharding: what HLO says.

    >>> message_of(replicated()).SerializeToString()
    b''
    """
    message: Any = OpSharding()
    if sharding.is_replicated():
        return message
    message.type = _Type.OTHER
    message.tile_assignment_dimensions = sharding.tile_assignment_dimensions()
    message.replicate_on_last_tile_dim = sharding.replicate_on_last_tile_dim()
    if sharding.is_tile_assignment_iota():
        message.iota_reshape_dims, message.iota_transpose_perm = map(list, sharding.iota())
    else:
        message.tile_assignment_devices = sharding.tile_assignment_devices()
    return message
