"""The old place of `shard_map`; `ferrax.shard_map` is the new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax._boundary import expose as _expose
from ferrax.sharding._mesh import AbstractMesh, Mesh
from ferrax.sharding._shard_map import shard_map as _shard_map

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: Any = frozenset(),
) -> Callable[..., Any]:
    """Maps a function over the parts of arrays on a mesh; see `ferrax.shard_map`.

    Args:
      f: function of arrays.
      mesh: the mesh.
      in_specs: how each argument is cut.
      out_specs: how results are put together.
      check_rep: whether to check that what is taken for the same everywhere is so.
      auto: axes of the mesh that are not mapped over.

    Returns:
      A function of whole arrays.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental.shard_map import shard_map
    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> print(shard_map(lambda x: 2 * x, mesh, jax.P("x"), jax.P("x"))(jnp.arange(3)))
    [0 2 4]
    """
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(
            f"shard_map requires a mesh for its second argument, got {mesh!r} of type {type(mesh).__name__}"
        )
    names = frozenset(mesh.axis_names) - frozenset(auto)
    mapped: Callable[..., Any] = _shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep, axis_names=names
    )
    return mapped


_expose(globals())
