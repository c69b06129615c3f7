"""MLIR's types and attributes, as far as lowerings build operations on arrays with them; another name says that there
is no MLIR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import dtypes
from ferrax._src.lib.mlir._none import nothing_in
from ferrax._src.lib.mlir._values import (
    BlockArgument as BlockArgument,
    ElementType,
    OpResult as OpResult,
    OpView as OpView,
    RankedTensorType as RankedTensorType,
    Value as Value,
)

Type = ElementType | RankedTensorType


def _of(dtype: Any) -> Any:
    return type("Type", (), {"get": staticmethod(lambda: ElementType(dtype))})


F16Type, F32Type, F64Type, BF16Type = _of("float16"), _of("float32"), _of("float64"), _of(dtypes.bfloat16)


class IntegerType:
    """Types of integers; that of one bit is the type of truth values."""

    @staticmethod
    def get_signless(width: int) -> ElementType:
        """The type of signed integers of that many bits."""
        return ElementType("bool" if width == 1 else f"int{width}")

    @staticmethod
    def get_unsigned(width: int) -> ElementType:
        """The type of unsigned integers of that many bits."""
        return ElementType(f"uint{width}")


class ComplexType:
    """Types of complex numbers."""

    @staticmethod
    def get(part: ElementType) -> ElementType:
        """The type whose parts have that type."""
        return ElementType(f"complex{2 * part.width}")


def _attribute(get: Callable[..., Any]) -> Any:
    return type("Attribute", (), {"get": staticmethod(get)})


#: Attributes are the values that they hold.
StringAttr, BoolAttr, TypeAttr = (_attribute(lambda value: value) for _ in range(3))
IntegerAttr, FloatAttr = (_attribute(lambda type, value: value) for _ in range(2))
DenseI64ArrayAttr, DenseI32ArrayAttr, DenseBoolArrayAttr, ArrayAttr = (_attribute(list) for _ in range(4))


def _dense(array: Any, *, type: Any = None, shape: Any = None, **_: Any) -> Any:
    element = type.element_type if isinstance(type, RankedTensorType) else type
    values = np.asarray(array, None if element is None else element.dtype)
    return values if shape is None else np.broadcast_to(values, tuple(shape))


DenseElementsAttr, DenseIntElementsAttr, DenseFPElementsAttr = (_attribute(_dense) for _ in range(3))

__getattr__ = nothing_in(__name__)
