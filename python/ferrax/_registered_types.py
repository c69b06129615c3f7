"""Tables from types of host values to what they are as arrays, in which libraries register their own.

Registering a type makes it one that array functions take: `core.pytype_aval_mappings[Type] = rule`. Read next:
`interpreters/xla.py`, which has the other table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _ferrax, dtypes

__all__ = ["canonicalize_dtype_handlers", "pytype_aval_mappings"]

_HOST_TYPES: tuple[type, ...] = (np.ndarray, *np.sctypeDict.values(), bool, int, float, complex)


def _aval(x: Any) -> Any:
    """The type of a host value as an array."""
    return _ferrax.typeof(x)


def _canonical(x: Any) -> Any:
    """A host value with a dtype that arrays have."""
    value = np.asarray(x)
    return value.astype(dtypes.canonicalize_dtype(value.dtype), copy=False)


def _as_array(self: Any) -> Any:
    """What `__jax_array__` of a registered type gives."""
    return _ferrax.asarray(np.asarray(self))


class _Types(dict[Any, Callable[[Any], Any]]):
    """A rule for each type; a type that is added becomes an array where one is asked for."""

    def __setitem__(self, kind: Any, rule: Callable[[Any], Any]) -> None:
        super().__setitem__(kind, rule)
        if not hasattr(kind, "__jax_array__"):
            kind.__jax_array__ = _as_array


pytype_aval_mappings: dict[Any, Callable[[Any], Any]] = _Types(
    dict.fromkeys((t for t in _HOST_TYPES if not issubclass(t, (np.flexible, np.object_))), _aval)
)
canonicalize_dtype_handlers: dict[Any, Callable[[Any], Any]] = dict.fromkeys(pytype_aval_mappings, _canonical)
