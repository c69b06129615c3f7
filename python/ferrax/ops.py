"""Operations over segments of arrays, and updates at indices: `ferrax.ops`.

The segment functions are scatters into an array that holds the identity of the reduction. The index functions are the
older spelling of `x.at[index].set(y)` and its relatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax import _core, lax
from ferrax._boundary import expose as _expose
from ferrax._out_sharding import with_out_sharding
from ferrax.numpy import _reductions, _shape
from ferrax.numpy._args import Array, ArrayLike, require, static_int, to_arrays
from ferrax.numpy._dtype_functions import dtype_kind
from ferrax.numpy._grid import index_exp

__all__ = [
    "index", "index_add", "index_max", "index_min", "index_mul", "index_update", "segment_max", "segment_min",
    "segment_prod", "segment_sum",
]  # fmt: skip

index = index_exp


def _segments(name, method, identity, data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size,
              mode, combine, out_sharding=None):  # fmt: skip
    """Scatters `data` into segments; in buckets, whose results are combined, when a bucket size is given."""
    if out_sharding is not None:
        made = lambda: _segments(name, method, identity, data, segment_ids, num_segments, indices_are_sorted,
                                 unique_indices, bucket_size, mode, combine)  # fmt: skip
        return with_out_sharding(made, out_sharding, name)
    x, ids = to_arrays(name, data, segment_ids)
    if dtype_kind(ids.dtype) not in "iu":
        raise TypeError(f"{name} needs segment ids of an integer dtype, got {ids.dtype}.")
    if num_segments is None:
        context = f"{name}() `num_segments` argument: give it statically when `segment_ids` is traced."
        host = np.asarray(_core.concrete_or_error(np.asarray, ids, context))
        num_segments = int(host.max(initial=-1)) + 1
    count = static_int(num_segments, f"{name}() `num_segments` argument.")
    if count < 0:
        raise ValueError("num_segments must be non-negative.")
    shape = (count, *x.shape[ids.ndim :])
    lead = (1,) * (ids.ndim - x.ndim) + x.shape[: ids.ndim]
    rows = tuple(i if n == 1 else n for n, i in zip(lead, ids.shape))
    if any(n != i and 1 not in (n, i) for n, i in zip(lead, ids.shape)):
        raise ValueError(
            f"{name} needs one segment id for each row of data: segment_ids has shape {ids.shape}, data has {x.shape}."
        )
    if ids.shape != rows:
        ids = lax.broadcast_in_dim(ids, rows, tuple(range(ids.ndim)))
    if x.shape[: ids.ndim] != rows:
        x = _shape.broadcast_to(x, (*rows, *shape[1:]))
    fill = identity(x.dtype)

    def one(part: Array, part_ids: Array) -> Array:
        start = lax.full(shape, fill, x.dtype)
        update = getattr(start.at[part_ids], method)
        return update(part, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
                      wrap_negative_indices=False)  # fmt: skip

    n = x.shape[0] if x.ndim else 0
    if bucket_size is None or n <= bucket_size:
        return one(x, ids)
    parts = [one(x[i : i + bucket_size], ids[i : i + bucket_size]) for i in range(0, n, bucket_size)]
    return combine(lax.concatenate([lax.expand_dims(p, (0,)) for p in parts], 0), axis=0, **(
        {"dtype": x.dtype} if method in ("add", "multiply") else {}
    ))  # fmt: skip


def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                mode: str | None = None, out_sharding: Any = None) -> Array:  # fmt: skip
    """The sums of the elements of each segment.

    Args:
      data: array; one row stands for as many as there are ids.
      segment_ids: integers: the segment of each row of `data`; rows with an id out of bounds are left out.
      num_segments: static number of segments, by default the largest id plus one.
      indices_are_sorted: promise that the ids ascend.
      unique_indices: promise that no id occurs twice.
      bucket_size: add up buckets of this many rows separately, for exactness.
      mode: as for `.at[...]`.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array of shape (num_segments, *data.shape[1:]); 0 for empty segments.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.ops.segment_sum(jnp.arange(4), jnp.array([0, 0, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    return _segments("segment_sum", "add", lambda d: 0, data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, _reductions.sum, out_sharding)  # fmt: skip


def segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                 mode: str | None = None, out_sharding: Any = None) -> Array:  # fmt: skip
    """The products of the elements of each segment.

    Args:
      data: array.
      segment_ids: integers: the segment of each row of `data`.
      num_segments, indices_are_sorted, unique_indices: as in `segment_sum`.
      bucket_size: multiply buckets of this many rows separately.
      mode, out_sharding: as in `segment_sum`.

    Returns:
      Array of shape (num_segments, *data.shape[1:]); 1 for empty segments.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.ops.segment_prod(jnp.arange(1, 5), jnp.array([0, 0, 1, 2]))
    Array([2, 3, 4], dtype=int32)
    """
    return _segments("segment_prod", "multiply", lambda d: 1, data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, _reductions.prod, out_sharding)  # fmt: skip


def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                mode: str | None = None, out_sharding: Any = None) -> Array:  # fmt: skip
    """The largest element of each segment.

    Args:
      data: array.
      segment_ids: integers: the segment of each row of `data`.
      num_segments, indices_are_sorted, unique_indices: as in `segment_sum`.
      bucket_size: reduce buckets of this many rows separately.
      mode, out_sharding: as in `segment_sum`.

    Returns:
      Array of shape (num_segments, *data.shape[1:]); the smallest value of the dtype for empty segments.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.ops.segment_max(jnp.arange(4), jnp.array([0, 0, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    return _segments("segment_max", "max", _reductions.lowest, data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, _reductions.max, out_sharding)  # fmt: skip


def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False, bucket_size: int | None = None,
                mode: str | None = None, out_sharding: Any = None) -> Array:  # fmt: skip
    """The smallest element of each segment.

    Args:
      data: array.
      segment_ids: integers: the segment of each row of `data`.
      num_segments, indices_are_sorted, unique_indices: as in `segment_sum`.
      bucket_size: reduce buckets of this many rows separately.
      mode, out_sharding: as in `segment_sum`.

    Returns:
      Array of shape (num_segments, *data.shape[1:]); the largest value of the dtype for empty segments.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.ops.segment_min(jnp.arange(4), jnp.array([0, 0, 1, 2]))
    Array([0, 2, 3], dtype=int32)
    """
    return _segments("segment_min", "min", _reductions.highest, data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, _reductions.min, out_sharding)  # fmt: skip


def _update(
    name: str, method: str, x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool, unique_indices: bool
) -> Array:
    require(name, x, y)
    update = getattr(_core.asarray(x).at[idx], method)
    return update(y, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


def index_update(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
                 unique_indices: bool = False) -> Array:  # fmt: skip
    """An array with values in place of those at an index: `x.at[idx].set(y)`.

    Args:
      x: array.
      idx: what stands in brackets, such as `ferrax.ops.index[0, :]`.
      y: values.
      indices_are_sorted: promise that the indices ascend.
      unique_indices: promise that no index occurs twice.

    Returns:
      Array of the shape of `x`.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.ops.index_update(jnp.zeros(3), ferrax.ops.index[1:], 7.)
    Array([0., 7., 7.], dtype=float32)
    """
    return _update("index_update", "set", x, idx, y, indices_are_sorted, unique_indices)


def index_add(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
              unique_indices: bool = False) -> Array:  # fmt: skip
    """An array with values added at an index: `x.at[idx].add(y)`.

    Args:
      x: array.
      idx: what stands in brackets.
      y, indices_are_sorted, unique_indices: as in `index_update`.

    Returns: as in `index_update`.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.ops.index_add(jnp.ones(3), ferrax.ops.index[1:], 7.)
    Array([1., 8., 8.], dtype=float32)
    """
    return _update("index_add", "add", x, idx, y, indices_are_sorted, unique_indices)


def index_mul(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
              unique_indices: bool = False) -> Array:  # fmt: skip
    """An array multiplied by values at an index: `x.at[idx].multiply(y)`.

    Args:
      x: array.
      idx: what stands in brackets.
      y, indices_are_sorted, unique_indices: as in `index_update`.

    Returns: as in `index_update`.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.ops.index_mul(jnp.ones(3), ferrax.ops.index[1:], 7.)
    Array([1., 7., 7.], dtype=float32)
    """
    return _update("index_mul", "multiply", x, idx, y, indices_are_sorted, unique_indices)


def index_min(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
              unique_indices: bool = False) -> Array:  # fmt: skip
    """An array with the smaller of its values and others at an index: `x.at[idx].min(y)`.

    Args:
      x: array.
      idx: what stands in brackets.
      y, indices_are_sorted, unique_indices: as in `index_update`.

    Returns: as in `index_update`.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.ops.index_min(jnp.ones(3), ferrax.ops.index[1:], 0.)
    Array([1., 0., 0.], dtype=float32)
    """
    return _update("index_min", "min", x, idx, y, indices_are_sorted, unique_indices)


def index_max(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
              unique_indices: bool = False) -> Array:  # fmt: skip
    """An array with the larger of its values and others at an index: `x.at[idx].max(y)`.

    Args:
      x: array.
      idx: what stands in brackets.
      y, indices_are_sorted, unique_indices: as in `index_update`.

    Returns: as in `index_update`.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.ops.index_max(jnp.ones(3), ferrax.ops.index[1:], 7.)
    Array([1., 7., 7.], dtype=float32)
    """
    return _update("index_max", "max", x, idx, y, indices_are_sorted, unique_indices)


_expose(globals())
