"""Effects of programs, and sets of their classes that say where they are allowed.

The sets concern effects of users' primitives: loops and branches ask them, and so does lowering.
"""

from collections.abc import Iterable
from typing import Any

from ferrax._src._public import names_of
from ferrax.extend.core._effects import (
    DebugEffect,
    Effect as Effect,
    IOEffect,
    JaxprInputEffect as JaxprInputEffect,
    OrderedDebugEffect,
    OrderedIOEffect,
)


class EffectTypeSet:
    """Classes of effects; effects of derived classes are among them.

    >>> integers = EffectTypeSet()
    >>> integers.add_type(int)
    >>> integers.contains(3), integers.filter_not_in([1, "a"])
    (True, ['a'])
    """

    def __init__(self) -> None:
        self._types: set[type] = set()

    def __repr__(self) -> str:
        return f"EffectTypeSet({self._types})"

    def add_type(self, effect_type: type) -> None:
        """Adds a class."""
        self._types.add(effect_type)

    def contains(self, eff: Any) -> bool:
        """Whether an effect is of one of the classes."""
        return isinstance(eff, tuple(self._types))

    def filter_in(self, effects: Iterable[Any]) -> list[Any]:
        """The effects of the classes."""
        return [eff for eff in effects if self.contains(eff)]

    def filter_not_in(self, effects: Iterable[Any]) -> list[Any]:
        """The other effects."""
        return [eff for eff in effects if not self.contains(eff)]


no_effects: frozenset[Any] = frozenset()
ordered_effects = EffectTypeSet()
shardable_ordered_effects = EffectTypeSet()
lowerable_effects = EffectTypeSet()
control_flow_allowed_effects = EffectTypeSet()
custom_derivatives_allowed_effects = EffectTypeSet()
remat_allowed_effects = EffectTypeSet()
partial_eval_kept_effects = EffectTypeSet()

_prints = DebugEffect, OrderedDebugEffect
for _set, _classes in (
    (ordered_effects, (OrderedDebugEffect, OrderedIOEffect)),
    (shardable_ordered_effects, (OrderedIOEffect,)),
    (lowerable_effects, (*_prints, IOEffect, OrderedIOEffect)),
    (control_flow_allowed_effects, (*_prints, IOEffect, OrderedIOEffect)),
    (custom_derivatives_allowed_effects, _prints),
    (remat_allowed_effects, _prints),
    (partial_eval_kept_effects, _prints),
):
    for _class in _classes:
        _set.add_type(_class)
del _class, _classes, _prints, _set

__getattr__ = names_of(__name__, "ferrax.extend.core")
