"""Lowerings of primitives that users make."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "LoweringParameters LoweringResult ModuleContext TokenSet aval_to_ir_type aval_to_ir_types "
    "build_mlir_module_helper delegate_lowering dense_int_array flatten_ir_values i32_attr "
    "ir_type_handlers jaxpr_subcomp lower_jaxpr_to_fun lower_jaxpr_to_module lower_per_platform "
    "lower_with_sharding_in_types make_ir_context merge_mlir_modules module_to_string "
    "refine_polymorphic_shapes unflatten_ir_values_like_types wrap_with_sharding_op",
    "ferrax lowers programs to no MLIR",
    names_of(__name__, "ferrax.interpreters.mlir"),
)
