"""Gather and the scatters, with XLA's dimension numbers."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ferrax._core import asarray, shape
from ferrax._ferrax import Array, lax as _lax
from ferrax.lax._index_errors import gather_error, require_numbers, scatter_error
from ferrax.typing import ArrayLike

__all__ = [
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    "gather",
    "index_take",
    "scatter",
    "scatter_add",
    "scatter_apply",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
]


class GatherDimensionNumbers(NamedTuple):
    """Which axes of operand, indices and result are what in :func:`gather`.

    Args:
      offset_dims: result axes that run through a window.
      collapsed_slice_dims: operand axes of window size 1 that the result leaves out.
      start_index_map: operand axis of each component of the index vector.
      operand_batching_dims: operand axes that run along with indices axes.
      start_indices_batching_dims: those indices axes, in the same order.

    Example:
      >>> from ferrax import lax
      >>> lax.GatherDimensionNumbers((), (0,), (0,)).collapsed_slice_dims
      (0,)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which axes of operand, indices and updates are what in the scatters.

    Args:
      update_window_dims: updates axes that run through a window.
      inserted_window_dims: operand axes of window size 1 that the updates leave out.
      scatter_dims_to_operand_dims: operand axis of each component of the index vector.
      operand_batching_dims: operand axes that run along with indices axes.
      scatter_indices_batching_dims: those indices axes, in the same order.

    Example:
      >>> from ferrax import lax
      >>> lax.ScatterDimensionNumbers((), (0,), (0,)).inserted_window_dims
      (0,)
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class GatherScatterMode(enum.Enum):
    """What happens to windows that lie outside the operand.

    Example:
      >>> from ferrax import lax
      >>> lax.GatherScatterMode.from_any("fill")
      <GatherScatterMode.FILL_OR_DROP: 2>
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode named by a string; None is ``FILL_OR_DROP``.

        Args:
          s: ``"clip"``, ``"fill"``, ``"drop"``, ``"promise_in_bounds"``, a mode, or None.

        Returns:
          The mode.

        Raises:
          ValueError: there is no such mode.

        Example:
          >>> from ferrax import lax
          >>> lax.GatherScatterMode.from_any("clip")
          <GatherScatterMode.CLIP: 1>
        """
        if isinstance(s, GatherScatterMode):
            return s
        if s == "clip":
            return GatherScatterMode.CLIP
        if s is None or s in ("fill", "drop"):
            return GatherScatterMode.FILL_OR_DROP
        if s == "promise_in_bounds":
            return GatherScatterMode.PROMISE_IN_BOUNDS
        if s == "one_hot":
            return GatherScatterMode.ONE_HOT
        raise ValueError(f'Unknown gather mode "{s}"')


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """Windows of an array, one for each index vector along the last axis of the indices.

    Args:
      operand: array to read.
      start_indices: integer array of rank at least 1; its last axis is the index vector.
      dimension_numbers: which axes are what.
      slice_sizes: the window's size on every operand axis.
      unique_indices: promise that windows do not overlap.
      indices_are_sorted: promise that index vectors ascend.
      mode: ``"fill"`` gives ``fill_value`` for windows outside the operand, ``"clip"`` moves them inside,
        ``"promise_in_bounds"`` (the default) promises that there are none, and moves them as well.
      fill_value: scalar; None is NaN for inexact dtypes, the least value for signed and the largest for unsigned ones.

    Returns:
      Array of the operand's dtype.

    Raises:
      TypeError: the dimension numbers do not fit the arrays.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
      >>> lax.gather(jnp.arange(5) * 10, jnp.array([[3], [0]]), numbers, (1,))
      Array([30,  0], dtype=int32)
    """
    if mode is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    try:
        return _lax.gather(
            operand, start_indices, dimension_numbers, slice_sizes, unique_indices, indices_are_sorted, mode, fill_value
        )
    except AttributeError:
        require_numbers(dimension_numbers, GatherDimensionNumbers)
        raise
    except TypeError:
        if wrong := gather_error(dimension_numbers, shape(operand), shape(start_indices), slice_sizes):
            raise TypeError(wrong) from None
        raise


