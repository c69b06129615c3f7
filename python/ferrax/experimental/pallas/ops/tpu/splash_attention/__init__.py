"""Attention with sparse masks on TPUs: names alone, but for `SegmentIds`."""

from ferrax._src._unprovided import unprovided_names
from ferrax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask
from ferrax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel import SegmentIds as SegmentIds


def _named(name: str) -> object:
    for module in (splash_attention_kernel, splash_attention_mask):
        if name in module.NAMES.split():
            return getattr(module, name)
    raise AttributeError(name)


__getattr__ = unprovided_names(__name__, "", splash_attention_kernel.WHY, _named)
