"""Operations by NumPy, for comparisons in tests: elementwise ones, and what moves elements."""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._src._unprovided import unprovided_names

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

_other = unprovided_names(
    __name__,
    "conv conv_general_dilated conv_with_general_padding dot_general padtype_to_pads ragged_dot reduce reduce_window "
    "mulhi bitcast_convert_type top_k sort_key_val",
    "there is no reference of it in NumPy",
)


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
    return _other(name)


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
