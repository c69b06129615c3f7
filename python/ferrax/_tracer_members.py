"""Members of arrays and traced values that JAX's classes have for libraries which look inside.

Read next: `_members.py`, which lets the classes have them before this file is loaded.
"""

from __future__ import annotations

import inspect
from typing import Any

from ferrax import _ferrax
from ferrax._high_values import cur_qdd
from ferrax._src._unprovided import UnprovidedMember
from ferrax.errors import ConcretizationTypeError

__all__: list[str] = []


def _itself(self: Any) -> Any:
    """The value itself: none is a tracer without need or stands for another one, and sizes are values already."""
    return self


def _to_concrete_value(self: Any) -> Any:
    """The value where it is known, as it is of what is differentiated eagerly; None elsewhere."""
    try:
        return _ferrax.concrete_or_error(None, self)
    except ConcretizationTypeError:
        return None


def _value(self: Any) -> Any:
    """Arrays have NumPy's array of their elements by this name; libraries tell tracers by its absence."""
    raise AttributeError(f"{type(self).__name__} has no attribute _value", name="_value", obj=self)


def _state(self: Any) -> Any:
    """The state of a value that changes: arrays have none, and it is a TypeError."""
    return cur_qdd(self)


def _parameters(names: str) -> inspect.Signature:
    """What JAX's class is called with; names that end in `=` have a default."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    listed = [
        inspect.Parameter(name.rstrip("="), kind, default=None if name.endswith("=") else inspect.Parameter.empty)
        for name in names.split()
    ]
    return inspect.Signature(listed)


def _fill(cls: Any, **members: Any) -> None:
    for name, member in members.items():
        setattr(cls, name, member)


_fill(
    _ferrax.Tracer,
    dimension_as_value=_itself,
    full_lower=_itself,
    get_referent=_itself,
    to_concrete_value=_to_concrete_value,
    _value=property(_value),
)
_fill(_ferrax.JVPTracer, __signature__=_parameters("trace primal tangent"), cur_qdd=_state, type_state=_state)
_fill(
    _ferrax.DynamicJaxprTracer,
    __signature__=_parameters("trace aval val line_info= parent="),
    aval_mutable_qdd=property(lambda self: self.aval, doc="The type of the value, which has no states."),
    cur_qdd=_state,
    get_const=_to_concrete_value,
    mutable_qdd=property(lambda self: None, doc="What holds the states of a value that changes: arrays have none."),
    parent=UnprovidedMember("DynamicJaxprTracer.parent: the core's programs are not seen before they are done"),
    val=UnprovidedMember("DynamicJaxprTracer.val: the core's programs are not seen before they are done"),
)
