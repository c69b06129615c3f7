"""Random arrays for tests: functions `rand_*(rng)` that give a function of shape and dtype.

Draws are of a dtype's kind: integers are rounded, complex numbers have two parts, truths say whether a number is zero.
Read next: `test_util.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import dtypes as _dtypes

Draw = Callable[..., Any]


class ScalarShape:
    """A shape of what is no array but a number."""

    def __len__(self) -> int:
        return 0

    def __getitem__(self, i: Any) -> Any:
        raise IndexError(f"a {type(self).__name__.strip('_')} has no axes")


class _NumpyScalar(ScalarShape):
    pass


class _PythonScalar(ScalarShape):
    pass


#: In place of a shape: a scalar of NumPy's.
NUMPY_SCALAR_SHAPE = _NumpyScalar()
#: In place of a shape: a number of Python's.
PYTHON_SCALAR_SHAPE = _PythonScalar()

_PYTHON_DTYPES = frozenset(["bool", "int32", "int64", "float32", "float64", "complex64", "complex128"])


def is_valid_shape(shape: Any, dtype: Any) -> bool:
    """Whether there are values of a shape and dtype: Python's numbers have few dtypes."""
    if shape is PYTHON_SCALAR_SHAPE:
        name = np.dtype(dtype).name
        return name in _PYTHON_DTYPES and np.dtype(dtype) == np.dtype(_dtypes.canonicalize_dtype(_kind(dtype)))
    return True


def _kind(dtype: Any) -> type:
    return {"b": bool, "i": int, "u": int, "c": complex}.get(np.dtype(dtype).kind, float)


def dims_of(shape: Any) -> tuple[int, ...]:
    """A shape's dimensions: none of numbers."""
    if isinstance(shape, ScalarShape):
        return ()
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)


def shaped(value: Any, shape: Any, dtype: Any) -> Any:
    """Elements as what a shape stands for: an array, a scalar of NumPy's, or a number of Python's."""
    array = np.asarray(value, dtype)
    if shape is NUMPY_SCALAR_SHAPE:
        return array.dtype.type(array[()])
    if shape is PYTHON_SCALAR_SHAPE:
        return _kind(dtype)(array[()])
    return array.reshape(dims_of(shape))


def drawn(rand: Draw, shape: Any, dtype: Any, scale: float = 1.0, post: Callable[[Any], Any] = lambda x: x) -> Any:
    """Scaled draws of a function of dimensions, in a dtype."""
    dims = dims_of(shape)
    with np.errstate(invalid="ignore", over="ignore"):
        values = np.asarray(scale * rand(*dims), np.float64)
        if np.dtype(dtype).kind == "c":
            values = values + 1j * np.asarray(scale * rand(*dims), np.float64)
        elif _dtypes.issubdtype(dtype, np.unsignedinteger):
            values = np.abs(values)
        return shaped(post(np.asarray(values).astype(dtype)), shape, dtype)


def rand_default(rng: Any, scale: float = 3) -> Draw:
    """Normal numbers of a standard deviation."""
    return lambda shape, dtype: drawn(rng.randn, shape, dtype, scale)


def rand_nonzero(rng: Any) -> Draw:
    """Normal numbers, ones in place of zeros."""
    post = lambda x: np.where(x == 0, np.array(1, x.dtype), x)
    return lambda shape, dtype: drawn(rng.randn, shape, dtype, 3, post)


def rand_positive(rng: Any) -> Draw:
    """Numbers from 1 to 3."""
    return lambda shape, dtype: drawn(lambda *dims: rng.rand(*dims) + 0.5, shape, dtype, 2)


def rand_small(rng: Any) -> Draw:
    """Normal numbers of about a thousandth."""
    return lambda shape, dtype: drawn(rng.randn, shape, dtype, 1e-3)


def rand_not_small(rng: Any, offset: float = 10.0) -> Draw:
    """Normal numbers that keep away from zero."""
    post = lambda x: x + np.where(x > 0, offset, -offset).astype(x.dtype)
    return lambda shape, dtype: drawn(rng.randn, shape, dtype, 3, post)


def rand_small_positive(rng: Any) -> Draw:
    """Numbers from 0 to 2e-5."""
    return lambda shape, dtype: drawn(rng.rand, shape, dtype, 2e-5)


def rand_uniform(rng: Any, low: float = 0.0, high: float = 1.0) -> Draw:
    """Uniform numbers."""
    return lambda shape, dtype: drawn(lambda *dims: rng.rand(*dims) * (high - low) + low, shape, dtype)


