"""Attention by cuDNN."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "AttentionLayout MaskType check_cudnn_version check_is_flash_attention dot_product_attention paged_attention",
    "attention is ferrax.nn.dot_product_attention, without cuDNN",
)
