"""Sets: distinct elements, unions, intersections, differences, membership.

Sorting brings equal elements together; masks of first occurrences, compacted, give the results. The number of results
depends on the values, so under `jit` they take a static `size`. Read `_search.py` first.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ferrax import lax
from ferrax._core import asarray, concrete_or_error, with_weak_type
from ferrax._shapes import is_symbolic_dim
from ferrax.numpy import _reductions, _shape
from ferrax.numpy._args import Array, ArrayLike, cast, normalize_axis, promote, require, static_int, to_array
from ferrax.numpy._dtype_functions import default_int, dtype_kind, is_inexact
from ferrax.numpy._search import compacted, count_true, searchsorted
from ferrax.numpy._take import take
from ferrax.numpy._ufuncs import where as _where

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse",
    "unique_values",
]  # fmt: skip


# Values, and where asked for: indices, inverse, counts.
_Found = tuple[Array, Array | None, Array | None, Array | None]


class _UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    values: Array
    inverse_indices: Array


def _differs(x: Array, y: Array, equal_nan: bool) -> Array:
    """Whether rows of `x` and `y` (n, m) differ."""
    unequal = x != y
    if equal_nan and is_inexact(x.dtype):
        unequal = unequal & ~((x != x) & (y != y))
    return unequal[:, 0] if x.shape[1] == 1 else _reductions.any(unequal, axis=1)


def _sorted_rows(rows: Array) -> tuple[Array, Array]:
    """Rows (n, m) in lexical order and the permutation that brings them there."""
    n, m = rows.shape
    columns = [rows[:, i] for i in range(m)]
    if not columns:  # rows without elements are all alike
        return rows, lax.iota(default_int(), n)
    *ordered, order = lax.sort((*columns, lax.iota(default_int(), n)), num_keys=m)
    return lax.concatenate([lax.expand_dims(c, (1,)) for c in ordered], 1), order


def _first_mask(ordered: Array, equal_nan: bool) -> Array:
    """Which rows of sorted ones differ from the row before."""
    first = lax.full((1,), True, np.bool_)
    return lax.concatenate([first, _differs(ordered[1:], ordered[:-1], equal_nan)], 0)


def _unique_rows(rows: Array, size: Any, fill_value: Any, equal_nan: bool, name: str, places: bool) -> _Found:
    """(values, indices, inverse, counts) of the distinct rows of a (n, m) array; None but values without `places`."""
    n, m = rows.shape
    order = None
    if dtype_kind(rows.dtype) == "c":  # one NaN, whatever the other part of a number is, and behind all others
        rows = _where(rows == rows, rows, asarray(np.nan, rows.dtype))
    if places or m != 1:
        ordered, order = _sorted_rows(rows)
    else:
        ordered = lax.sort(rows, dimension=0)
    mask = _first_mask(ordered, equal_nan)
    size = count_true(mask, name) if size is None else static_int(size, f"The size argument of jnp.{name}")
    starts = compacted(mask, size, n)
    exists = starts < n
    group = lax.cumsum(cast(mask, default_int()), 0) - 1
    values = take(ordered, starts, axis=0, mode="clip")
    first = (
        ordered[:1]
        if fill_value is None
        else lax.broadcast_in_dim(cast(fill_value, rows.dtype), (1, rows.shape[1]), ())
    )
    values = _where(lax.expand_dims(exists, (1,)), values, first)
    if not places or order is None:
        return values, None, None, None
    indices = take(order, _where(exists, starts, 0), mode="clip")
    inverse = lax.full((n,), 0, default_int()).at[order].set(group)
    # One start more than asked for, so that the last group ends where the next one starts.
    ends = compacted(mask, size + 1, n)[1:]
    return values, indices, inverse, _where(exists, ends - starts, 0)


def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, *, equal_nan: bool = True, size: int | None = None,
           fill_value: ArrayLike | None = None, sorted: bool = True) -> Any:  # fmt: skip
    """The distinct elements of an array, sorted.

    Args:
      ar: array.
      return_index: also return the index of each value's first occurrence.
      return_inverse: also return, for each element, the index of its value.
      return_counts: also return how often each value occurs.
      axis: find distinct slices along this axis; None for distinct elements.
      equal_nan: count all NaN as one value.
      size: static number of values in the result, for use under `jit`.
      fill_value: fills the result up to `size`; by default the smallest value.
      sorted: the result is sorted in any case.

    Returns:
      Array of values, or a tuple of it and what else was asked for.

    Raises:
      ConcretizationTypeError: for a traced `ar` without `size`.

    >>> import ferrax.numpy as jnp
    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x = to_array("unique", ar)
    if size is None:
        # How many values there are depends on all of them, so the array is a constant of any transformation.
        x = concrete_or_error(
            None,
            x,
            "The error arose for the first argument of jnp.unique(). To make it work under a transformation, "
            "its size argument must be statically specified.",
        )
    if fill_value is not None:
        require("unique", fill_value)
    if axis is None:
        rows, shape, moved = lax.reshape(x, (x.size, 1)), x.shape, None
    else:
        axis = normalize_axis(axis, x.ndim)
        moved = _shape.moveaxis(x, axis, 0)
        shape = (x.shape[axis],)
        rows = lax.reshape(moved, (x.shape[axis], math.prod(moved.shape[1:])))
    if rows.shape[0] == 0:
        result = _unique_of_nothing(rows, size, fill_value)
    else:
        places = return_index or return_inverse or return_counts
        result = _unique_rows(rows, size, fill_value, equal_nan, "unique", places)
    values, indices, inverse, counts = result
    if moved is None or axis is None:
        values = values[:, 0]
        inverse = None if inverse is None else lax.reshape(inverse, shape)
    else:
        values = _shape.moveaxis(lax.reshape(values, (values.shape[0], *moved.shape[1:])), 0, axis)
    wanted: list[Array | None] = [values]
    wanted += [indices] if return_index else []
    wanted += [inverse] if return_inverse else []
    wanted += [counts] if return_counts else []
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def _unique_of_nothing(rows: Array, size: Any, fill_value: Any) -> _Found:
    size = 0 if size is None else size
    if size and fill_value is None:
        raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value must be specified")
    fill = cast(0 if fill_value is None else fill_value, rows.dtype)
    zeros = lax.full((size,), 0, default_int())
    return lax.broadcast_in_dim(fill, (size, rows.shape[1]), ()), zeros, lax.full((0,), 0, default_int()), zeros


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> _UniqueAllResult:
    """The distinct elements of an array with first indices, inverse and counts.

    Args:
      x: array.
      size: static number of values in the result.
      fill_value: fills the result up to `size`.

    Returns:
      Named tuple (values, indices, inverse_indices, counts). Each NaN is a value of its own.

    >>> import ferrax.numpy as jnp
    >>> jnp.unique_all(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    require("unique_all", x)
    return _UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueCountsResult:
    """The distinct elements of an array and how often each occurs.

    Args: as in `unique_all`.

    Returns:
      Named tuple (values, counts).

    >>> import ferrax.numpy as jnp
    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    require("unique_counts", x)
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueInverseResult:
    """The distinct elements of an array and, for each element, the index of its value.

    Args: as in `unique_all`.

    Returns:
      Named tuple (values, inverse_indices).

    >>> import ferrax.numpy as jnp
    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    require("unique_inverse", x)
    return _UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of an array.

    Args: as in `unique_all`.

    Returns:
      Vector.

    >>> import ferrax.numpy as jnp
    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    require("unique_values", x)
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def _flat_pair(name: str, ar1: ArrayLike, ar2: ArrayLike) -> list[Array]:
    return [lax.reshape(x, (x.size,)) for x in promote(name, ar1, ar2)]


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The sorted distinct elements of two arrays together.

    Args:
      ar1: array.
      ar2: array.
      size: static length of the result, for use under `jit`.
      fill_value: fills the result up to `size`; by default the smallest value.

    Returns:
      Vector.

    >>> import ferrax.numpy as jnp
    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    return unique(lax.concatenate(_flat_pair("union1d", ar1, ar2), 0), size=size, fill_value=fill_value)


def _compact_values(x: Array, mask: Array, size: Any, fill: Any, name: str) -> Array:
    """Elements of a vector where a mask holds, filled up to `size`."""
    size = count_true(mask, name) if size is None else static_int(size, f"The size argument of jnp.{name}")
    n = x.shape[0]
    places = compacted(mask, size, n)
    if n == 0:
        return lax.broadcast_in_dim(cast(fill, x.dtype), (size,), ())
    return _where(places < n, take(x, places, mode="clip"), cast(fill, x.dtype))


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
              fill_value: ArrayLike | None = None) -> Array:  # fmt: skip
    """The sorted distinct elements of one array that are not in another.

    Args:
      ar1, ar2: as in `union1d`.
      assume_unique: promise that the elements of `ar1` are distinct; they keep their order then.
      size: static length of the result, for use under `jit`.
      fill_value: fills the result up to `size`; by default 0.

    Returns: as in `union1d`.

    >>> import ferrax.numpy as jnp
    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    require("setdiff1d", ar1, ar2)
    x, y = asarray(ar1), asarray(ar2)
    x = lax.reshape(x, (x.size,))
    fill = 0 if fill_value is None else fill_value
    if x.size == 0:
        return lax.broadcast_in_dim(cast(fill, x.dtype), (size or 0,), ())
    keep = isin(x, y, invert=True)
    if not assume_unique:
        rows, order = _sorted_rows(lax.expand_dims(x, (1,)))
        keep = take(keep, order, mode="clip") & _first_mask(rows, True)
        x = rows[:, 0]
    return with_weak_type(_compact_values(x, keep, size, fill, "setdiff1d"), x.weak_type)


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
             fill_value: ArrayLike | None = None) -> Array:  # fmt: skip
    """The sorted elements that are in exactly one of two arrays.

    Args:
      ar1, ar2: as in `union1d`.
      assume_unique: promise that the elements of each array are distinct.
      size: static length of the result, for use under `jit`.
      fill_value: fills the result up to `size`; by default the smallest element of the result.

    Returns: as in `union1d`.

    >>> import ferrax.numpy as jnp
    >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([2, 3]))
    Array([1, 2], dtype=int32)
    """
    x, y = _flat_pair("setxor1d", ar1, ar2)
    joined = lax.concatenate([x, y], 0)
    if joined.size == 0:
        return _compact_values(joined, lax.full((0,), False, np.bool_), size, fill_value or 0, "setxor1d")
    owner = lax.concatenate([lax.full(x.shape, 1, default_int()), lax.full(y.shape, 2, default_int())], 0)
    ordered, owners = lax.sort((joined, owner), num_keys=1)
    starts = _first_mask(lax.expand_dims(ordered, (1,)), False)
    group = lax.cumsum(cast(starts, default_int()), 0) - 1
    zeros = lax.full(joined.shape, 0, default_int())
    in_first = zeros.at[group].max(owners & 1)
    in_second = zeros.at[group].max(owners >> 1)
    keep = starts & take(in_first + in_second == 1, group, mode="clip")
    fill = fill_value
    if fill is None:
        first = compacted(keep, 1, 0)
        fill = take(ordered, first, mode="clip")[0]
    return with_weak_type(_compact_values(ordered, keep, size, fill, "setxor1d"), x.weak_type and y.weak_type)


