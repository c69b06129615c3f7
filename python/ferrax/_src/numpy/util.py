"""Arguments of NumPy's functions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import _ferrax
from ferrax._src._unprovided import unprovided_names
from ferrax._src.dtypes import lattice_result_type, to_complex_dtype, to_inexact_dtype, to_numeric_dtype


def _converted(args: Sequence[Any], kind: Callable[[np.dtype], np.dtype]) -> list[Any]:
    """The values as arrays of what `kind` makes of their common dtype, weak where that is a Python number's."""
    dtype, weak = lattice_result_type(*args)
    return [_ferrax.lax.convert(a, kind(dtype), weak) for a in args]


def promote_dtypes(*args: Any) -> list[Any]:
    """The values as arrays of one dtype."""
    if len(args) < 2:
        return [jnp.asarray(a) for a in args]
    return _converted(args, lambda dtype: dtype)


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """The values as arrays of one dtype of floats or complex numbers."""
    return _converted(args, to_inexact_dtype)


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """The values as arrays of one dtype of complex numbers."""
    return _converted(args, to_complex_dtype)


def promote_dtypes_numeric(*args: Any) -> list[Any]:
    """The values as arrays of one dtype of numbers: that of bools is int32."""
    return _converted(args, to_numeric_dtype)


def ensure_arraylike(fun_name: str, *args: Any) -> Any:
    """The values, which must be arrays or numbers, as arrays: one, or a tuple of several."""
    check_arraylike(fun_name, *args)
    arrays = tuple(jnp.asarray(a) for a in args)
    return arrays[0] if len(arrays) == 1 else arrays


def check_arraylike(fun_name: str, *args: Any) -> None:
    """Raises TypeError where a value is no array and no number."""
    for i, a in enumerate(args):
        try:
            _ferrax.typeof(a)
        except TypeError:
            raise TypeError(
                f"{fun_name} requires ndarray or scalar arguments, got {type(a)} at position {i}."
            ) from None


__getattr__ = unprovided_names(
    __name__,
    "_arraylike _broadcast_arrays _broadcast_to _where promote_args promote_args_inexact promote_args_numeric "
    "promote_shapes",
    "operands are promoted by the core",
)
