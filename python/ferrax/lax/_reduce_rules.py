"""Derivatives of reductions by a function of the caller's.

The engine reduces in an order of its own; slopes come from the same reduction written as a tree of calls of the
function, neighbours with neighbours, which any transformation goes through: Blelloch, "Prefix sums and their
applications" (1990). Windows are few cells and go one after the other. Read next: `reductions.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import tree_util
from ferrax._ferrax import Array, shape
from ferrax.lax.conversion import select
from ferrax.lax.shape import broadcast_in_dim, reshape, transpose
from ferrax.lax.slicing import concatenate, pad, slice as _slice

__all__ = ["differentiable", "of_axes", "of_windows"]

_Reduction = Callable[[Sequence[Array], Sequence[Array]], list[Array]]


def differentiable(run: _Reduction, tree: _Reduction) -> _Reduction:
    """A reduction of the engine's with the slopes of a tree.

    Args:
      run: the reduction, of operands and initial values.
      tree: the same as a composition of calls that can be differentiated.

    Returns:
      A function of the same arguments.
    """
    from ferrax._derivatives import jvp
    from ferrax.custom_derivatives import custom_jvp

    @custom_jvp
    def reduce(flat: Sequence[Array], inits: Sequence[Array]) -> list[Array]:
        return list(run(flat, inits))

    reduce.defjvp(lambda primals, tangents: jvp(tree, primals, tangents))
    return reduce


def _combine(computation: Callable[[Any, Any], Any], structure: Any) -> Callable[..., list[Array]]:
    """The caller's function of scalars, as one of lists of arrays of one shape."""
    from ferrax._api import vmap

    def scalars(xs: list[Array], ys: list[Array]) -> list[Array]:
        x, y = (tree_util.tree_unflatten(structure, v) for v in (xs, ys))
        return tree_util.tree_leaves(computation(x, y))

    def arrays(xs: list[Array], ys: list[Array]) -> list[Array]:
        dims = shape(xs[0])
        size = int(np.prod(dims))
        out = vmap(scalars)([reshape(x, (size,)) for x in xs], [reshape(y, (size,)) for y in ys])
        return [reshape(z, dims) for z in out]

    return arrays


def _reduced(combine: Callable[..., list[Array]], xs: list[Array], inits: Sequence[Array]) -> list[Array]:
    """The reduction of leading axes, after the initial values."""
    rest = shape(xs[0])[1:]
    zeros, ones = (0,) * len(rest), (1,) * len(rest)
    starts = [broadcast_in_dim(i, rest, ()) for i in inits]
    if 0 in shape(xs[0]):
        return starts
    while (n := shape(xs[0])[0]) > 1:
        even = n - n % 2
        halves = ([_slice(x, (k, *zeros), (even, *rest), (2, *ones)) for x in xs] for k in (0, 1))
        merged = combine(*halves)
        if n % 2:
            last = [_slice(x, (even, *zeros), (n, *rest)) for x in xs]
            merged = [concatenate([m, v], 0) for m, v in zip(merged, last)]
        xs = merged
    return combine(starts, [reshape(x, rest) for x in xs])


def of_axes(computation: Callable[[Any, Any], Any], structure: Any, dimensions: Sequence[int]) -> _Reduction:
    """The tree of `lax.reduce`.

    Args:
      computation: the caller's function of two scalars, or pytrees of scalars.
      structure: the pytrees' structure.
      dimensions: the axes that go away.

    Returns:
      A function of operands and initial values.
    """
    combine = _combine(computation, structure)

    def reduction(flat: Sequence[Array], inits: Sequence[Array]) -> list[Array]:
        dims = shape(flat[0])
        axes = [int(d) for d in dimensions]
        kept = [i for i in range(len(dims)) if i not in axes]
        size = int(np.prod([dims[i] for i in axes]))
        rows = [reshape(transpose(x, [*axes, *kept]), (size, *(dims[i] for i in kept))) for x in flat]
        return _reduced(combine, rows, inits)

    return reduction


def of_windows(
    computation: Callable[[Any, Any], Any], structure: Any, window: Sequence[int], strides: Sequence[int],
    pads: Sequence[tuple[int, int]], base: Sequence[int], spacing: Sequence[int],
) -> _Reduction:  # fmt: skip
    """Calls of the function for `lax.reduce_window`: after the initial value, each cell of the window in its order.

    Cells of the padding, or between elements, take no part, as in the engine.

    Args:
      computation, structure: as in `of_axes`.
      window, strides, pads, base, spacing: as `lax.reduce_window` has them, for each axis.

    Returns: as in `of_axes`.
    """
    from ferrax.lax.reductions import reduce_window_shape_tuple

    combine = _combine(computation, structure)
    widths = [(low, high, d - 1) for (low, high), d in zip(pads, base)]
    all_inside = all(number <= 0 for width in widths for number in width)

    def reduction(flat: Sequence[Array], inits: Sequence[Array]) -> list[Array]:
        dims = shape(flat[0])
        out = reduce_window_shape_tuple(dims, window, strides, pads, base, spacing)
        total = [broadcast_in_dim(i, out, ()) for i in inits]
        if 0 in out:
            return total
        padded = [pad(x, i, widths) for x, i in zip(flat, inits)]
        inside = None if all_inside else pad(np.ones(dims, bool), np.bool_(False), widths)
        for cell in itertools.product(*map(range, window)):
            starts = [c * d for c, d in zip(cell, spacing)]
            ends = [s + (n - 1) * step + 1 for s, n, step in zip(starts, out, strides)]
            merged = combine(total, [_slice(x, starts, ends, strides) for x in padded])
            if inside is not None:
                here = _slice(inside, starts, ends, strides)
                merged = [select(here, m, t) for m, t in zip(merged, total)]
            total = merged
        return total

    return reduction
