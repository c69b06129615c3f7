"""Interpolation on grids: `ferrax.scipy.interpolate`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax._core import asarray, is_tracer
from ferrax.numpy import _join, _search, _take, _ufuncs
from ferrax.numpy._args import Array, ArrayLike, broadcast_together, promote_inexact, require
from ferrax.numpy._dtype_functions import dtype_kind

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """A function between samples of it on a rectangular grid.

    Args:
      points: for each of N axes the places of the grid, a vector of ascending numbers.
      values: samples, shape (n_1, ..., n_N, ...); axes beyond the grid's are those of a value.
      method: "linear" or "nearest".
      bounds_error: must be False.
      fill_value: what there is outside the grid; None to extrapolate.

    Raises:
      NotImplementedError: `bounds_error` is set.
      TypeError: `points` or `values` are lists.
      ValueError: the shapes do not fit, places do not ascend, or the method is none of these.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.interpolate import RegularGridInterpolator
    >>> grid = (jnp.array([0.0, 1.0]), jnp.array([0.0, 2.0]))
    >>> RegularGridInterpolator(grid, jnp.array([[0.0, 2.0], [4.0, 6.0]]))(jnp.array([[0.5, 1.0]]))
    Array([3.], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = math.nan,
    ):
        self.method = _checked_method(method)
        self.bounds_error = bounds_error
        if bounds_error:
            raise NotImplementedError("bounds_error is not supported: a program cannot raise by what it computes.")
        require("RegularGridInterpolator", values, *points)
        (values,) = promote_inexact("RegularGridInterpolator", values)
        grid = tuple(asarray(p) for p in points)
        if len(grid) > values.ndim:
            raise ValueError(f"there are {len(grid)} point arrays, but values has {values.ndim} dimensions")
        for axis, places in enumerate(grid):
            if places.ndim != 1:
                raise ValueError(f"the points along axis {axis} must be a vector, got shape {places.shape}")
            if places.shape[0] != values.shape[axis]:
                raise ValueError(f"there are {places.shape[0]} points and {values.shape[axis]} values on axis {axis}")
            if not is_tracer(places) and not np.all(np.diff(np.asarray(places)) > 0):
                raise ValueError(f"the points along axis {axis} must be strictly ascending")
        if fill_value is not None:
            fill_value = asarray(fill_value)
            if dtype_kind(fill_value.dtype) == "c" and dtype_kind(values.dtype) != "c":
                raise ValueError("fill_value must be either 'None' or of a type compatible with values")
        self.grid, self.values, self.fill_value = grid, values, fill_value

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """The function at places.

        Args:
          xi: places, shape (..., N); or a tuple of N arrays, which broadcast.
          method: "linear" or "nearest"; that of the interpolator when None.

        Returns:
          Array of shape (..., *values.shape[N:]); of N numbers in a tuple, of shape values.shape[N:].
        """
        method = self.method if method is None else _checked_method(method)
        ndim = len(self.grid)
        together = isinstance(xi, tuple)
        if together:
            x = _join.stack(broadcast_together(*promote_inexact("RegularGridInterpolator", *xi)), axis=-1)
        else:
            (x,) = promote_inexact("RegularGridInterpolator", xi)
        if x.ndim == 0:
            raise IndexError("RegularGridInterpolator: places must have at least one axis")
        if x.ndim == 1 and not together:
            if x.size % ndim:
                raise TypeError(f"RegularGridInterpolator: {x.size} numbers are no places in {ndim} dimensions")
            x = lax.reshape(x, (x.size // ndim, ndim))
        if x.shape[-1] != ndim:
            raise ValueError(f"the requested places have dimension {x.shape[-1]}, but the grid has dimension {ndim}")
        return _interpolate(self.grid, self.values, self.fill_value, x, method)


def _checked_method(method: str) -> str:
    if method not in _METHODS:
        raise ValueError(f"method {method!r} is not defined")
    return method


def _cell(places: Array, x: Array) -> tuple[Array, Array]:
    """Which interval of a grid axis `x` is in, the outer ones for what is outside; and where, as a fraction of it."""
    # the width of a single place's interval is zero, and so fractions are NaN
    last = max(places.shape[0] - 2, 0)
    index = lax.clamp(np.int32(0), lax.convert_element_type(_search.searchsorted(places, x, "right"), np.int32) - 1,
                      np.int32(last))  # fmt: skip
    low = _take.take(places, index, mode="clip")
    return index, (x - low) / (_take.take(places, index + 1, mode="clip") - low)


@partial(jit, static_argnums=4)
def _interpolate(grid: tuple[Array, ...], values: Array, fill_value: Array | None, xi: Array, method: str) -> Array:
    ndim, batch = len(grid), xi.shape[:-1]
    *axes, x = promote_inexact("RegularGridInterpolator", *grid, lax.reshape(xi, (math.prod(batch), ndim)))
    cells = [_cell(places, x[:, i]) for i, places in enumerate(axes)]
    missing = (x != x).any(-1)
    outside = missing
    for i, places in enumerate(axes):
        outside = outside | (x[:, i] < places[0]) | (x[:, i] > places[-1])

    def like_values(v: Array) -> Array:
        return lax.expand_dims(v, tuple(range(1, 1 + values.ndim - ndim)))

    if method == "nearest":
        nearest = tuple(index + lax.convert_element_type(share > 0.5, index.dtype) for index, share in cells)
        result: Any = values[nearest]
    else:
        result = None
        for corner in itertools.product((0, 1), repeat=ndim):
            weight: Any = None
            for upper, (_, share) in zip(corner, cells, strict=True):
                factor = share if upper else 1 - share
                weight = factor if weight is None else weight * factor
            index = tuple(
                _clipped(i + upper, places) for upper, (i, _), places in zip(corner, cells, axes, strict=True)
            )
            term = values[index] * like_values(weight)
            result = term if result is None else result + term
    dtype = result.dtype
    fill = lax.full((), math.nan, dtype) if fill_value is None else lax.convert_element_type(fill_value, dtype)
    result = _ufuncs.where(like_values(missing if fill_value is None else outside), fill, result)
    if fill_value is not None:
        result = _ufuncs.where(like_values(missing), lax.full((), math.nan, dtype), result)
    return lax.reshape(result, (*batch, *values.shape[ndim:]))


def _clipped(index: Array, places: Array) -> Array:
    return lax.min(index, np.int32(places.shape[0] - 1))


_expose(globals())
