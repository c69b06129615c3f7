"""Sorting.

NaN sort last. Sorting is stable, so that results do not depend on the algorithm; a descending sort is the ascending
sort of the reversed array, reversed. Read `_search.py` and `_sets.py` next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax import lax
from ferrax._core import asarray
from ferrax.numpy import _join
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    DTypeLike,
    cast,
    is_arraylike,
    normalize_axis,
    require,
    static_int,
    to_array,
    user_dtype,
)  # fmt: skip
from ferrax.numpy._dtype_functions import complex_dtype, default_int, dtype_kind

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "sort_complex"]


def _no_kind(name: str, kind: None, order: None) -> None:
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to specify sort stability."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")


def sort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
         descending: bool = False) -> Array:  # fmt: skip
    """An array sorted along an axis.

    Args:
      a: array; complex numbers sort by real part, then imaginary part.
      axis: axis to sort along; None for the flattened array.
      kind: not supported.
      order: not supported.
      stable: keep the order of equal elements.
      descending: largest first.

    Returns:
      Array of the dtype of `a`.

    >>> import ferrax.numpy as jnp
    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _no_kind("sort", kind, order)
    x = to_array("sort", a)
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    result = lax.sort(x, dimension=axis, is_stable=stable)
    return lax.rev(result, (axis,)) if descending else result


def argsort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
            descending: bool = False, dtype: DTypeLike = None) -> Array:  # fmt: skip
    """The indices that sort an array along an axis.

    Args:
      a: array.
      axis, kind, order, stable, descending: as in `sort`.
      dtype: dtype of the indices, by default the default integer.

    Returns:
      Array of indices.

    >>> import ferrax.numpy as jnp
    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _no_kind("argsort", kind, order)
    x = to_array("argsort", a)
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    index = lax.broadcasted_iota(user_dtype(dtype, default_int()), x.shape, axis)
    if not descending:
        return lax.sort((x, index), dimension=axis, is_stable=stable, num_keys=1)[1]
    x = lax.rev(x, (axis,))
    index = lax.rev(index, (axis,))
    return lax.rev(lax.sort((x, index), dimension=axis, is_stable=stable, num_keys=1)[1], (axis,))


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices that sort by several keys, the last one first.

    Args:
      keys: sequence of arrays of one shape, or an array whose rows are the keys.
      axis: axis to sort along.

    Returns:
      Array of indices.

    Raises:
      TypeError: for no keys.

    >>> import ferrax.numpy as jnp
    >>> jnp.lexsort((jnp.array([1, 0, 0]), jnp.array([2, 2, 1])))
    Array([2, 1, 0], dtype=int32)
    """
    rows = list(_join.unstack(keys)) if is_arraylike(keys) else list(keys)
    if not rows:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    require("lexsort", *rows)
    arrays = [asarray(key) for key in rows]
    if len({x.shape for x in arrays}) > 1:
        raise ValueError("all keys need to be the same shape")
    if arrays[0].ndim == 0:
        return lax.full((), 0, default_int())
    axis = normalize_axis(axis, arrays[0].ndim)
    index = lax.broadcasted_iota(default_int(), arrays[0].shape, axis)
    return lax.sort((*arrays[::-1], index), dimension=axis, num_keys=len(arrays))[-1]


def _kth(kth: Any, n: int, name: str) -> int:
    return normalize_axis(static_int(kth, f"the kth argument of jnp.{name}"), n)


def _real_only(name: str, x: Array) -> None:
    if dtype_kind(x.dtype) == "c":
        raise NotImplementedError(f"{name} for complex dtype is not implemented.")


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """An array with the elements below its kth smallest one before it and the others after, along an axis.

    Args:
      a: real array.
      kth: static integer.
      axis: axis to work along.

    Returns:
      Array of the dtype of `a`: the smaller values in ascending order, the larger ones in descending order.

    >>> import ferrax.numpy as jnp
    >>> jnp.partition(jnp.array([3, 1, 2]), 1)
    Array([1, 2, 3], dtype=int32)
    """
    x = to_array("partition", a)
    _real_only("jnp.partition", x)
    axis = normalize_axis(axis, x.ndim)
    kth = _kth(kth, x.shape[axis], "partition")
    ordered = lax.sort(x, dimension=axis)
    return _with_tail(ordered, kth, axis, lambda tail: lax.rev(tail, (axis,)))


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that partition an array about its kth smallest element along an axis.

    Args: as in `partition`.

    Returns:
      Array of indices: those of the smaller values by these, those of the larger ones as they stand in `a`.

    >>> import ferrax.numpy as jnp
    >>> jnp.argpartition(jnp.array([3, 1, 2]), 1)
    Array([1, 2, 0], dtype=int32)
    """
    x = to_array("argpartition", a)
    _real_only("jnp.argpartition", x)
    axis = normalize_axis(axis, x.ndim)
    kth = _kth(kth, x.shape[axis], "argpartition")
    return _with_tail(argsort(x, axis), kth, axis, lambda tail: lax.sort(tail, dimension=axis))


def _with_tail(ordered: Array, kth: int, axis: int, rearranged: Callable[[Array], Array]) -> Array:
    """Sorted entries, those after `kth` rearranged."""
    n = ordered.shape[axis]
    head = lax.slice_in_dim(ordered, 0, kth + 1, axis=axis)
    return lax.concatenate([head, rearranged(lax.slice_in_dim(ordered, kth + 1, n, axis=axis))], axis)


def sort_complex(a: ArrayLike) -> Array:
    """An array sorted along its last axis, as complex numbers.

    Args:
      a: array.

    Returns:
      Complex array.

    >>> import ferrax.numpy as jnp
    >>> jnp.sort_complex(jnp.array([2, 1]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    x = to_array("sort_complex", a)
    return cast(sort(x), complex_dtype(x.dtype))