def rand_some_equal(rng: Any) -> Draw:
    """Large normal numbers, about half of which are the first one."""

    def post(x: Any) -> Any:
        flips = rng.rand(*np.shape(x)) < 0.5
        return np.where(flips, x.ravel()[0], x) if x.size else x

    return lambda shape, dtype: drawn(rng.randn, shape, dtype, 100.0, post)


def _some(rng: Any, *specials: float) -> Draw:
    """Normal numbers, some of which are others; integers have none of these."""

    def draw(shape: Any, dtype: Any) -> Any:
        if not (_dtypes.issubdtype(dtype, np.inexact)):
            return drawn(rng.randn, shape, dtype, 3)
        dims = dims_of(shape)
        values = np.asarray(drawn(rng.randn, dims, dtype, 3))
        for special in specials:
            part = np.asarray(special * (1 + 1j) if np.dtype(dtype).kind == "c" and special != special else special)
            values = np.where(rng.rand(*dims) < 0.1, part.astype(values.dtype), values)
        return shaped(values, shape, dtype)

    return draw


def rand_some_inf(rng: Any) -> Draw:
    """Normal numbers, some of them infinite."""
    return _some(rng, np.inf, -np.inf)


def rand_some_nan(rng: Any) -> Draw:
    """Normal numbers, some of them NaN."""
    return _some(rng, np.nan, -np.nan)


def rand_some_inf_and_nan(rng: Any) -> Draw:
    """Normal numbers, some of them infinite, some NaN."""
    return _some(rng, np.inf, -np.inf, np.nan)


def rand_some_zero(rng: Any) -> Draw:
    """Normal numbers, half of them zero."""

    def post(x: Any) -> Any:
        return np.where(rng.rand(*np.shape(x)) < 0.5, np.array(0, x.dtype), x)

    return lambda shape, dtype: drawn(rng.randn, shape, dtype, 3, post)


def rand_int(rng: Any, low: int = 0, high: int | None = None) -> Draw:
    """Integers from `low` to below `high`: the dtype's largest where there is none."""

    def draw(shape: Any, dtype: Any) -> Any:
        top = high
        if top is None:
            if not _dtypes.issubdtype(dtype, np.integer):
                raise ValueError("rand_int requires an explicit `high` value for non-integer types.")
            top = int(_dtypes.iinfo(dtype).max)
        return shaped(rng.randint(low, top, size=dims_of(shape), dtype=np.int64), shape, dtype)

    return draw


def rand_unique_int(rng: Any, high: int | None = None) -> Draw:
    """Different integers below `high`, or below their number."""

    def draw(shape: Any, dtype: Any) -> Any:
        dims = dims_of(shape)
        size = int(np.prod(dims))
        return shaped(rng.choice(np.arange(high or size), size=size, replace=False), shape, dtype)

    return draw


def rand_indices_unique_along_axis(rng: Any) -> Callable[..., Any]:
    """Function of a size, a shape and an axis: indices that differ along the axis, some of them negative."""

    def draw(dim: int, shape: Any, axis: int) -> Any:
        dims = list(dims_of(shape))
        count = dims.pop(axis)
        if count > dim:
            raise ValueError(f"there are no {count} different indices of an axis of size {dim}")
        rows = [rng.choice(dim, size=count, replace=False) for _ in range(int(np.prod(dims)))]
        indices = np.moveaxis(np.reshape(rows, (*dims, count)), -1, axis) if rows else np.zeros(shape, int)
        return np.where(rng.rand(*np.shape(indices)) < 0.5, indices - dim, indices).astype(np.int32)

    return draw


def rand_bool(rng: Any) -> Draw:
    """Zeros and ones."""
    return lambda shape, dtype: shaped(rng.rand(*dims_of(shape)) < 0.5, shape, dtype)


def rand_fullrange(rng: Any, standardize_nans: bool = False) -> Draw:
    """Random bits: every number of a dtype, NaN and infinities of floats as well."""

    def draw(shape: Any, dtype: Any) -> Any:
        dims, dtype = dims_of(shape), np.dtype(dtype)
        if dtype.kind == "b":
            return shaped(rng.rand(*dims) < 0.5, shape, dtype)
        size = int(np.prod(dims))
        values = np.frombuffer(rng.bytes(size * dtype.itemsize), dtype).reshape(dims)
        if standardize_nans and _dtypes.issubdtype(dtype, np.inexact):
            values = np.where(np.isnan(values), np.array(np.nan, dtype), values)
        return shaped(values, shape, dtype)

    return draw
