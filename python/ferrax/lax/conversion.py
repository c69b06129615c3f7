"""Choices, changes of dtype, rounding, and values that transformations see through.

Read next: `elementwise.py`, `shape.py`.
"""

from __future__ import annotations

import enum
import operator
from typing import Any

import numpy as np

from ferrax import tree_util
from ferrax._ferrax import Array, lax as _lax
from ferrax.dtypes import canonicalize_dtype, issubdtype
from ferrax.typing import ArrayLike

__all__ = [
    "AccuracyMode",
    "RoundingMethod",
    "Tolerance",
    "bitcast_convert_type",
    "clamp",
    "convert_element_type",
    "dtype",
    "integer_pow",
    "optimization_barrier",
    "reduce_precision",
    "round",
    "select",
    "select_n",
    "stop_gradient",
]


class RoundingMethod(enum.IntEnum):
    """How `round` treats numbers halfway between two integers.

    >>> from ferrax import lax
    >>> lax.RoundingMethod.TO_NEAREST_EVEN
    <RoundingMethod.TO_NEAREST_EVEN: 1>
    """

    AWAY_FROM_ZERO = 0
    """To the integer farther from zero: 0.5 to 1, -0.5 to -1."""

    TO_NEAREST_EVEN = 1
    """To the even one of the two: 0.5 to 0, 1.5 to 2."""


class AccuracyMode(enum.Enum):
    """Hint on the accuracy of an elementwise function; the CPU engine has one implementation for all.

    >>> from ferrax import lax
    >>> lax.AccuracyMode.DEFAULT
    <AccuracyMode.DEFAULT: 2>
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """Hint on the error that an elementwise function may make.

    Args:
      atol: absolute error.
      rtol: relative error.
      ulps: error in units in the last place.

    Raises:
      ValueError: a tolerance is negative, or all of them are zero.

    >>> from ferrax import lax
    >>> lax.Tolerance(rtol=1e-3).rtol
    0.001
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0.0 or rtol < 0.0 or ulps < 0:
            raise ValueError("Tolerances must be non-negative.")
        if not (atol or rtol or ulps):
            raise ValueError("At least one of atol, rtol, or ulps must be set.")
        self.atol = atol
        self.rtol = rtol
        self.ulps = ulps


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Rounds each element to an integer.

    Args:
      x: array of floating dtype.
      rounding_method: what happens to numbers halfway between two integers.

    Returns:
      Array of the shape and dtype of x.

    Raises:
      TypeError: x is not of floating dtype.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.round(jnp.array([0.5, 1.5, -0.5])))
    [ 1.  2. -1.]
    """
    return _lax.round(x, int(RoundingMethod(rounding_method)))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to a fixed integer power, by repeated multiplication.

    Args:
      x: array of integer, floating or complex dtype.
      y: the exponent; negative ones give reciprocals.

    Returns:
      Array of the shape and dtype of x.

    Raises:
      TypeError: x is of integer dtype and y is negative.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.integer_pow(jnp.array([2., 3.]), 3))
    [ 8. 27.]
    """
    return _lax.integer_pow(x, operator.index(y))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Takes elements of one array where a condition holds, and of another elsewhere.

    Args:
      pred: bool array of the cases' shape, or a scalar.
      on_true: array.
      on_false: array of the shape and dtype of on_true.

    Returns:
      Array of the shape and dtype of the cases.

    Raises:
      TypeError: shapes or dtypes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4])))
    [1 4]
    """
    return _lax.select(pred, on_true, on_false)


def select_n(which: ArrayLike, *cases: Any) -> Array:
    """Takes each element from the case that an index names.

    Args:
      which: bool array (False names the first case) or integer array (clamped to the cases), of the cases' shape or a
        scalar.
      *cases: arrays of one shape and dtype.

    Returns:
      Array of the shape and dtype of the cases.

    Raises:
      TypeError: shapes or dtypes differ, or a bool chooses among more than two.
      ValueError: there is no case.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.select_n(jnp.array([0, 1]), jnp.array([1, 2]), jnp.array([3, 4])))
    [1 4]
    """
    return _lax.select_n(which, *cases)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Moves each element into [min, max].

    Args:
      min: array of the shape and dtype of x, or a scalar of its dtype.
      x: array.
      max: as min.

    Returns:
      Array of the shape and dtype of x.

    Raises:
      TypeError: shapes or dtypes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.clamp(0, jnp.array([-1, 1, 9]), 5))
    [0 1 5]
    """
    return _lax.clamp(min, x, max)


