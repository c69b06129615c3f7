"""Keys and draws."""

from typing import Any

import numpy as np

from ferrax._src._public import names_of
from ferrax.random._continuous import fraction

__getattr__ = names_of(__name__, "ferrax._src.random", "ferrax.extend.random", "ferrax._src.random.prng")


def _safe_int_to_float(bits: Any, dtype: Any) -> Any:
    """Pairs of 32-bit words, the high ones first, as a share of 2**64 in float32."""
    if bits.dtype != np.uint32 or dtype != np.float32:
        raise RuntimeError("_safe_int_to_float only works for u32 -> f32")
    return fraction(*bits)
