"""The methods of arrays that are functions of `ferrax.numpy`, put onto Array and Tracer by one table.

The parts of arrays that are not functions of this package (operators, indexing, `at`, conversion to Python and NumPy)
are Rust and come with the classes.
"""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any

import ml_dtypes
import numpy as np

from ferrax import lax
from ferrax._boundary import shielded
from ferrax._core import Array, Tracer, concrete_or_error, is_tracer
from ferrax._devices import device_put
from ferrax._documentation import completed
from ferrax._lazy import DeferredMember
from ferrax._rust import with_shortcut
from ferrax.numpy import (
    _creation,
    _cumulative,
    _diagonal,
    _elementwise,
    _join,
    _products,
    _reductions,
    _search,
    _select,
    _shape,
    _sort,
    _take,
    _ufuncs,
)  # fmt: skip
from ferrax.numpy._args import user_dtype
from ferrax.numpy._dtype_functions import dtype_kind


@with_shortcut("reshape_method")
def _reshape(self: Any, *args: Any, order: str = "C", out_sharding: None = None) -> Any:
    """The elements of the array in another shape; see `ferrax.numpy.reshape`."""
    shape = args[0] if len(args) == 1 else args
    return _shape.reshape(self, shape, order, out_sharding=out_sharding)


@with_shortcut("transpose_method")
def _transpose(self: Any, *args: Any) -> Any:
    """The array with its axes in another order; see `ferrax.numpy.transpose`."""
    if not args:
        return _shape.transpose(self)
    return _shape.transpose(self, args[0] if len(args) == 1 else args)


def _matrix_transpose(self: Any) -> Any:
    """The array with its last two axes exchanged."""
    return _shape.matrix_transpose(self)


def _flatten(self: Any, order: str = "C", *, out_sharding: None = None) -> Any:
    """The elements of the array in one dimension; see `ferrax.numpy.ravel`."""
    return _shape.ravel(self, order, out_sharding=out_sharding)


