"""Lowerings of primitives that users make."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax._src.lib.mlir.dialects import hlo as hlo

__getattr__ = unprovided_names(
    __name__,
    "build_mlir_module_helper custom_call delegate_lowering func_dialect get_constant_handler lower_per_platform "
    "lower_with_sharding_in_types refine_polymorphic_shapes wrap_with_sharding_op",
    "ferrax lowers programs to no MLIR",
    names_of(__name__, "ferrax.interpreters.mlir"),
)