_SCATTER = """{summary}

    Windows outside the operand are dropped; mode ``"clip"`` moves them inside.

    Args:
      operand: array to update.
      scatter_indices: integer array of rank at least 1; its last axis is the index vector.
      updates: array of the operand's dtype: a window for each index vector.
      dimension_numbers: which axes are what.
      indices_are_sorted: promise that index vectors ascend.
      unique_indices: promise that windows do not overlap.
      mode: what happens to windows outside the operand.

    Returns:
      Array of the operand's shape and dtype.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
      >>> lax.{name}(jnp.array([4, 5, 6]), jnp.array([[1]]), jnp.array([2]), numbers)
      {result}
    """


def _scatter(op: str, name: str, summary: str, result: str):
    def scatter(
        operand,
        scatter_indices,
        updates,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ):
        try:
            return _lax.scatter(
                op, operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode
            )
        except AttributeError:
            require_numbers(dimension_numbers, ScatterDimensionNumbers)
            raise
        except TypeError:
            shapes = shape(operand), shape(scatter_indices), shape(updates)
            if wrong := scatter_error(dimension_numbers, *shapes):
                raise TypeError(wrong) from None
            raise

    scatter.__name__ = scatter.__qualname__ = name
    scatter.__doc__ = _SCATTER.format(summary=summary, name=name, result=result)
    return scatter


scatter = _scatter(
    "set",
    "scatter",
    "The operand with windows at dynamic places overwritten; of several writes the last counts.",
    "Array([4, 2, 6], dtype=int32)",
)
scatter_add = _scatter(
    "add", "scatter_add", "The operand with updates added at dynamic places.", "Array([4, 7, 6], dtype=int32)"
)
scatter_sub = _scatter(
    "sub", "scatter_sub", "The operand with updates subtracted at dynamic places.", "Array([4, 3, 6], dtype=int32)"
)
scatter_mul = _scatter(
    "mul", "scatter_mul", "The operand multiplied by updates at dynamic places.", "Array([ 4, 10,  6], dtype=int32)"
)
scatter_min = _scatter(
    "min", "scatter_min", "The minimum of the operand and updates at dynamic places.", "Array([4, 2, 6], dtype=int32)"
)
scatter_max = _scatter(
    "max", "scatter_max", "The maximum of the operand and updates at dynamic places.", "Array([4, 5, 6], dtype=int32)"
)


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The operand with a function applied at dynamic places, once for each time they are named.

    Args:
      operand: array to update.
      scatter_indices: integer array of rank at least 1; its last axis is the index vector.
      func: elementwise function of one array.
      dimension_numbers: which axes are what.
      update_shape: the shape that updates of an ordinary scatter would have.
      indices_are_sorted: promise that index vectors ascend.
      unique_indices: promise that windows do not overlap.
      mode: what happens to windows outside the operand.

    Returns:
      Array of the operand's shape and dtype.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
      >>> lax.scatter_apply(jnp.array([4, 5]), jnp.array([[1], [1]]), lambda x: -x, numbers, update_shape=(2,))
      Array([4, 5], dtype=int32)
    """
    from ferrax import _indexing, lax

    operand = asarray(operand)
    ones = lax.full(tuple(update_shape), 1, "int32")
    counts = scatter_add(
        lax.full(operand.shape, 0, "int32"),
        scatter_indices,
        ones,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )
    return _indexing.apply_counted(operand, counts, func, unique_indices, ones.size)


def index_take(src: ArrayLike, idxs: Any, axes: Sequence[int]) -> Array:
    """Entries of an array at index vectors given one component at a time.

    Args:
      src: array to read.
      idxs: sequence of integer arrays of shape (n,), one for each axis of ``axes``; negative values count from the end.
      axes: the axes that are indexed.

    Returns:
      Array of shape (n,) followed by the axes of ``src`` that are not indexed.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.index_take(jnp.arange(6).reshape(2, 3), (jnp.array([1, 0]), jnp.array([2, 1])), (0, 1))
      Array([5, 1], dtype=int32)
    """
    src, axes = asarray(src), tuple(axes)
    at = dict(zip(axes, idxs, strict=True))
    order = axes + tuple(d for d in range(src.ndim) if d not in at)
    moved = src if order == tuple(range(src.ndim)) else src.transpose(order)
    return moved.at[tuple(at[a] for a in axes)].get(mode="fill")
