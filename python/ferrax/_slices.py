"""`ferrax.ds`: a window of static size at a dynamic place, as a part of an index.

An index with windows is taken apart: each window is read along its own axis, and the rest of the index, with `:` in
the places of windows, is applied to what that gives. Updates find the places of an index in an array that counts the
elements. The core hands indices with windows over; before this module is loaded there are none, and nobody looks for
them. Read next: `_refs.py`, which checks the bounds of windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._boundary import shielded
from ferrax._shapes import static_size
from ferrax.tree_util import register_pytree_node_class

__all__ = ["Slice", "check_bounds", "clipped", "ds", "dslice"]

_UPDATES = ("add", "subtract", "mul", "multiply", "divide", "power", "min", "max", "set")


@register_pytree_node_class
@dataclass
class Slice:
    """A window along an axis: `size` elements from `start` on, `stride` apart. `ferrax.ds` makes one.

    Args:
      start: the first element, an integer or a traced scalar.
      size: number of elements, an integer.
      stride: distance of elements, an integer that is not negative.

    >>> import ferrax as jax
    >>> jax.ds(2, 3)
    Slice(start=2, size=3, stride=1)
    """

    start: Any
    size: Any
    stride: int = 1

    def __post_init__(self) -> None:
        if self.stride < 0:
            raise ValueError("`stride` must be >= 0.")

    is_dynamic_start = property(lambda self: not isinstance(self.start, int), doc="Whether the start is an array.")
    is_dynamic_size = property(lambda self: not isinstance(self.size, int), doc="Whether the size is an array.")

    def tree_flatten(self) -> tuple[Any, Any]:
        """The parts that are arrays, and those that are known."""
        parts = (self.start, self.size)
        arrays = tuple(None if isinstance(p, int) else p for p in parts)
        return arrays, (*(p if isinstance(p, int) else None for p in parts), self.stride)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Slice:
        """The window of these parts."""
        start, size = (known if array is None else array for array, known in zip(children, aux[:2], strict=True))
        return cls(start, size, aux[2])

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """The window that an ordinary slice is on an axis of a size."""
        start, stop, step = slc.indices(size)
        if step < 1:
            raise ValueError(f"slice must have a step >= 1 (found: {step})")
        return cls(start, len(range(start, stop, step)), step)


def dslice(start: Any, size: Any = None, stride: int | None = None) -> slice | Slice:
    """A window of an axis, for indices of arrays and references: `x[ds(i, n)]` is `x[i:i + n]` for a traced `i`.

    Reading `x[ds(i, n)]` moves a window that does not fit into the array, as `lax.dynamic_slice` does. In updates it
    counts as out of bounds as a whole. In updates and together with index arrays, starts are not counted from the end.

    Args:
      start: the first element, an integer or a traced scalar; negative ones count from the end. The size, when there is
        no `size`; None for all of an axis.
      size: number of elements, an integer.
      stride: distance of elements, an integer that is not negative; 1 by default.

    Returns:
      A `Slice`, or `slice(None)`.

    Raises:
      ValueError: the stride is negative or traced.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.jit(lambda x, i: x[jax.ds(i, 2)])(jnp.arange(10), 4))
    [4 5]
    """
    if start is None:
        return slice(None)
    if stride is not None and not isinstance(stride, int):
        raise ValueError("Non-static stride in `dslice`")
    if size is None:
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)


ds = dslice


def check_bounds(index: Any, shape: tuple[int, ...]) -> None:
    """Raises ValueError where a window of known place does not fit: what references ask for."""
    for part, axis, _ in _parts(index, shape):
        if type(part) is not Slice or _ferrax.is_tracer(part.start):
            continue
        start, size, n = int(part.start), _size(part), shape[axis]
        if start < 0:
            raise TypeError(f"windows of references count from the start of an axis, got start={start}, dim={n}")
        if start >= n and size:
            raise ValueError(f"Out of bound slice: start={start}, dim={n}.")
        if size and start + (size - 1) * part.stride >= n:
            raise ValueError(f"Out of bound slice: start={start}, size={size}, stride={part.stride}, dim={n}.")


def clipped(index: Any, shape: tuple[int, ...]) -> bool:
    """Whether updates of references move windows that do not fit: where there are no index arrays."""
    return not any(_gathers(part) for part, _, _ in _parts(index, shape))


def _parts(index: Any, shape: tuple[int, ...]) -> list[tuple[Any, int, int]]:
    """The parts of an index without `...`, each with its first axis and the number of axes that it takes."""
    parts = list(index) if isinstance(index, tuple) else [index]
    taken = [_axes(part) for part in parts]
    rest = len(shape) - sum(taken)
    if rest < 0:
        raise IndexError(f"Too many indices: {len(shape)}-dimensional array indexed with {sum(taken)} regular indices.")
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("Multiple ellipses (...) not supported: index has more than one.")
    place = dots[0] if dots else len(parts)
    full = [*parts[:place], *[slice(None)] * rest, *parts[place + 1 :]]
    found, axis = [], 0
    for part in full:
        count = _axes(part)
        found.append((part, axis, count))
        axis += count
    return found


def _axes(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
        return 0
    dtype = getattr(part, "dtype", None)
    if dtype is None and isinstance(part, (list, tuple)):
        part = np.asarray(part)
        dtype = part.dtype
    return int(part.ndim) if dtype is not None and np.dtype(bool) == dtype else 1


def _gathers(part: Any) -> bool:
    """Whether a part makes the whole index one of index arrays, where windows out of bounds are filled or dropped."""
    if type(part) is Slice:
        return part.stride != 1
    if isinstance(part, slice):
        return part.step not in (None, 1, -1)
    return isinstance(part, (bool, np.bool_, list, tuple)) or bool(np.shape(part)) or _axes(part) == 0 < np.ndim(part)


def _size(window: Slice) -> int:
    try:
        return static_size(window.size)
    except TypeError:
        raise TypeError(f"the size of a window must be a static integer, got {window.size!r}") from None


def _start(window: Slice, n: int, wrap: bool) -> Any:
    """The start as an integer, or as a scalar array that counts from 0."""
    from ferrax import numpy as jnp

    if isinstance(window.start, int):
        return window.start + n if wrap and window.start < 0 else window.start
    start = jnp.asarray(window.start)
    if start.shape != () or not jnp.issubdtype(start.dtype, np.integer):
        raise TypeError(f"the start of a window must be an integer scalar, got {start.dtype.name}{list(start.shape)}")
    return jnp.where(start < 0, start + n, start) if wrap else start


def _read_window(x: Any, axis: int, window: Slice, mode: str, fill_value: Any, wrap: bool) -> Any:
    """The elements of a window along an axis."""
    from ferrax import lax, numpy as jnp

    n, size = x.shape[axis], _size(window)
    start = _start(window, n, wrap)
    if window.stride == 1 and size > n:
        raise TypeError(f"a window of {size} elements does not fit on axis {axis} of shape {x.shape}")
    if window.stride == 1 and mode == "clip":
        return lax.dynamic_slice_in_dim(x, start, size, axis, allow_negative_indices=False)
    rows = start + window.stride * jnp.arange(size)
    if mode == "clip":
        return jnp.take(x, rows, axis, mode="clip")
    inside = (start >= 0) & (start <= n - size) if window.stride == 1 else (rows >= 0) & (rows < n)
    return x.at[(slice(None),) * axis + (jnp.where(inside, rows, n),)].get(mode="fill", fill_value=fill_value)


def _read(
    x: Any,
    index: Any,
    mode: str | None,
    fill_value: Any = None,
    wrap: bool = True,
    from_end: bool = True,
    **promises: bool,
) -> Any:
    """`x[index]`, where windows out of bounds are moved, or filled when the mode is "fill"."""
    parts = _parts(index, x.shape)
    # the starts of windows count from the end where nothing but slices and numbers is in the index
    how = "clip" if mode in (None, "clip", "promise_in_bounds") else "fill"
    from_end = from_end and wrap and how == "clip" and not any(_gathers(part) for part, _, _ in parts)
    for part, axis, _ in parts:
        if type(part) is Slice:
            x = _read_window(x, axis, part, how, fill_value, from_end)
    rest = tuple(slice(None) if type(part) is Slice else part for part, _, _ in parts)
    if mode is None and not promises and wrap and fill_value is None:
        return x[rest]
    return x.at[rest].get(mode=mode, fill_value=fill_value, wrap_negative_indices=wrap, **promises)


def _mode(mode: Any) -> str | None:
    return mode if mode is None or isinstance(mode, str) else mode.name.lower().replace("fill_or_drop", "fill")


def _update(x: Any, index: Any, how: Callable[..., Any], mode: Any, wrap: bool, **promises: bool) -> Any:
    """`how` on the places of an index: `x` as a vector at places that are counted in it."""
    from ferrax import numpy as jnp

    count = math.prod(x.shape)
    if count >= 2**31:
        raise NotImplementedError("updates of arrays of 2**31 and more elements at indices with windows")
    numbers = jnp.arange(count, dtype=np.int32).reshape(x.shape)
    kind = "clip" if _mode(mode) in ("clip", "promise_in_bounds") else "fill"
    places = _read(numbers, index, kind, None if kind == "clip" else count, wrap, from_end=False)
    changed = how(x.reshape(count).at[places], mode="drop", wrap_negative_indices=False, **promises)
    return changed.reshape(x.shape)


class _UpdateAt:
    """`x.at[index]` of an index with windows: the methods of those without."""

    def __init__(self, array: Any, index: Any):
        self.array, self.index = array, index

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
        return _read(self.array, self.index, _mode(mode), fill_value, wrap_negative_indices, **promises)

    def apply(
        self,
        func: Callable[..., Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
        how = lambda at, **options: at.apply(func, **options)
        return _update(self.array, self.index, how, mode, wrap_negative_indices, **promises)

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"


def _method(name: str) -> Callable[..., Any]:
    def change(
        self: _UpdateAt,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
        how = lambda at, **options: getattr(at, name)(values, **options)
        return _update(self.array, self.index, how, mode, wrap_negative_indices, **promises)

    change.__name__ = name
    return shielded(change)


for _name in _UPDATES:
    setattr(_UpdateAt, _name, _method(_name))


@shielded
def _getitem(self: Any, index: Any) -> Any:
    return _read(self, index, None)


_ferrax.set_window_hooks(Slice, _getitem, _UpdateAt)