def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *,
                size: int | None = None, fill_value: ArrayLike | None = None) -> Any:  # fmt: skip
    """The sorted distinct elements that two arrays share.

    Args:
      ar1: array.
      ar2: array.
      assume_unique: promise that the elements of each array are distinct.
      return_indices: also return the indices of first occurrence in both arrays.
      size: static length of the result, for use under `jit`.
      fill_value: fills the result up to `size`; by default the smallest shared element.

    Returns:
      Vector, or with `return_indices` the tuple (vector, indices in `ar1`, indices in `ar2`).

    >>> import ferrax.numpy as jnp
    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3, 5]))
    Array([2, 3], dtype=int32)
    """
    x, y = _flat_pair("intersect1d", ar1, ar2)
    if x.size == 0 or y.size == 0:
        empty = lax.broadcast_in_dim(cast(0 if fill_value is None else fill_value, x.dtype), (size or 0,), ())
        places = lax.full((size or 0,), 0, default_int())
        return (empty, places + x.size, places + y.size) if return_indices else empty
    rows, order = _sorted_rows(lax.expand_dims(x, (1,)))
    ordered = rows[:, 0]
    other, other_order = lax.sort((y, lax.iota(default_int(), y.size)), num_keys=1)
    place = searchsorted(other, ordered)
    shared = (take(other, place, mode="clip") == ordered) & _first_mask(rows, True)
    size = (
        count_true(shared, "intersect1d") if size is None else static_int(size, "The size argument of jnp.intersect1d")
    )
    starts = compacted(shared, size, x.size)
    exists = starts < x.size
    if fill_value is None:
        first = compacted(shared, 1, 0)
        fill = take(ordered, first, mode="clip")[0]
    else:
        fill = cast(fill_value, x.dtype)
    values = _where(exists, take(ordered, starts, mode="clip"), fill)
    if not return_indices:
        return values
    index1 = _where(exists, take(order, starts, mode="clip"), x.size)
    index2 = _where(exists, take(other_order, take(place, starts, mode="clip"), mode="clip"), y.size)
    return values, index1, index2


