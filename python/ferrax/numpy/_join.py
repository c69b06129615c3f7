"""Joining, splitting and repeating arrays.

Read `_shape.py` first and `_edit.py` next.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, lax
from ferrax._core import asarray, concrete_or_error, is_tracer, promote_dtypes
from ferrax._rust import with_shortcut
from ferrax._shapes import is_symbolic_dim, static_size
from ferrax.numpy import _shape
from ferrax.numpy._args import (  # fmt: skip
    Array,
    ArrayLike,
    DTypeLike,
    cast,
    cast_to,
    entries,
    is_arraylike,
    no_out,
    normalize_axis,
    require,
    static_int,
    to_array,
    with_out_sharding,
)
from ferrax.numpy._dtype_functions import default_int

__all__ = [
    "array_split", "block", "column_stack", "concat", "concatenate", "dsplit", "dstack", "hsplit", "hstack", "repeat",
    "split", "stack", "tile", "unstack", "vsplit", "vstack",
]  # fmt: skip


def _operands(name: str, arrays: Any, dtype: DTypeLike = None) -> list[Array]:
    """The arrays of a sequence (or the rows of one array), of one dtype."""
    if is_arraylike(arrays):
        x = asarray(arrays)
        if x.ndim == 0:
            raise TypeError(f"{name} needs a sequence of arrays or an array of at least one dimension, got {arrays}.")
        arrays = _shape_unstack(x, 0)
    arrays = list(arrays)
    if not arrays:
        raise ValueError(f"Need at least one array to {name}.")
    require(name, *arrays)
    if dtype is not None:
        return [cast_to(x, dtype) for x in arrays]
    return list(promote_dtypes(*arrays))


@with_shortcut("concatenate")
def concatenate(arrays: Any, axis: int | None = 0, dtype: DTypeLike = None) -> Array:
    """Arrays joined along an axis that they have.

    Args:
      arrays: sequence of arrays with equal shapes but for `axis`, or one array whose rows are joined.
      axis: axis to join along; None to join the flattened arrays.
      dtype: dtype of the result; by default the common dtype.

    Returns:
      Array.

    Raises:
      ValueError: for no arrays, scalars, or an axis out of bounds.
      TypeError: for shapes that do not fit.

    >>> import ferrax.numpy as jnp
    >>> jnp.concatenate([jnp.arange(2), jnp.arange(3)])
    Array([0, 1, 0, 1, 2], dtype=int32)
    """
    parts = _operands("concatenate", arrays, dtype)
    if axis is None:
        parts, axis = [lax.reshape(x, (x.size,)) for x in parts], 0
    if parts[0].ndim == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = normalize_axis(axis, parts[0].ndim)
    if len(parts) == 1:
        return parts[0]
    return lax.concatenate(parts, axis)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """Arrays joined along an axis that they have: `concatenate` by the array API standard's name.

    Args:
      arrays: sequence of arrays with equal shapes but for `axis`.
      axis: axis to join along; None to join the flattened arrays.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.concat([jnp.arange(2), jnp.arange(3)])
    Array([0, 1, 0, 1, 2], dtype=int32)
    """
    return concatenate(arrays, axis)


@with_shortcut("stack")
def stack(arrays: Any, axis: int = 0, out: None = None, dtype: DTypeLike = None) -> Array:
    """Arrays joined along a new axis.

    Args:
      arrays: sequence of arrays of one shape.
      axis: where the new axis stands in the result.
      out: not supported.
      dtype: dtype of the result; by default the common dtype.

    Returns:
      Array with one axis more.

    Raises:
      ValueError: when the shapes differ.

    >>> import ferrax.numpy as jnp
    >>> jnp.stack([jnp.arange(2), jnp.arange(2)], axis=1)
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    no_out("jnp.stack", out)
    if is_arraylike(arrays):
        x = asarray(arrays)
        x = x if dtype is None else cast_to(x, dtype)
        return _shape.moveaxis(x, 0, axis)
    parts = _operands("stack", arrays, dtype)
    first = parts[0].shape
    for x in parts:
        if x.shape != first:
            raise ValueError(f"All input arrays must have the same shape. Got {first}, {x.shape} in stack.")
    axis = normalize_axis(axis, len(first) + 1)
    return lax.stack(parts, axis)


