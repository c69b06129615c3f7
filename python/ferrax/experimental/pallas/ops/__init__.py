"""Kernels that come with JAX, for TPUs and GPUs: names that can be imported, and say so when they are used."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.experimental.pallas.ops import tpu as tpu

_defer(globals(), {}, "tpu")
