"""Programs as files."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "_CPU_FFI_KERNELS _CUSTOM_CALL_TARGETS_GUARANTEED_STABLE _GPU_FFI_KERNELS _get_vjp_fun call call_exported "
    "call_exported_p default_lowering_platform deserialization_registry expand_in_shardings serialization_registry",
    "Exported has ferrax's own format",
    names_of(__name__, "ferrax.export"),
)
