"""Shapes that users give: static, whole and not negative, with one class of error for what is not, whoever asks.

What is traced or no whole number is a TypeError, and so is a negative size. Rust says the same of shapes that come to
it unchecked.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ferrax._core import is_tracer
from ferrax._texts import short
from ferrax.errors import ConcretizationTypeError

__all__ = ["static_shape", "static_sizes"]


def static_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of sizes.

    Args:
      shape: an integer, which stands for one axis, or a sequence of integers.

    Returns:
      Tuple of integers that are not negative.

    Raises:
      TypeError: a size is negative, traced or no integer.

    >>> static_shape(3), static_shape([2, 4])
    ((3,), (2, 4))
    """
    sizes = static_sizes(shape)
    if any(n < 0 for n in sizes):
        raise TypeError(f"shape must have every element be nonnegative, got {sizes}.")
    return sizes


def static_sizes(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of integers of any sign, as `reshape` takes one.

    >>> static_sizes((2, -1))
    (2, -1)
    """
    one = is_tracer(shape) or isinstance(shape, int) or (not isinstance(shape, (tuple, list)) and np.ndim(shape) == 0)
    sizes = (shape,) if one else tuple(shape)
    for size in filter(is_tracer, sizes):
        size._check_leak()
        raise ConcretizationTypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {short(shape)}. A shape "
            f"cannot depend on a traced value.{size._origin_msg()}\nIf it depends on an argument of a "
            "jitted function, mark that argument with static_argnums or static_argnames."
        )
    try:
        return tuple(operator.index(n) for n in sizes)
    except TypeError:
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {short(shape)}."
        ) from None
