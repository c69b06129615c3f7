"""Types and primitives of values that are no arrays: names that libraries derive classes from.

ferrax's programs have arrays only: such classes and primitives can be defined, not used in programs.
"""

from __future__ import annotations

from typing import Any

from ferrax._boundary import expose as _expose
from ferrax._core import ShapedArray as ShapedArray
from ferrax._primitives import Primitive, Zero
from ferrax.core import AbstractValue as AbstractValue
from ferrax.interpreters.ad import instantiate_zeros as instantiate_zeros, is_undefined_primal as is_undefined_primal

__all__ = [
    "AbstractValue",
    "HiPrimitive",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "VJPHiPrimitive",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]


class HiType(AbstractValue):
    """A type of values that are no arrays.

    >>> import ferrax as jax
    >>> issubclass(jax.experimental.hijax.HiType, jax.core.AbstractValue)
    True
    """


class MutableHiType(HiType):
    """A type of values that change.

    >>> import ferrax as jax
    >>> issubclass(jax.experimental.hijax.MutableHiType, jax.experimental.hijax.HiType)
    True
    """


class HiPrimitive(Primitive):
    """A primitive of values that are no arrays; it cannot be applied.

    Args:
      name: its name.

    >>> import ferrax as jax
    >>> jax.experimental.hijax.HiPrimitive("pack").name
    'pack'
    """

    def bind(self, *args: Any, **params: Any) -> Any:
        """Not supported."""
        raise NotImplementedError(
            f"the primitive {self.name} works on values that are no arrays: ferrax's programs have arrays only"
        )


class VJPHiPrimitive(HiPrimitive):
    """A primitive of values that are no arrays with a reverse-mode rule; it cannot be applied.

    >>> import ferrax as jax
    >>> jax.experimental.hijax.VJPHiPrimitive().name
    'VJPHiPrimitive'
    """

    def __init__(self) -> None:
        super().__init__(type(self).__name__)


class aval_property:
    """A property that arrays of a type have, in the class of the type.

    Args:
      fget: function of the value.

    >>> import ferrax as jax
    >>> jax.experimental.hijax.aval_property(len).fget([1, 2])
    2
    """

    def __init__(self, fget: Any):
        self.fget = fget


class aval_method:
    """A method that arrays of a type have, in the class of the type.

    Args:
      fun: function of the value and other arguments.

    >>> import ferrax as jax
    >>> jax.experimental.hijax.aval_method(len).fun([1, 2])
    2
    """

    def __init__(self, fun: Any):
        self.fun = fun


class _EffectTypes:
    """Classes of effects."""

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Adds a class."""
        self._types.add(effect_type)

    def contains(self, effect: Any) -> bool:
        """Whether an effect is of a class that was added."""
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = _EffectTypes()

_types: dict[type, Any] = {}


def register_hitype(val_cls: type, typeof_fn: Any) -> None:
    """Says what the type of values of a class is. Programs take arrays only, all the same.

    Args:
      val_cls: the class.
      typeof_fn: function of a value that gives its `HiType`.

    >>> import ferrax as jax
    >>> class Box:
    ...     pass
    >>> jax.experimental.hijax.register_hitype(Box, lambda box: jax.experimental.hijax.HiType())
    """
    _types[val_cls] = typeof_fn


_expose(globals())
