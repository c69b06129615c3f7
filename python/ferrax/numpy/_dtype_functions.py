"""Questions about dtypes: kinds, promotion, casting, limits.

JAX's dtype tree is NumPy's with the narrow floats and integers of ml_dtypes in their places, which NumPy itself
classes as void. Read `_args.py` next.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ferrax import _core, _ferrax
from ferrax._narrow import KINDS, limits
from ferrax.config import enable_x64
from ferrax.dtypes import issubdtype as _issubdtype

__all__ = ["can_cast", "iscomplexobj", "isdtype", "isrealobj", "issubdtype", "promote_types", "result_type"]

DTypeLike = Any


def dtype_kind(dtype: np.dtype) -> str:
    """One of "b", "i", "u", "f", "c"; "K" for typed random keys, or NumPy's letter for what arrays cannot hold."""
    kind = getattr(dtype, "kind", "K")
    return KINDS.get(dtype.name, kind) if kind == "V" else kind


def is_inexact(dtype: np.dtype) -> bool:
    """Whether `dtype` is floating or complex."""
    return dtype_kind(dtype) in "fc"


def inexact_dtype(dtype: np.dtype) -> np.dtype:
    """`dtype` when it is floating or complex, else the float that arithmetic on it gives."""
    if dtype_kind(dtype) in "fc":
        return dtype
    return _core.canonicalize_dtype(np.float64 if dtype in (np.int64, np.uint64) else np.float32)


def integer_limits(dtype: np.dtype) -> tuple[int, int]:
    """(smallest, largest) value of an integer dtype."""
    found = limits(dtype)
    return int(found.min), int(found.max)


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the real part of a complex `dtype`; any other `dtype` itself."""
    parts: dict[Any, np.dtype] = {
        np.dtype("complex64"): np.dtype("float32"),
        np.dtype("complex128"): np.dtype("float64"),
    }
    return parts.get(dtype, dtype)


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """The complex dtype that holds values of `dtype`."""
    if dtype_kind(dtype) == "c":
        return dtype
    return _core.canonicalize_dtype(np.complex128 if inexact_dtype(dtype) == np.float64 else np.complex64)


def default_int() -> np.dtype:
    """int32, or int64 under `enable_x64`."""
    return _core.canonicalize_dtype(np.int64)


def default_float() -> np.dtype:
    """float32, or float64 under `enable_x64`."""
    return _core.canonicalize_dtype(np.float64)


def result_type(*args: Any) -> np.dtype:
    """The dtype of an operation on the arguments, by JAX's promotion rules.

    Args:
      *args: arrays, scalars, dtypes or scalar types. Python scalars are weakly typed.

    Returns:
      A `numpy.dtype`.

    Raises:
      ValueError: when called without arguments.

    >>> import ferrax.numpy as jnp
    >>> jnp.result_type(jnp.int16(1), 2.5)
    dtype('float32')
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    found = _core.result_type(*args)
    # dtypes of keys are none of NumPy's
    return found if isinstance(found, _ferrax.KeyTy) else np.dtype(found)


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The dtype to which both `a` and `b` are converted when they meet, 64-bit ones included.

    Args:
      a: a dtype, a scalar type, or Python's `int`, `float`, `complex` (weak).
      b: as `a`.

    Returns:
      A `numpy.dtype`.

    Raises:
      ValueError: arrays cannot have one of the dtypes.
      TypePromotionError: the dtypes have no common one.

    >>> import ferrax.numpy as jnp
    >>> jnp.promote_types("int32", "bfloat16")
    dtype(bfloat16)
    """
    operands = [d if isinstance(d, type) and d in (int, float, complex) else np.dtype(d) for d in (a, b)]
    # The lattice itself, whatever widths arrays have now; but signed and unsigned integers of up to 32 bits meet where
    # arrays of both do.
    narrow = all(isinstance(d, np.dtype) and d.itemsize < 8 for d in operands)
    with contextlib.nullcontext() if narrow else enable_x64(True):
        for operand in operands:
            try:
                _core.result_type(operand)
            except TypeError:
                raise ValueError(f"dtype={operand!r} is not a valid dtype for JAX type promotion.") from None
        return np.dtype(_core.result_type(*operands))


def can_cast(from_: Any, to: DTypeLike, casting: Any = "safe") -> bool:
    """Whether a cast between dtypes is possible under a casting rule, by NumPy's table.

    Args:
      from_: a dtype, scalar type or array.
      to: a dtype or scalar type.
      casting: "no", "equiv", "safe", "same_kind" or "unsafe".

    Returns:
      A Python bool.

    >>> import ferrax.numpy as jnp
    >>> jnp.can_cast("int32", "float64"), jnp.can_cast("float32", "int8")
    (True, False)
    """
    own = getattr(from_, "dtype", None)  # of NumPy's scalar types it is a descriptor
    return bool(np.can_cast(own if isinstance(own, np.dtype) else from_, to, casting=casting))


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Whether a dtype belongs to a kind of dtypes.

    Args:
      arg1: a dtype or an abstract scalar type.
      arg2: a dtype or an abstract scalar type, such as `jnp.floating`.

    Returns:
      A Python bool.

    Raises:
      TypeError: an argument says no dtype.

    >>> import ferrax.numpy as jnp
    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating), jnp.issubdtype("int8", jnp.unsignedinteger)
    (True, False)
    """
    return _issubdtype(arg1, arg2)


