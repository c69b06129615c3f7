"""Whether a transformation is at work, and what `ferrax.core` and `ferrax.extend.core` have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ferrax import _ferrax, core as _core
from ferrax._api import typeof as typeof
from ferrax._src._public import names_of
from ferrax.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)
from ferrax.ref import Ref as Ref, freeze as freeze, new_ref as new_ref

AxisName = Any
Shape = tuple[int, ...]

_others = names_of(__name__, "ferrax.extend.core", "ferrax.extend.core.primitives", "ferrax.errors")


def trace_state_clean() -> bool:
    """Whether no transformation is at work."""
    return bool(_ferrax.current_trace() == 0)


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
