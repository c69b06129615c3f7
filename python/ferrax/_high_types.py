"""Types of values that change, each with a state: what libraries of JAX's pass around as one object.

Read next: `experimental/hijax.py`, which has the types; `_high_values.py` for the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = ["AvalMutableQDD", "AvalQDD"]


@dataclass(frozen=True, slots=True)
class AvalQDD:
    """A type, and the state of one of its values. Its methods are the type's, which get the state.

    Args:
      aval: the type.
      qdd: the state; None where the type has none.

    >>> import ferrax as jax
    >>> class Cell(jax.experimental.hijax.MutableHiType):
    ...     def lo_ty_qdd(self, state):
    ...         return [state]
    >>> jax.experimental.hijax.AvalQDD(Cell(), jax.typeof(1.0)).lo_ty()
    [ShapedArray(float32[], weak_type=True)]
    """

    is_high: ClassVar[bool] = True
    has_qdd: ClassVar[bool] = True
    aval: Any
    qdd: Any

    is_writer = property(lambda self: self.aval.is_writer, doc="Whether values of the type are written alone.")

    def lo_ty(self) -> Any:
        """The types of the arrays that stand for the value."""
        return self.aval.lo_ty_qdd(self.qdd)

    def read_loval(self, val: Any) -> Any:
        """The arrays that stand for a value."""
        return self.aval.read_loval(self.qdd, val)

    def read_loval_in(self, val: Any) -> Any:
        """The arrays that stand for a value, as an operand."""
        return self.aval.read_loval_in(self.qdd, val)

    def read_loval_out(self, val: Any) -> Any:
        """The arrays that stand for a value, as a result: a tree of them."""
        return self.aval.read_loval_out(self.qdd, val)

    def new_from_loval(self, *lovals: Any) -> Any:
        """A value that arrays stand for."""
        return self.aval.new_from_loval(self.qdd, *lovals)

    def to_tangent_aval(self) -> AvalQDD:
        """The type of tangents, with the state of a tangent."""
        return AvalQDD(self.aval.to_tangent_aval(), self.qdd and self.qdd.to_tangent_qdd())


@dataclass(frozen=True, slots=True)
class AvalMutableQDD:
    """A type, and what holds the state of one of its values while it changes.

    Args:
      aval: the type.
      mutable_qdd: what holds the state.

    >>> import ferrax as jax
    >>> jax.experimental.hijax.AvalMutableQDD(jax.typeof(1.0), None).aval
    ShapedArray(float32[], weak_type=True)
    """

    aval: Any
    mutable_qdd: Any