_ISDTYPE_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind, as the array API standard defines it.

    Args:
      dtype: a dtype or scalar type.
      kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric",
        a dtype, or a tuple of these.

    Returns:
      A Python bool.

    Raises:
      ValueError: for a kind that the standard does not name.
      TypeError: for anything else, classes of dtypes as `jnp.integer` among them.

    >>> import ferrax.numpy as jnp
    >>> jnp.isdtype(jnp.float32, "real floating"), jnp.isdtype(jnp.int8, ("bool", jnp.float32))
    (True, False)
    """
    target = np.dtype(dtype)
    found = [_is_kind(target, option) for option in (kind if isinstance(kind, tuple) else (kind,))]  # all are checked
    return any(found)


def _is_kind(target: Any, option: Any) -> bool:
    """Whether a dtype is of one kind of `isdtype`'s, which is checked whatever the dtype is."""
    if isinstance(option, str) and option in _ISDTYPE_KINDS:
        return dtype_kind(target) in _ISDTYPE_KINDS[option]
    if isinstance(option, tuple):
        raise TypeError(f"Expected kind to be a dtype, string, or tuple; got kind={option!r}")
    try:
        return bool(np.dtype(option) == target)
    except TypeError:
        if not isinstance(option, str):
            raise TypeError(f"Expected kind to be a dtype, string, or tuple; got kind={option!r}") from None
        raise ValueError(
            f"Unrecognized kind={option!r} expected one of {list(_ISDTYPE_KINDS)}, or a compatible input for "
            "jnp.dtype()"
        ) from None


def iscomplexobj(x: Any) -> bool:
    """Whether an array or scalar has a complex dtype, whatever its values.

    Args:
      x: array or scalar.

    Returns:
      A Python bool.

    >>> import ferrax.numpy as jnp
    >>> jnp.iscomplexobj(1j), jnp.iscomplexobj(jnp.zeros(2))
    (True, False)
    """
    if x is None:
        return False
    if not hasattr(x, "dtype"):
        x = x.__jax_array__() if hasattr(x, "__jax_array__") else np.asarray(x)
    dtype = x.dtype
    # dtypes of keys are none of NumPy's
    return isinstance(dtype, (np.dtype, type)) and dtype_kind(np.dtype(dtype)) == "c"


def isrealobj(x: Any) -> bool:
    """Whether an array or scalar has a dtype that is not complex.

    Args, Returns: as in `iscomplexobj`.

    >>> import ferrax.numpy as jnp
    >>> jnp.isrealobj(jnp.zeros(2))
    True
    """
    return not iscomplexobj(x)
