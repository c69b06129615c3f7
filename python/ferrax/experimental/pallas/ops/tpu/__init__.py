"""Kernels for TPUs: names alone. Read next: `ferrax/nn/_attention.py`, whose attention runs everywhere."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.experimental.pallas.ops.tpu import splash_attention as splash_attention

_defer(globals(), {}, "splash_attention")
