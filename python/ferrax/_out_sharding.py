"""`out_sharding` of functions that make or combine arrays: the result, with a sharding over explicit axes of a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax import _ferrax

__all__ = ["no_sharding", "put", "with_out_sharding"]


def no_sharding(name: str, out_sharding: Any) -> None:
    """Raises NotImplementedError when an `out_sharding` argument is given to a function that cannot have one."""
    if out_sharding is not None:
        raise NotImplementedError(f"The 'out_sharding' argument to {name} is not supported.")


def with_out_sharding(make: Callable[[], Any], sharding: Any, function: str) -> Any:
    """What a function makes, with the sharding that was asked for; see `put`.

    Args:
      make: gives the result, whose operations need not tell how it is sharded.
      sharding: a `PartitionSpec` of the mesh in use, or a sharding.
      function: who was asked.
    """
    asked = getattr(sharding, "spec", sharding)
    if not getattr(asked, "unreduced", None):
        return put(_ferrax.making_placed(make, function), sharding, function)
    from ferrax.sharding._due import products, require_contracted

    with products() as contracted:
        made = _ferrax.making_placed(make, function)
    require_contracted(contracted, asked.unreduced)
    return put(made, sharding, function)


def put(x: Any, sharding: Any, function: str) -> Any:
    """A result with the sharding that was asked for.

    Args:
      x: the result.
      sharding: a `PartitionSpec` of the mesh in use, or a sharding; one of a mesh without axes asks for nothing.
      function: who was asked.

    Returns:
      The result, over the devices of the mesh.

    Raises:
      ValueError: no mesh is in use for a bare spec, or it names an axis that is not explicit.
    """
    from ferrax.sharding import NamedSharding, _placement

    sharding = _placement.with_mesh(sharding, function)
    if isinstance(sharding, NamedSharding) and sharding.mesh.empty:
        return x  # the sharding in the type of an array without a mesh
    if function not in ("full", "full_like"):
        _placement.check_explicit(sharding, function)
    if isinstance(sharding, NamedSharding) and sharding.mesh.are_all_axes_explicit and function != "full_like":
        sharding = _placement.whole_spec(sharding, x)
    return _placement.put(x, sharding)