def wide_number(number: int, dtype: Any) -> Any:
    """An integer beyond 32 bits as a number of a dtype: the nearest float, or the lowest bits as an integer."""
    if not issubdtype(dtype, np.number):
        return number
    if -(2**63) <= number < 2**64:
        return np.asarray(number).astype(canonicalize_dtype(dtype))
    return float(number) if issubdtype(dtype, np.inexact) else number


def convert_element_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """Converts each element to a dtype.

    Floats go to integers by truncation toward zero, saturating; complex numbers to real ones by their real part; any
    number to bool as ``x != 0``.

    Args:
      operand: array.
      new_dtype: the dtype; one of Python's number types means the default width.

    Returns:
      Array of the operand's shape.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.convert_element_type(jnp.array([1.9, -1.9]), jnp.int32))
    [ 1 -1]
    """
    if new_dtype is None:
        raise ValueError("dtype must be specified.")
    if type(operand) is int and not -(2**31) <= operand < 2**31:
        operand = wide_number(operand, new_dtype)
    return _lax.convert(operand, new_dtype)


def bitcast_convert_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """Reads the bits of each element as another dtype.

    Args:
      operand: array; with a narrower dtype, its last axis holds the parts of one element.
      new_dtype: the dtype; a narrower one adds a last axis for the parts.

    Returns:
      Array of the same bytes.

    Raises:
      TypeError: one dtype is bool or complex and the other is not the same.
      ValueError: the last axis does not hold the parts of one element.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.bitcast_convert_type(jnp.float32(1.0), jnp.int32))
    1065353216
    """
    return _lax.bitcast_convert_type(operand, new_dtype)


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds each element to a float format with fewer bits; the dtype stays.

    Args:
      operand: array of floating dtype.
      exponent_bits: bits of the exponent, at least 1.
      mantissa_bits: bits of the significand without the hidden one.

    Returns:
      Array of the shape and dtype of the operand.

    Raises:
      ValueError: a number of bits is too small.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reduce_precision(jnp.array([1.2345]), exponent_bits=8, mantissa_bits=3))
    [1.25]
    """
    return _lax.reduce_precision(operand, operator.index(exponent_bits), operator.index(mantissa_bits))


def stop_gradient(x: Any) -> Any:
    """The same values, which differentiation takes for constants.

    Args:
      x: array or pytree of arrays.

    Returns:
      Pytree of the structure of x.

    >>> import ferrax
    >>> from ferrax import lax
    >>> print(ferrax.grad(lambda x: x * lax.stop_gradient(x))(3.0))
    3.0
    """
    return tree_util.tree_map(_lax.stop_gradient, x)


def optimization_barrier(operand: Any, /) -> Any:
    """The same values, across which the compiler moves, merges and fuses nothing.

    Args:
      operand: pytree of arrays.

    Returns:
      Pytree of the operand's structure.

    >>> from ferrax import lax
    >>> print(lax.optimization_barrier(1.0))
    1.0
    """
    leaves, tree = tree_util.tree_flatten(operand)
    return tree_util.tree_unflatten(tree, _lax.optimization_barrier(leaves))


def dtype(x: Any) -> Any:
    """The dtype of an array or number.

    Args:
      x: array or number.

    Returns:
      A NumPy dtype.

    >>> from ferrax import lax
    >>> lax.dtype(1.0)
    dtype('float32')
    """
    from ferrax._core import dtype_of

    return dtype_of(x)
