"""Scalar types such as `float32`.

A scalar type of ferrax is a class that stands for a dtype wherever NumPy's would, and makes an array without axes
(not a NumPy scalar) when called. Read `_narrow_dtypes.py` next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax.numpy._creation import array

__all__ = [
    "bool", "bool_", "cdouble", "character", "complex128", "complex64", "complex_", "complexfloating", "ComplexWarning",
    "csingle", "double", "dtype", "flexible", "float16", "float32", "float64", "float_", "floating", "generic",
    "inexact", "int16", "int32", "int64", "int8", "int_", "integer", "number", "object_", "signedinteger", "single",
    "uint", "uint16", "uint32", "uint64", "uint8", "unsignedinteger",
]  # fmt: skip


class _ScalarMeta(type):
    """The class of scalar types: equal to and hashed as the dtype, callable to make an array."""

    dtype: np.dtype

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: object) -> Any:
        if cls is other:
            return True
        return cls.dtype.type == other

    def __ne__(cls, other: object) -> Any:
        return not cls == other

    def __call__(cls, x: Any) -> Any:
        return array(x, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> Any:
        return isinstance(instance, cls.dtype.type)


def scalar_type(np_scalar_type: type) -> Any:
    """A scalar type of ferrax for one of NumPy or ml_dtypes."""
    name = np.dtype(np_scalar_type).name
    doc = f"""The scalar type of {name}: a name for the dtype, and a function that makes arrays of it.

    Args:
      x: number or array to convert.

    >>> import ferrax.numpy as jnp
    >>> jnp.{name}.dtype == "{name}"
    True
    """
    members = {"dtype": np.dtype(np_scalar_type), "__doc__": doc, "__module__": "ferrax.numpy"}
    return _ScalarMeta(name, (object,), members)


bool = bool_ = scalar_type(np.bool_)
uint8, uint16, uint32, uint64 = (scalar_type(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64))
int8, int16, int32, int64 = (scalar_type(t) for t in (np.int8, np.int16, np.int32, np.int64))
float16, float32, float64 = (scalar_type(t) for t in (np.float16, np.float32, np.float64))
complex64, complex128 = (scalar_type(t) for t in (np.complex64, np.complex128))
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128
dtype = np.dtype
generic, number, inexact, object_ = np.generic, np.number, np.inexact, np.object_
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
floating, complexfloating, flexible, character = np.floating, np.complexfloating, np.flexible, np.character
ComplexWarning = np.exceptions.ComplexWarning if hasattr(np, "exceptions") else np.ComplexWarning  # type: ignore[attr-defined]
