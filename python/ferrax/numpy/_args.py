"""Checks and conversions that every function of `ferrax.numpy` applies to its arguments.

Array arguments are NumPy's or ferrax's arrays and scalars, never lists (`asarray` takes those): a list of a million
Python numbers that is converted at each call costs more than the call. Axes and shapes are static: a traced one raises
`ConcretizationTypeError` that names the argument. Read `_reductions.py` next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import (  # fmt: skip
    Array,
    Tracer,
    asarray,
    canonicalize_dtype,
    concrete_or_error,
    is_tracer,
    promote_dtypes,
    with_weak_type,
)
from ferrax._ferrax import ArrayImpl, warn_imaginary_parts
from ferrax._out_sharding import put, with_out_sharding as with_out_sharding
from ferrax._shapes import static_shape as static_shape, static_size, static_sizes as static_sizes
from ferrax.numpy._dtype_functions import dtype_kind, inexact_dtype
from ferrax.typing import ArrayLike as ArrayLike, DTypeLike as _DTypeLike

#: Most functions have a dtype of their own where none is given.
DTypeLike = _DTypeLike | None
Axis = int | Sequence[int] | None

#: What has a shape and is no other library's: looked at first.
_SHAPED = frozenset((ArrayImpl, Tracer, np.ndarray))
_ARRAY_TYPES = (Array, Tracer, np.ndarray, np.generic, bool, int, float, complex)


def is_arraylike(x: Any) -> bool:
    """Whether `x` counts as an array or scalar without conversion by `asarray`."""
    return isinstance(x, _ARRAY_TYPES) or hasattr(x, "__jax_array__")


def require(name: str, *args: Any) -> None:
    """Raises TypeError unless every argument is an array or a scalar."""
    for position, x in enumerate(args):
        if not is_arraylike(x):
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(x)} at position {position}."
                + (" Convert it with jnp.asarray first." if isinstance(x, (list, tuple)) else "")
            )


def require_or_none(name: str, *args: Any) -> None:
    """As `require`, with None allowed."""
    require(name, *(x for x in args if x is not None))


def to_array(name: str, x: Any) -> Any:
    """`x` as an Array or Tracer, after `require`."""
    require(name, x)
    return asarray(x)


def to_arrays(name: str, *args: Any) -> list[Any]:
    """The arguments as Arrays or Tracers, after `require`."""
    require(name, *args)
    return [asarray(x) for x in args]


def promote(name: str, *args: Any) -> list[Any]:
    """The arguments as arrays of their common dtype."""
    require(name, *args)
    return list(promote_dtypes(*args))


def promote_inexact(name: str, *args: Any) -> list[Any]:
    """The arguments as arrays of their common dtype, made floating where it is integer or bool; weak if all are."""
    require(name, *args)
    arrays = list(promote_dtypes(*args))
    target = inexact_dtype(arrays[0].dtype)
    if target == arrays[0].dtype:
        return arrays
    weak = all(x.weak_type for x in arrays)
    converted = [lax.convert_element_type(x, target) for x in arrays]
    return [with_weak_type(x, True) for x in converted] if weak else converted


def cast(x: Any, dtype: DTypeLike) -> Any:
    """`x` as an array of `dtype`; a complex array loses its imaginary part when `dtype` is real, but not bool."""
    number, x = x, asarray(x)
    dtype = np.dtype(dtype)
    if type(number) in (bool, int, float):  # a program holds the converted number
        return lax.convert_element_type(number, dtype)
    if x.dtype == dtype:
        return lax.convert_element_type(x, dtype)
    if dtype_kind(x.dtype) == "c" and dtype_kind(dtype) == "b":
        return with_weak_type(lax.ne(x, lax.full_like(x, 0)), False)
    if dtype_kind(x.dtype) == "c" and dtype_kind(dtype) != "c":
        x = lax.real(x)
    return lax.convert_element_type(x, dtype)


def user_dtype(dtype: DTypeLike, default: DTypeLike = None) -> np.dtype:
    """The canonical dtype that the user's `dtype` argument names (with a warning where bits are lost), or `default`."""
    return canonicalize_dtype(default) if dtype is None else canonicalize_dtype(dtype, "")


def warn_complex(dtype: np.dtype, target: np.dtype) -> None:
    """Warns, as NumPy does, when a conversion between the dtypes that a user asked for gives up imaginary parts."""
    if dtype_kind(dtype) == "c" and dtype_kind(target) not in "cb":
        warn_imaginary_parts()


def cast_to(x: Any, dtype: DTypeLike, default: DTypeLike = None) -> Any:
    """`x` as the dtype that a user asked for, or `default`; warns where bits or imaginary parts are lost."""
    target = user_dtype(dtype, default)
    if type(x) not in (bool, int, float):
        x = asarray(x)
        warn_complex(x.dtype, target)
    return cast(x, target)


def static_int(value: Any, context: str) -> int:
    """`value` as a Python integer; a traced one raises with `context`."""
    if isinstance(value, int):
        return int(value)
    if is_tracer(value):
        value = concrete_or_error(None, value, context)
    return static_size(value)


