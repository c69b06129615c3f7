"""Effects of equations and programs, as objects: those of prints and host calls, and those of users' primitives.

The core knows that an operation has effects, and keeps it in its place; which ones they are is asked of the primitive
when a program is looked at. Read next: `ferrax/_src/effects.py`, the sets that say where effects are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

from ferrax._ferrax import ClosedJaxpr, Jaxpr, JaxprEqn
from ferrax._members import EFFECT_NAMES

__all__ = [
    "DebugEffect",
    "Effect",
    "IOEffect",
    "JaxprInputEffect",
    "OrderedDebugEffect",
    "OrderedIOEffect",
    "refuse_effects",
]


class Effect:
    """What an operation does besides computing: libraries make classes of it for primitives of their own.

    >>> import ferrax as jax
    >>> class Logs(jax.extend.core.Effect):
    ...     pass
    >>> isinstance(Logs(), jax.extend.core.Effect)
    True
    """


class JaxprInputEffect(Effect):
    """An effect on one of the operands.

    Args:
      input: the position of the operand, where a primitive says its effects; its variable in programs.

    >>> JaxprInputEffect(1).replace(2)
    JaxprInputEffect(2)
    """

    def __init__(self, input: Any):
        self.input = input

    def replace(self, input: Any) -> Any:
        """The same effect on another operand."""
        return self.__class__(input)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.input == other.input  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.input))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.input})"


class _OfCore(Effect):
    """An effect that the core knows, by its name."""

    _name: str

    def __str__(self) -> str:
        return self._name


class DebugEffect(_OfCore):
    """The effect of `print` and of `callback`, in no order.

    >>> import ferrax as jax
    >>> (effect,) = jax.make_jaxpr(lambda x: jax.debug.print("{}", x))(1.0).effects
    >>> isinstance(effect, jax.debug.DebugEffect)
    True
    """

    __module__ = "ferrax.debug"
    _name = "Debug"


class OrderedDebugEffect(_OfCore):
    """The effect of `print` and of `callback` that keep an order.

    >>> import ferrax as jax
    >>> (effect,) = jax.make_jaxpr(lambda x: jax.debug.print("{}", x, ordered=True))(1.0).effects
    >>> isinstance(effect, jax.debug.OrderedDebugEffect)
    True
    """

    __module__ = "ferrax.debug"
    _name = "OrderedDebug"


class IOEffect(_OfCore):
    """The effect of calls of the host, in no order."""

    _name = "IO"


class OrderedIOEffect(_OfCore):
    """The effect of calls of the host that keep an order."""

    _name = "OrderedIO"


debug_effect, ordered_debug_effect = DebugEffect(), OrderedDebugEffect()
io_effect, ordered_io_effect = IOEffect(), OrderedIOEffect()


def _of_names(names: Set[str]) -> set[Any]:
    """The effects of an operation of the core, whose names it says."""
    order = "Ordered" in names
    found: set[Any] = {debug_effect} if "Debug" in names else set()
    if "IO" in names:
        found.add(ordered_io_effect if order else io_effect)
    elif order:
        found.add(ordered_debug_effect)
    return found


def _moved(effects: Any, operands: Sequence[Any]) -> set[Any]:
    """Effects with operands in place of positions."""
    return {e.replace(operands[e.input]) if isinstance(e, JaxprInputEffect) else e for e in effects}


def _inner(eqn: JaxprEqn) -> Iterator[tuple[Jaxpr, Sequence[Any]]]:
    """The programs in an equation, each with its operands."""
    from ferrax.extend.core import jaxprs_in_params

    programs = list(jaxprs_in_params(eqn.params))
    if eqn.primitive.name == "while":
        first, second = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        carry = eqn.invars[first + second :]
        yield eqn.params["cond_jaxpr"].jaxpr, [*eqn.invars[:first], *carry]
        yield eqn.params["body_jaxpr"].jaxpr, [*eqn.invars[first : first + second], *carry]
        return
    for program in programs:
        yield program, eqn.invars[1:] if eqn.primitive.name == "cond" else eqn.invars


def _of_equation(eqn: JaxprEqn) -> set[Any]:
    """What it does besides computing."""
    names = EFFECT_NAMES[JaxprEqn](eqn)
    if not names:
        return set()
    if "IO" in names and not eqn.primitive._ferrax_built_in:
        _, effects = eqn.primitive.abstract_eval(*(v.aval for v in eqn.invars), **eqn.params)
        return _moved(effects, eqn.invars) or _of_names(names)
    found: set[Any] = set()
    for program, operands in _inner(eqn):
        places = {v: i for i, v in enumerate(program.invars)}
        effects = [
            e.replace(places[e.input]) if isinstance(e, JaxprInputEffect) else e
            for e in program.effects
            if not isinstance(e, JaxprInputEffect) or e.input in places
        ]
        found |= _moved(effects, operands)
    return found or _of_names(names)


def _of_program(jaxpr: Jaxpr) -> set[Any]:
    """What it does besides computing."""
    if not EFFECT_NAMES[Jaxpr](jaxpr):
        return set()
    seen = {*jaxpr.invars, *jaxpr.constvars}
    effects = {e for eqn in jaxpr.eqns for e in eqn.effects}
    return {e for e in effects if not isinstance(e, JaxprInputEffect) or e.input in seen}


def refuse_effects(error: type[Exception], text: str, allowed: Any, *programs: ClosedJaxpr) -> None:
    """Says that a program must not have the effects of users' primitives that it has.

    Args:
      error: the error's class.
      text: what the error says before the effects.
      allowed: the classes that may be there, an `EffectTypeSet`.
      *programs: the programs.

    Raises:
      The error: one has others.
    """
    for program in programs:
        if "IO" in EFFECT_NAMES[ClosedJaxpr](program):
            refused = allowed.filter_not_in(e for e in program.effects if isinstance(e, Effect))
            if refused:
                raise error(f"{text}: {refused}")


setattr(JaxprEqn, "effects", property(_of_equation))  # noqa: B010
setattr(Jaxpr, "effects", property(_of_program))  # noqa: B010
setattr(ClosedJaxpr, "effects", property(lambda self: self.jaxpr.effects, doc=_of_program.__doc__))  # noqa: B010
