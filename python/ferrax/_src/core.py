"""Whether a transformation is at work, and what `ferrax.core` and `ferrax.extend.core` have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from ferrax import _ferrax, core as _core
from ferrax._api import typeof as typeof
from ferrax._avals import AbstractValue
from ferrax._core import Tracer
from ferrax._src._public import names_of
from ferrax.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)
from ferrax.extend.core import AbstractToken
from ferrax.ref import Ref as Ref, freeze as freeze, new_ref as new_ref

AxisName = Any
OutputType = tuple[AbstractValue, ...]
Shape = tuple[int, ...]

#: The type of what orders effects.
abstract_token = AbstractToken()
#: Stands for an axis without a name.
no_axis_name = object()
#: Checks of equations by primitive, besides the core's own: users may add some, and nothing asks them.
custom_typechecks: dict[Any, Any] = {}
#: Python's and NumPy's numbers: programs hold them as literals.
literalable_types: set[Any] = {bool, int, float, complex, np.bool_, *np.sctypeDict.values()} - {
    np.object_, np.str_, np.bytes_, np.void, np.datetime64, np.timedelta64
}  # fmt: skip

_others = names_of(__name__, "ferrax.extend.core", "ferrax.extend.core.primitives", "ferrax.errors")


def trace_state_clean() -> bool:
    """Whether no transformation is at work."""
    return bool(_ferrax.current_trace() == 0)


def is_concrete(x: Any) -> bool:
    """Whether a value is known: an array or number, or a traced one that carries its value."""
    return to_concrete_value(x) is not None


def to_concrete_value(x: Any) -> Any:
    """The value of what is known; None of what is traced without one."""
    if not isinstance(x, Tracer):
        return x
    try:
        return _ferrax.concrete_or_error(None, x)
    except ConcretizationTypeError:
        return None


def concretization_function_error(
    fun: Callable[..., Any], suggest_astype: bool = False
) -> Callable[[Any, Any], NoReturn]:
    """A function `(self, arg)` that raises the error of a traced value where `fun` needs a known one."""
    name = getattr(fun, "__name__", str(fun))
    advice = ""
    if suggest_astype:
        advice = (
            " If trying to convert the data type of a value, try using "
            f"`x.astype({name})` or `jnp.array(x, {name})` instead."
        )

    def error(self: Any, arg: Any) -> NoReturn:
        raise ConcretizationTypeError(arg, f"The problem arose with the `{name}` function.{advice}")

    return error


def is_constant_dim(d: Any) -> bool:
    """Whether a size is a number; all sizes are."""
    return isinstance(d, (int, np.integer))


def is_constant_shape(s: Iterable[Any]) -> bool:
    """Whether all sizes of a shape are numbers."""
    return all(map(is_constant_dim, s))


def is_empty_shape(s: Iterable[Any]) -> bool:
    """Whether arrays of a shape have no elements."""
    return 0 in tuple(s)


def canonicalize_shape(shape: Any, context: str = "") -> tuple[int, ...]:
    """A shape as a tuple of Python's integers.

    Raises:
      TypeError: a size is no integer.
    """
    import operator

    try:
        return tuple(operator.index(d) for d in shape)
    except TypeError:
        where = f" {context}" if context else ""
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {shape}.{where}"
        ) from None


def typematch(t1: Any, t2: Any) -> bool:
    """Whether two types are the same, weak or not."""
    return t1.shape == t2.shape and t1.dtype == t2.dtype


def __getattr__(name: str) -> Any:
    if name in _core.__all__:
        return getattr(_core, name)
    return _others(name)
