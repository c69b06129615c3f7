"""What the special functions share: operands made floats of one shape, and computing in float64.

`lax.erf` of a float32 is one rounding; a composition of ten operations is ten. `in_double` runs a composition on
float64 operands and rounds its result once, also where `jax_enable_x64` is off: the program then has float64 values
inside, and none at its ends. Read next: `_elementary.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import promote_ranks, weak_type, with_weak_type
from ferrax.config import enable_x64
from ferrax.custom_derivatives import SymbolicZero, custom_jvp
from ferrax.numpy._args import Array, ArrayLike, broadcast_together, promote_inexact
from ferrax.numpy._dtype_functions import dtype_kind

__all__ = ["in_double", "in_single", "inexact", "real", "smooth"]


def inexact(name: str, *args: ArrayLike) -> list[Any]:
    """The operands as floating or complex arrays of one dtype and one shape."""
    return broadcast_together(*promote_ranks(name, *promote_inexact(name, *args)))


def real(name: str, *args: ArrayLike, error: type[Exception] = TypeError) -> list[Any]:
    """As `inexact`; complex operands raise `error`."""
    arrays = inexact(name, *args)
    if dtype_kind(arrays[0].dtype) == "c":
        raise error(f"{name} does not support complex-valued inputs, got {arrays[0].dtype}.")
    return arrays


def _wide(x: Array) -> np.dtype:
    return np.dtype("complex128" if dtype_kind(x.dtype) == "c" else "float64")


def in_double(function: Callable[..., Array], *args: Array) -> Array:
    """`function` of the operands as float64 (complex128), rounded once to their dtype; weak when all of them are."""
    dtype = args[0].dtype
    if dtype.itemsize == _wide(args[0]).itemsize:
        return with_weak_type(function(*args), all(weak_type(x) for x in args))
    with enable_x64(True):
        out = function(*(lax.convert_element_type(x, _wide(x)) for x in args))
        out = lax.convert_element_type(out, dtype)
    return with_weak_type(out, all(weak_type(x) for x in args))


def in_single(function: Callable[..., Array], *args: Array) -> Array:
    """`function` of the operands, those of 16 bits as float32 with one rounding at the end."""
    dtype = args[0].dtype
    if dtype.itemsize > 2:
        return function(*args)
    return lax.convert_element_type(function(*(lax.convert_element_type(x, np.float32) for x in args)), dtype)


def smooth(*slopes: Callable[..., Array] | None) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Gives a function of float64 operands its partial derivatives, which are computed in float64 as it is.

    Args:
      slopes: for each operand a function `(value, *operands)` that gives the derivative by it, or None for zero.

    Returns:
      A decorator. A derivative is not computed for an operand that does not vary.
    """

    def decorate(function: Callable[..., Array]) -> Callable[..., Array]:
        primitive = custom_jvp(function)

        def rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
            with enable_x64(True):
                value = primitive(*primals)
                total = lax.full_like(value, 0)
                for slope, tangent in zip(slopes, tangents, strict=True):
                    if slope is not None and not isinstance(tangent, SymbolicZero):
                        total = total + tangent * slope(value, *primals)
                return value, total

        primitive.defjvp(rule, symbolic_zeros=True)
        return functools.wraps(function)(primitive)

    return decorate
