"""Rules of primitives are in the core: what is here are names of `ferrax.lax`, and which integers count an axis."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax._src._public import names_of
from ferrax._src.core import is_constant_dim
from ferrax._src.dtypes import default_int_dtype, default_uint_dtype

__getattr__ = names_of(__name__, "ferrax.lax", "ferrax.extend.core.primitives")


def int_dtype_for_dim(d: Any, *, signed: bool) -> np.dtype:
    """The integers of 32 bits, or of 64 where these do not hold the size of an axis; the default for a symbolic one."""
    return int_dtype_for_shape((d,), signed=signed)


def int_dtype_for_shape(shape: Sequence[Any], *, signed: bool) -> np.dtype:
    """The integers of 32 bits, or of 64 where these do not hold the size of each axis."""
    wide, narrow = (np.int64, np.int32) if signed else (np.uint64, np.uint32)
    for d in shape:
        if not is_constant_dim(d):
            return default_int_dtype() if signed else default_uint_dtype()
        if d > np.iinfo(narrow).max:
            return np.dtype(wide)
    return np.dtype(narrow)
