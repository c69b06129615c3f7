"""Statistics of samples: the most frequent value, ranks, the standard error of the mean.

Equal values stand together once they are sorted, so that a run of them has a first and a last place. Read next:
`_kde.py`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ferrax import jit, lax
from ferrax._core import Array
from ferrax.numpy import _nan_reductions, _reductions, _take, _ufuncs
from ferrax.numpy._args import normalize_axis, promote_inexact, to_array
from ferrax.numpy._dtype_functions import default_float, default_int, dtype_kind, inexact_dtype
from ferrax.typing import ArrayLike

__all__ = ["mode", "rankdata", "sem"]

_POLICIES = ("propagate", "omit", "raise")


class ModeResult(NamedTuple):
    """The most frequent values, and how often each is there.

    >>> from ferrax.scipy.stats._samples import ModeResult
    >>> ModeResult(3, 2).count
    2
    """

    mode: Array
    count: Array


def _propagates(name: str, nan_policy: str) -> None:
    """Raises unless NaN is to go through."""
    if nan_policy not in _POLICIES:
        raise ValueError(f"{name}: nan_policy must be one of {_POLICIES}, got {nan_policy!r}.")
    if nan_policy != "propagate":
        raise NotImplementedError(
            f"{name} with nan_policy={nan_policy!r} is not supported: what is NaN is not known before the program runs."
        )


def _along_last(x: Array, axis: int | None) -> Array:
    """`x` with the axis last; all of it in one axis when None, and a number as a vector."""
    if axis is None or x.ndim == 0:
        return lax.reshape(x, (x.size,))
    return _moved(x, axis, x.ndim - 1)


def _moved(x: Array, source: int, target: int) -> Array:
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return lax.transpose(x, order)


def _run_starts(ordered: Array) -> Array:
    """Where a run of equal values begins along the last axis of sorted values; NaN is equal to NaN."""
    last = ordered.ndim - 1
    here = lax.slice_in_dim(ordered, 1, None, axis=last)
    before = lax.slice_in_dim(ordered, 0, -1, axis=last)
    changes = (here != before) & ~((here != here) & (before != before))
    return lax.pad(changes, np.array(True), [(0, 0, 0)] * last + [(1, 0, 0)])


def _first_places(starts: Array, places: Array) -> Array:
    """For each element the place at which its run begins."""
    return lax.cummax(_ufuncs.where(starts, places, 0), axis=starts.ndim - 1)


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis, of several the smallest.

    Args:
      a: array of any dtype; NaN counts as a value.
      axis: axis to look along; None for all of the array.
      nan_policy: "propagate"; the others of SciPy are not supported.
      keepdims: whether the axis stays, with size one.

    Returns:
      A tuple of `mode`, of the dtype of `a`, and `count`, integers; where there are no elements NaN and 0.

    Raises:
      NotImplementedError: `nan_policy` is "omit" or "raise".
      ValueError: it is none of SciPy's, or the axis is out of bounds.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import mode
    >>> mode(jnp.array([3, 1, 2, 2, 1]))
    ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))
    """
    _propagates("mode", nan_policy)
    x = to_array("mode", a)
    if axis is not None:
        axis = normalize_axis(axis, max(x.ndim, 1))
    return ModeResult(*_mode(x, axis, bool(keepdims)))


