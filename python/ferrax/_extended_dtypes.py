"""Dtypes that are none of NumPy's: pairs of one for values and one for their tangents.

They can be named, compared and asked about; arrays of them are not there, and functions that would make one raise
TypeError.
"""

from __future__ import annotations

import dataclasses
import types
from typing import Any

from ferrax.dtypes import extended

__all__ = ["ExtendedDType", "PrimalTangentDType", "primal_tangent_dtype", "primal_tangent_dtype_scalar"]


class ExtendedDType:
    """What dtypes that libraries define derive from; arrays of them are not supported."""


class primal_tangent_dtype_scalar(extended):
    """The kind of dtypes that `primal_tangent_dtype` makes."""


@dataclasses.dataclass(frozen=True, repr=False)
class PrimalTangentDType(ExtendedDType):
    """A dtype of values, with that of their tangents.

    Args:
      primal_dtype: the dtype of values.
      tangent_dtype: the dtype of tangents.
      name: what it is called.
    """

    primal_dtype: Any
    tangent_dtype: Any
    name: str
    type = primal_tangent_dtype_scalar

    def __repr__(self) -> str:
        return self.name

    @property
    def _rules(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(
            physical_element_aval=lambda dtype: types.SimpleNamespace(shape=(), dtype=self.primal_dtype),
            tangent_dtype=lambda dtype: self.tangent_dtype,
            allow_conversion=True,
        )


def primal_tangent_dtype(primal_dtype: Any, tangent_dtype: Any, name: str | None = None) -> PrimalTangentDType:
    """A dtype of values whose tangents have another one, such as quantized weights.

    Arrays of such dtypes are not there: functions that take a dtype refuse it with a TypeError.

    Args:
      primal_dtype: the dtype of values.
      tangent_dtype: the dtype of their tangents.
      name: what it is called; by default made of the two.

    Returns:
      The dtype: equal to others of the same parts, with `primal_dtype`, `tangent_dtype` and `name`.

    >>> import ferrax
    >>> ferrax.experimental.primal_tangent_dtype("int8", "bfloat16")
    PrimalTangentDType{i8/bf16}
    """
    from ferrax._src.dtypes import dtype, short_dtype_name

    primal, tangent = dtype(primal_dtype), dtype(tangent_dtype)
    made = f"PrimalTangentDType{{{short_dtype_name(primal)}/{short_dtype_name(tangent)}}}"
    return PrimalTangentDType(primal, tangent, name or made)
