"""`out_sharding` of functions that make or combine arrays: the result, with a sharding over explicit axes of a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax import _ferrax

__all__ = ["no_sharding", "put", "require_sharding", "with_out_sharding"]

#: Functions whose argument is called `sharding` and may be any.
_ANY = ("lax.full", "lax.full_like")


def no_sharding(name: str, out_sharding: Any) -> None:
    """Raises NotImplementedError when an `out_sharding` argument is given to a function that cannot have one."""
    if out_sharding is not None:
        raise NotImplementedError(f"The 'out_sharding' argument to {name} is not supported.")


def require_sharding(sharding: Any, function: str) -> None:
    """Raises TypeError for what cannot say how a result is sharded."""
    from ferrax.sharding import NamedSharding, PartitionSpec, Sharding

    if function in _ANY:
        if not isinstance(sharding, (Sharding, PartitionSpec)):
            raise TypeError(f"`sharding` argument of {function} must be a sharding. Got {sharding}: {type(sharding)}")
    elif not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(
            f"`out_sharding` argument of {function} only supports instances of `NamedSharding` or `PartitionSpec`. Got "
            f"{sharding} of type: {type(sharding)}"
        )


def with_out_sharding(make: Callable[[], Any], sharding: Any, function: str) -> Any:
    """What a function makes, with the sharding that was asked for; see `put`.

    Args:
      make: gives the result, whose operations need not tell how it is sharded.
      sharding: a `PartitionSpec` of the mesh in use, or a sharding.
      function: who was asked.

    Raises:
      TypeError: `sharding` is neither.
    """
    require_sharding(sharding, function)
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
      TypeError: `sharding` is neither.
      ValueError: no mesh is in use for a bare spec, or it names an axis that is not explicit.
    """
    from ferrax.sharding import NamedSharding, _placement
    from ferrax.sharding._named import fitting

    require_sharding(sharding, function)
    sharding = _placement.with_mesh(sharding, function)
    if function in _ANY:
        sharding = fitting(sharding, len(x.shape))
    if isinstance(sharding, NamedSharding) and sharding.mesh.empty:
        return x  # the sharding in the type of an array without a mesh
    if function not in ("full", "full_like", *_ANY):
        _placement.check_context(sharding, function)
        _placement.check_explicit(sharding, function)
    if (
        isinstance(sharding, NamedSharding)
        and sharding.mesh.are_all_axes_explicit
        and not function.endswith("full_like")
    ):
        sharding = _placement.whole_spec(sharding, x)
    return _placement.put(x, sharding, typed=function not in ("full", "full_like", *_ANY))
