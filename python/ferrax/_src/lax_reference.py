"""Operations by NumPy, for comparisons in tests: elementwise ones, and what moves elements."""

from __future__ import annotations

import builtins
import functools
import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import dtypes, lax

#: NumPy's names where they are neither those of operations nor those with "arc" for "a".
_NUMPY = {
    "neg": "negative",
    "is_finite": "isfinite",
    "abs": "absolute",
    "pow": "power",
    "sub": "subtract",
    "eq": "equal",
    "ne": "not_equal",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "shift_left": "left_shift",
    "shift_right_arithmetic": "right_shift",
    "select": "where",
    "sum": "sum",
    "max": "maximum",
    "min": "minimum",
}
_SCIPY = {
    **{name: name for name in ["betainc", "digamma", "erf", "erfc"]},
    "lgamma": "gammaln",
    "erf_inv": "erfinv",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
}


def __getattr__(name: str) -> Any:
    if name in _NUMPY:
        return getattr(np, _NUMPY[name])
    public = not name.startswith("_") and hasattr(lax, name)
    known = [word for word in (name, f"arc{name[1:]}") if public and hasattr(np, word)]
    if known:
        return getattr(np, known[-1])
    if name in _SCIPY:
        function = getattr(importlib.import_module("scipy.special"), _SCIPY[name])
        return lambda *args: function(*args).astype(args[-1].dtype)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def round(x: Any) -> Any:
    """The nearest integers, halves away from zero."""
    return np.trunc(x + np.copysign(np.nextafter(np.asarray(0.5, x.dtype), np.asarray(0, x.dtype)), x))


def rsqrt(x: Any) -> Any:
    """The reciprocals of square roots."""
    return np.ones_like(x) / np.sqrt(x)


def logistic(x: Any) -> Any:
    """1 / (1 + e^-x)."""
    return (1 / (1 + np.exp(-x))).astype(x.dtype)


def conj(x: Any) -> Any:
    """The complex conjugates, of real numbers too."""
    return np.conj(x) + np.complex64(0)


def complex(x: Any, y: Any) -> Any:
    """Complex numbers from their parts."""
    return x + np.complex64(1j) * y


def mul(x: Any, y: Any, /, *, out_dtype: Any = None) -> Any:
    """Products, in a dtype."""
    return np.multiply(x, y, dtype=out_dtype)


def div(lhs: Any, rhs: Any) -> Any:
    """Quotients; of integers, rounded toward zero."""
    if np.result_type(lhs, rhs).kind not in "iu":
        return np.divide(lhs, rhs)
    quotient = np.floor_divide(lhs, rhs)
    exact = quotient * rhs == lhs
    return np.where(~exact & (np.sign(lhs) != np.sign(rhs)), quotient + 1, quotient).astype(quotient.dtype)


def rem(lhs: Any, rhs: Any) -> Any:
    """Remainders of the dividend's sign."""
    return np.fmod(lhs, rhs)


def shift_right_logical(x: Any, n: Any) -> Any:
    """Shifts that fill with zeros."""
    unsigned = np.dtype(f"uint{x.dtype.itemsize * 8}")
    return np.right_shift(x.view(unsigned), np.asarray(n).astype(unsigned)).view(x.dtype)


def population_count(x: Any) -> Any:
    """How many bits are set."""
    unsigned = x.view(f"uint{x.dtype.itemsize * 8}")
    bits = (unsigned[..., None] >> np.arange(x.dtype.itemsize * 8, dtype=unsigned.dtype)) & unsigned.dtype.type(1)
    return bits.sum(-1).astype(x.dtype)


def clz(x: Any) -> Any:
    """How many bits are zero above the first that is set."""
    size = x.dtype.itemsize * 8
    unsigned = x.view(f"uint{size}")
    above = unsigned[..., None] >> np.arange(size, dtype=unsigned.dtype)
    return (above == 0).sum(-1).astype(x.dtype)


def convert_element_type(operand: Any, dtype: Any) -> Any:
    """The elements in a dtype."""
    return np.asarray(operand, dtype=dtype)


