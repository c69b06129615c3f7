"""Cutting arrays into blocks with a leading axis for each mesh axis, and putting blocks together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax.dtypes import issubdtype
from ferrax.sharding._spec import PartitionSpec, entry_names

__all__ = ["cut", "first", "joined", "terms"]


def cut(x: Any, spec: PartitionSpec, sizes: dict[Any, int]) -> Any:
    """An array as blocks: leading axes for the mesh axes that the spec names, in the mesh's order.

    Args:
      x: the array.
      spec: which mesh axes cut each of its axes.
      sizes: size of each mesh axis, in the mesh's order.

    Returns:
      An array of shape `(*sizes of the named mesh axes, *shape of a block)`.
    """
    from ferrax import lax

    shape: list[int] = []
    where: dict[Any, int] = {}
    block: list[int] = []
    for axis, size in enumerate(x.shape):
        names = entry_names(spec[axis]) if axis < len(spec) else ()
        for name in names:
            where[name] = len(shape)
            shape.append(sizes[name])
        block.append(len(shape))
        shape.append(size // math.prod(sizes[n] for n in names))
    if not where:
        return x
    order = [where[n] for n in sizes if n in where] + block
    x = lax.reshape(x, tuple(shape))
    return x if order == list(range(len(order))) else lax.transpose(x, tuple(order))


def terms(x: Any, count: int, at: int) -> Any:
    """A sum that is due over a mesh axis as its terms, along a new axis: the first device has all of it.

    Args:
      x: the sum.
      count: size of the mesh axis.
      at: where the new axis is.
    """
    from ferrax import lax

    x = lax.expand_dims(x, (at,))
    return lax.pad(x, lax.full((), 0, x.dtype), [(0, count - 1 if i == at else 0, 0) for i in range(x.ndim)])


def first(x: Any, at: int) -> Any:
    """What the first device along an axis holds; gradients are those of all devices.

    Args:
      x: array with an axis for the devices.
      at: the axis.
    """
    from ferrax import lax

    if not issubdtype(x.dtype, np.inexact):
        return lax.index_in_dim(x, 0, at, keepdims=False)
    from ferrax.sharding._first import first_along

    return first_along(x, at)


def joined(x: Any, spec: PartitionSpec, sizes: dict[Any, int], stacked: Sequence[Any]) -> Any:
    """The array that blocks make up.

    Args:
      x: blocks, with leading axes for the mesh axes in `stacked`, in the mesh's order.
      spec: which mesh axes lie along each axis of the result.
      sizes: size of each mesh axis, in the mesh's order.
      stacked: mesh axes that have a leading axis. Of those that the spec does not name the first block counts,
        or the sum, if it is due over them; along those that it names and that are not stacked, all blocks are the
        same.

    Returns:
      The whole array.
    """
    from ferrax import lax

    named = [n for entry in spec for n in entry_names(entry)]
    for at in reversed(range(len(stacked))):
        if stacked[at] in spec.unreduced:
            x = x.sum(at)
        elif stacked[at] not in named:
            x = first(x, at)
    have = [n for n in stacked if n in named]
    if not named:
        return x
    block = x.shape[len(have) :]
    want = [n for n in sizes if n in named]
    if have != want:
        leading = tuple(sizes[n] for n in want)
        places = [want.index(n) for n in have] + list(range(len(want), len(want) + len(block)))
        x = lax.broadcast_in_dim(x, (*leading, *block), tuple(places))
    order: list[int] = []
    shape: list[int] = []
    for axis, size in enumerate(block):
        names = entry_names(spec[axis]) if axis < len(spec) else ()
        order += [want.index(n) for n in names]
        order.append(len(want) + axis)
        shape.append(size * math.prod(sizes[n] for n in names))
    if order != list(range(len(order))):
        x = lax.transpose(x, tuple(order))
    return lax.reshape(x, tuple(shape))
