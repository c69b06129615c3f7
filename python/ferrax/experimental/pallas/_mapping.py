"""Windows of arrays: what a `BlockSpec` means for an array of a shape. Read next: `_call.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._core import ShapedArray
from ferrax.experimental.pallas import _grid
from ferrax.experimental.pallas._specs import (
    Blocked,
    BlockSpec,
    BoundedSlice,
    Element,
    Indirect,
    Semaphore,
    Squeezed,
    is_known,
    squeezed,
)

__all__ = ["BlockMapping", "kernel_text", "uninitialized", "with_bounds"]


def uninitialized(shape: Sequence[int], dtype: Any) -> Any:
    """An array of elements that nobody has written: NaN, or the smallest integer, so that a use of them shows."""
    from ferrax.dtypes import issubdtype
    from ferrax.numpy import bool_, complexfloating, floating, full, iinfo, integer

    shape = tuple(shape)
    if isinstance(dtype, Semaphore):
        return full(shape, 0, np.int16)
    if issubdtype(dtype, floating) or issubdtype(dtype, complexfloating):
        return full(shape, np.nan, dtype)
    if issubdtype(dtype, integer):
        return full(shape, 0 if dtype == np.int16 else iinfo(dtype).min, dtype)
    if issubdtype(dtype, bool_):
        return full(shape, False, dtype)
    raise NotImplementedError(f"kernels have no arrays of dtype {dtype}")


def kernel_text(fun: Any) -> str:
    """A function by its name and line."""
    from ferrax._refs_calls import described

    return described(getattr(fun, "index_map", fun))


def _dim(dim: Any) -> Any:
    if dim is None:
        return squeezed
    if isinstance(dim, (Blocked, Element, Squeezed)):
        return dim
    if isinstance(dim, (BoundedSlice, Indirect)):
        raise NotImplementedError(f"blocks with the dimension {dim} are not implemented by the interpreter")
    try:
        return Blocked(int(dim))
    except Exception as e:
        raise ValueError(
            f"Unsupported block dimension type: {type(dim)}. Allowed types: `pl.Squeezed`, `pl.Blocked`, "
            "`pl.Element`, `int`, `None`."
        ) from e


class BlockMapping:
    """The windows of an array.

    Args:
      spec: the `BlockSpec`.
      origin: what the array is, for messages.
      shape, dtype: those of the array.
      grid: sizes of the grid.
      scalars: types of the references that index maps get beside the place.

    Attributes:
      sizes: the shape of a window, of the array's rank.
      ref_shape: the shape that kernels see.
    """

    def __init__(
        self, spec: BlockSpec, origin: str, shape: tuple[int, ...], dtype: Any, grid: Sequence[Any], scalars: Any
    ):
        self.origin, self.shape, self.dtype, self.index_map = origin, tuple(shape), dtype, spec.index_map
        self.dims = tuple(map(_dim, self.shape if spec.block_shape is None else spec.block_shape))
        if len(self.dims) != len(self.shape):
            raise ValueError(
                f"Block shape for {origin} (= {self.dims}) must have the same number of dimensions as the array shape "
                f"{self.shape}."
            )
        self.sizes = tuple(1 if isinstance(d, Squeezed) else d.block_size for d in self.dims)
        self.hidden = tuple(i for i, d in enumerate(self.dims) if isinstance(d, Squeezed))
        self.ref_shape = tuple(n for i, n in enumerate(self.sizes) if i not in self.hidden)
        self.padding = [d.padding if isinstance(d, Element) else (0, 0) for d in self.dims]
        self.check(grid, scalars)

    def check(self, grid: Sequence[Any], scalars: Any) -> None:
        """Raises where the index map does not give an integer for every axis."""
        if self.index_map is None:
            return
        index_map, kept = self.index_map, []

        def call(places: Any, bounds: Any, values: Any) -> Any:
            from ferrax._refs_calls import fill

            own = [_ref_of(v) for v in values]
            with _grid.at(places, with_bounds(grid, bounds)):
                kept.append(index_map(*places, *fill(scalars, own)))
            return tree_util.tree_leaves(kept[-1])

        values = [ShapedArray(slot.aval.shape, slot.aval.dtype) for slot in slots(scalars)]
        places = [ShapedArray((), np.int32)] * len(grid)
        bounds = [ShapedArray((), n.dtype) for n in grid if not is_known(n)]
        program = _ferrax.trace_to_jaxpr(call, (places, bounds, values), None, "pallas_call")
        where = f"Index map function {kernel_text(index_map)} for {self.origin}"
        if len(kept[0]) != len(self.dims):
            raise ValueError(
                f"{where} must return {len(self.dims)} values to match block_shape={self.dims}. Currently returning "
                f"{len(kept[0])} values:"
            )
        for i, aval in enumerate(program.out_avals):
            if aval.shape or aval.dtype not in (np.int32, np.int64):
                raise ValueError(f"{where} must return integer scalars. Output[{i}] has type {aval}.")
        if program.captured or any(c.size for c in program.consts):
            raise ValueError(f"{where} must not capture constants: {list(program.consts)}")

    def starts(self, places: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """The first element of the window, along each axis."""
        from ferrax.numpy import asarray

        if self.index_map is None:
            return [np.int32(0)] * len(self.dims)
        index = [asarray(i, np.int32) for i in self.index_map(*places, *scalars)]
        return [i * d.block_size if isinstance(d, Blocked) else i for i, d in zip(index, self.dims, strict=True)]

    def padded(self, x: Any) -> Any:
        """The array with its padding, and filled up to whole windows."""
        from ferrax.lax import pad

        widths = [
            (low, high + -(low + size + high) % block if block else high, 0)
            for (low, high), size, block in zip(self.padding, x.shape, self.sizes, strict=True)
        ]
        if not any(low or high for low, high, _ in widths):
            return x
        return pad(x, uninitialized((), x.dtype), widths)

    def cut(self, x: Any) -> Any:
        """The array without padding."""
        from ferrax.lax import slice as lax_slice

        lows = [low for low, _ in self.padding]
        if x.shape == self.shape and not any(lows):
            return x
        return lax_slice(x, lows, [low + n for low, n in zip(lows, self.shape, strict=True)])

    def read(self, x: Any, starts: Sequence[Any]) -> Any:
        """The window, as kernels see it."""
        from ferrax.lax import dynamic_slice, squeeze

        window = x if x.shape == self.sizes else dynamic_slice(x, starts, self.sizes)
        return squeeze(window, self.hidden) if self.hidden else window

    def write(self, x: Any, starts: Sequence[Any], window: Any) -> Any:
        """The array with another window."""
        from ferrax.lax import dynamic_update_slice, expand_dims

        window = expand_dims(window, self.hidden) if self.hidden else window
        return window if x.shape == self.sizes else dynamic_update_slice(x, window, starts)


def with_bounds(grid: Sequence[Any], bounds: Sequence[Any]) -> tuple[Any, ...]:
    """A grid with other values for its sizes that are no integers."""
    each = iter(bounds)
    return tuple(n if is_known(n) else next(each) for n in grid)


def _ref_of(value: Any) -> Any:
    from ferrax._refs import make

    return make(value)


def slots(scalars: Any) -> list[Any]:
    """The places of references in a tree that `take` has made."""
    from ferrax._refs_calls import Slot

    return [x for x in tree_util.tree_leaves(scalars, is_leaf=lambda x: isinstance(x, Slot)) if isinstance(x, Slot)]
