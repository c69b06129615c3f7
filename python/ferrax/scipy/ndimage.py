"""Images looked up at any places. Read next: `ferrax/image.py`, which resamples whole images."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._boundary import expose as _expose
from ferrax._core import asarray
from ferrax._shapes import is_symbolic_dim
from ferrax.numpy import _ufuncs
from ferrax.numpy._args import Array, ArrayLike, broadcast_to_shape, broadcast_together
from ferrax.numpy._dtype_functions import dtype_kind, real_dtype
from ferrax.numpy._take import take
from ferrax.numpy.fft import _single_or_double

__all__ = ["map_coordinates"]


def _clipped(index: Array, n: int) -> Array:
    return lax.clamp(asarray(0, index.dtype), index, asarray(n - 1, index.dtype))


def _wrapped(index: Array, n: int) -> Array:
    return _ufuncs.remainder(index, n)


def _mirrored(index: Array, n: int) -> Array:
    """Indices of the image mirrored at the middles of its outer pixels."""
    period = max(2 * (n - 1), 1)
    index = _ufuncs.remainder(index, period)
    return _ufuncs.minimum(index, period - index) if n > 1 else index


def _reflected(index: Array, n: int) -> Array:
    """Indices of the image mirrored at its edges."""
    index = _ufuncs.remainder(index, 2 * n)
    return _ufuncs.minimum(index, 2 * n - 1 - index)


_MODES: dict[str, Callable[[Array, int], Array]] = {
    "constant": _clipped,
    "nearest": _clipped,
    "wrap": _wrapped,
    "mirror": _mirrored,
    "reflect": _reflected,
}


def _rounded(x: Array) -> Array:
    """Whole numbers as int32; halves go away from zero."""
    if dtype_kind(x.dtype) == "f":
        x = lax.round(x)
    return lax.convert_element_type(x, np.int32) if x.dtype.itemsize < 8 or dtype_kind(x.dtype) == "f" else x


def _neighbours(place: Array, order: int, dtype: np.dtype | None) -> list[tuple[Array, Any]]:
    """The pixels along one axis that a place sees, each with its weight (None for one)."""
    if order == 0 or dtype_kind(place.dtype) != "f":
        return [(_rounded(place), None)]
    low = lax.floor(place)
    upper = lax.convert_element_type(place - low, dtype)
    index = _rounded(low)
    return [(index, 1 - upper), (index + 1, upper)]


def _elements(x: Array, index: Sequence[Array]) -> Array:
    """The elements at indices within bounds, one array for each axis."""
    if not is_symbolic_dim(x.size) and x.size > np.iinfo(np.int32).max:
        return x.at[tuple(index)].get(mode="clip")
    flat = lax.convert_element_type(index[0], np.int32)
    for i, n in zip(index[1:], x.shape[1:]):
        flat = flat * n + lax.convert_element_type(i, np.int32)
    return take(lax.reshape(x, (x.size,)), flat, mode="clip")


@partial(jit, static_argnames=("order", "mode"))
def _looked_up(x: Array, places: Sequence[Array], cval: Array, order: int, mode: str) -> Array:
    places = broadcast_together(*places)
    shape = places[0].shape
    kinds = {dtype_kind(p.dtype) for p in places}
    mixes = order == 1 and "f" in kinds
    dtype = x.dtype
    if mixes:  # weights and sums are at least of single precision
        dtype = dtype if dtype_kind(dtype) == "c" else _single_or_double(dtype)
    weight_dtype = real_dtype(dtype) if mixes else None
    axes = [_neighbours(p, order, weight_dtype) for p in places]
    total = None
    for corner in itertools.product(*axes):
        inside, index = None, []
        for (i, _), n in zip(corner, x.shape):
            if mode == "constant":
                within = (i >= 0) & (i < n)
                inside = within if inside is None else inside & within
            index.append(_MODES[mode](i, n))
        value = _elements(x, index)
        if inside is not None:
            value = _ufuncs.where(inside, value, broadcast_to_shape(cval, shape))
        value = lax.convert_element_type(value, dtype)
        for _, weight in corner:
            if weight is not None:
                value = value * lax.convert_element_type(weight, dtype)
        total = value if total is None else total + value
    if mixes and dtype_kind(x.dtype) in "iu":
        total = lax.round(total)
    return lax.convert_element_type(total, x.dtype)


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """An array's values at any places, between its elements too.

    Args:
      input: array of any rank; the element of index i lies at the place i.
      coordinates: for each of its axes an array of places; they broadcast together.
      order: 0 for the nearest element (halves go away from zero), 1 for linear interpolation.
      mode: what lies outside: ``"constant"`` `cval`, ``"nearest"`` the nearest edge, ``"wrap"`` the array again,
        ``"reflect"`` and ``"mirror"`` its mirror images, with and without a second copy of the edge. These are SciPy's
        modes as it documents them: its own ``"constant"`` and ``"wrap"`` treat the last half of a pixel otherwise.
      cval: scalar for mode ``"constant"``.

    Returns:
      Array of the places' shape and the input's dtype; values between integers are rounded.

    Raises:
      NotImplementedError: the order is above 1, or the mode is another.
      ValueError: there is not an array of places for each axis, or the input is empty.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import ndimage
    >>> x = jnp.arange(12.0).reshape(3, 4)
    >>> ndimage.map_coordinates(x, [jnp.array([0.5, 1.5]), jnp.array([1.5, 2.5])], order=1)
    Array([3.5, 8.5], dtype=float32)
    """
    x = asarray(input)
    places = [asarray(c) for c in coordinates]
    if len(places) != x.ndim:
        raise ValueError(f"coordinates must be a sequence of length input.ndim, but {len(places)} != {x.ndim}")
    if mode not in _MODES:
        raise NotImplementedError(f"map_coordinates does not yet support mode {mode}; there are {', '.join(_MODES)}")
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates requires order<=1, splines of order {order} are not there")
    if 0 in x.shape:
        raise ValueError(f"map_coordinates: an input of shape {x.shape} has no elements")
    for place in places:
        if dtype_kind(place.dtype) == "c":
            raise TypeError(f"map_coordinates: places are real numbers, got {place.dtype}")
    if not places:
        return x
    return _looked_up(x, places, asarray(cval, x.dtype), int(order), mode)


_expose(globals())
