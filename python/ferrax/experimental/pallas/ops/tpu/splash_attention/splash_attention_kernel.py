"""The kernel: names alone, but for `SegmentIds`."""

from typing import Any, NamedTuple

from ferrax._src._unprovided import unprovided_names

WHY = "it is a kernel for TPUs; ferrax.nn.dot_product_attention takes masks"
NAMES = (
    "BlockSizes QKVLayout SplashAttentionKernel attention_reference get_kernel_name make_attention_reference "
    "make_masked_mha_reference make_masked_mqa_reference make_splash_mha make_splash_mha_single_device make_splash_mqa "
    "make_splash_mqa_single_device"
)


class SegmentIds(NamedTuple):
    """To which segment each position of the queries, and of the keys and values, belongs.

    Args:
      q: ints, of shape (queries,).
      kv: ints, of shape (keys,).

    >>> SegmentIds(q=[0, 0, 1], kv=[0, 1]).kv
    [0, 1]
    """

    q: Any
    kv: Any


__getattr__ = unprovided_names(__name__, NAMES, WHY)
