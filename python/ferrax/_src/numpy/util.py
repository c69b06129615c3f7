"""Arguments of NumPy's functions."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import _ferrax, config, lax
from ferrax._src._unprovided import unprovided_names
from ferrax._src.dtypes import lattice_result_type, to_complex_dtype, to_inexact_dtype, to_numeric_dtype
from ferrax.dtypes import extended, float0, issubdtype


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


def promote_shapes(fun_name: str, *args: Any) -> list[Any]:
    """The values as arrays of one rank, by new axes at the left: see `jax_numpy_rank_promotion`. Scalars may stay."""
    arrays = [jnp.asarray(a) for a in args]
    if len({x.ndim for x in arrays if x.ndim}) < 2:
        return arrays
    lax.broadcast_shapes(*(x.shape for x in arrays))
    shapes = " ".join(map(str, (x.shape for x in arrays)))
    match config.numpy_rank_promotion:
        case "raise":
            raise ValueError(
                f"Operands could not be broadcast together for {fun_name} on shapes {shapes} and with the config "
                "option jax_numpy_rank_promotion='raise'."
            )
        case "warn":
            warnings.warn(f"Following NumPy automatic rank promotion for {fun_name} on shapes {shapes}.", stacklevel=2)
    rank = max(x.ndim for x in arrays)
    return [lax.expand_dims(x, range(rank - x.ndim)) for x in arrays]


def _promoted(kind: Callable[..., list[Any]], fun_name: str, args: Sequence[Any]) -> list[Any]:
    check_arraylike(fun_name, *args)
    for a in args:
        dtype = _ferrax.typeof(a).dtype
        if dtype == float0 or issubdtype(dtype, extended):
            raise TypeError(f"{fun_name} does not accept dtype {dtype.name}.")
    return promote_shapes(fun_name, *kind(*args))


def promote_args(fun_name: str, *args: Any) -> list[Any]:
    """The values as arrays of one dtype and one rank."""
    return _promoted(promote_dtypes, fun_name, args)


def promote_args_inexact(fun_name: str, *args: Any) -> list[Any]:
    """The values as arrays of one dtype of floats or complex numbers, and one rank."""
    return _promoted(promote_dtypes_inexact, fun_name, args)


def promote_args_numeric(fun_name: str, *args: Any) -> list[Any]:
    """The values as arrays of one dtype of numbers, and one rank."""
    return _promoted(promote_dtypes_numeric, fun_name, args)


def _broadcast_to(arr: Any, shape: Any, sharding: Any = None) -> Any:
    """`jax.numpy.broadcast_to`."""
    return jnp.broadcast_to(arr, shape, out_sharding=sharding)


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
    "_arraylike _broadcast_arrays _where",
    "operands are promoted by the core",
)
