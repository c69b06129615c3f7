"""Masks of the kernel: names alone."""

from ferrax._src._unprovided import unprovided_names

NAMES = (
    "CausalMask ChunkedCausalMask FullMask LocalMask LogicalAnd LogicalOr Mask MultiHeadMask NumpyMask "
    "make_causal_mask make_chunk_attention_mask make_local_attention_mask make_random_mask"
)

__getattr__ = unprovided_names(
    __name__, NAMES, "it is for a kernel for TPUs; ferrax.nn.dot_product_attention takes masks as arrays"
)