def normalize_axis(axis: Any, ndim: int, context: str = "the axis argument") -> int:
    """`axis` in [0, ndim); raises ValueError when it is out of bounds."""
    axis = static_int(axis, context)
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim if ndim else 0


def entries(value: Any) -> Sequence[Any]:
    """The numbers that an argument gives: those of a sequence or of an array of rank 1, or the one that it is."""
    if isinstance(value, (tuple, list)):
        return value
    if getattr(value, "ndim", 0) == 1:
        return list(value) if is_tracer(value) else value.tolist()
    alone = isinstance(value, int) or hasattr(value, "__index__") or not hasattr(value, "__iter__")
    return (value,) if alone else list(value)


def normalize_axes(
    axis: Any, ndim: int, context: str = "the axis argument", repeated: str = "duplicate value in 'axis'"
) -> tuple[int, ...]:
    """`axis` (None for all, an integer, a sequence) as distinct axes in [0, ndim); `repeated` opens the error."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(normalize_axis(a, ndim, context) for a in entries(axis))
    if len(set(axes)) != len(axes):
        raise ValueError(f"{repeated}: {tuple(axis)} for an array of dimension {ndim}")
    return axes


def without_names(axis: Any) -> tuple[Any, tuple[str, ...]]:
    """The axes of an array among `axis`, and the names of mapped axes among it."""
    if isinstance(axis, str):
        return (), (axis,)
    if not isinstance(axis, (tuple, list)):
        return axis, ()
    names = tuple(a for a in axis if isinstance(a, str))
    if not names:
        return axis, names
    if len(set(names)) != len(names):
        raise ValueError(f"duplicate value in 'axis': {tuple(axis)}")
    return tuple(a for a in axis if not isinstance(a, str)), names


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an array, of a number, or of what makes an array of itself."""
    if type(x) in _SHAPED:
        return tuple(x.shape)
    return tuple(np.shape(x.__jax_array__() if hasattr(x, "__jax_array__") else x))


def no_out(name: str, out: Any) -> None:
    """Raises NotImplementedError when an `out` argument is given: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to {name} is not supported.")


def place(x: Any, device: Any, out_sharding: Any = None, name: str = "") -> Any:
    """`x` on `device`, or with an `out_sharding` of the function `name`; `x` itself when both are None."""
    if out_sharding is not None:
        if device is not None:
            raise ValueError(f"{name}: only one of device and out_sharding can be given")
        return put(x, out_sharding, name)
    if device is None:
        return x
    from ferrax import device_put
    from ferrax.sharding._named import fitting

    return device_put(x, fitting(device, x.ndim) if name in ("full", "jnp.zeros", "jnp.ones", "jnp.empty") else device)


def place_filled(x: Any, device: Any, out_sharding: Any, name: str) -> Any:
    """As `place`; outside of programs what is filled on a device that is asked for is strongly typed."""
    x = place(x, device, out_sharding, name)
    return with_weak_type(x, False) if device is not None and type(x) is ArrayImpl else x


def broadcast_to_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` broadcast to `shape` by NumPy's rules, without checks of its type."""
    if x.shape == shape:
        return x
    offset = len(shape) - x.ndim
    if offset < 0 or any(d not in (1, shape[offset + i]) for i, d in enumerate(x.shape)):
        if offset < 0:
            raise ValueError(
                f"Cannot broadcast to shape with fewer dimensions: arr_shape={x.shape} shape={tuple(shape)}"
            )
        given, asked = (f"{x.dtype.name}[{','.join(map(str, s))}]" for s in (x.shape, shape))
        raise ValueError(
            f"Incompatible types for broadcasting: input type={given} and requested type={asked}. The sizes of "
            f"{x.shape} must be those of {tuple(shape)} or 1, compared from the last axis on."
        )
    kept = [i for i, d in enumerate(x.shape) if d == shape[offset + i]]
    if len(kept) < x.ndim:
        x = lax.squeeze(x, tuple(i for i in range(x.ndim) if i not in kept))
    return lax.broadcast_in_dim(x, shape, tuple(offset + i for i in kept))


def broadcast_together(*arrays: Any) -> list[Any]:
    """The arrays broadcast to their common shape."""
    shapes = [x.shape for x in arrays]
    if all(s == shapes[0] for s in shapes):
        return list(arrays)
    shape = common_shape(*shapes)
    return [broadcast_to_shape(x, shape) for x in arrays]


def common_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that NumPy's broadcasting rules give; ValueError where they give none."""
    ndim = max((len(s) for s in shapes), default=0)
    out = []
    for i in range(ndim):
        dims = {s[i - ndim + len(s)] for s in shapes if i - ndim + len(s) >= 0} - {1}
        if len(dims) > 1:
            raise ValueError(f"Incompatible shapes for broadcasting: shapes={[tuple(s) for s in shapes]}")
        out.append(dims.pop() if dims else 1)
    return tuple(out)
