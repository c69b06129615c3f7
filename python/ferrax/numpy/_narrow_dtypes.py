"""The scalar types that are made of those of `ml_dtypes`, such as `bfloat16`, and the limits of dtypes.

They have a file of their own because `ml_dtypes` takes long to load, and many programs need none of them. Read
`_dtype_functions.py` next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes

from ferrax.numpy._dtypes import scalar_type

__all__ = [
    "bfloat16", "finfo", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "iinfo", "int1", "int2", "int4", "uint1", "uint2", "uint4",
]  # fmt: skip

bfloat16, float4_e2m1fn = scalar_type(ml_dtypes.bfloat16), scalar_type(ml_dtypes.float4_e2m1fn)
float6_e2m3fn, float6_e3m2fn = scalar_type(ml_dtypes.float6_e2m3fn), scalar_type(ml_dtypes.float6_e3m2fn)
float8_e3m4, float8_e4m3 = scalar_type(ml_dtypes.float8_e3m4), scalar_type(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz, float8_e4m3fn = scalar_type(ml_dtypes.float8_e4m3b11fnuz), scalar_type(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz, float8_e5m2 = scalar_type(ml_dtypes.float8_e4m3fnuz), scalar_type(ml_dtypes.float8_e5m2)
float8_e5m2fnuz, float8_e8m0fnu = scalar_type(ml_dtypes.float8_e5m2fnuz), scalar_type(ml_dtypes.float8_e8m0fnu)
int2, int4, uint2, uint4 = (scalar_type(t) for t in (ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4))
if TYPE_CHECKING or hasattr(ml_dtypes, "int1"):
    int1, uint1 = scalar_type(ml_dtypes.int1), scalar_type(ml_dtypes.uint1)
else:
    # ml_dtypes has them from 0.6 on
    __all__.remove("int1")
    __all__.remove("uint1")

finfo, iinfo = ml_dtypes.finfo, ml_dtypes.iinfo
