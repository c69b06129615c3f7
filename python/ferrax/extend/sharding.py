"""Shardings in HLO's words, and the bytes of their messages, for libraries that keep them."""

from __future__ import annotations

from typing import Any

from ferrax._boundary import expose as _expose
from ferrax.sharding._gspmd import GSPMDSharding as GSPMDSharding
from ferrax.sharding._hlo import HloSharding as _HloSharding
from ferrax.sharding._op_sharding import OpSharding as _OpSharding

__all__ = [
    "GSPMDSharding",
    "get_hlo_sharding_from_serialized_proto",
    "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
]


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """The message that bytes hold.

    Args:
      sharding: bytes of an `OpSharding`.

    Returns:
      The message, an object with its fields.

    Raises:
      ValueError: the bytes are no message.

    >>> import ferrax as jax
    >>> jax.extend.sharding.get_op_sharding_from_serialized_proto(b"").type
    <_Type.REPLICATED: 0>
    """
    message = _OpSharding()
    message.ParseFromString(sharding)
    return message


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> _HloSharding:
    """What HLO says of a sharding, from the bytes of its message.

    Args:
      sharding: bytes of an `OpSharding`.

    Returns:
      What HLO says, as `GSPMDSharding` takes it.

    Raises:
      NotImplementedError: it is of a kind that shardings of arrays here are not.
      ValueError: the bytes are no message of tiles.

    >>> import ferrax as jax
    >>> jax.extend.sharding.get_hlo_sharding_from_serialized_proto(b"\\x08\\x03\\x1a\\x01\\x02J\\x01\\x02R\\x01\\x00")
    {devices=[2]<=[2]}
    """
    return _HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: _HloSharding) -> bytes:
    """The bytes of the message of a sharding.

    Args:
      sharding: what HLO says of it.

    Returns:
      Bytes of an `OpSharding`.

    >>> import ferrax as jax
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> named = jax.NamedSharding(mesh, jax.P())
    >>> jax.extend.sharding.get_serialized_proto_from_hlo_sharding(named._to_xla_hlo_sharding(1))
    b''
    """
    return bytes(sharding.to_proto().SerializeToString())


_expose(globals())
