"""Sizes that are symbols."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "BoundsPrecision InconclusiveDimensionOperation ShapeConstraints SymbolicScope _DimExpr _DimFactor _DimTerm "
    "compute_dim_vars_from_arg_shapes is_symbolic_dim symbolic_args_specs symbolic_scope symbolic_shape",
    "ferrax has no symbolic sizes",
    names_of(__name__, "ferrax.export"),
)
