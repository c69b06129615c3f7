"""Functions of the bits of numbers: exponents, spacing, and packing of bits.

Read `_elementwise.py` first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray
from ferrax._one_program import one_program
from ferrax.numpy import _shape
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    broadcast_together,
    cast,
    normalize_axis,
    promote_inexact,
    require,
    static_int,
    to_array,
)  # fmt: skip
from ferrax.numpy._dtype_functions import dtype_kind, inexact_dtype
from ferrax.numpy._ranks import check_ranks
from ferrax.numpy._ufuncs import copysign, where as _where

__all__ = ["frexp", "ldexp", "packbits", "spacing", "unpackbits"]

# name of the dtype -> (signed integer of its width, bits of the significand, bias of the exponent)
_LAYOUT = {
    "float16": (np.int16, 10, 15),
    "bfloat16": (np.int16, 7, 127),
    "float32": (np.int32, 23, 127),
    "float64": (np.int64, 52, 1023),
}


def _layout(name: str, x: Array) -> tuple[Any, int, int]:
    if x.dtype.name not in _LAYOUT:
        raise TypeError(f"{name} does not support {x.dtype}")
    return _LAYOUT[x.dtype.name]


def _power_of_two(exponent: Array, dtype: np.dtype) -> Array:
    """2 ** exponent for exponents of normal numbers."""
    integer, significand, bias = _LAYOUT[dtype.name]
    return lax.bitcast_convert_type(
        (cast(exponent, integer) + asarray(bias, integer)) << asarray(significand, integer), dtype
    )


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2 ** x2.

    Args:
      x1: real array.
      x2: integers.

    Returns:
      Floating array.

    Raises:
      ValueError: for complex `x1` or `x2` that are not integers.

    >>> import ferrax.numpy as jnp
    >>> jnp.ldexp(jnp.array([0.5, 3.]), jnp.array([2, -1]))
    Array([2. , 1.5], dtype=float32)
    """
    require("ldexp", x1, x2)
    x, n = asarray(x1), asarray(x2)
    if dtype_kind(x.dtype) == "c" or dtype_kind(n.dtype) not in "iub":
        raise ValueError(f"ldexp not supported for input types {(x.dtype, n.dtype)}")
    check_ranks("ldexp", x, n)
    x, n = broadcast_together(cast(x, inexact_dtype(x.dtype)), cast(n, np.int32))
    _, _, bias = _layout("ldexp", x)
    # Three factors reach from the largest to the smallest number, and only the last product can round.
    largest = 3 * bias
    n = lax.clamp(asarray(-largest, n.dtype), n, asarray(largest, n.dtype))
    for _ in range(3):
        part = lax.clamp(asarray(1 - bias, n.dtype), n, asarray(bias, n.dtype))
        x, n = x * _power_of_two(part, x.dtype), n - part
    return x


@one_program()
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """A number as significand and exponent: x = m * 2 ** e with 0.5 <= |m| < 1.

    Args:
      x: real array.

    Returns:
      Pair (floating array, array of int32); exponent 0 for zeros, infinities and NaN.

    >>> import ferrax.numpy as jnp
    >>> jnp.frexp(jnp.array([8., -3.]))
    (Array([ 0.5 , -0.75], dtype=float32), Array([4, 2], dtype=int32))
    """
    (x,) = promote_inexact("frexp", x)
    if dtype_kind(x.dtype) == "c":
        raise TypeError("frexp does not support complex-valued inputs")
    integer, significand, bias = _layout("frexp", x)
    width = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FFFFFFFFFFFFFFF}[x.dtype.itemsize] >> significand

    bits = lax.bitcast_convert_type(x, integer)
    raw = cast((bits >> asarray(significand, integer)) & asarray(width, integer), np.int32)
    # A subnormal number is its significand, an integer, times the smallest power of two.
    tiny = raw == 0
    whole = copysign(cast(bits & asarray((1 << significand) - 1, integer), x.dtype), x)
    shift = 1 - bias - significand
    lifted = (lax.bitcast_convert_type(whole, integer) >> asarray(significand, integer)) & asarray(width, integer)
    exponent = _where(tiny, cast(lifted, np.int32) + shift, raw) - (bias - 1)
    special = (x == 0) | ~lax.is_finite(x)
    exponent = cast(_where(special, asarray(0, np.int32), exponent), np.int32)
    subnormal = tiny & ~special
    mantissa = ldexp(_where(subnormal, whole, x), -_where(subnormal, exponent - shift, exponent))
    return mantissa, exponent


