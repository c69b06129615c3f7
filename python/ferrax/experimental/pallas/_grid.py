"""Where in the grid a kernel runs: what `program_id` and `num_programs` answer, while it is traced."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["at", "num_programs", "program_id"]


class _Local(threading.local):
    def __init__(self) -> None:
        #: for each kernel that is being traced: for each axis of the grid, the place and the size
        self.stack: list[tuple[tuple[Any, Any], ...]] = []


_local = _Local()


@contextmanager
def at(places: Sequence[Any], sizes: Sequence[Any]) -> Iterator[None]:
    """Within the block, kernels are at a place in a grid."""
    _local.stack.append(tuple(zip(places, sizes, strict=True)))
    try:
        yield
    finally:
        _local.stack.pop()


def _axis(name: str, axis: int) -> tuple[Any, Any]:
    if not _local.stack:
        raise ValueError(f"{name} is known inside of kernels, which pallas_call runs")
    axes = _local.stack[-1]
    try:
        return axes[axis]
    except IndexError:
        raise ValueError(f"Axis {axis} is out of bounds for grid {tuple(size for _, size in axes)}") from None


def program_id(axis: int) -> Any:
    """The place of the kernel along an axis of the grid.

    Args:
      axis: an axis of the grid.

    Returns:
      A scalar of dtype int32.

    Raises:
      ValueError: the grid has no such axis, or no kernel runs.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental import pallas as pl
    >>> def kernel(out):
    ...     out[...] = jnp.full_like(out, pl.program_id(0))
    >>> rows = pl.BlockSpec((2,), lambda i: i)
    >>> shape = jax.ShapeDtypeStruct((6,), jnp.int32)
    >>> print(pl.pallas_call(kernel, shape, grid=3, out_specs=rows, interpret=True)())
    [0 0 1 1 2 2]
    """
    return _axis("program_id", axis)[0]


def num_programs(axis: int) -> Any:
    """The size of the grid along an axis: an integer, or a scalar where the grid is traced.

    Args:
      axis: an axis of the grid.

    Returns:
      The size.

    Raises:
      ValueError: the grid has no such axis, or no kernel runs.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental import pallas as pl
    >>> def kernel(out):
    ...     out[pl.program_id(0)] = pl.num_programs(0) - pl.program_id(0)
    >>> print(pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.int32), grid=3, interpret=True)())
    [3 2 1]
    """
    return _axis("num_programs", axis)[1]
