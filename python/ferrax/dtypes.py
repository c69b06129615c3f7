"""``jax.dtypes``: questions about dtypes, and the dtypes that NumPy does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING, Any

import numpy as np

from ferrax import _ferrax, _narrow
from ferrax._ferrax import TypePromotionError as TypePromotionError
from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax._ml_dtypes import bfloat16 as bfloat16, finfo as finfo, iinfo as iinfo

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]

#: The dtype of tangents of integers: it holds no information.
float0 = _ferrax.dtype_object("float0")


class extended(np.generic):
    """Abstract type of the dtypes that stand for something other than numbers, such as PRNG keys.

    >>> import ferrax
    >>> ferrax.dtypes.issubdtype(ferrax.dtypes.prng_key, ferrax.dtypes.extended)
    True
    """


class prng_key(extended):
    """Abstract type of the dtypes of PRNG keys.

    >>> import ferrax
    >>> ferrax.dtypes.issubdtype(ferrax.dtypes.prng_key, ferrax.dtypes.prng_key)
    True
    """


_ABSTRACT = {"f": np.floating, "i": np.signedinteger, "u": np.unsignedinteger}


def _scalar_class(dtype: Any) -> type:
    """The scalar type behind anything that says a dtype."""
    kind = getattr(dtype, "type", None)
    if isinstance(dtype, _ferrax.KeyTy):
        return prng_key
    if isinstance(kind, type) and issubclass(kind, extended):
        return kind
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return dtype
    return np.dtype(dtype).type


def issubdtype(a: Any, b: Any) -> bool:
    """Whether a dtype belongs to a kind of dtypes.

    Args:
      a: a dtype or an abstract scalar type.
      b: a dtype or an abstract scalar type, such as ``jnp.floating``.

    Returns:
      Whether a is b or lies below it in NumPy's hierarchy, in which the narrow floats and integers have their places.

    Raises:
      TypeError: an argument says no dtype.

    >>> import ferrax
    >>> import ferrax.numpy as jnp
    >>> ferrax.dtypes.issubdtype(jnp.bfloat16, jnp.floating)
    True
    """
    x, y = _scalar_class(a), _scalar_class(b)
    if issubclass(x, y):
        return True
    if x.__module__ != "ml_dtypes" or x.__name__ not in _narrow.KINDS:
        return False
    return issubclass(_ABSTRACT[_narrow.KINDS[x.__name__]], y)


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that is used for a dtype now: 64-bit ones become 32-bit ones unless x64 is enabled.

    Args:
      dtype: a dtype in any spelling; None is the dtype of floats.
      allow_extended_dtype: whether dtypes of PRNG keys are taken, and given back as they are.

    Returns:
      A NumPy dtype, or an extended one.

    Raises:
      ValueError: the dtype is an extended one and these are not allowed.

    >>> import ferrax
    >>> ferrax.dtypes.canonicalize_dtype("float64")
    dtype('float32')
    """
    if isinstance(dtype, _ferrax.KeyTy):
        if not allow_extended_dtype:
            raise ValueError(f"canonicalize_dtype called on extended dtype {dtype} with allow_extended_dtype=False")
        return dtype
    return _ferrax.canonicalize_dtype("float64" if dtype is None else dtype)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that JAX's promotion gives for operands and dtypes.

    Args:
      *args: arrays, numbers, dtypes, or Python's number types.
      return_weak_type_flag: whether to say too whether the result is weakly typed.

    Returns:
      The dtype; with the flag, the pair of dtype and weak type.

    Raises:
      ValueError: there is no argument.
      TypePromotionError: the operands have no common dtype.

    >>> import ferrax
    >>> import numpy as np
    >>> ferrax.dtypes.result_type(np.int8, 2.0)
    dtype('float32')
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    return _ferrax.result_type(*args, return_weak_type_flag=return_weak_type_flag)


def scalar_type_of(x: Any) -> type:
    """Python's type for the elements of an operand.

    Args:
      x: an array or a number.

    Returns:
      ``bool``, ``int``, ``float`` or ``complex``.

    Raises:
      TypeError: x is no operand.

    >>> import ferrax
    >>> import numpy as np
    >>> ferrax.dtypes.scalar_type_of(np.float32(1))
    <class 'float'>
    """
    dtype = _ferrax.dtype_of(x)
    for abstract, python in (
        (np.bool_, bool),
        (np.integer, int),
        (np.floating, float),
        (np.complexfloating, complex),
    ):
        if issubdtype(dtype, abstract):
            return python
    raise TypeError(f"Invalid scalar value {x}")


def itemsize_bits(dtype: Any) -> int:
    """Number of bits of an element.

    Args:
      dtype: a dtype in any spelling.

    Returns:
      The number of bits, 4 for ``int4``.

    >>> import ferrax
    >>> ferrax.dtypes.itemsize_bits("int4")
    4
    """
    if isinstance(dtype, _ferrax.KeyTy):
        raise ValueError(f"dtype {dtype} has no number of bits")
    dtype = np.dtype(dtype)
    if dtype == np.dtype(bool):
        return 8
    if issubdtype(dtype, np.integer):
        return int(_narrow.limits(dtype).bits)
    if dtype == float0:
        return 0
    if issubdtype(dtype, np.floating):
        return int(_narrow.limits(dtype).bits)
    return dtype.itemsize * 8


_defer(globals(), {"_ml_dtypes": "bfloat16 finfo iinfo"})
