"""Batching rules of primitives: the tables, and helpers that fill them.

Read next: `ferrax/_primitives.py`, which looks the rules up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrax import lax, numpy as jnp
from ferrax._boundary import expose as _expose
from ferrax._core import shape as _shape
from ferrax._primitives import (
    AxisData as AxisData,
    Primitive,
    axis_primitive_batchers as axis_primitive_batchers,
    fancy_primitive_batchers as fancy_primitive_batchers,
    primitive_batchers as primitive_batchers,
)
from ferrax._vmappable import register_vmappable as register_vmappable, unregister_vmappable as unregister_vmappable

__all__ = [
    "AxisData",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]

#: The batch axis of a value that is not mapped.
not_mapped = None


def moveaxis(x: Any, src: int | None, dst: int) -> Any:
    """A value with its batch axis at another place.

    Args:
      x: array.
      src: its batch axis, or None where it is not mapped.
      dst: the place.

    Returns:
      The array; itself where it is not mapped.

    >>> import ferrax as jax
    >>> jax.interpreters.batching.moveaxis(jax.numpy.ones((2, 3)), 1, 0).shape
    (3, 2)
    """
    return x if src is None or src == dst else jnp.moveaxis(x, src, dst)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: None = None) -> Any:
    """A value repeated along a new axis.

    Args:
      x: array.
      sz: length of the new axis.
      axis: its place.
      mesh_axis: not supported.

    Returns:
      The array.

    Raises:
      NotImplementedError: an axis of a mesh is given.

    >>> import ferrax as jax
    >>> jax.interpreters.batching.broadcast(jax.numpy.ones(2), 3, 0).shape
    (3, 2)
    """
    if mesh_axis is not None:
        raise NotImplementedError("the mesh_axis argument of broadcast is not implemented")
    shape = list(_shape(x))
    place = axis % (len(shape) + 1)
    shape.insert(place, sz)
    return lax.broadcast_in_dim(x, tuple(shape), [i for i in range(len(shape)) if i != place])


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: None = None) -> Any:
    """A value with its batch axis in front, repeated where it has none.

    Args:
      x: array.
      bdim: its batch axis, or None.
      size: number of rows.
      mesh_axis: not supported.

    Returns:
      The array.

    >>> import ferrax as jax
    >>> jax.interpreters.batching.bdim_at_front(jax.numpy.ones(2), None, 3).shape
    (3, 2)
    """
    return broadcast(x, size, 0, mesh_axis) if bdim is None else moveaxis(x, bdim, 0)


def defvectorized(prim: Primitive) -> None:
    """Says that a primitive works element by element on one operand, so that a batch is one more axis.

    Args:
      prim: the primitive.

    >>> import ferrax as jax
    >>> half_p = jax.extend.core.Primitive("half")
    >>> _ = half_p.def_impl(lambda x: x / 2)
    >>> jax.interpreters.batching.defvectorized(half_p)
    >>> print(jax.vmap(half_p.bind)(jax.numpy.arange(3.0)))
    [0.  0.5 1. ]
    """

    def rule(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        return prim.bind(x, **params), d

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """Says that a primitive works element by element on operands of one shape.

    Args:
      prim: the primitive.

    >>> import ferrax as jax
    >>> mean_p = jax.extend.core.Primitive("mean_of_two")
    >>> _ = mean_p.def_impl(lambda x, y: (x + y) / 2)
    >>> jax.interpreters.batching.defbroadcasting(mean_p)
    >>> print(jax.vmap(mean_p.bind, in_axes=(0, None))(jax.numpy.arange(3.0), 2.0))
    [1.  1.5 2. ]
    """

    def rule(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[Any, Any]:
        size = next(_shape(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
        return prim.bind(*[bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)], **params), 0

    primitive_batchers[prim] = rule


def defreducer(prim: Primitive) -> None:
    """Says that a primitive reduces the axes of its operand that its parameter `axes` names.

    Args:
      prim: the primitive.

    >>> import ferrax as jax
    >>> total_p = jax.extend.core.Primitive("total")
    >>> _ = total_p.def_impl(lambda x, axes: jax.numpy.sum(x, axes))
    >>> jax.interpreters.batching.defreducer(total_p)
    >>> print(jax.vmap(lambda x: total_p.bind(x, axes=(0,)))(jax.numpy.ones((2, 3))))
    [3. 3.]
    """

    def rule(args: Sequence[Any], dims: Sequence[int | None], axes: Sequence[int], **params: Any) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        if d is None:
            return prim.bind(x, axes=axes, **params), None
        inner = tuple(a + (a >= d) for a in axes)
        return prim.bind(x, axes=inner, **params), d - sum(a < d for a in inner)

    primitive_batchers[prim] = rule


_expose(globals())
