"""Sorting and selection of the largest entries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ferrax._ferrax import Array, lax as _lax
from ferrax._shapes import is_symbolic_dim
from ferrax.lax.slicing import slice_in_dim
from ferrax.typing import ArrayLike

__all__ = ["approx_max_k", "approx_min_k", "sort", "sort_key_val", "top_k"]


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Arrays sorted along one axis by the first of them.

    NaN comes last, and -0.0 equals 0.0. Complex numbers compare by real, then by imaginary part.

    Args:
      operand: array, or a sequence of arrays of one shape that are sorted together.
      dimension: the axis to sort along.
      is_stable: equal keys keep their order.
      num_keys: how many operands, from the first, are compared; ties of one are broken by the next.

    Returns:
      Array, or a tuple of arrays when a sequence was given.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.sort((jnp.array([3, 1, 2]), jnp.array([0, 1, 2])))
      (Array([1, 2, 3], dtype=int32), Array([1, 2, 0], dtype=int32))
    """
    if isinstance(operand, list | tuple):
        return tuple(_lax.sort(list(operand), dimension, is_stable, num_keys))
    return _lax.sort([operand], dimension, is_stable, num_keys)[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Keys sorted along one axis, and values moved along with them.

    Args:
      keys: array to sort by.
      values: array of the same shape.
      dimension: the axis to sort along.
      is_stable: equal keys keep their order.

    Returns:
      Sorted keys, and the values in their order.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.sort_key_val(jnp.array([2.0, 1.0]), jnp.array([7, 8]))[1]
      Array([8, 7], dtype=int32)
    """
    k, v = _lax.sort([keys, values], dimension, is_stable, 1)
    return k, v


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """The largest entries along one axis, in descending order, and where they are.

    Of equal entries the one with the lower index comes first.

    Args:
      operand: array of a real dtype.
      k: how many entries.
      axis: the axis to select along.

    Returns:
      A list of the entries and their int32 indices, each with size ``k`` on the axis.

    Raises:
      ValueError: ``k`` is negative or larger than the axis.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.top_k(jnp.array([1.0, 5.0, 3.0]), 2)
      [Array([5., 3.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    if is_symbolic_dim(k):
        every = _lax.top_k(operand, np.shape(operand)[axis], axis)
        return [slice_in_dim(x, 0, k, axis=axis) for x in every]
    return _lax.top_k(operand, k, axis)


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The largest entries along one axis; exact on the CPU.

    Args:
      operand: array of a floating dtype.
      k: how many entries.
      reduction_dimension: the axis to select along.
      recall_target: the share of true results wanted, above 0 and up to 1; met by the exact answer.
      reduction_input_size_override: size of the whole problem when this is a part of it; -1 when it is not.
      aggregate_to_topk: reduce the result to ``k`` entries; otherwise there are as many as a TPU's first step leaves
        for that recall.

    Returns:
      A list of the entries in descending order and their int32 indices.

    Raises:
      ValueError: an argument is out of its range.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.approx_max_k(jnp.array([1.0, 5.0, 3.0]), 1)[1]
      Array([1], dtype=int32)
    """
    k = _results_kept(operand, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk)
    return _lax.approx_k(operand, k, reduction_dimension, True)


def _results_kept(operand: Any, k: int, axis: int, recall: float, whole: int, aggregate: bool) -> int:
    """How many entries stand in the result: `k`, or what the bins of a TPU's partial reduction are.

    Source: Chern et al. (2022), "TPU-KNN: K nearest neighbor search at peak FLOP/s", section 5: with M bins the
    expected recall is about 1 - (k - 1) / M. Bins come in whole tiles, and their width is a power of 2.
    """
    shape = np.shape(operand)
    size = shape[axis] if -len(shape) <= axis < len(shape) else 0  # an axis that is not there is an error of the core
    if k < 1:
        raise ValueError(f"k must be positive, got {k}")
    if not 0 < recall <= 1:
        raise ValueError(f"recall_target must be above 0 and up to 1, got {recall}")
    if 0 <= whole < size:
        raise ValueError(f"reduction_input_size_override {whole} is smaller than the axis, {size}")
    tile = 1024 if len(shape) == 1 else 128
    if aggregate or k > size:
        return k
    if size <= tile or recall == 1:
        return size
    bins = min(max(int((1 - k) / math.log(recall)), tile), size)
    halvings = min(((whole if whole >= 0 else size) // bins).bit_length() - 1, (size // tile - 1).bit_length())
    return -(-size // (tile * 2**halvings)) * tile if halvings else size


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The smallest entries along one axis; exact on the CPU.

    Args: as in `approx_max_k`.

    Returns:
      A list of the entries in ascending order and their int32 indices.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.approx_min_k(jnp.array([4.0, 5.0, 3.0]), 2)[0]
      Array([3., 4.], dtype=float32)
    """
    k = _results_kept(operand, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk)
    return _lax.approx_k(operand, k, reduction_dimension, False)