@one_program()
def spacing(x: ArrayLike, /) -> Array:
    """The distance to the next number away from zero.

    Args:
      x: real array.

    Returns:
      Floating array, with the sign of `x`.

    >>> import ferrax.numpy as jnp
    >>> jnp.spacing(jnp.array([1.]))
    Array([1.1920929e-07], dtype=float32)
    """
    (x,) = promote_inexact("spacing", x)
    if dtype_kind(x.dtype) == "c":
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    away = copysign(asarray(np.inf, x.dtype), x)
    step = lax.nextafter(x, away) - x
    return _where(lax.is_finite(x), step, asarray(np.nan, x.dtype))


def _is_big(bitorder: str) -> bool:
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    return bitorder == "big"


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Truth values packed into bytes, eight by eight, filled up with zeros.

    Args:
      a: array of bools or integers.
      axis: axis to pack along; None for the flattened array.
      bitorder: "big" to put the first value into the highest bit, "little" into the lowest.

    Returns:
      Array of uint8.

    Raises:
      TypeError: for floating arrays.

    >>> import ferrax.numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    x = to_array("packbits", a)
    if dtype_kind(x.dtype) not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    backwards = _is_big(bitorder)
    x = cast(x, np.bool_)
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    x = _shape.moveaxis(x, axis, -1)
    rest = -x.shape[-1] % 8
    if rest:
        x = lax.pad(x, asarray(False), [(0, 0, 0)] * (x.ndim - 1) + [(0, rest, 0)])
    x = cast(lax.reshape(x, (*x.shape[:-1], x.shape[-1] // 8, 2, 4)), np.uint8)
    # Four bytes of 0 and 1 are one number, whose product with these has the bits side by side from the 25th on.
    bits = np.uint32(0x08040201 if backwards else 0x01020408)
    halves = (lax.bitcast_convert_type(x, np.uint32) * bits) >> np.uint32(24)
    first, second = halves[..., 0], halves[..., 1]
    high, low = (first, second) if backwards else (second, first)
    return _shape.moveaxis(cast((high << np.uint32(4)) | low, np.uint8), -1, axis)


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes as an array of zeros and ones.

    Args:
      a: array of uint8.
      axis: axis to unpack along; None for the flattened array.
      count: how many bits to keep along the axis; negative to leave that many out at the end.
      bitorder: "big" to have the highest bit first, "little" the lowest.

    Returns:
      Array of uint8.

    Raises:
      TypeError: for other dtypes.

    >>> import ferrax.numpy as jnp
    >>> jnp.unpackbits(jnp.array([5], dtype=jnp.uint8))
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    x = to_array("unpackbits", a)
    if x.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    places = lax.iota(np.uint8, 8)
    order = lax.rev(places, (0,)) if _is_big(bitorder) else places
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    x = _shape.moveaxis(x, axis, -1)
    bits = (lax.expand_dims(x, (x.ndim,)) >> lax.broadcast_to_rank(order, x.ndim + 1)) & asarray(1, np.uint8)
    bits = lax.reshape(bits, (*x.shape[:-1], x.shape[-1] * 8))
    if count is not None:
        count = static_int(count, "count argument of jnp.unpackbits")
        n = bits.shape[-1]
        kept = max(0, n + count) if count < 0 else min(count, n)
        bits = lax.slice_in_dim(bits, 0, kept, axis=bits.ndim - 1)
        if count > n:
            bits = lax.pad(bits, asarray(0, np.uint8), [(0, 0, 0)] * (bits.ndim - 1) + [(0, count - n, 0)])
    return _shape.moveaxis(bits, -1, axis)
