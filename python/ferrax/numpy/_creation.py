"""Making arrays: from values, from a fill value, from buffers.

Filled arrays are staged as `broadcast_in_dim` under `jit`, so that programs do not carry them. Read `_args.py` first
and `_ranges.py` next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _core, _ferrax, lax
from ferrax._core import asarray as _asarray, is_tracer
from ferrax._ferrax import KeyTy
from ferrax._rust import with_shortcut
from ferrax.lax.shape import in_floats
from ferrax.numpy._args import (  # fmt: skip
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    cast,
    cast_to,
    place,
    place_filled,
    require,
    static_shape,
    user_dtype,
    warn_imaginary_parts,
)
from ferrax.numpy._dtype_functions import dtype_kind

__all__ = [
    "array", "asarray", "astype", "copy", "empty", "empty_like", "from_dlpack", "frombuffer", "fromfile",
    "fromfunction",
    "fromiter", "fromstring", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip


def array(object: Any, dtype: DTypeLike = None, *args: Any, copy: bool = True, order: str | None = "K", ndmin: int = 0,
          device: Any = None, out_sharding: None = None) -> Array:  # fmt: skip
    """An array with a copy of the given values.

    Args:
      object: array, scalar, nested lists or tuples of these, or an object with a buffer, `__jax_array__` or
        `__array__`.
      dtype: dtype of the result; by default the common dtype of the values, 64-bit types narrowed to 32 bits unless
        `enable_x64` is set.
      copy: whether the result must own its memory.
      order: only "K", "A", "C" or None.
      ndmin: least number of axes; axes of length 1 are put first.
      device: where to place the array.
      out_sharding: how it is spread over explicit axes of the mesh in use.

    Returns:
      Array. A Python scalar gives a weakly typed one.

    Raises:
      TypeError: for values that are not numbers.
      ValueError: for lists of unequal lengths.

    >>> import ferrax.numpy as jnp
    >>> jnp.array([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    """
    if args:
        raise TypeError(f"array() takes 2 positional arguments but {2 + len(args)} were given")
    if order is not None and order not in ("K", "A", "C"):
        raise NotImplementedError("Only implemented for order='K'")
    if isinstance(object, np.ma.MaskedArray):
        object = object.data
    result = _asarray(object, dtype, copy, "array")
    if ndmin > result.ndim:
        result = lax.expand_dims(result, tuple(range(ndmin - result.ndim)))
    return place(result, device, out_sharding, "jnp.array")


@with_shortcut("asarray")
def asarray(a: Any, dtype: DTypeLike = None, order: str | None = None, *, copy: bool | None = None, device: Any = None,
            out_sharding: None = None) -> Array:  # fmt: skip
    """The given values as an array; an array is returned as it is.

    Args:
      a: as for `array`.
      dtype: dtype of the result.
      order: only "K", "A", "C" or None.
      copy: True for a copy, None or False where none is needed.
      device: where to place the array.
      out_sharding: how it is spread over explicit axes of the mesh in use.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.asarray(range(3))
    Array([0, 1, 2], dtype=int32)
    """
    if order is not None and order not in ("K", "A", "C"):
        raise NotImplementedError("Only implemented for order='K'")
    result = _asarray(a, dtype, bool(copy))
    return result if device is None and out_sharding is None else place(result, device, out_sharding, "jnp.array")


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array.

    Args:
      a: array or scalar.
      order: only "K", "A", "C" or None.

    Returns:
      Array of the dtype and shape of `a`.

    >>> import ferrax.numpy as jnp
    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    require("copy", a)
    return array(a, copy=True, order="K" if order is None else order)


@with_shortcut("astype")
def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None) -> Array:
    """An array converted to a dtype.

    Args:
      x: array or scalar.
      dtype: the dtype wanted; None for the default float.
      copy: whether the result must be a new array.
      device: where to place the result.

    Returns:
      Array of `dtype`. Complex numbers lose their imaginary part when `dtype` is real.

    >>> import ferrax.numpy as jnp
    >>> jnp.astype(jnp.array([1.7, -1.7]), jnp.int32)
    Array([ 1, -1], dtype=int32)
    """
    require("astype", x)
    if isinstance(dtype, KeyTy):
        return place(lax.convert_element_type(x, dtype), device)
    x, target = _asarray(x), user_dtype(dtype, np.float64)
    if dtype_kind(x.dtype) == "c" and dtype_kind(target) not in "cb":
        warn_imaginary_parts(astype=True)
    result = cast(x, target)
    if copy and x.dtype == target and not is_tracer(result):
        result = _core.copy_array(result)
    return place(result, device)


def _fill(name: str, shape: Any, value: Any, dtype: DTypeLike, device: Any, out_sharding: None) -> Array:
    if type(dtype) is int and type(shape) is int:
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type. Did you accidentally write "
            f"`jax.numpy.{name}({shape}, {dtype})` when you meant `jax.numpy.{name}(({shape}, {dtype}))`?"
        )
    return place(
        lax.full(static_shape(shape), value, user_dtype(dtype, np.float64)), device, out_sharding, f"jnp.{name}"
    )


@with_shortcut("zeros")
def zeros(shape: Any, dtype: DTypeLike = None, *, device: Any = None, out_sharding: None = None) -> Array:
    """An array of zeros.

    Args:
      shape: integer or sequence of integers.
      dtype: dtype; by default the default float.
      device: where to place the array.
      out_sharding: how it is spread over explicit axes of the mesh in use.

    Returns:
      Array of `shape` and `dtype`.

    >>> import ferrax.numpy as jnp
    >>> jnp.zeros(3)
    Array([0., 0., 0.], dtype=float32)
    """
    return _fill("zeros", shape, 0, dtype, device, out_sharding)


@with_shortcut("ones")
def ones(shape: Any, dtype: DTypeLike = None, *, device: Any = None, out_sharding: None = None) -> Array:
    """An array of ones.

    Args, Returns: as in `zeros`.

    >>> import ferrax.numpy as jnp
    >>> jnp.ones(2, dtype=int)
    Array([1, 1], dtype=int32)
    """
    return _fill("ones", shape, 1, dtype, device, out_sharding)


def empty(shape: Any, dtype: DTypeLike = None, *, device: Any = None, out_sharding: None = None) -> Array:
    """An array whose values do not matter; it holds zeros.

    Args, Returns: as in `zeros`.

    >>> import ferrax.numpy as jnp
    >>> jnp.empty((2, 0)).shape
    (2, 0)
    """
    return _fill("empty", shape, 0, dtype, device, out_sharding)


def full(shape: Any, fill_value: ArrayLike, dtype: DTypeLike = None, *, device: Any = None,
         out_sharding: None = None) -> Array:  # fmt: skip
    """An array filled with a value.

    Args:
      shape: integer or sequence of integers.
      fill_value: scalar, or an array that broadcasts to `shape`.
      dtype: dtype; by default that of `fill_value`.
      device: where to place the array.
      out_sharding: how it is spread over explicit axes of the mesh in use.

    Returns:
      Array of `shape`.

    >>> import ferrax.numpy as jnp
    >>> jnp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int32, weak_type=True)
    """
    require("full", fill_value)
    return place_filled(_filled(static_shape(shape), fill_value, dtype), device, out_sharding, "full")


def _filled(shape: tuple[int, ...], fill_value: ArrayLike, dtype: DTypeLike) -> Array:
    if isinstance(dtype, KeyTy):
        return lax.full(shape, fill_value, dtype)
    value = _asarray(fill_value) if dtype is None else cast_to(in_floats(fill_value, dtype), dtype)
    return broadcast_to_shape(value, shape)


def sharding_of_like(a: Any) -> Any:
    """The sharding of an array or an abstract one, or of a traced value over explicit axes of a mesh."""
    if isinstance(a, _core.ArrayImpl):
        found = _ferrax.place_of(a)
        if found is None:
            return a.sharding if a.committed else None
        return _ferrax.sharding_of(found)
    said = None if isinstance(a, _ferrax.Array) else getattr(a, "sharding", None)
    if isinstance(said, _ferrax.SingleDeviceSharding) or type(getattr(said, "mesh", None)).__name__ == "Mesh":
        return said  # an abstract array that says where it is
    if not _ferrax.explicit_in_use():
        return None
    from ferrax.sharding._placement import concrete
    from ferrax.sharding._typed import sharding_of

    found = concrete(sharding_of(_ferrax.typeof(a)._spread))
    return found if hasattr(getattr(found, "mesh", None), "devices") else None


def _like(name: str, a: Any, value: Any, dtype: DTypeLike, shape: Any, device: Any, out_sharding: None) -> Array:
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        require(name, a)
        a = _asarray(a)
    put = place_filled
    if device is None and out_sharding is None:
        put, like = place, sharding_of_like(a)
        # a sharding over several devices is one for that shape
        device = like if shape is None or isinstance(like, _ferrax.SingleDeviceSharding) else None
    shape = a.shape if shape is None else static_shape(shape)
    asked = name if name == "full_like" else f"jnp.{name}"  # as errors about the sharding name the function
    weak = dtype is None and _core.weak_type(a) and np.ndim(value) == 0
    number = weak and isinstance(value, int)
    if number and (python_type := {"i": int, "f": float, "c": complex}.get(dtype_kind(a.dtype))):
        out = broadcast_to_shape(_asarray(python_type(value)), shape)
    elif number or (dtype is None and isinstance(a.dtype, KeyTy)):
        out = lax.full_like(a, value, shape=shape)
    else:  # nobody asked for the bits that NumPy's arrays have
        own = a.dtype if isinstance(a, _core.ArrayImpl) or dtype is not None else _ferrax.canonicalize_dtype(a.dtype)
        out = _core.with_weak_type(_filled(shape, value, own if dtype is None else dtype), weak)
    if _ferrax.is_tracer(a) and (axes := _ferrax.typeof(a).vma - _ferrax.typeof(out).vma):
        out = _ferrax.pvary(out, sorted(axes))
    return put(out, device, out_sharding, asked)


def zeros_like(a: ArrayLike, dtype: DTypeLike = None, shape: Any = None, *, device: Any = None,
               out_sharding: None = None) -> Array:  # fmt: skip
    """An array of zeros with the shape and dtype of another.

    Args:
      a: array, scalar, or object with `shape` and `dtype`.
      dtype: dtype to use instead.
      shape: shape to use instead.
      device: where to place the array.
      out_sharding: how it is spread over explicit axes of the mesh in use.

    Returns:
      Array of zeros.

    >>> import ferrax.numpy as jnp
    >>> jnp.zeros_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(a: ArrayLike, dtype: DTypeLike = None, shape: Any = None, *, device: Any = None,
              out_sharding: None = None) -> Array:  # fmt: skip
    """An array of ones with the shape and dtype of another.

    Args: as in `zeros_like`.

    Returns:
      Array of ones.

    >>> import ferrax.numpy as jnp
    >>> jnp.ones_like(jnp.arange(3))
    Array([1, 1, 1], dtype=int32)
    """
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(prototype: ArrayLike, dtype: DTypeLike = None, shape: Any = None, *, device: Any = None) -> Array:
    """An array with the shape and dtype of another, whose values do not matter; it holds zeros.

    Args:
      prototype: array, scalar, or object with `shape` and `dtype`.
      dtype, shape, device: as in `zeros_like`.

    Returns: as in `zeros_like`.

    >>> import ferrax.numpy as jnp
    >>> jnp.empty_like(jnp.ones((2, 3))).shape
    (2, 3)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device, None)


def full_like(a: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike = None, shape: Any = None, *, device: Any = None,
              out_sharding: None = None) -> Array:  # fmt: skip
    """An array filled with a value, with the shape and dtype of another.

    Args:
      a: array, scalar, or object with `shape` and `dtype`.
      fill_value: scalar, or an array that broadcasts to the shape.
      dtype, shape, device, out_sharding: as in `zeros_like`.

    Returns:
      Array.

    >>> import ferrax.numpy as jnp
    >>> jnp.full_like(jnp.zeros(2), 3)
    Array([3., 3.], dtype=float32)
    """
    require("full_like", fill_value)
    return _like("full_like", a, fill_value, dtype, shape, device, out_sharding)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """A one-dimensional array of the items in a buffer.

    Args:
      buffer: bytes or an object with a buffer.
      dtype: dtype of the items.
      count: how many items to read; -1 for all.
      offset: where to start, in bytes.

    Returns:
      Array of `dtype`.

    >>> import ferrax.numpy as jnp
    >>> jnp.frombuffer(b"abc", dtype=jnp.uint8)
    Array([97, 98, 99], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """A one-dimensional array of the numbers in a text.

    Args:
      string: the text.
      dtype: dtype of the numbers.
      count: how many numbers to read; -1 for all.
      sep: what stands between numbers.

    Returns:
      Array of `dtype`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fromstring("1 2 3", dtype=int, sep=" ")
    Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Not available: reading a file is an effect that transformations would repeat or drop.

    Args:
      *args: as for `numpy.fromfile`.
      **kwargs: as for `numpy.fromfile`.

    Returns:
      Nothing.

    Raises:
      NotImplementedError: always; use `jnp.asarray(numpy.fromfile(...))`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fromfile("data.bin")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    NotImplementedError: jnp.fromfile() is not implemented
    """
    raise NotImplementedError(
        "jnp.fromfile() is not implemented because it would read the file at tracing time only. "
        "Use jnp.asarray(numpy.fromfile(...)) outside of transformed functions."
    )


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Not available: consuming an iterator is an effect that transformations would repeat or drop.

    Args:
      *args: as for `numpy.fromiter`.
      **kwargs: as for `numpy.fromiter`.

    Returns:
      Nothing.

    Raises:
      NotImplementedError: always; use `jnp.asarray(numpy.fromiter(...))`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fromiter(range(3), int)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    NotImplementedError: jnp.fromiter() is not implemented
    """
    raise NotImplementedError(
        "jnp.fromiter() is not implemented because it would consume the iterator at tracing time only. "
        "Use jnp.asarray(numpy.fromiter(...)) outside of transformed functions."
    )


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any) -> Array:
    """An array whose elements are a function of their indices.

    Args:
      function: called once with one scalar per axis, under `vmap` over all indices.
      shape: integer or sequence of integers.
      dtype: dtype of the indices.
      **kwargs: passed on to `function`.

    Returns:
      Array (or pytree of arrays) whose leading axes are `shape`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fromfunction(lambda i, j: i + j, (2, 3), dtype=int)
    Array([[0, 1, 2],
           [1, 2, 3]], dtype=int32)
    """
    from ferrax import vmap

    shape = static_shape(shape)
    for i in range(len(shape)):
        in_axes = [0 if i == j else None for j in range(len(shape))]
        function = vmap(_bind_keywords(function, kwargs) if i == 0 else function, in_axes=tuple(in_axes[::-1]))
    index = user_dtype(dtype)
    return function(*(lax.iota(index, n) for n in shape)) if shape else function(**kwargs)


def _bind_keywords(function: Callable[..., Any], kwargs: dict[str, Any]) -> Callable[..., Any]:
    return lambda *args: function(*args, **kwargs)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library's memory, through the DLPack protocol.

    Args:
      x: object with `__dlpack__` and `__dlpack_device__`, on the CPU or on a GPU of the platform `cuda`.
      device: where to place the array.
      copy: by default, memory that its library marks read-only is shared and other memory copied, since an array
        never changes. True copies in any case; False shares in any case: whoever writes to that memory then changes
        the array.

    Returns:
      Array of the shape and dtype of `x`, narrowed to 32 bits unless `jax_enable_x64` is on.

    Raises:
      TypeError: `x` has no such methods, or its element type is unknown.
      BufferError: `copy` is False and the memory cannot be shared as it is laid out.

    >>> import numpy, ferrax.numpy as jnp
    >>> jnp.from_dlpack(numpy.arange(3, dtype="int32"))
    Array([0, 1, 2], dtype=int32)
    """
    return place(_ferrax.from_dlpack(x, copy), device)
