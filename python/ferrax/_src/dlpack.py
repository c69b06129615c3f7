"""Arrays handed over by DLPack, and the dtypes for which that goes."""

import numpy as np

from ferrax import numpy as jnp
from ferrax._src._public import names_of

_names = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
SUPPORTED_DTYPES = frozenset(getattr(jnp, name) for name in _names.split())
SUPPORTED_DTYPES_SET = frozenset(np.dtype(scalar) for scalar in SUPPORTED_DTYPES)

__getattr__ = names_of(__name__, "ferrax.dlpack")