@partial(jit, static_argnums=(1, 2))
def _mode(x: Array, axis: int | None, keepdims: bool) -> tuple[Array, Array]:
    values = _along_last(x, axis)
    last, n = values.ndim - 1, values.shape[-1]
    if n == 0:
        nothing = lax.full(values.shape[:-1], math.nan, inexact_dtype(values.dtype))
        found, count = nothing, lax.full_like(nothing, 0)
    else:
        ordered = lax.sort(values, dimension=last)
        places = lax.broadcasted_iota(default_int(), values.shape, last)
        lengths = places - _first_places(_run_starts(ordered), places) + 1
        end = _reductions.argmax(lengths, axis=-1, keepdims=True)
        count = _take.take_along_axis(lengths, end, axis=-1)
        found = _take.take_along_axis(ordered, end - count + 1, axis=-1)
        found, count = lax.squeeze(found, (last,)), lax.squeeze(count, (last,))
    if keepdims and x.ndim:
        kept = tuple(range(x.ndim)) if axis is None else (axis,)
        found, count = lax.expand_dims(found, kept), lax.expand_dims(count, kept)
    return found, count


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """Ranks from 1 on, in ascending order.

    Args:
      a: array.
      method: what ranks equal values get: "average" the mean of theirs, "min" the lowest, "max" the highest, "dense"
        the lowest without gaps after it, "ordinal" their own, in the order of the array.
      axis: axis to rank along; the flattened array when None.
      nan_policy: "propagate": one NaN makes all ranks along the axis NaN; the others of SciPy are not supported.

    Returns:
      Array of the default float dtype and the shape of `a`; of one axis when `axis` is None.

    Raises:
      NotImplementedError: `nan_policy` is "omit" or "raise".
      ValueError: it is none of SciPy's, the method is none of these, or the axis is out of bounds.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import rankdata
    >>> rankdata(jnp.array([0, 2, 3, 2]))
    Array([1. , 2.5, 4. , 2.5], dtype=float32)
    """
    _propagates("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"rankdata: unknown method {method!r}.")
    x = to_array("rankdata", a)
    if axis is not None:
        axis = normalize_axis(axis, max(x.ndim, 1))
    return _rankdata(x, method, axis)


@partial(jit, static_argnums=(1, 2))
def _rankdata(x: Array, method: str, axis: int | None) -> Array:
    values = _along_last(x, axis)
    last, n = values.ndim - 1, values.shape[-1]
    if values.size == 0:
        return lax.full(x.shape if axis is not None else values.shape, 0, default_float())
    places = lax.broadcasted_iota(default_int(), values.shape, last)
    ordered, order = lax.sort((values, places), dimension=last, num_keys=1)
    starts = _run_starts(ordered)
    rank = _ranks_of_runs(starts, places, n, method)
    # back to where the values came from: the inverse of a permutation sorts it
    _, ranks = lax.sort((order, lax.convert_element_type(rank, default_float())), dimension=last, num_keys=1)
    missing = (values != values).any(-1, keepdims=True)
    ranks = _ufuncs.where(missing, math.nan, ranks)
    return ranks if axis is None or x.ndim == 0 else _moved(ranks, last, axis)


def _ranks_of_runs(starts: Array, places: Array, n: int, method: str) -> Array:
    """Ranks of sorted values, of which `starts` marks where runs of equal ones begin."""
    last = starts.ndim - 1
    if method == "ordinal":
        return places + 1
    if method == "dense":
        return lax.cumsum(lax.convert_element_type(starts, places.dtype), axis=last)
    first = _first_places(starts, places)
    if method == "min":
        return first + 1
    # the last place of a run comes before the first of the next one
    following = lax.pad(lax.slice_in_dim(starts, 1, None, axis=last), np.array(True), [(0, 0, 0)] * last + [(0, 1, 0)])
    final = lax.cummin(_ufuncs.where(following, places, n), axis=last, reverse=True)
    return final + 1 if method == "max" else (first + final) / 2 + 1


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """Standard error of the mean: the standard deviation over the square root of the number of elements.

    Args:
      a: array.
      axis: axis of the samples; None for all of the array.
      ddof: what is taken from the number of elements in the variance.
      nan_policy: "propagate", or "omit" to leave NaN out.
      keepdims: whether the axis stays, with size one.

    Returns:
      Floating array without the axis.

    Raises:
      ValueError: `nan_policy` is another one, or the axis is out of bounds.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import sem
    >>> float(sem(jnp.array([1.0, 3.0, 5.0, 7.0]), ddof=0))
    1.1180340051651
    """
    if nan_policy not in ("propagate", "omit"):
        raise ValueError(f"sem: nan_policy {nan_policy!r} is not supported.")
    (x,) = promote_inexact("sem", a)
    if axis is not None:
        axis = normalize_axis(axis, x.ndim)
    return _sem(x, axis, ddof, nan_policy, bool(keepdims))


@partial(jit, static_argnums=(1, 2, 3, 4))
def _sem(x: Array, axis: int | None, ddof: int, nan_policy: str, keepdims: bool) -> Array:
    if nan_policy == "omit":
        spread = _nan_reductions.nanstd(x, axis=axis, ddof=ddof, keepdims=keepdims)
        count: Any = _reductions.sum(x == x, axis=axis, keepdims=keepdims)
        root = lax.sqrt(lax.convert_element_type(count, spread.dtype))
    else:
        spread = _reductions.std(x, axis=axis, ddof=ddof, keepdims=keepdims)
        root = math.sqrt(x.size if axis is None else x.shape[axis])
    if not isinstance(root, float):
        spread = spread / root
    else:
        spread = spread / root if root else lax.full_like(spread, math.nan)
    return lax.convert_element_type(spread, x.dtype) if dtype_kind(x.dtype) == "c" else spread
