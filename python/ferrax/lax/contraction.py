"""Dot products and what chooses their precision."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple, Union

from ferrax._ferrax import Array, lax as _lax
from ferrax._out_sharding import with_out_sharding
from ferrax._precisions import DotAlgorithmPreset as DotAlgorithmPreset
from ferrax.config import config
from ferrax.typing import ArrayLike, DTypeLike

__all__ = [
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "Precision",
    "PrecisionLike",
    "batch_matmul",
    "dot",
    "dot_general",
]

_ALIASES = {
    "highest": "HIGHEST",
    "float32": "HIGHEST",
    "high": "HIGH",
    "bfloat16_3x": "HIGH",
    "tensorfloat32": "HIGH",
    "default": "DEFAULT",
    "bfloat16": "DEFAULT",
    "fastest": "DEFAULT",
    None: "DEFAULT",
}


class Precision(enum.Enum):
    """How exact a dot product or convolution has to be, where a backend has a choice.

    The CPU computes every product in full precision of the dtypes.

    Example:
      >>> from ferrax import lax
      >>> lax.Precision("float32")
      Precision.HIGHEST
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name

    @classmethod
    def _missing_(cls, value):
        return cls[_ALIASES[value]] if value in _ALIASES else None


class DotAlgorithm(NamedTuple):
    """The dtypes and the number of passes of a dot product.

    Args:
      lhs_precision_type: dtype that the left operand is rounded to.
      rhs_precision_type: dtype that the right operand is rounded to.
      accumulation_type: dtype of sums.
      lhs_component_count: number of parts the left operand is split into.
      rhs_component_count: number of parts the right operand is split into.
      num_primitive_operations: number of products of parts.
      allow_imprecise_accumulation: whether sums may be less exact than their dtype.

    Example:
      >>> from ferrax import lax
      >>> lax.DotAlgorithm("float32", "float32", "float32").num_primitive_operations
      1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
PrecisionLike = Union[  # noqa: UP007
    str, Precision, tuple[str, str], tuple[Precision, Precision], DotAlgorithm, DotAlgorithmPreset, None
]


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: None = None,
) -> Array:
    """Product of vectors and matrices, or any contraction given by dimension numbers.

    Args:
      lhs: array of rank 1 or 2 (any rank with ``dimension_numbers``).
      rhs: array of rank 1 or 2 (any rank with ``dimension_numbers``).
      dimension_numbers: as in :func:`dot_general`.
      precision: a precision, a pair of them, or an algorithm.
      preferred_element_type: dtype to accumulate in and to give.
      out_sharding: placement of the result; None.

    Returns:
      Array of the contraction.

    Raises:
      ValueError: the shapes are those of no plain product.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.dot(jnp.arange(3.0), jnp.arange(3.0))
      Array(5., dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            lambda: dot(
                lhs,
                rhs,
                dimension_numbers=dimension_numbers,
                precision=precision,
                preferred_element_type=preferred_element_type,
            ),
            out_sharding,
            "dot_general",
        )
    if dimension_numbers is not None:
        return _lax.dot_general(lhs, rhs, dimension_numbers, chosen(precision), preferred_element_type)
    return _lax.dot(lhs, rhs, chosen(precision), preferred_element_type)


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Contraction of two arrays over pairs of axes, batched over other pairs.

    Args:
      lhs: array.
      rhs: array.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
      precision: a precision, a pair of them, or an algorithm.
      preferred_element_type: dtype to accumulate in and to give; None is the wider of the operands'.
      out_sharding: placement of the result; None.

    Returns:
      Array whose axes are: batch axes, free axes of ``lhs``, free axes of ``rhs``.

    Raises:
      TypeError: axes or their sizes do not fit together.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> x = jnp.arange(6.0).reshape(2, 3)
      >>> lax.dot_general(x, x, (((1,), (1,)), ((0,), (0,))))
      Array([ 5., 50.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            lambda: dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type),
            out_sharding,
            "dot_general",
        )
    return _lax.dot_general(lhs, rhs, dimension_numbers, chosen(precision), preferred_element_type)


def chosen(precision: PrecisionLike) -> PrecisionLike:
    """The precision that a product is asked for: its own, or that of `default_matmul_precision`."""
    if precision is not None:
        return precision
    name = config.jax_default_matmul_precision
    if name is None:
        return None
    return Precision(name) if name in _ALIASES else DotAlgorithmPreset[name]


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Products of the matrices in the last two axes, over equal leading axes.

    Args:
      lhs: array of shape (..., n, k).
      rhs: array of shape (..., k, m), of the same rank.
      precision: a precision, a pair of them, or an algorithm.

    Returns:
      Array of shape (..., n, m).

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.batch_matmul(jnp.ones((2, 3, 4)), jnp.ones((2, 4, 5))).shape
      (2, 3, 5)
    """
    return _lax.batch_matmul(lhs, rhs, chosen(precision))
