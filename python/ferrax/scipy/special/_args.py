"""What the special functions share: operands made floats of one shape.

Read next: `lax/_double.py`, `_elementary.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import promote_ranks, weak_type, with_weak_type
from ferrax.lax._double import double_program, in_double, smooth
from ferrax.numpy._args import Array, ArrayLike, broadcast_together, promote_inexact
from ferrax.numpy._dtype_functions import dtype_kind

__all__ = ["double_program", "filled", "in_double", "in_single", "inexact", "real", "smooth"]


def inexact(name: str, *args: ArrayLike) -> list[Any]:
    """The operands as floating or complex arrays of one dtype and one shape."""
    arrays = promote_ranks(name, *promote_inexact(name, *args))
    try:
        return broadcast_together(*arrays)
    except ValueError:
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise TypeError(f"{name} got incompatible shapes for broadcasting: {shapes}.") from None


def real(name: str, *args: ArrayLike, error: type[Exception] = TypeError) -> list[Any]:
    """As `inexact`; complex operands raise `error`."""
    arrays = inexact(name, *args)
    if dtype_kind(arrays[0].dtype) == "c":
        raise error(f"{name} does not support complex-valued inputs, got {arrays[0].dtype}.")
    return arrays


def filled(arrays: list[Array]) -> list[Array]:
    """The arrays, of full types where they have axes: some of JAX's functions keep weak types of scalars alone."""
    return [with_weak_type(x, weak_type(x) and not x.ndim) for x in arrays]


def in_single(function: Callable[..., Array], *args: Array) -> Array:
    """`function` of the operands, those of 16 bits as float32 with one rounding at the end."""
    dtype = args[0].dtype
    if dtype.itemsize > 2:
        return function(*args)
    return lax.convert_element_type(function(*(lax.convert_element_type(x, np.float32) for x in args)), dtype)