def _each_atleast(widen: Any, tup: Any) -> Any:
    if is_arraylike(tup):
        x = asarray(tup)
        if x.ndim == 0:
            raise TypeError("stacking needs a sequence of arrays or an array of at least one dimension.")
        return [widen(row) for row in _shape_unstack(x, 0)]
    return [widen(x) for x in tup]


def vstack(tup: Any, dtype: DTypeLike = None) -> Array:
    """Arrays stacked as rows.

    Args:
      tup: sequence of arrays; vectors count as rows.
      dtype: dtype of the result; by default the common dtype.

    Returns:
      Array with at least two axes.

    >>> import ferrax.numpy as jnp
    >>> jnp.vstack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    return concatenate(_each_atleast(_shape.atleast_2d, tup), 0, dtype)


def hstack(tup: Any, dtype: DTypeLike = None) -> Array:
    """Arrays stacked side by side: vectors along their only axis, others along the second.

    Args:
      tup: sequence of arrays.
      dtype: dtype of the result; by default the common dtype.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.hstack([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    parts = _each_atleast(_shape.atleast_1d, tup)
    if not parts:
        raise ValueError("Need at least one array to concatenate.")
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype)


def dstack(tup: Any, dtype: DTypeLike = None) -> Array:
    """Arrays stacked along the third axis.

    Args: as in `hstack`.

    Returns:
      Array with at least three axes.

    >>> import ferrax.numpy as jnp
    >>> jnp.dstack([jnp.arange(2), jnp.arange(2)]).shape
    (1, 2, 2)
    """
    return concatenate(_each_atleast(_shape.atleast_3d, tup), 2, dtype)


def column_stack(tup: Any) -> Array:
    """Vectors stacked as the columns of a matrix.

    Args:
      tup: sequence of vectors or matrices.

    Returns:
      Matrix.

    >>> import ferrax.numpy as jnp
    >>> jnp.column_stack([jnp.arange(2), jnp.array([5, 6])])
    Array([[0, 5],
           [1, 6]], dtype=int32)
    """
    parts = _each_atleast(lambda x: to_array("column_stack", x), tup)
    return concatenate([_shape.atleast_2d(x).T if x.ndim < 2 else x for x in parts], 1)


def _block(arrays: Any, depth: int) -> tuple[Array, int]:
    """The joined nested list and its depth."""
    if isinstance(arrays, tuple):
        raise ValueError("jax.numpy.block does not allow tuples, got (" + ", ".join(map(str, arrays)) + ")")
    if not isinstance(arrays, list):
        return to_array("block", arrays), 0
    if not arrays:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    parts = [_block(item, depth + 1) for item in arrays]
    levels = {level for _, level in parts}
    if len(levels) > 1:
        raise ValueError("Mismatched list depths in jax.numpy.block")
    level = levels.pop() + 1
    widest = max(level, *(x.ndim for x, _ in parts))
    widened = [lax.expand_dims(x, tuple(range(widest - x.ndim))) for x, _ in parts]
    return concatenate(widened, -level), level


def block(arrays: Any) -> Array:
    """An array put together from nested lists of blocks: the innermost lists join along the last axis.

    Args:
      arrays: nested lists of arrays, all of one depth.

    Returns:
      Array.

    Raises:
      ValueError: for tuples, empty lists or unequal depths.

    >>> import ferrax.numpy as jnp
    >>> one, zero = jnp.ones((1, 2)), jnp.zeros((1, 1))
    >>> jnp.block([[one, zero], [zero, one]])
    Array([[1., 1., 0.],
           [0., 1., 1.]], dtype=float32)
    """
    return _block(arrays, 0)[0]


def _split_points(name: str, indices_or_sections: Any, n: int, axis: int) -> list[int]:
    """The boundaries of the parts, from 0 to `n`."""
    context = f"in argument 'indices_or_sections' of jnp.{name}"
    if is_tracer(indices_or_sections):
        indices_or_sections = concrete_or_error(np.asarray, indices_or_sections, context)
        if np.ndim(indices_or_sections) == 0:
            indices_or_sections = int(indices_or_sections)
    if isinstance(indices_or_sections, (tuple, list)) or np.ndim(indices_or_sections) > 0:
        points = [static_int(i, context) for i in indices_or_sections]
        points = [max(0, p + n) if p < 0 else min(p, n) for p in points]
        return [0, *points, n]
    parts = static_int(indices_or_sections, context)
    if parts <= 0:
        raise ValueError(f"number of sections must be larger than 0, got {parts}.")
    if n % parts == 0:
        return [i * (n // parts) for i in range(parts + 1)]
    if name == "array_split":
        small, larger = divmod(n, parts)
        return [i * small + min(i, larger) for i in range(parts + 1)]
    raise ValueError(
        "array split does not result in an equal division" + f": {n} elements along axis {axis} in {parts} parts"
    )


def _split(name: str, ary: ArrayLike, indices_or_sections: Any, axis: Any) -> list[Array]:
    x = to_array(name, ary)
    axis = normalize_axis(axis, x.ndim, f"in argument 'axis' of jnp.{name}")
    points = _split_points(name, indices_or_sections, x.shape[axis], axis)
    return [lax.slice_in_dim(x, low, max(low, high), axis=axis) for low, high in itertools.pairwise(points)]


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """An array cut into parts along an axis.

    Args:
      ary: array.
      indices_or_sections: the number of equal parts, or the sorted indices at which to cut.
      axis: axis to cut.

    Returns:
      List of arrays.

    Raises:
      ValueError: when equal parts are not possible.

    >>> import ferrax.numpy as jnp
    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """An array cut into parts along an axis, the first ones longer by one where equal parts are not possible.

    Args:
      ary: array.
      indices_or_sections: the number of parts, or the sorted indices at which to cut.
      axis: axis to cut.

    Returns:
      List of arrays.

    >>> import ferrax.numpy as jnp
    >>> [x.shape for x in jnp.array_split(jnp.arange(5), 2)]
    [(3,), (2,)]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """An array cut along its second axis, or its only one.

    Args:
      ary: array with at least one axis.
      indices_or_sections: as for `split`.

    Returns:
      List of arrays.

    >>> import ferrax.numpy as jnp
    >>> [x.shape for x in jnp.hsplit(jnp.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    x = to_array("hsplit", ary)
    return _split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """An array cut along its first axis.

    Args:
      ary: array with at least two axes.
      indices_or_sections: as for `split`.

    Returns:
      List of arrays.

    >>> import ferrax.numpy as jnp
    >>> [x.shape for x in jnp.vsplit(jnp.zeros((2, 4)), 2)]
    [(1, 4), (1, 4)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """An array cut along its third axis.

    Args:
      ary: array with at least three axes.
      indices_or_sections: as for `split`.

    Returns:
      List of arrays.

    >>> import ferrax.numpy as jnp
    >>> [x.shape for x in jnp.dsplit(jnp.zeros((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


def _shape_unstack(x: Array, axis: int) -> list[Array]:
    return [lax.squeeze(lax.slice_in_dim(x, i, i + 1, axis=axis), (axis,)) for i in range(x.shape[axis])]


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis.

    Args:
      x: array with at least one axis.
      axis: axis to take apart.

    Returns:
      Tuple of arrays with one axis less.

    >>> import ferrax.numpy as jnp
    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = to_array("unstack", x)
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was passed.")
    return tuple(_shape_unstack(x, normalize_axis(axis, x.ndim)))


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """An array repeated as a whole along its axes.

    Args:
      A: array or scalar.
      reps: how often along each axis; missing ones count from the last axis.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.tile(jnp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x = to_array("tile", A)
    counts = tuple(static_size(r) for r in entries(reps))
    counts = (1,) * (x.ndim - len(counts)) + counts
    dims = (1,) * (len(counts) - x.ndim) + x.shape
    if all(c == 1 for c in counts):
        return lax.reshape(x, dims)
    paired = tuple(n for pair in zip(counts, dims) for n in pair)
    positions = tuple(2 * (len(counts) - x.ndim + i) + 1 for i in range(x.ndim))
    repeated = lax.broadcast_in_dim(x, paired, positions)
    return lax.reshape(repeated, tuple(c * d for c, d in zip(counts, dims)))


def repeat(a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None,
           out_sharding: None = None) -> Array:  # fmt: skip
    """An array with each element repeated along an axis.

    Args:
      a: array or scalar.
      repeats: how often, one number or one for each element along `axis`.
      axis: axis to repeat along; None for the flattened array.
      total_repeat_length: length of the result along `axis`; needed under `jit` when `repeats` is traced. A shorter
        sum of `repeats` is filled with the last element, a longer one is cut.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array.

    Raises:
      ConcretizationTypeError: for traced `repeats` without `total_repeat_length`.
      ValueError: explicit axes of the mesh in use divide the axis, and there is no `out_sharding`.

    >>> import ferrax.numpy as jnp
    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([3, 1]))
    Array([1, 1, 1, 2], dtype=int32)
    """
    x = to_array("repeat", a)
    require("repeat", repeats)
    if axis is None or x.ndim == 0:  # a scalar is repeated like a vector of one element
        x, axis = lax.reshape(x, (x.size,)), axis or 0
    axis = normalize_axis(axis, x.ndim)
    if out_sharding is not None:
        return with_out_sharding(lambda: _repeated(x, repeats, axis, total_repeat_length), out_sharding, "repeat")
    _require_undivided(x, axis)
    return _repeated(x, repeats, axis, total_repeat_length)


def _repeated(x: Array, repeats: Any, axis: int, total_repeat_length: Any) -> Array:
    n = x.shape[axis]
    if total_repeat_length is None:
        return _repeat_static(x, repeats, axis, n)
    total = static_int(total_repeat_length, "total_repeat_length argument of jnp.repeat")
    counts = asarray(repeats)
    counts = lax.broadcast_in_dim(lax.reshape(counts, (counts.size,)) if counts.size != 1 else lax.reshape(counts, ()),
                                  (n,), (0,) if counts.size != 1 else ())  # fmt: skip
    if n == 0 or total == 0:
        return lax.full(x.shape[:axis] + (total,) + x.shape[axis + 1 :], 0, x.dtype)
    ends = lax.cumsum(cast(counts, default_int()), 0)
    marks = lax.full((total,), 0, default_int())
    marks = asarray(marks).at[ends[:-1]].add(1, mode="drop")
    source = lax.cumsum(marks, 0)
    return _gather_rows(x, source, axis)


def _require_undivided(x: Array, axis: int) -> None:
    """Raises where explicit axes of the mesh in use divide an axis."""
    spread = _ferrax.typeof(x)._spread
    if spread:
        from ferrax.sharding._context import get_abstract_mesh
        from ferrax.sharding._typed import entries_of

        divided = entries_of(spread)
        if divided and divided[axis] and get_abstract_mesh().explicit_axes:
            raise ValueError(
                "Please pass sharding to `jnp.repeat` via `out_sharding` parameter. The axis is divided over "
                f"{divided[axis]}, and so may its repetition be, or not."
            )


def _repeat_static(x: Array, repeats: Any, axis: int, n: int) -> Array:
    if is_symbolic_dim(repeats):
        return _repeat_each(x, repeats, axis, n)
    context = "When jit-compiling jnp.repeat, the total number of repeats must be static: specify total_repeat_length."
    counts = np.asarray(concrete_or_error(None, repeats, context))
    if counts.dtype.kind not in "iub":
        raise TypeError(f"repeats must be integers, got dtype {counts.dtype}.")
    counts = counts.reshape(-1) if counts.ndim else counts
    if counts.ndim and counts.shape[0] not in (1, n):
        raise ValueError(f"repeats with shape {counts.shape} does not match the length {n} of axis {axis}")
    if (counts < 0).any():
        raise ValueError("repeats must not be negative.")
    if counts.size == 1:
        return _repeat_each(x, int(counts.reshape(-1)[0]), axis, n)
    return _gather_rows(x, asarray(np.repeat(np.arange(n), counts).astype(default_int())), axis)


def _repeat_each(x: Array, times: Any, axis: int, n: Any) -> Array:
    """Each of the `n` elements along an axis as often."""
    wide = x.shape[: axis + 1] + (times,) + x.shape[axis + 1 :]
    dims = tuple(i for i in range(len(wide)) if i != axis + 1)
    return lax.reshape(lax.broadcast_in_dim(x, wide, dims), x.shape[:axis] + (n * times,) + x.shape[axis + 1 :])


def _gather_rows(x: Array, index: Array, axis: int) -> Array:
    from ferrax.numpy._take import take

    return take(x, index, axis=axis, mode="clip")