def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False, invert: bool = False, *,
         method: str = "auto") -> Array:  # fmt: skip
    """Which elements of an array are in another.

    Args:
      element: array.
      test_elements: array of the elements to look for.
      assume_unique: has no effect.
      invert: find those that are not.
      method: "compare_all", "binary_search", "sort" or "auto".

    Returns:
      Bool array of the shape of `element`.

    Raises:
      ValueError: for an unknown method.

    >>> import ferrax.numpy as jnp
    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    x, y = promote("isin", element, test_elements)
    y = lax.reshape(y, (y.size,))
    if method not in ("compare_all", "binary_search", "sort", "auto"):
        raise ValueError(
            f"method={method!r} is not implemented; options are 'compare_all', 'binary_search', 'sort', and 'auto'"
        )
    if x.size == 0 or y.size == 0:
        return lax.full(x.shape, bool(invert), np.bool_)
    if method == "compare_all" or (method == "auto" and not is_symbolic_dim(y.size) and y.size <= 16):
        wide = lax.broadcast_in_dim(y, (*x.shape, y.size), (x.ndim,))
        found = _reductions.any(lax.expand_dims(x, (x.ndim,)) == wide, axis=-1)
    else:
        ordered = lax.sort(y)
        place = searchsorted(ordered, x, method="sort" if method == "sort" else "scan")
        found = take(ordered, place, mode="clip") == x
    return ~found if invert else found
