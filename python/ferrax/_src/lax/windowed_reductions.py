"""Reductions over windows, and choices in windows: what the derivatives of the largest element are made of."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import lax
from ferrax._core import Array
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "_select_and_scatter",
    "it is part of ferrax.lax.reduce_window's derivative",
    names_of(__name__, "ferrax.lax", "ferrax.extend.core.primitives"),
)

_Ints = Sequence[int]
_Pads = Sequence[tuple[int, int]]


def _chosen(operand: Array, by: Any, window: _Ints, strides: _Ints, padding: _Pads, *dilations: _Ints) -> Array:
    """The position in the whole operand of each window's element that `by` prefers to the others; -1 where none is."""
    if by not in (lax.ge_p, lax.le_p):
        raise NotImplementedError(f"a choice in windows by {by}: only by ge and le")
    places = lax.iota(np.int32, operand.size).reshape(operand.shape)

    def better(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        left = (by.bind(a[0], b[0]) & (a[1] >= 0)) | (b[1] < 0)
        return jnp.where(left, a[0], b[0]), jnp.where(left, a[1], b[1])

    none = np.zeros((), operand.dtype), np.int32(-1)
    return lax.reduce_window((operand, places), none, better, window, strides, padding, *dilations)[1]


def _select_and_scatter_add(
    source: Any, operand: Any, select_prim: Any, window_dimensions: _Ints, window_strides: _Ints, padding: _Pads
) -> Array:
    source, operand = jnp.asarray(source), lax.stop_gradient(jnp.asarray(operand))
    places = _chosen(operand, select_prim, window_dimensions, window_strides, padding)
    sums = jnp.zeros(operand.size, source.dtype)
    places = jnp.where(places < 0, operand.size, places)
    put = sums.at[places].max if source.dtype == bool else sums.at[places].add
    return put(source, mode="drop").reshape(operand.shape)


def _select_and_gather_add(
    tangents: Any,
    operand: Any,
    select_prim: Any,
    window_dimensions: _Ints,
    window_strides: _Ints,
    padding: _Pads,
    base_dilation: _Ints,
    window_dilation: _Ints,
) -> Array:
    tangents, operand = jnp.asarray(tangents), lax.stop_gradient(jnp.asarray(operand))
    sizes = window_dimensions, window_strides, padding, base_dilation, window_dilation
    places = _chosen(operand, select_prim, *sizes)
    return jnp.where(places < 0, 0, tangents.reshape(-1)[places]).astype(tangents.dtype)