def clamp(min: Any, operand: Any, max: Any) -> Any:
    """The elements, moved into an interval."""
    return np.clip(operand, np.clip(min, None, max), max).astype(operand.dtype)


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Arrays one after the other along an axis."""
    return np.concatenate(operands, axis=dimension)


def broadcast(operand: Any, sizes: Sequence[int]) -> Any:
    """The array repeated along new leading axes."""
    return np.broadcast_to(operand, (*sizes, *np.shape(operand)))


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    """The array in a shape, its axes at the given places."""
    places = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, np.shape(operand)):
        places[axis] = size
    return np.broadcast_to(np.reshape(operand, places), shape)


def reshape(operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Any:
    """The elements in another shape, after a transposition."""
    return np.reshape(operand if dimensions is None else np.transpose(operand, dimensions), new_sizes)


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """The array in reverse along axes."""
    return np.flip(operand, tuple(dimensions))


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """The array with padding at its edges and between its elements; negative padding cuts."""
    out = np.asarray(operand)
    for axis, (low, high, between) in enumerate(padding_config):
        spread = list(out.shape)
        spread[axis] = builtins.max(out.shape[axis] + between * (out.shape[axis] - 1), 0)
        wide = np.full(spread, padding_value, out.dtype)
        wide[(np.s_[:],) * axis + (np.s_[:: between + 1],)] = out
        widths = [(0, 0)] * out.ndim
        widths[axis] = (builtins.max(low, 0), builtins.max(high, 0))
        wide = np.pad(wide, widths, constant_values=padding_value)
        end = wide.shape[axis] + builtins.min(high, 0)
        out = wide[(np.s_[:],) * axis + (np.s_[-builtins.min(low, 0) : end],)]
    return out


def slice(operand: Any, start_indices: Any, limit_indices: Any, strides: Any = None) -> Any:
    """A part of an array, by starts, ends and steps."""
    steps = strides if strides is not None else [1] * len(start_indices)
    return operand[tuple(np.s_[a:b:c] for a, b, c in zip(start_indices, limit_indices, steps))]


def _starts(shape: Sequence[int], starts: Any, sizes: Sequence[int]) -> list[int]:
    return [int(np.clip(i, 0, n - k)) for i, n, k in zip(starts, shape, sizes)]


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """A part of an array, moved inside it."""
    at = _starts(operand.shape, start_indices, slice_sizes)
    return operand[tuple(np.s_[i : i + k] for i, k in zip(at, slice_sizes))]


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Any:
    """An array with a part of it, moved inside, replaced."""
    out = np.array(operand)
    at = _starts(out.shape, start_indices, np.shape(update))
    out[tuple(np.s_[i : i + k] for i, k in zip(at, np.shape(update)))] = update
    return out


def mulhi(x: Any, y: Any) -> Any:
    """The upper half of the bits of products of integers."""
    wide = np.asarray(x).astype(object) * np.asarray(y).astype(object)
    return (wide >> 8 * x.dtype.itemsize).astype(x.dtype)


def bitcast_convert_type(operand: Any, dtype: Any) -> Any:
    """The bits read as another dtype of the same width."""
    return np.asarray(operand).view(dtype)


def reduce(operand: Any, init_value: Any, computation: Any, dimensions: Sequence[int]) -> Any:
    """The elements along axes taken together by an operation, one after the other."""
    kept = [axis for axis in range(operand.ndim) if axis not in dimensions]
    shape = tuple(operand.shape[axis] for axis in kept)
    rows = np.transpose(operand, [*dimensions, *kept]).reshape(
        math.prod(operand.shape[axis] for axis in dimensions), *shape
    )
    if dtypes.issubdtype(operand.dtype, np.integer) and not np.isfinite(np.float64(init_value)):
        init_value = getattr(np.iinfo(operand.dtype), "max" if init_value > 0 else "min")
    narrow = dtypes.issubdtype(operand.dtype, np.floating) and operand.dtype.itemsize < 4
    wide = np.dtype(np.float32) if narrow else operand.dtype
    start = np.broadcast_to(np.asarray(init_value).astype(wide), shape)
    name = getattr(computation, "__name__", "")
    function = getattr(np, {"mul": "multiply", **_NUMPY}.get(name, name or "no name"), computation)
    return np.asarray(functools.reduce(function, rows.astype(wide), start)).astype(operand.dtype)


def padtype_to_pads(in_shape: Any, filter_shape: Any, window_strides: Any, padding: Any) -> Any:
    """How much padding "SAME" or "VALID" is, before and after, for each axis."""
    if padding.upper() == "VALID":
        return [(0, 0)] * len(in_shape)
    steps = [-(-n // step) for n, step in zip(in_shape, window_strides)]
    more = [
        builtins.max((m - 1) * step + k - n, 0) for m, step, k, n in zip(steps, window_strides, filter_shape, in_shape)
    ]
    return [(total // 2, total - total // 2) for total in more]


def _windows(padded: Any, sizes: Sequence[int], strides: Sequence[int]) -> Any:
    """Windows over the last axes, which stand behind them."""
    axes = tuple(range(padded.ndim - len(sizes), padded.ndim))
    views = np.lib.stride_tricks.sliding_window_view(padded, tuple(sizes), axes)
    return views[(np.s_[:],) * axes[0] + tuple(np.s_[::step] for step in strides)] if axes else views


def reduce_window(operand: Any, init_value: Any, computation: Any, window_dimensions: Sequence[int],
                  window_strides: Sequence[int], padding: Any, base_dilation: Sequence[int]) -> Any:  # fmt: skip
    """What an operation makes of each window."""
    operand = pad(operand, init_value, [(0, 0, step - 1) for step in base_dilation])
    if isinstance(padding, str):
        padding = padtype_to_pads(operand.shape, window_dimensions, window_strides, padding)
    padded = pad(operand, init_value, [(low, high, 0) for low, high in padding])
    windows = _windows(padded, window_dimensions, window_strides)
    return reduce(windows, init_value, computation, range(operand.ndim, windows.ndim))


def _dilated(x: Any, dilation: Sequence[int] | None) -> Any:
    """An operand with zeros between its elements, but along its first two axes."""
    steps = dilation or (1,) * (x.ndim - 2)
    return pad(x, np.zeros((), x.dtype), [(0, 0, 0)] * 2 + [(0, 0, step - 1) for step in steps])


def conv(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str) -> Any:
    """Convolution of (batch, feature, ...) with (feature out, feature in, ...)."""
    return conv_with_general_padding(lhs, rhs, window_strides, padding, None, None)


def conv_with_general_padding(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, lhs_dilation: Any,
                              rhs_dilation: Any) -> Any:  # fmt: skip
    """Convolution of dilated operands."""
    lhs, rhs = _dilated(lhs, lhs_dilation), _dilated(rhs, rhs_dilation)
    if isinstance(padding, str):
        padding = padtype_to_pads(lhs.shape[2:], rhs.shape[2:], window_strides, padding)
    lhs = pad(lhs, np.zeros((), lhs.dtype), [(0, 0, 0)] * 2 + [(low, high, 0) for low, high in padding])
    windows = _windows(lhs, rhs.shape[2:], window_strides)
    n = lhs.ndim - 2
    out = np.tensordot(windows, rhs, ((1, *range(n + 2, windows.ndim)), range(1, n + 2)))
    return np.moveaxis(out, -1, 1)


def conv_general_dilated(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, lhs_dilation: Any,
                         rhs_dilation: Any, dimension_numbers: Any) -> Any:  # fmt: skip
    """Convolution of operands whose axes are where `dimension_numbers` says."""
    spec = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    lhs, rhs = np.transpose(lhs, spec.lhs_spec), np.transpose(rhs, spec.rhs_spec)
    out = conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation)
    return np.transpose(out, np.argsort(spec.out_spec))


def dot_general(lhs: Any, rhs: Any, dimension_numbers: Any) -> Any:
    """Products summed over some axes, for each index of others."""
    (lhs_summed, rhs_summed), (lhs_batch, rhs_batch) = dimension_numbers
    names = iter(range(lhs.ndim + rhs.ndim))
    left, right = [next(names) for _ in range(lhs.ndim)], [next(names) for _ in range(rhs.ndim)]
    for i, j in [*zip(lhs_summed, rhs_summed), *zip(lhs_batch, rhs_batch)]:
        right[j] = left[i]
    batch = [left[i] for i in lhs_batch]
    free = [left[i] for i in range(lhs.ndim) if i not in (*lhs_summed, *lhs_batch)]
    free += [right[j] for j in range(rhs.ndim) if j not in (*rhs_summed, *rhs_batch)]
    return np.einsum(lhs, left, rhs, right, batch + free)


def ragged_dot(lhs: Any, rhs: Any, group_sizes: Any) -> Any:
    """Rows of (m, k) multiplied by the matrices of (g, k, n) that their groups have; zero beyond the groups."""
    out = np.zeros((lhs.shape[0], rhs.shape[2]), np.result_type(lhs, rhs))
    ends = np.cumsum(group_sizes)
    for matrix, end, size in zip(rhs, ends, group_sizes):
        out[end - size : end] = lhs[end - size : end] @ matrix
    return out


def sort_key_val(keys: Any, values: Any, dimension: int = -1) -> Any:
    """Keys in order, and the values beside them."""
    order = np.argsort(keys, axis=dimension, kind="stable")
    return np.take_along_axis(keys, order, dimension), np.take_along_axis(values, order, dimension)


def top_k(operand: Any, k: int, axis: int = -1) -> Any:
    """The largest elements along an axis and where they are, the first of equal ones first."""
    flipped = np.flip(operand, axis)
    order = np.flip(operand.shape[axis] - 1 - np.argsort(flipped, axis=axis, kind="stable"), axis)
    order = np.take(order, np.arange(k), axis).astype(np.int32)
    return np.take_along_axis(operand, order, axis), order
