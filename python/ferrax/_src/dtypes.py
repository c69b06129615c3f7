"""Questions about dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ferrax import _ferrax, dtypes as _dtypes
from ferrax._extended_dtypes import (
    ExtendedDType as ExtendedDType,
    PrimalTangentDType as PrimalTangentDType,
    primal_tangent_dtype as primal_tangent_dtype,
    primal_tangent_dtype_scalar as primal_tangent_dtype_scalar,
)
from ferrax._src._public import names_of
from ferrax.config import config as _config
from ferrax.dtypes import TypePromotionError as TypePromotionError
from ferrax.numpy import isdtype as isdtype, promote_types as promote_types

__getattr__ = names_of(__name__, "ferrax.dtypes", "ml_dtypes")

DType = Any
JAXType = Any

int_, uint, float_, complex_ = np.int64, np.uint64, np.float64, np.complex128

_weak_types = [int, float, complex]
_bool_types = [np.dtype(bool)]
_intn_dtypes = [np.dtype(getattr(ml_dtypes, n)) for n in ("int2", "uint2", "int4", "uint4")]
_unsigned_types = [*_intn_dtypes[1::2], *map(np.dtype, ("uint8", "uint16", "uint32", "uint64"))]
_signed_types = [*_intn_dtypes[::2], *map(np.dtype, ("int8", "int16", "int32", "int64"))]
_custom_float_dtypes = [
    np.dtype(getattr(ml_dtypes, n))
    for n in (
        "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu", "float8_e4m3b11fnuz", "float8_e4m3fn",
        "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "bfloat16",
    )
]  # fmt: skip
_float_types = [*_custom_float_dtypes, *map(np.dtype, ("float16", "float32", "float64"))]
_complex_types = [np.dtype("complex64"), np.dtype("complex128")]
_WIDE_INTEGERS = (np.dtype("int64"), np.dtype("uint64"))
_jax_types = [*_bool_types, *_unsigned_types, *_signed_types, *_float_types, *_complex_types]
_jax_dtype_set = {*_jax_types, _dtypes.float0}


_int2_dtype, _uint2_dtype, _int4_dtype, _uint4_dtype = _intn_dtypes
_int_types = [*_unsigned_types, *_signed_types]
_float8_dtypes = [
    np.dtype(getattr(ml_dtypes, f"float8_{kind}"))
    for kind in ("e3m4", "e4m3", "e8m0fnu", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")
]
_float6_dtypes = [np.dtype(ml_dtypes.float6_e2m3fn), np.dtype(ml_dtypes.float6_e3m2fn)]
_float4_dtypes = [np.dtype(ml_dtypes.float4_e2m1fn)]
#: Python's numbers, and the dtypes of their values where these are wide.
python_scalar_types = {bool, int, float, complex}
python_scalar_types_to_dtypes: dict[type, np.dtype] = {
    bool: np.dtype(bool),
    int: np.dtype("int64"),
    float: np.dtype("float64"),
}
python_scalar_types_to_dtypes[complex] = np.dtype("complex128")
bool_ = np.bool_
string_dtype = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else None
_dtype_to_32bit_dtype = {
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in (("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"), ("complex128", "complex64"))
}

#: One-bit integers, which ml_dtypes has not.
int1 = uint1 = None


def default_int_dtype() -> np.dtype:
    """The dtype of Python's integers."""
    return np.dtype("int64" if _config.x64_enabled else "int32")


def default_uint_dtype() -> np.dtype:
    """The default unsigned dtype."""
    return np.dtype("uint64" if _config.x64_enabled else "uint32")


def default_float_dtype() -> np.dtype:
    """The dtype of Python's floats."""
    return np.dtype("float64" if _config.x64_enabled else "float32")


def default_complex_dtype() -> np.dtype:
    """The dtype of Python's complex numbers."""
    return np.dtype("complex128" if _config.x64_enabled else "complex64")


default_types = {
    "b": lambda: np.dtype(bool),
    "i": default_int_dtype,
    "u": default_uint_dtype,
    "f": default_float_dtype,
    "c": default_complex_dtype,
}


def dtype(x: Any) -> Any:
    """The dtype of a value, or a dtype as an object of NumPy's class; what is too wide for the settings is narrowed."""
    if x is None:
        raise ValueError("Invalid argument to dtype: None.")
    if isinstance(x, (str, type, np.dtype)):
        return check_and_canonicalize_user_dtype(x, "dtype")
    if hasattr(x, "dtype") or type(x) in python_scalar_types:
        return _ferrax.typeof(x).dtype
    try:  # NumPy has a word for some others: a pair of an array and anything is of the array's dtype
        return np.result_type(x)
    except TypeError as error:
        raise TypeError(f"Cannot determine dtype of {x}") from error