@with_shortcut("astype")
def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The array converted to a dtype; see `ferrax.numpy.astype`."""
    return _creation.astype(self, dtype, copy=copy, device=device)


def _copy(self: Any) -> Any:
    """A copy of the array."""
    return _creation.copy(self)


def _compress(self: Any, condition: Any, axis: int | None = None, *, out: None = None, size: int | None = None,
              fill_value: Any = 0) -> Any:  # fmt: skip
    """The slices of the array where a condition holds; see `ferrax.numpy.compress`."""
    return _select.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    """The array limited to a range; see `ferrax.numpy.clip`."""
    return _ufuncs.clip(self, min, max)


def _array_module(self: Any, types: Any) -> Any:
    """The module of functions of these types of arrays (NumPy's NEP 37): `ferrax.numpy`, unless there are others."""
    if not all(issubclass(t, (Array, Tracer, np.ndarray)) for t in types):
        return NotImplemented
    return sys.modules["ferrax.numpy"]


def _hex(self: Any) -> str:
    """The hexadecimal digits of an integer."""
    return hex(self.__index__())


def _oct(self: Any) -> str:
    """The octal digits of an integer."""
    return oct(self.__index__())


def _numpy_dtype(self: Any) -> Any:
    """The dtype, for NumPy that is given an array in its place."""
    warnings.warn(
        "Implicit conversion of an array to a dtype is deprecated; rather than dtype=arr use dtype=arr.dtype. In the "
        "future this will result in an error.",
        DeprecationWarning,
        stacklevel=2,
    )
    return self.dtype


def _item(self: Any, *args: int) -> Any:
    """The element at an index, or the only one, as a Python scalar."""
    if args:
        if is_tracer(self):
            concrete_or_error(None, self, "It arose in the item() method of an array.")
        index = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        if is_tracer(self):  # of an eager derivative, which the element's conversion refuses
            return _item(self.ravel()[index] if len(index) == 1 else self[tuple(index)])
        if len(index) == 1 and self.ndim != 1:
            return np.asarray(self).item(index[0])
        return np.asarray(self[tuple(index)]).item()
    if self.size != 1:
        raise ValueError(f"can only convert an array of size 1 to a Python scalar, got shape {self.shape}")
    if is_tracer(self):
        concrete_or_error(None, self, "It arose in the item() method of an array.")
    python_type = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[dtype_kind(self.dtype)]
    return python_type(_shape.reshape(self, ()))


def _std(self: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *,
         where: Any = None, correction: Any = None) -> Any:  # fmt: skip
    """The standard deviation; see `ferrax.numpy.std`."""
    return _reductions.std(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)


def _var(self: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: int = 0, keepdims: bool = False, *,
         where: Any = None, correction: Any = None) -> Any:  # fmt: skip
    """The variance; see `ferrax.numpy.var`."""
    return _reductions.var(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)


def _bits(dtype: Any) -> int:
    """The bits of an element."""
    return int((ml_dtypes.iinfo if dtype_kind(dtype) in "iu" else ml_dtypes.finfo)(dtype).bits)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The bytes of the array read as another dtype; the last axis grows or shrinks with the width."""
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    target = user_dtype(dtype, np.float64) if dtype is not None else self.dtype
    if target == self.dtype:
        return self
    if target == np.bool_:
        return lax.ne(_view(self, np.uint8), np.uint8(0))
    x = lax.convert_element_type(self, np.uint8) if self.dtype == np.bool_ else self
    if dtype_kind(x.dtype) == "c" or dtype_kind(target) == "c":
        return _view_complex(x, target)
    old, new = _bits(x.dtype), _bits(target)
    if old == new:
        return lax.bitcast_convert_type(x, target)
    if x.ndim == 0:
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if old < new:
        if x.shape[-1] * old % new:
            raise ValueError(
                "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the "
                "last axis of the array."
            )
        x = lax.reshape(x, (*x.shape[:-1], x.shape[-1] * old // new, new // old))
        return lax.bitcast_convert_type(x, target)
    x = lax.bitcast_convert_type(x, target)
    return lax.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))


def _view_complex(x: Any, target: Any) -> Any:
    """Views from or to complex numbers, as pairs of floats."""
    if dtype_kind(x.dtype) == "c":
        parts = [lax.expand_dims(p, (x.ndim,)) for p in (lax.real(x), lax.imag(x))]
        pairs = lax.concatenate(parts, x.ndim)
        flat = lax.reshape(pairs, (*x.shape[:-1], 2 * x.shape[-1])) if x.ndim else pairs
        return _view(flat, target)
    part = np.dtype(np.float32 if target == np.complex64 else np.float64)
    x = _view(x, part)
    if x.ndim == 0 or x.shape[-1] % 2:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last "
            "axis of the array."
        )
    pairs = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
    return lax.complex(pairs[..., 0], pairs[..., 1])


def _byteswap(self: Any) -> Any:
    """The array with the bytes of each element in reverse order."""
    width = self.dtype.itemsize
    if width == 1:
        return self
    if dtype_kind(self.dtype) == "c":
        return lax.complex(_byteswap(lax.real(self)), _byteswap(lax.imag(self)))
    octets = lax.bitcast_convert_type(self, np.uint8)
    return lax.bitcast_convert_type(lax.rev(octets, (octets.ndim - 1,)), self.dtype)


def _dot(self: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The dot product; see `ferrax.numpy.dot`."""
    return _products.dot(self, b, precision=precision, preferred_element_type=preferred_element_type)


def _argsort(self: Any, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
             descending: bool = False) -> Any:  # fmt: skip
    """The indices that sort the array; see `ferrax.numpy.argsort`."""
    return _sort.argsort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def _nonzero(self: Any, *, fill_value: Any = None, size: int | None = None) -> Any:
    """The indices of the elements that are not zero; see `ferrax.numpy.nonzero`."""
    return _search.nonzero(self, size=size, fill_value=fill_value)


def _conjugate(self: Any) -> Any:
    """The complex conjugate; see `ferrax.numpy.conjugate`."""
    return _ufuncs.conjugate(self)


def _to_device(self: Any, device: Any, *, stream: None = None) -> Any:
    """The array on a device or sharding, committed to it; see `ferrax.device_put`."""
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    return device_put(self, device)


def _deepcopy(self: Any, memo: Any) -> Any:
    return _creation.copy(self)


def _platform(self: Any) -> str:
    """The platform of the devices that the array is on."""
    (device, *_) = self.sharding.device_set
    return device.platform


def _format(self: Any) -> Any:
    """Where the array is, and the order of its axes in memory."""
    from ferrax.experimental.layout import row_by_row

    return row_by_row(self.shape, self.sharding)


_PLAIN = {
    _reductions: ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "ptp", "sum"),
    _cumulative: ("cumprod", "cumsum"),
    _diagonal: ("diagonal", "trace"),
    _elementwise: ("round",),
    _join: ("repeat",),
    _search: ("searchsorted",),
    _select: ("choose",),
    _shape: ("ravel", "squeeze", "swapaxes"),
    _sort: ("argpartition", "sort"),
    _take: ("take",),
}

_METHODS: dict[str, Any] = {
    **{name: getattr(module, name) for module, names in _PLAIN.items() for name in names},
    "argsort": _argsort, "astype": _astype, "byteswap": _byteswap, "clip": _clip, "compress": _compress,
    "conj": _conjugate, "conjugate": _conjugate, "copy": _copy,
    "clone": _copy, "platform": _platform, "__copy__": _copy, "__deepcopy__": _deepcopy,
    "__array_module__": _array_module, "__hex__": _hex, "__oct__": _oct,
    "dot": _dot, "flatten": _flatten, "item": _item, "nonzero": _nonzero, "reshape": _reshape, "std": _std,
    "to_device": _to_device, "transpose": _transpose, "var": _var, "view": _view,
}  # fmt: skip

_PROPERTIES = {"T": _transpose, "__numpy_dtype__": _numpy_dtype, "format": _format, "mT": _matrix_transpose}


def _put(name: str, member: Any) -> None:
    """Puts a member where the classes do not bring it themselves: arrays that are not traced bring some."""
    own = vars(Array).get(name)
    setattr(Array if own is None or isinstance(own, DeferredMember) else Tracer, name, member)


for _name, _method in _METHODS.items():
    if isinstance(_method, types.FunctionType):
        _method.__doc__ = completed(_method.__doc__, sys.modules[_method.__module__])
        _method = shielded(_method)
    _put(_name, _method)
for _name, _getter in _PROPERTIES.items():
    _put(_name, property(_getter))
