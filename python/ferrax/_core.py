"""What the facade's modules need of the core, in one place: the array types and the questions asked of operands."""

from __future__ import annotations

from ferrax._ferrax import (
    Array as Array,
    ArrayImpl as ArrayImpl,
    ShapedArray as ShapedArray,
    Tracer as Tracer,
    asarray as asarray,
    canonicalize_dtype as canonicalize_dtype,
    concrete_or_error as concrete_or_error,
    copy_array as copy_array,
    dtype_of as dtype_of,
    is_arraylike as is_arraylike,
    is_tracer as is_tracer,
    promote_dtypes as promote_dtypes,
    promote_ranks as promote_ranks,
    result_type as result_type,
    shape as shape,
    typeof as typeof,
    weak_type as weak_type,
    with_weak_type as with_weak_type,
)

__all__ = [
    "Array",
    "ArrayImpl",
    "ShapedArray",
    "Tracer",
    "asarray",
    "canonicalize_dtype",
    "concrete_or_error",
    "copy_array",
    "dtype_of",
    "is_arraylike",
    "is_tracer",
    "promote_dtypes",
    "promote_ranks",
    "result_type",
    "shape",
    "typeof",
    "weak_type",
    "with_weak_type",
]
