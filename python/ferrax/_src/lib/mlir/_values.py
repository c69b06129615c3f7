"""What lowerings written for MLIR compute with: arrays that look like MLIR's values, and MLIR's types of them.

There is no MLIR: such a lowering runs on the arrays themselves while the program is traced, so that each of StableHLO's
operations that it builds is one of `ferrax.lax`. Read next: `dialects/hlo.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax import _ferrax

__all__ = ["BlockArgument", "ElementType", "OpResult", "OpView", "RankedTensorType", "Value", "arrays_of"]

_NAMES = {"bool": "i1", "complex64": "complex<f32>", "complex128": "complex<f64>", "bfloat16": "bf16"}


class ElementType:
    """The type of an array's elements.

    Args:
      dtype: the dtype.

    >>> print(ElementType("uint8"))
    ui8
    """

    def __init__(self, dtype: Any):
        self.dtype = np.dtype(dtype)

    @property
    def width(self) -> int:
        """The number of bits."""
        return 1 if self.dtype == np.bool_ else 8 * self.dtype.itemsize

    def __str__(self) -> str:
        name = self.dtype.name
        if name.startswith("float8"):
            return "f8" + name[len("float8_") :].upper()
        for prefix, short in ("uint", "ui"), ("int", "i"), ("float", "f"):
            if name.startswith(prefix):
                return short + name[len(prefix) :]
        return _NAMES[name]

    def __repr__(self) -> str:
        return f"Type({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ElementType) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class RankedTensorType:
    """The type of an array.

    Args:
      of: a type that is one.

    >>> print(RankedTensorType.get((2, 3), ElementType("float32")))
    tensor<2x3xf32>
    """

    shape: list[int]
    element_type: ElementType

    def __init__(self, of: Any):
        if not isinstance(of, RankedTensorType):
            raise ValueError(f"Cannot cast type to RankedTensorType (from {of!r})")
        self.shape, self.element_type = of.shape, of.element_type

    @classmethod
    def get(cls, shape: Any, element_type: ElementType, **_: Any) -> RankedTensorType:
        """The type of a shape and elements."""
        out = cls.__new__(cls)
        out.shape, out.element_type = [int(n) for n in shape], element_type
        return out

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{n}x' for n in self.shape)}{self.element_type}>"

    def __repr__(self) -> str:
        return f"RankedTensorType({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RankedTensorType) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Value:
    """An array as a lowering sees it.

    Args:
      array: the array.
      place: which operand it is.
    """

    def __init__(self, array: Any, place: int = 0):
        self.array = array
        self.place = place

    @property
    def type(self) -> RankedTensorType:
        """Its type."""
        aval = _ferrax.typeof(self.array)
        return RankedTensorType.get(aval.shape, ElementType(aval.dtype))


class BlockArgument(Value):
    """An operand of a lowering."""

    def __str__(self) -> str:
        return f"BlockArgument(<block argument> of type '{self.type}' at index: {self.place})"


class OpResult(Value):
    """A result of an operation."""

    def __str__(self) -> str:
        return f"OpResult(of type '{self.type}')"


class OpView:
    """An operation of a dialect.

    Args:
      operands: values, numbers and types, as the operation's constructor has them.
      settings: its keywords; those of places in a program are not read.
    """

    @staticmethod
    def compute(*operands: Any, **settings: Any) -> Any:
        """The result of arrays."""
        raise NotImplementedError

    def __init__(self, *operands: Any, **settings: Any):
        for name in "results", "loc", "ip", "result_accuracy":
            settings.pop(name, None)
        self.result = OpResult(
            self.compute(*map(arrays_of, operands), **{k: arrays_of(v) for k, v in settings.items()})
        )

    @property
    def results(self) -> list[Value]:
        """The results."""
        return [self.result]


def arrays_of(x: Any) -> Any:
    """A value's array, also of values in a list; anything else as it is."""
    if isinstance(x, OpView):
        return x.result.array
    if isinstance(x, (list, tuple)):
        return [arrays_of(y) for y in x]
    return x.array if isinstance(x, Value) else x
