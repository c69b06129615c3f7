"""Sizes that are symbols, by the names that JAX's insides have for them."""

from __future__ import annotations

import enum
from typing import Any

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax._symbolic._expressions import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    _DimExpr as _DimExpr,
)
from ferrax._symbolic._solve import UnexpectedDimVar as UnexpectedDimVar

DimSize = int | _DimExpr


class BoundsPrecision(enum.Enum):
    """For what bounds are asked for; they are the best that are known, whatever it is."""

    FOR_GEQ0_OR_LEQ0, FOR_GEQ0_OR_LT0, BEST = 0, 1, 2


class Comparator(enum.Enum):
    """What a constraint says of two sizes."""

    EQ, GEQ = 1, 2


def _bounds_decision(e: Any, prec: BoundsPrecision = BoundsPrecision.BEST) -> tuple[float, float]:
    """The least and the largest value of a size, as far as known."""
    return e.scope._bounds(e) if isinstance(e, _DimExpr) else (int(e), int(e))


__getattr__ = unprovided_names(
    __name__,
    "ShapeConstraints compute_dim_vars_from_arg_shapes symbolic_scope",
    "sizes of axes are solved in another way here",
    names_of(__name__, "ferrax.export"),
)
