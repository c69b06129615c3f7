"""Objects that turn index syntax into arrays: mgrid, ogrid, r_, c_, s_, index_exp.

A step that is a complex number `nj` means n points, ends included, as in NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray, concrete_or_error, is_tracer, promote_dtypes
from ferrax.config import numpy_dtype_promotion
from ferrax.numpy import _join, _shape
from ferrax.numpy._args import Array
from ferrax.numpy._dtype_functions import default_int
from ferrax.numpy._ranges import arange, linspace
from ferrax.numpy._take import meshgrid

__all__ = ["c_", "index_exp", "mgrid", "ogrid", "r_", "s_"]


def _static(value: Any, name: str) -> Any:
    return concrete_or_error(None, value, f"slice {name}") if is_tracer(value) else value


def _points(s: slice, name: str) -> Array:
    """The vector that a slice stands for."""
    start, stop, step = (_static(getattr(s, end), f"{end} of jnp.{name}") for end in ("start", "stop", "step"))
    start = 0 if start is None else start
    if stop is None:
        stop = 0  # none, of which NumPy makes an empty vector
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, 1 if step is None else step)


class _Grid:
    """A grid that slices span.

    >>> import ferrax.numpy as jnp
    >>> jnp.mgrid[0:2, 0:2].shape, jnp.ogrid[0:3]
    ((2, 2, 2), Array([0, 1, 2], dtype=int32))
    """

    def __init__(self, name: str, sparse: bool):
        self._name, self._sparse = name, sparse

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        if isinstance(key, slice):
            return _points(key, self._name)
        vectors = [_points(s, self._name) for s in key]
        with numpy_dtype_promotion("standard"):  # slices are no values that somebody forgot to convert
            vectors = list(promote_dtypes(*vectors))
        arrays = meshgrid(*vectors, indexing="ij", sparse=self._sparse)
        if self._sparse:
            return arrays
        return _join.stack(arrays, 0) if arrays else lax.full((0,), 0, default_int())

    def __repr__(self) -> str:
        return f"jnp.{self._name}"


class _Concatenator:
    """Joins slices, arrays and numbers along an axis.

    >>> import ferrax.numpy as jnp
    >>> jnp.r_[0:2, 7, jnp.array([8, 9])]
    Array([0, 1, 7, 8, 9], dtype=int32)
    """

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int):
        self._name, self._axis, self._ndmin, self._trans1d = name, axis, ndmin, trans1d

    def _directive(self, text: str) -> tuple[int, int, int]:
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            raise ValueError(f"could not understand directive {text!r}") from None
        return tuple((numbers + [self._axis, self._ndmin, self._trans1d][len(numbers) :])[:3])  # type: ignore[return-value]

    def __getitem__(self, key: Any) -> Array:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self._axis, self._ndmin, self._trans1d
        if items and isinstance(items[0], str) and items[0] in ("r", "c"):
            return self._matrix(items[1:], items[0])
        if items and isinstance(items[0], str):
            axis, ndmin, trans1d = self._directive(items.pop(0))
        if not items:
            raise ValueError(f"jnp.{self._name} needs something to join")
        return _join.concatenate([self._widened(item, ndmin, trans1d) for item in items], axis)

    def _matrix(self, items: list[Any], form: str) -> Array:
        """What `items` join to, as a row (or the matrix they are), or as a column under ``"c"``."""
        joined = self[tuple(items)]
        if joined.ndim != 1:
            return joined
        return lax.expand_dims(joined, (0,) if form == "r" else (1,))

    def _widened(self, item: Any, ndmin: int, trans1d: int) -> Array:
        if isinstance(item, slice):
            item = _points(item, self._name)
        elif isinstance(item, str):
            raise ValueError("string directive must be placed at the beginning")
        elif isinstance(item, (list, tuple)):
            from ferrax.numpy._creation import array

            item = array(item)
        x = asarray(item)
        missing = ndmin - x.ndim
        if missing <= 0:
            return _shape.atleast_1d(x)
        start = trans1d if trans1d >= 0 else trans1d + missing + 1
        places = list(range(ndmin))
        own = places[start : start + x.ndim] if x.ndim else []
        return lax.expand_dims(x, tuple(p for p in places if p not in own))

    def __repr__(self) -> str:
        return f"jnp.{self._name}"


class RClass(_Concatenator):
    """Joins along the first axis."""

    def __init__(self) -> None:
        super().__init__("r_", 0, 1, -1)


class CClass(_Concatenator):
    """Joins along the last axis, vectors as columns."""

    def __init__(self) -> None:
        super().__init__("c_", -1, 2, 0)


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)
r_ = RClass()
c_ = CClass()
s_ = np.s_
index_exp = np.index_exp
