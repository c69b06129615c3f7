"""Products of scaled numbers by cuDNN."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "BlockScaleConfig quantize scaled_dot_general_wrapper scaled_matmul_wrapper shape_normalization",
    "scaled products are ferrax.nn.scaled_matmul's and scaled_dot_general's, without cuDNN",
)
