"""Sizes that are symbols."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax._symbolic._expressions import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    _DimExpr as _DimExpr,
)

__getattr__ = unprovided_names(
    __name__,
    "BoundsPrecision ShapeConstraints compute_dim_vars_from_arg_shapes symbolic_scope",
    "sizes of axes are bounded and solved in another way here",
    names_of(__name__, "ferrax.export"),
)
