"""What counts of a result that devices may hold differently: the first device's, and gradients that all of them get.

Without the check of what varies, a result that is said to be the same along a mesh axis is taken from the first device.
Its gradient goes to every device in equal shares, since each of them made the result: sums over the devices are then
what they are where the result is the same everywhere.

Source: JAX's transpose of `shard_map` with `check_vma=False`. Read next: `_blocks.py`, which puts results together.
"""

from __future__ import annotations

from typing import Any

from ferrax import lax
from ferrax.core import ShapedArray
from ferrax.extend.core import Primitive
from ferrax.interpreters import ad, batching, mlir

__all__ = ["first_along"]

first_of_devices_p = Primitive("first_of_devices")


def first_along(x: Any, axis: int) -> Any:
    """The first entry along an axis of devices, whose gradient is shared among all entries.

    Args:
      x: array with the axis.
      axis: the axis.

    Returns:
      `x` without the axis.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.grad(lambda x: first_along(x, 0))(jnp.arange(4.0)))
    [0.25 0.25 0.25 0.25]
    """
    return first_of_devices_p.bind(x, axis=axis, size=x.shape[axis])


def _first(x: Any, *, axis: int, size: int) -> Any:
    return lax.index_in_dim(x, 0, axis, keepdims=False)


def _shared(ct: Any, *, axis: int, size: int) -> list[Any]:
    shape = (*ct.shape[:axis], size, *ct.shape[axis:])
    return [lax.broadcast_in_dim(ct / size, shape, tuple(d for d in range(len(shape)) if d != axis))]


def _batched(args: tuple[Any, ...], dims: tuple[Any, ...], *, axis: int, size: int) -> tuple[Any, int]:
    (x,), (at,) = args, dims
    x = batching.moveaxis(x, at, 0)
    return first_of_devices_p.bind(x, axis=axis + 1, size=size), 0


first_of_devices_p.def_abstract_eval(
    lambda x, *, axis, size: ShapedArray((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype, weak_type=x.weak_type)
)
first_of_devices_p.def_impl(_first)
ad.deflinear(first_of_devices_p, _shared)
batching.primitive_batchers[first_of_devices_p] = _batched
mlir.register_lowering(first_of_devices_p, mlir.lower_fun(_first, multiple_results=False))
