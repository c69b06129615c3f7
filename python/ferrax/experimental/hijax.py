"""Primitives with rules of their own, and types of values that are no arrays: classes that others are derived from.

`VJPHiPrimitive` works on arrays, other values and trees of them, under all transformations that it has rules for.
Programs have arrays only: a traced function gets other values made of traced arrays, and a `HiPrimitive` works on these
at once.
Read next: `_hi_primitives.py`, `_high_primitives.py`; `ferrax/_high_values.py`.
"""

from __future__ import annotations

from typing import Any

from ferrax._avals import aval_method as aval_method, aval_property as aval_property
from ferrax._boundary import expose as _expose
from ferrax._core import ShapedArray as ShapedArray
from ferrax._high_types import AvalMutableQDD as AvalMutableQDD, AvalQDD as AvalQDD
from ferrax._high_values import cur_qdd as _cur_qdd, register as _register, run as _run
from ferrax._lazy import lend as _lend
from ferrax._primitives import Primitive, Zero
from ferrax.core import AbstractValue as AbstractValue
from ferrax.experimental._hi_primitives import VJPHiPrimitive as VJPHiPrimitive
from ferrax.interpreters.ad import instantiate_zeros as instantiate_zeros, is_undefined_primal as is_undefined_primal

__all__ = [
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiPspec",
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

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax._ref_views": "TransformedRef",
        "ferrax.ref": "AbstractRef",
    },
)


