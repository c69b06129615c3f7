"""Compositions computed in float64, whatever the dtype of their operands and whether 64-bit types are enabled or not.

`lax.erf` of a float32 is rounded once; a composition of ten operations in float32 is rounded ten times. `in_double`
runs it on float64 operands and rounds its result once: the program has float64 values inside, and none at its ends.
`smooth` gives such a composition derivatives that are computed in float64 too. Read next: `special.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax._api import jit
from ferrax._core import Array, weak_type, with_weak_type
from ferrax.config import enable_x64
from ferrax.custom_derivatives import SymbolicZero, custom_jvp
from ferrax.lax.conversion import convert_element_type
from ferrax.lax.shape import full_like

__all__ = ["double_program", "in_double", "smooth", "weighted_sum"]


def _wide(dtype: np.dtype) -> np.dtype:
    return np.dtype("complex128" if dtype.kind == "c" else "float64")


def in_double(function: Callable[..., Array], *args: Array) -> Array:
    """`function` of operands of one dtype as float64 or complex128; its result has their dtype.

    Args:
      function: takes and gives float64 or complex128 arrays.
      args: floating or complex arrays of one dtype.

    Returns:
      Array of that dtype, weakly typed when all operands are.

    >>> import ferrax.numpy as jnp
    >>> in_double(lambda x: x / 3, jnp.float32(1))
    Array(0.33333334, dtype=float32)
    """
    dtype = args[0].dtype
    weak = all(weak_type(x) for x in args)
    with enable_x64(True):
        out = function(*(convert_element_type(x, _wide(dtype)) for x in args))
        return with_weak_type(convert_element_type(out, dtype), weak)


def double_program(function: Callable[..., Array], short: Callable[..., Array] | None = None) -> Callable[..., Array]:
    """`in_double` of a function, as one program; of `short`, if there is one, where results have fewer digits."""

    def run(*args: Array) -> Array:
        return in_double(short if short is not None and args[0].dtype.itemsize < 8 else function, *args)

    return jit(run)


def weighted_sum(slopes: Any, tangents: Any, value: Array, *args: Any) -> Array:
    """The sum of tangents times slopes, each of which is called with `args`, or None; of those that are not zero."""
    total = full_like(value, 0)
    for slope, tangent in zip(slopes, tangents, strict=True):
        if slope is not None and not isinstance(tangent, SymbolicZero):
            total = total + tangent * slope(*args)
    return total


def smooth(*slopes: Callable[..., Array] | None) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Gives a function of float64 operands its partial derivatives.

    Args:
      slopes: for each operand a function `(value, *operands)` that gives the derivative by it, or None for zero. It is
        not computed for an operand that does not vary.

    Returns:
      A decorator.

    >>> import ferrax
    >>> ferrax.grad(smooth(lambda value, x: 3 * value)(lambda x: x * x))(2.0)
    Array(12., dtype=float32, weak_type=True)
    """

    def decorate(function: Callable[..., Array]) -> Callable[..., Array]:
        primitive = custom_jvp(function)

        def rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
            with enable_x64(True):
                value = primitive(*primals)
                # Python's numbers beside weak operands would be of 64 bits here
                full, *operands = (with_weak_type(x, False) for x in (value, *primals))
                slope = weighted_sum(slopes, tangents, full, full, *operands)
                return value, with_weak_type(slope, weak_type(value))

        primitive.defjvp(rule, symbolic_zeros=True)
        return functools.wraps(function)(primitive)

    return decorate