def check_and_canonicalize_user_dtype(dtype: Any, fun_name: str | None = None) -> Any:
    """The dtype that an argument of a user's names; a warning tells where bits are lost."""
    if dtype is None:
        raise ValueError("dtype must be specified.")
    return _ferrax.canonicalize_dtype(dtype, fun_name or "")


def check_valid_dtype(dtype: Any) -> None:
    """Raises TypeError for a dtype of NumPy's that arrays cannot have."""
    if dtype not in _jax_dtype_set:
        raise TypeError(
            f"Dtype {dtype} is not a valid JAX array type. Only arrays of numeric types are supported by JAX."
        )


def coerce_to_array(x: Any, dtype: Any = None) -> np.ndarray:
    """A number or an array of NumPy's as NumPy's array; numbers of Python's have their default dtype."""
    if dtype is None and type(x) in python_scalar_types:
        dtype = _dtypes.canonicalize_dtype(type(x))
    return np.asarray(x, dtype)


def _jax_type(dtype: Any, weak_type: bool) -> Any:
    """What stands for a dtype among promotions: Python's type of numbers for a weak one."""
    if not weak_type or dtype.kind == "b":
        return dtype
    return float if dtype in _custom_float_dtypes else type(dtype.type(0).item())


def _dtype_and_weaktype(value: Any) -> tuple[Any, bool]:
    """The dtype of a value or type, and whether it takes that of what it is combined with."""
    return dtype(value), any(value is kind for kind in _weak_types) or is_weakly_typed(value)


def is_weakly_typed(x: Any) -> bool:
    """Whether a value takes the dtype of what it is combined with."""
    return bool(getattr(x, "weak_type", type(x) in _weak_types))


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """The dtype of the values combined, and whether it is weak."""
    return _dtypes.result_type(*args, return_weak_type_flag=True)  # type: ignore[return-value]


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype has infinities."""
    dtype = np.dtype(dtype)
    if not _dtypes.issubdtype(dtype, np.inexact):
        return False
    with np.errstate(all="ignore"):
        return bool(np.isinf(np.array(np.inf).astype(dtype)))


def to_inexact_dtype(dtype: Any) -> np.dtype:
    """The dtype of floats that integers become in functions such as `sin`; others as they are.

    It depends on how wide the integers are, and on no setting.
    """
    dtype = np.dtype(dtype)
    if _dtypes.issubdtype(dtype, np.inexact):
        return dtype
    return np.dtype("float64" if dtype in _WIDE_INTEGERS else "float32")


def to_numeric_dtype(dtype: Any) -> np.dtype:
    """The dtype, or int32 for bool, however wide the default integer is."""
    dtype = np.dtype(dtype)
    return np.dtype("int32") if dtype == np.dtype(bool) else dtype


def to_complex_dtype(dtype: Any) -> np.dtype:
    """The complex dtype that holds a dtype's numbers."""
    inexact = to_inexact_dtype(dtype)
    if inexact.kind == "c":
        return inexact
    return np.dtype("complex128" if inexact == np.dtype("float64") else "complex64")


def short_dtype_name(dtype: Any) -> str:
    """A dtype's name as programs print it: `f32`, `i8`, `bool`."""
    if isinstance(dtype, ExtendedDType):
        return str(dtype)
    name = dtype.name
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if name.startswith(long):
            return str(short + name.removeprefix(long))
    return str(name)


def safe_to_cast(input_dtype_or_value: Any, output_dtype_or_value: Any) -> bool:
    """Whether a dtype or value becomes another dtype where both are combined.

    >>> safe_to_cast("int16", "float32"), safe_to_cast("float32", "int16")
    (True, False)
    """
    output = _dtypes.canonicalize_dtype(dtype(output_dtype_or_value))
    if _dtypes.canonicalize_dtype(dtype(input_dtype_or_value)) == output:
        return True
    return bool(_dtypes.result_type(input_dtype_or_value, output) == output)


def to_floating_dtype(dtype: Any) -> np.dtype:
    """The dtype of floats that holds a dtype's numbers: that of the real parts of complex ones."""
    inexact = to_inexact_dtype(dtype)
    return np.zeros(0, inexact).real.dtype if inexact.kind == "c" else inexact


def is_weakly_typed_scalar(x: Any) -> bool:
    """Whether a value is one number that takes the dtype of what it is combined with."""
    return is_weakly_typed(x) and np.ndim(x) == 0
