"""Shapes that users give: static, whole and not negative, with one class of error for what is not, whoever asks.

What is traced or no whole number is a TypeError, and so is a negative size. Rust says the same of shapes that come to
it unchecked.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._core import is_tracer
from ferrax._texts import short
from ferrax.errors import ConcretizationTypeError

__all__ = [
    "broadcast_shapes",
    "constant_size",
    "is_symbolic_dim",
    "max_dim",
    "min_dim",
    "static_shape",
    "static_size",
    "static_sizes",
]


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
    if any(n < 0 for n in sizes if not is_symbolic_dim(n)):
        raise TypeError(f"shape must have every element be nonnegative, got {sizes}.")
    return sizes


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is symbolic.

    Args:
      p: the size of an axis.

    Returns:
      A bool.

    >>> import ferrax as jax
    >>> [jax.export.is_symbolic_dim(d) for d in jax.export.symbolic_shape("b, 4")]
    [True, False]
    """
    # only a symbolic size has variables; its class is not loaded before there is one
    return hasattr(type(p), "_get_vars")


def static_size(n: Any) -> Any:
    """One size: an integer, or a symbolic size as it is.

    Raises:
      TypeError: it is neither.

    >>> static_size(np.int8(3))
    3
    """
    return n if is_symbolic_dim(n) else operator.index(n)


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger of two dimensions.

    Args:
      d1: a dimension.
      d2: another one.

    Returns:
      The dimension.

    >>> import ferrax as jax
    >>> jax.core.max_dim(2, 3)
    3
    """
    return _dim("max", d1, d2)


def _dim(name: str, d1: Any, d2: Any) -> Any:
    """The larger or smaller of two sizes, of which some may be symbolic."""
    if is_symbolic_dim(d1) or is_symbolic_dim(d2):
        from ferrax._symbolic._expressions import larger

        return larger(d1, d2, name)
    return (max if name == "max" else min)(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller of two dimensions.

    Args, Returns: as in `max_dim`.

    >>> import ferrax as jax
    >>> jax.core.min_dim(2, 3)
    2
    """
    return _dim("min", d1, d2)


def constant_size(n: Any, what: str) -> int:
    """A size that is a number, for functions that compute with it before the program runs.

    Raises:
      NotImplementedError: it is symbolic.

    >>> constant_size(3, "the function")
    3
    """
    if is_symbolic_dim(n):
        raise NotImplementedError(f"{what} is not implemented for symbolic sizes of axes, here {n}")
    return int(n)


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """NumPy's `broadcast_shapes`, of shapes that may have symbolic sizes.

    Raises:
      ValueError: the shapes do not combine.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    if any(is_symbolic_dim(n) for shape in shapes for n in shape):
        return tuple(_ferrax.lax.broadcast_shapes(*shapes))
    return np.broadcast_shapes(*shapes)


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
        return tuple(map(static_size, sizes))
    except TypeError:
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {short(shape)}."
        ) from None
