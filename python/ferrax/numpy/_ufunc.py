"""Universal functions: elementwise functions with reduce, accumulate, at, outer and reduceat.

A `ufunc` made by `frompyfunc` works by scanning. The functions of the extension module that are ufuncs get their
methods here, and a table of the primitives that reduce in one step. Read `_elementwise.py` first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _core, _ferrax, lax
from ferrax._boundary import shielded
from ferrax._core import asarray
from ferrax.dtypes import issubdtype
from ferrax.numpy import _cumulative, _elementwise, _reductions, _shape, _ufuncs
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    Axis,
    DTypeLike,
    cast,
    cast_to,
    normalize_axes,
    normalize_axis,
    require,
    to_array,
)
from ferrax.numpy._dtype_functions import default_int
from ferrax.numpy._take import take
from ferrax.numpy._ufuncs import where as _where

__all__ = ["frompyfunc", "logaddexp", "logaddexp2", "ufunc"]


class _UfuncMeta(type):
    """Counts the elementwise functions of the extension module as ufuncs."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or type(instance) is _ferrax.numpy.ufunc


class ufunc(metaclass=_UfuncMeta):
    """An elementwise function that broadcasts, with the methods of NumPy's universal functions.

    Args:
      func: the function of arrays.
      nin: number of inputs.
      nout: number of outputs.
      name: name to show.
      nargs: number of arguments.
      identity: identity element of a binary function, None for none.
      call: used for calls instead of `func`, if given.
      reduce: used by `reduce`, if given.
      accumulate: used by `accumulate`, if given.
      at: used by `at`, if given.
      reduceat: used by `reduceat`, if given.

    >>> import ferrax.numpy as jnp
    >>> jnp.add.reduce(jnp.arange(4)), jnp.add.outer(jnp.arange(2), jnp.arange(2)).shape
    (Array(6, dtype=int32), (2, 2))
    """

    def __init__(self, func: Callable[..., Any], /, nin: int, nout: int, *, name: str | None = None,
                 nargs: int | None = None, identity: Any = None, call: Callable[..., Any] | None = None,
                 reduce: Callable[..., Any] | None = None, accumulate: Callable[..., Any] | None = None,
                 at: Callable[..., Any] | None = None, reduceat: Callable[..., Any] | None = None):  # fmt: skip
        self._nin, self._nout, self._identity = nin, nout, identity
        self._nargs = nin if nargs is None else nargs
        self.__name__ = name or func.__name__
        self.__doc__ = func.__doc__ or type(self).__doc__
        self._function, self._call = func, func if call is None else call
        self._scalar = func
        self._reduce, self._accumulate, self._at, self._reduceat = reduce, accumulate, at, reduceat

    _func = property(lambda self: self._function)
    nin = property(lambda self: self._nin, doc="Number of inputs.")
    nout = property(lambda self: self._nout, doc="Number of outputs.")
    nargs = property(lambda self: self._nargs, doc="Number of arguments.")
    identity = property(lambda self: self._identity, doc="Identity element of a binary function, or None.")

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def _key(self) -> tuple[Any, ...]:
        return self._scalar, self.__name__, self.identity, self.nin, self.nout, self.nargs

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Any:
        if out is not None:
            raise NotImplementedError(f"out argument of {self}")
        if where is not None:
            raise NotImplementedError(f"where argument of {self}")
        return self._call(*args)

    def _binary(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")

    def reduce(self, a: ArrayLike, axis: Axis = 0, dtype: DTypeLike = None, out: None = None, keepdims: bool = False,
               initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:  # fmt: skip
        """Combines the elements along axes, from the first to the last.

        Args:
          a: array.
          axis: the axis or axes; None for all.
          dtype: dtype to convert `a` to first.
          out: not supported.
          keepdims: keep reduced axes with length 1.
          initial: first operand.
          where: bool array: which elements to include; needs an identity or `initial`.

        Returns:
          Array without the axes.

        >>> import ferrax.numpy as jnp
        >>> jnp.maximum.reduce(jnp.array([1, 3, 2]))
        Array(3, dtype=int32)
        """
        self._binary("reduce")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduce()")
        if initial is not None:
            require(f"{self.__name__}.reduce", initial)
        if where is not None and self.identity is None and initial is None:
            raise ValueError(
                f"reduction operation {self.__name__!r} does not have an identity, "
                "so to use a where mask one has to specify 'initial'."
            )
        if self._reduce is not None:
            return self._reduce(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        return self._scan_reduce(to_array(f"{self.__name__}.reduce", a), axis, dtype, keepdims, initial, where)

    def _promoted(self, x: Array, dtype: DTypeLike = None, other: Array | None = None) -> Array:
        """The operand in `dtype`, or in that of the function's result, in which results are kept."""
        if dtype is None:
            ones = [lax.full_like(operand, 1, shape=()) for operand in (x, x if other is None else other)]
            return cast(x, self._func(*ones).dtype)
        return cast_to(x, dtype)

    def _scan_reduce(self, x: Array, axis: Axis, dtype: DTypeLike, keepdims: bool, initial: Any, where: Any) -> Array:
        axes = normalize_axes(axis, x.ndim)
        x = self._promoted(x, dtype)
        if where is not None:
            mask = _shape.broadcast_to(where, x.shape)
        kept = [i for i in range(x.ndim) if i not in axes]
        order = (*axes, *kept)
        x, shape = lax.transpose(x, order), x.shape
        rows = lax.reshape(x, (int(np.prod([shape[i] for i in axes], dtype=np.int64)), *(shape[i] for i in kept)))
        flags = None
        if where is not None:
            flags = lax.reshape(lax.transpose(mask, order), rows.shape)
        start = initial if initial is not None else self.identity
        if rows.shape[0] == 0 and start is None:
            raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
        if start is None:
            value, rest = rows[0], rows[1:]
        else:
            value, rest = lax.full(rows.shape[1:], cast(start, rows.dtype), rows.dtype), rows

        def step(carry: Array, item: Any) -> tuple[Array, None]:
            row, flag = item if flags is not None else (item, None)
            new = cast(self._func(carry, row), x.dtype)
            return (_where(flag, new, carry) if flag is not None else new), None

        value, _ = lax.scan(step, value, (rest, flags) if flags is not None else rest)
        return lax.expand_dims(value, tuple(sorted(axes))) if keepdims else value

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike = None, out: None = None) -> Array:
        """The results of combining the elements up to each one along an axis.

        Args:
          a: array.
          axis: axis to work along.
          dtype: dtype to convert `a` to first.
          out: not supported.

        Returns:
          Array of the shape of `a`.

        >>> import ferrax.numpy as jnp
        >>> jnp.multiply.accumulate(jnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
        """
        self._binary("accumulate")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.accumulate()")
        if self._accumulate is not None:
            return self._accumulate(a, axis=axis, dtype=dtype)
        x = to_array(f"{self.__name__}.accumulate", a)
        if x.ndim == 0:
            raise ValueError(f"cannot accumulate on a scalar with {self.__name__}.accumulate")
        if axis is None or isinstance(axis, tuple):
            raise ValueError("accumulate does not allow multiple axes")
        x = self._promoted(x, dtype)
        axis = normalize_axis(axis, x.ndim)
        x = _shape.moveaxis(x, axis, 0)
        if x.shape[0] == 0:
            return _shape.moveaxis(x, 0, axis)

        def step(carry: Array, row: Array) -> tuple[Array, Array]:
            new = cast(self._func(carry, row), x.dtype)
            return new, new

        _, rest = lax.scan(step, x[0], x[1:])
        return _shape.moveaxis(lax.concatenate([x[:1], rest], 0), 0, axis)

    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """An array with the function applied at indices, one after another where an index occurs twice.

        Args:
          a: array.
          indices: what stands in brackets.
          b: second operands of a binary function.
          inplace: must be False: arrays are immutable and the result is a new one.

        Returns:
          Array of the shape of `a`.

        >>> import ferrax.numpy as jnp
        >>> jnp.add.at(jnp.zeros(2), jnp.array([0, 0]), 1., inplace=False)
        Array([2., 0.], dtype=float32)
        """
        if inplace:
            raise NotImplementedError(
                "Because JAX arrays are immutable, jnp.ufunc.at() cannot operate inplace: pass inplace=False, and "
                "use the result."
            )
        if self._at is not None:
            return self._at(a, indices, b)
        x = to_array(f"{self.__name__}.at", a)
        if b is None:
            return x.at[indices].apply(self._func)
        values = to_array(f"{self.__name__}.at", b)
        x = self._promoted(x, None, values)
        flat = lax.reshape(lax.iota(default_int(), x.size), x.shape)
        places = flat[indices]
        values = _shape.broadcast_to(values, places.shape)
        places, values = lax.reshape(places, (places.size,)), lax.reshape(values, (values.size,))

        def step(carry: Array, item: tuple[Array, Array]) -> tuple[Array, None]:
            place, value = item
            return carry.at[place].set(cast(self._func(carry[place], value), carry.dtype)), None

        result, _ = lax.scan(step, lax.reshape(x, (x.size,)), (places, values))
        return lax.reshape(result, x.shape)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function applied to all pairs of elements.

        Args:
          A: array.
          B: array.

        Returns:
          Array with the axes of `A`, then those of `B`.

        >>> import ferrax.numpy as jnp
        >>> jnp.multiply.outer(jnp.array([1, 2]), jnp.array([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
        """
        if self.nin != 2:
            raise ValueError("outer only supported for binary ufuncs")
        x, y = to_array(f"{self.__name__}.outer", A), to_array(f"{self.__name__}.outer", B)
        right = lax.broadcast_to_rank(y, x.ndim + y.ndim) if y.ndim else y
        return self._call(lax.expand_dims(x, tuple(range(x.ndim, x.ndim + y.ndim))), right)

    def reduceat(self, a: ArrayLike, indices: Any, axis: int = 0, dtype: DTypeLike = None, out: None = None) -> Array:
        """Reductions over the slices between indices along an axis.

        Args:
          a: array.
          indices: vector of integers: slice i goes from indices[i] up to indices[i + 1], or is the one element at
            indices[i] when that is not larger; what `take` gives where there is none.
          axis: axis to reduce along.
          dtype: dtype to convert `a` to first.
          out: not supported.

        Returns:
          Array with as many entries along the axis as indices.

        >>> import ferrax.numpy as jnp
        >>> jnp.add.reduceat(jnp.arange(6), jnp.array([0, 3]))
        Array([ 3, 12], dtype=int32)
        """
        self._binary("reduceat")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.reduceat()")
        if axis is None or isinstance(axis, tuple):
            raise ValueError("reduceat requires a single integer axis.")
        x = to_array(f"{self.__name__}.reduceat", a)
        kept = self._promoted(x, dtype)
        x = x if dtype is None and kept.dtype == bool else kept  # a slice of one element is that element
        starts = asarray(np.asarray(indices)) if isinstance(indices, (list, tuple)) else asarray(indices)
        if starts.size and not issubdtype(starts.dtype, np.integer):
            raise ValueError(f"reduceat: indices must have an integer type, got {starts.dtype}")
        starts = cast(starts, default_int())
        axis = normalize_axis(axis, x.ndim)
        if starts.ndim != 1:
            raise ValueError(f"reduceat: indices must be one-dimensional, got shape {starts.shape}")
        n = x.shape[axis]
        x = _shape.moveaxis(x, axis, 0)
        ends = lax.concatenate([starts[1:], lax.full((1,), n, starts.dtype)], 0)
        result = take(x, starts, axis=0)
        shape = (starts.shape[0],) + (1,) * (x.ndim - 1)

        def step(carry: Array, item: tuple[Array, Array]) -> tuple[Array, None]:
            place, row = item
            inside = lax.reshape((starts < place) & (place < ends), shape)
            return _where(inside, cast(self._func(carry, row[None]), carry.dtype), carry), None

        result, _ = lax.scan(step, result, (lax.iota(starts.dtype, n), x))
        return _shape.moveaxis(result, 0, axis)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A universal function made from a function of scalars.

    Args:
      func: function of `nin` scalars.
      nin: number of inputs.
      nout: number of outputs.
      identity: identity element, if the function has one.

    Returns:
      A `ufunc`.

    >>> import ferrax.numpy as jnp
    >>> larger = jnp.frompyfunc(lambda x, y: jnp.where(x > y, x, y), 2, 1)
    >>> larger.reduce(jnp.array([1, 3, 2]))
    Array(3, dtype=int32)
    """
    from ferrax.numpy import _functional  # few programs have it loaded

    if not callable(func):
        raise TypeError(f"jnp.frompyfunc takes a function, got {func!r} of type {type(func).__name__} for `func`.")
    name = getattr(func, "__name__", "f")
    made = ufunc(_functional.vectorize(func), nin, nout, name=name, identity=identity)
    made._scalar = func
    return made


def _sum(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
    return _reductions.sum(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


def _prod(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
    return _reductions.prod(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


def _extremum(reduction):
    def reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        x = a if dtype is None else cast_to(a, dtype)
        return reduction(x, axis, keepdims=keepdims, initial=initial, where=where)

    return reduce


def _truth(reduction, combined):
    def reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        result = reduction(a, axis, keepdims=keepdims, where=where)
        if initial is not None:
            result = combined(result, initial)
        return result if dtype is None else cast_to(result, dtype)

    return reduce


def _adds(a, axis=0, dtype=None):
    return _cumulative.cumsum(a, axis, dtype)


def _multiplies(a, axis=0, dtype=None):
    return _cumulative.cumprod(a, axis, dtype)


def _updates(method: str, of_bools: str):
    def at(a, indices, b):
        x = to_array("ufunc.at", a)
        return getattr(x.at[indices], of_bools if x.dtype == bool else method)(b)

    return at


def _extremes(method: str):
    def at(a, indices, b):
        x = to_array("ufunc.at", a)
        return getattr(cast(x, _core.result_type(x, b)).at[indices], method)(b)

    return at


def _subtract_at(a, indices, b):
    return to_array("subtract.at", a).at[indices].add(-asarray(b))


# name -> what its ufunc has: the identity and the ways that are quicker than a scan
_TABLE: dict[str, dict[str, Any]] = {
    "add": dict(_identity=0, _reduce=_sum, _accumulate=_adds, _at=_updates("add", "max")),
    "multiply": dict(_identity=1, _reduce=_prod, _accumulate=_multiplies, _at=_updates("multiply", "min")),
    "subtract": dict(_at=_subtract_at),
    "maximum": dict(_reduce=_extremum(_reductions.max), _at=_extremes("max")),  # type: ignore[has-type]
    "minimum": dict(_reduce=_extremum(_reductions.min), _at=_extremes("min")),  # type: ignore[has-type]
    "logical_and": dict(_identity=True, _reduce=_truth(_reductions.all, _ufuncs.logical_and)),  # type: ignore[has-type]
    "logical_or": dict(_identity=False, _reduce=_truth(_reductions.any, _ufuncs.logical_or)),  # type: ignore[has-type]
    "logical_xor": dict(_identity=False),
    "bitwise_and": dict(_identity=-1),
    "bitwise_or": dict(_identity=0),
    "bitwise_xor": dict(_identity=0),
    "negative": dict(_nin=1, _nargs=1),
}


_DEFAULTS: dict[str, Any] = {
    "_nin": 2, "_nout": 1, "_nargs": 2, "_identity": None, "_reduce": None, "_at": None, "_reduceat": None,
    "_accumulate": None, "_func": property(lambda self: self), "_call": property(lambda self: self),
    "nin": ufunc.nin, "nout": ufunc.nout, "nargs": ufunc.nargs, "identity": ufunc.identity,
}  # fmt: skip
# functions of the extension module get what a `ufunc` has beyond calls
for _name, _default in _DEFAULTS.items():
    setattr(_ferrax.numpy.ufunc, _name, _default)
for _name in ("_binary", "_promoted", "_scan_reduce"):
    setattr(_ferrax.numpy.ufunc, _name, getattr(ufunc, _name))
for _name in ("accumulate", "at", "outer", "reduce", "reduceat"):
    setattr(_ferrax.numpy.ufunc, _name, shielded(getattr(ufunc, _name)))
for _name, _members in _TABLE.items():
    for _member, _value in _members.items():
        setattr(getattr(_ufuncs, _name), _member, _value)

# functions of their own for users: `debug_nans` looks at their results alone
_plain: Any = _elementwise
logaddexp = ufunc(shielded(_plain.logaddexp), 2, 1, identity=-np.inf)
logaddexp2 = ufunc(shielded(_plain.logaddexp2), 2, 1, identity=-np.inf)
