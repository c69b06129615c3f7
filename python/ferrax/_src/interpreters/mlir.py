"""Lowerings of primitives that users make."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax._src.lib.mlir import ir as ir
from ferrax._src.lib.mlir.dialects import hlo as hlo

__getattr__ = unprovided_names(
    __name__,
    "aval_to_ir_types build_mlir_module_helper core_call_lowering custom_call delegate_lowering "
    "DEVICE_TO_DEVICE_TYPE flatten_ir_values func_dialect get_constant_handler "
    "ir_constants ir_type_handlers jaxpr_subcomp lower_jaxpr_to_fun lower_jaxpr_to_module "
    "lower_per_platform lower_with_sharding_in_types LoweringParameters LoweringResult make_ir_context "
    "merge_mlir_modules module_to_string ModuleContext refine_polymorphic_shapes register_constant_handler "
    "SEND_TO_HOST_TYPE shape_tensor TokenSet unflatten_ir_values_like_types wrap_with_sharding_op",
    "ferrax lowers programs to no MLIR",
    names_of(__name__, "ferrax.interpreters.mlir"),
)