class HiType(AbstractValue):
    """A type of values that are no arrays.

    >>> import ferrax as jax
    >>> issubclass(jax.experimental.hijax.HiType, jax.core.AbstractValue)
    True
    """

    is_high = property(lambda self: True, doc="Whether programs hold other values than this one for it: yes.")

    def to_ct_aval(self) -> Any:
        """The type of cotangents: that of tangents."""
        return self.to_tangent_aval()

    def _asked(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {name}")

    def lo_ty(self) -> list[Any]:
        """The types of the arrays that stand for a value; a class of types says which."""
        raise self._asked("lo_ty")

    def lower_val(self, hi_val: Any) -> list[Any]:
        """The arrays that stand for a value; a class of types says which."""
        raise self._asked("lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value that arrays stand for; a class of types says which."""
        raise self._asked("raise_val")

    def vspace_zero(self) -> Any:
        """The zero of a type of tangents; a class of types says which."""
        raise self._asked("vspace_zero")

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The sum of two tangents; a class of types says which."""
        raise self._asked("vspace_add")

    def dec_rank(self, size: int | None, spec: Any) -> Any:
        """The type of the rows of a value; a class of types says which."""
        raise self._asked("dec_rank")

    def inc_rank(self, size: int | None, spec: Any) -> Any:
        """The type of values stacked along a new axis; a class of types says which."""
        raise self._asked("inc_rank")

    def leading_axis_spec(self) -> Any:
        """What `scan` gives `dec_rank` and `inc_rank` for the axis that it goes along; a class of types says what."""
        raise self._asked("leading_axis_spec")

    def nospec(self, mesh: Any, check_vma: bool, all_names: tuple[Any, ...]) -> Any:
        """How a value that is nowhere divided is described for `shard_map`; a class of types says how."""
        raise self._asked("nospec")


class HiPspec:
    """How a value that is no array is divided: what `shard_map` is told of one in place of a `PartitionSpec`.

    >>> import ferrax as jax
    >>> jax.experimental.hijax.HiPspec().to_lo()
    Traceback (most recent call last):
    NotImplementedError: HiPspec does not define to_lo
    """

    def _asked(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {name}")

    def to_lo(self) -> tuple[Any, ...]:
        """A `PartitionSpec` for each of the arrays that stand for a value; a class of specs says which."""
        raise self._asked("to_lo")

    def to_tangent_spec(self) -> Any:
        """How a tangent is divided; a class of specs says how."""
        raise self._asked("to_tangent_spec")

    def to_ct_spec(self) -> Any:
        """How a cotangent is divided; a class of specs says how."""
        raise self._asked("to_ct_spec")


class MutableHiType(AbstractValue):
    """A type of values that change.

    >>> import ferrax as jax
    >>> jax.experimental.hijax.MutableHiType().has_qdd
    True
    """

    is_high = property(lambda self: True, doc="Whether programs hold other values than this one for it: yes.")
    has_qdd = property(lambda self: True, doc="Whether the type has states: yes.")
    is_writer = False
    type_state = aval_method(_cur_qdd)

    def _asked(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {name}")

    def new_from_loval(self, state: Any, /, *vals: Any) -> Any:
        """The value that arrays stand for, in a state; a class of types says which."""
        raise self._asked("new_from_loval")

    def read_loval(self, state: Any, val: Any, /) -> list[Any]:
        """The arrays that stand for a value in a state; a class of types says which."""
        raise self._asked("read_loval")

    def read_loval_in(self, state: Any, val: Any, /) -> Any:
        """The arrays that stand for a value, as an operand: those of `read_loval`."""
        return self.read_loval(state, val)

    def read_loval_out(self, state: Any, val: Any, /) -> Any:
        """The arrays that stand for a value, as a result: a `FlatTree` of those of `read_loval`."""
        from ferrax._src._flat_tree import FlatTree

        return FlatTree.flatten(self.read_loval(state, val))

    def update_from_loval(self, state: Any, val: Any, /, *lo_vals: Any) -> None:
        """Has a value stand for other arrays, in a state; a class of types says how."""
        raise self._asked("update_from_loval")

    def update_from_loval2(self, state: Any, val: Any, lo_vals_ft: Any, /) -> None:
        """As `update_from_loval`, of a `FlatTree` of arrays."""
        self.update_from_loval(state, val, *lo_vals_ft.unflatten())


class HiPrimitive(Primitive):
    """A primitive of values that are no arrays. It is applied to values at once, in traced functions, too.

    Programs do not hold it: `impl`, or `to_lojax` where a class defines no `impl`, works on values of traced arrays,
    whose operations are recorded. So the rules `jvp` and `transpose` are not asked for.

    Args:
      name: its name.

    >>> import ferrax as jax
    >>> jax.experimental.hijax.HiPrimitive("pack").name
    'pack'
    """

    def bind(self, *args: Any, **params: Any) -> Any:
        """Applies it to values and arrays.

        Args:
          *args: values, of classes that `register_hitype` was told of, and arrays.
          **params: its parameters.

        Returns:
          What `impl` or `to_lojax` gives.
        """
        return _run(self, args, params)

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """The result, computed by functions of arrays; a class of primitives says how."""
        raise NotImplementedError(f"{type(self).__name__} defines neither impl nor to_lojax")

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        """The result and its tangent; a class of primitives says which, for those who ask."""
        raise NotImplementedError(f"{type(self).__name__} does not define jvp")

    def transpose(self, *args: Any, **params: Any) -> Any:
        """The cotangents of the operands; a class of primitives says which, for those who ask."""
        raise NotImplementedError(f"{type(self).__name__} does not define transpose")


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


def register_hitype(val_cls: type, typeof_fn: Any) -> None:
    """Says what the type of values of a class is, which `ferrax.typeof` then gives.

    Functions given to `jit` and `eval_shape` then take such values: they get one that is made of traced arrays, and
    what they change of it is changed of the argument after the call. Traced functions may close over values, too.

    Args:
      val_cls: the class.
      typeof_fn: function of a value that gives its `HiType`.

    >>> import ferrax as jax
    >>> class Box:
    ...     pass
    >>> jax.experimental.hijax.register_hitype(Box, lambda box: jax.experimental.hijax.HiType())
    >>> isinstance(jax.typeof(Box()), jax.experimental.hijax.HiType)
    True
    """
    _register(val_cls, typeof_fn)


_expose(globals())
